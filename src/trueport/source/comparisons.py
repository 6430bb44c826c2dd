"""The numbers that a function compares something with, as they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.source.functions import function_at

_LIMITS = frozenset(
    "gt ge lt le eq ne clamp clamp_ clamp_min clamp_max clip maximum minimum max min hardtanh threshold masked_fill"
    " masked_fill_ remainder fmod floor_divide bucketize searchsorted hardshrink softshrink".split()
)
"""Functions and methods to which a number is a limit."""
_SIZES = frozenset("shape size dim ndim len numel".split())
"""What asks for a size: Python decides by that, and no value has to meet the number."""


def compared_numbers(file: str, first_line: int) -> tuple[float, ...]:
    """Of the function that begins on this line; none where there is no source."""
    function = function_at(file, first_line)
    if function is None:
        return ()
    return tuple(dict.fromkeys(number for node in ast.walk(function) for number in _of(node)))


def _of(node: ast.AST) -> Iterator[float]:
    match node:
        case ast.Compare(left, _, others):
            sides = [left, *others]
        case ast.Call(ast.Attribute(attr=name) | ast.Name(id=name), given, named) if name in _LIMITS:
            sides = [*given, *(each.value for each in named)]
        case ast.BinOp(left, ast.Mod() | ast.FloorDiv(), right):
            sides = [left, right]
        case _:
            return
    if not any(_asks_for_a_size(side) for side in sides):
        yield from (number for side in sides if (number := _number(side)) is not None)


def _asks_for_a_size(side: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _SIZES) or (isinstance(node, ast.Name) and node.id in _SIZES)
        for node in ast.walk(side)
    )


def _number(side: ast.expr) -> float | None:
    if isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub):
        inner = _number(side.operand)
        return None if inner is None else -inner
    if not isinstance(side, ast.Constant) or isinstance(side.value, bool) or not isinstance(side.value, int | float):
        return None
    return side.value
