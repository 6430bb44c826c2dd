"""The length of an axis as a formula of free sizes: `p + s`, `2*n`, `h//4`.

A mask is as long as the past and the new tokens together, and only the user knows that. A formula is read once, and
answers for whole numbers and for symbols of a trace alike. Read backwards, the lengths of an example tell its sizes.
It grows with its sizes: only numbers are subtracted and divided by, so that it is nowhere less than at the lowest.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_LONGEST = 200
"""Letters of a formula: a foreign file's names are read as formulas, too."""


@cache
def names_in(text: str) -> tuple[str, ...] | None:
    """The sizes that a formula speaks of; None for a text that is no formula."""
    tree = _parsed(text)
    if tree is None:
        return None
    return tuple(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))


def computed(text: str, sizes: Mapping[str, Any]) -> Any:
    """What a formula gives for these sizes, numbers or symbols. A name that is no formula is itself a size."""
    if text in sizes:
        return sizes[text]
    tree = _parsed(text)
    assert tree is not None, text
    return _value(tree, sizes)


def solved(lengths: Iterable[tuple[str, Sequence[str], int]]) -> dict[str, int]:
    """The sizes that give these lengths, of each the formula and its names; those that none tells are left out."""
    found: dict[str, int] = {}
    open_ones = list(lengths)
    while open_ones:
        ready = [each for each in open_ones if len(set(each[1]) - found.keys()) <= 1]
        if not ready:
            break
        open_ones = [each for each in open_ones if each not in ready]
        for text, names, length in ready:
            for unknown in set(names) - found.keys():
                if (size := _root(text, unknown, found, length)) is not None:
                    found[unknown] = size
    return found


def tells_its_size(text: str, name: str) -> bool:
    """Whether the length tells the one size that a formula speaks of: `2*n` does, `h//4` does not."""
    return _root(text, name, {}, computed(text, {name: 0})) is not None


def _root(text: str, unknown: str, known: Mapping[str, int], length: int) -> int | None:
    """The size at which a formula has this length, where it grows by as much with each step."""
    zero, one, many = (computed(text, {**known, unknown: n}) for n in (0, 1, 60))
    step = one - zero
    if step == 0 or many - zero != 60 * step or (length - zero) % step:
        return None
    return int((length - zero) // step)


@cache
def _parsed(text: str) -> ast.expr | None:
    if len(text) > _LONGEST:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if _is_formula(tree) else None


def _is_formula(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.FloorDiv, ast.Sub)) and not (
            isinstance(node.right, ast.Constant) and node.right.value
        ):
            return False
        return type(node.op) in _OPERATORS and _is_formula(node.left) and _is_formula(node.right)
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return isinstance(node, ast.Name)


def _value(node: ast.expr, sizes: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Constant):
        return node.value
    assert isinstance(node, ast.Name)
    return sizes[node.id]
