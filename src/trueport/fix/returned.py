"""Which expression of a function a part of its result comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueport.fix.case import Case, Function

Step = int | str


def returned(case: Case, path: str) -> Iterator[ast.expr]:
    """The expressions that give `output["boxes"][0]`, one per `return`, as far as they are written there.

    A name is followed to the last line that gives it a value; what a call returns is not looked into.
    """
    if case.function is None:
        return
    steps: list[Step] = [
        int(number) if number else key for key, number in re.findall(r"\[['\"](.*?)['\"]\]|\[(\d+)\]", path)
    ]
    for node in _own(case.function):
        if isinstance(node, ast.Return) and node.value is not None:
            found = _follow(case.function, node.value, steps)
            if found is not None:
                yield found


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += list(ast.iter_child_nodes(node))


def _follow(function: Function, value: ast.expr, steps: list[Step]) -> ast.expr | None:
    for step in steps:
        value = _behind(function, value)
        inner = _part(value, step)
        if inner is None:
            return None
        value = inner
    return value


def _behind(function: Function, value: ast.expr) -> ast.expr:
    """What a name was last given before it is used."""
    if not isinstance(value, ast.Name):
        return value
    name, line = value.id, value.lineno
    given = [
        node
        for node in _own(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        and node.lineno < line
    ]
    return max(given, key=lambda node: node.lineno).value if given else value


def _part(value: ast.expr, step: Step) -> ast.expr | None:
    if isinstance(value, ast.Tuple | ast.List) and isinstance(step, int) and step < len(value.elts):
        return value.elts[step]
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        return value.values[keys.index(step)] if step in keys else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return next((word.value for word in value.keywords if word.arg == step), None)
    return None
