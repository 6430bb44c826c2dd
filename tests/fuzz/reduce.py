"""A failing program, made smaller while it still fails in the same way.

python -m tests.fuzz.reduce build/fuzz/0_17_WRONG_replay.py
"""

from __future__ import annotations

import ast
import copy
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.outcome import Outcome, Verdict, judge

_BLOCKS = ("body", "orelse", "finalbody")
_SECONDS = 300
StillFails = Callable[[str], bool]


def reduced(source: str, still_fails: StillFails) -> str:
    """Try smaller programs, each step on top of the last that failed, until a whole pass changes nothing."""
    tree, before = ast.parse(source), ""
    while ast.unparse(tree) != before:
        before = ast.unparse(tree)
        tree = _pass(tree, _statement_edits, still_fails)
        tree = _pass(tree, _expression_edits, still_fails)
    return before


def reduced_within(source: str, wanted: Outcome, seconds: float) -> str:
    """The smallest program of the same outcome that is found in this time."""
    end = time.monotonic() + seconds

    def still_fails(text: str) -> bool:
        if time.monotonic() > end:
            return False
        found = _outcome(text)
        return (found.verdict, found.code) == (wanted.verdict, wanted.code)

    return reduced(source, still_fails)


def _pass(tree: ast.Module, edits: Callable[[ast.Module], list[ast.Module]], still_fails: StillFails) -> ast.Module:
    """Later statements first: what reads goes before what is read."""
    tried: set[str] = {ast.unparse(tree)}
    index, smaller = 0, edits(tree)
    while index < len(smaller):
        text = ast.unparse(smaller[index])
        if text not in tried and still_fails(text):
            tree = smaller[index]
            smaller = edits(tree)
        else:
            index += 1
        tried.add(text)
    return tree


def _statement_edits(tree: ast.Module) -> list[ast.Module]:
    """Without a statement, or with its block in its place."""
    made: list[ast.Module] = []
    for position, node in reversed(list(enumerate(ast.walk(tree)))):
        for field in _BLOCKS:
            block = getattr(node, field, None)
            for item in reversed(range(len(block) if isinstance(block, list) else 0)):
                assert isinstance(block, list)
                definition = isinstance(block[item], (ast.FunctionDef, ast.ClassDef))
                inside = [] if definition else [getattr(block[item], f, []) for f in _BLOCKS[:2]]
                made += [_with_block(tree, position, field, item, new) for new in [[], *(i for i in inside if i)]]
    return made


def _with_block(tree: ast.Module, position: int, field: str, item: int, new: list[ast.stmt]) -> ast.Module:
    made = copy.deepcopy(tree)
    block: list[ast.stmt] = getattr(list(ast.walk(made))[position], field)
    block[item : item + 1] = copy.deepcopy(new)
    if not block and field == "body":
        block.append(ast.Pass())
    return made


def _expression_edits(tree: ast.Module) -> list[ast.Module]:
    """With a part of an expression in its place."""
    made: list[ast.Module] = []
    for position, node in enumerate(ast.walk(tree)):
        if not isinstance(node, ast.expr):
            continue
        parts = [p for p in ast.iter_child_nodes(node) if isinstance(p, ast.expr)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.insert(0, node.func.value)
        made += [_replaced(tree, position, p) for p in parts if isinstance(getattr(p, "ctx", ast.Load()), ast.Load)]
    return made


def _replaced(tree: ast.Module, position: int, by: ast.expr) -> ast.Module:
    made = copy.deepcopy(tree)
    old = list(ast.walk(made))[position]
    for parent in ast.walk(made):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, copy.deepcopy(by))
            elif isinstance(value, list):
                value[:] = [copy.deepcopy(by) if item is old else item for item in value]
    return made


def _outcome(source: str) -> Outcome:
    try:
        return judge(source)
    except Exception as failure:  # a smaller program may be no program at all
        return Outcome(Verdict.VOID, str(failure))


def main() -> None:
    warnings.simplefilter("ignore")
    for file in sys.argv[1:]:
        source = Path(file).read_text()
        wanted = _outcome(source)
        if wanted.verdict in (Verdict.FAITHFUL, Verdict.VOID):
            print(f"# {file}: {wanted.verdict.value} now", flush=True)
            continue
        small = reduced_within(source, wanted, _SECONDS)
        print(f"# {file}: {wanted.verdict.value} {wanted.code}\n{small}\n")
        print("".join(f"# {line}\n" for line in _outcome(small).detail.splitlines()[-12:]), flush=True)


if __name__ == "__main__":
    main()
