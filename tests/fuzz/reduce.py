"""A failing program, made as small as it can be while it still fails in the same way.

    python -m tests.fuzz.reduce build/fuzz/0_17_WRONG_replay.py
"""

from __future__ import annotations

import ast
import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.outcome import Outcome, Verdict, judge

_BLOCKS = ("body", "orelse", "finalbody")


def reduced(source: str, still_fails: Callable[[str], bool]) -> str:
    """Try every smaller program until none fails any more."""
    tree = ast.parse(source)
    going = True
    while going:
        going = False
        for smaller in _smaller(tree):
            if still_fails(ast.unparse(smaller)):
                tree, going = smaller, True
                break
    return ast.unparse(tree)


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Programs with a statement less, a statement replaced by its block, or an expression by a part of it."""
    places = [(i, field, j) for i, node in enumerate(ast.walk(tree)) for field in _BLOCKS for j in range(_length(node, field))]
    for i, field, j in places:
        for way in range(3):
            made = copy.deepcopy(tree)
            block: list[ast.stmt] = getattr(list(ast.walk(made))[i], field)
            old = block[j]
            inside = [getattr(old, "body", []), getattr(old, "orelse", [])]
            new = [[], *inside][way] if not isinstance(old, (ast.FunctionDef, ast.ClassDef)) else []
            if way and (not new or isinstance(old, (ast.FunctionDef, ast.ClassDef))):
                continue
            block[j : j + 1] = new
            if not block and field == "body":
                block.append(ast.Pass())
            if ast.unparse(made) != ast.unparse(tree):
                yield made
    expressions = [i for i, node in enumerate(ast.walk(tree)) if isinstance(node, ast.expr)]
    for i in expressions:
        here = list(ast.walk(tree))[i]
        for child in ast.iter_child_nodes(here):
            if isinstance(child, ast.expr) and isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
                yield _replaced(tree, i, child)
        if isinstance(here, ast.Call) and isinstance(here.func, ast.Attribute):
            yield _replaced(tree, i, here.func.value)


def _length(node: ast.AST, field: str) -> int:
    block = getattr(node, field, None)
    return len(block) if isinstance(block, list) else 0


def _replaced(tree: ast.Module, index: int, by: ast.expr) -> ast.Module:
    made = copy.deepcopy(tree)
    old = list(ast.walk(made))[index]
    for parent in ast.walk(made):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, copy.deepcopy(by))
            elif isinstance(value, list) and any(item is old for item in value):
                value[next(k for k, item in enumerate(value) if item is old)] = copy.deepcopy(by)
    return made


def _outcome(source: str) -> Outcome:
    try:
        return judge(source)
    except Exception as failure:
        return Outcome(Verdict.VOID, str(failure))


def main() -> None:
    warnings.simplefilter("ignore")
    for file in sys.argv[1:]:
        source = Path(file).read_text()
        wanted = _outcome(source)
        key = (wanted.verdict, wanted.code)
        if wanted.verdict in (Verdict.FAITHFUL, Verdict.VOID):
            print(f"# {file}: {wanted.verdict.value} now")
            continue

        def still_fails(text: str, key: tuple[Verdict, str] = key) -> bool:
            found = _outcome(text)
            return (found.verdict, found.code) == key

        small = reduced(source, still_fails)
        print(f"# {file}: {wanted.verdict.value} {wanted.code}\n{small}\n")
        print("".join(f"# {line}\n" for line in _outcome(small).detail.splitlines()[-12:]), flush=True)


if __name__ == "__main__":
    main()
