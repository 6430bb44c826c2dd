"""The names that blocks of rewritten code share with their function, read and set from outside.

Python keeps a name that functions inside a function use in a cell, and each of them has the cells of its names. So a
function that does nothing but name them, `lambda: (a, b)`, is all that the rewritten code has to hand over.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from types import CellType, FunctionType
from typing import Any

from trueport.rewrite.running.asking import UNBOUND, BlockNames


class _Global:
    """A name that the user declared `global`, in the manner of a cell."""

    def __init__(self, names: dict[str, Any], name: str) -> None:
        self._names, self._name = names, name

    @property
    def cell_contents(self) -> Any:
        return self._names.get(self._name, UNBOUND)

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self._names[self._name] = value


def shared_names(naming: FunctionType, names: tuple[str, ...], looking: FunctionType | None = None) -> BlockNames:
    """The state of a block that has these names, and looks at those that the second function names."""
    held = dict(zip(naming.__code__.co_freevars, naming.__closure__ or (), strict=True))
    cells = [_cell(held, name) or _Global(naming.__globals__, name) for name in names]
    others = () if looking is None else looking.__closure__ or ()
    return BlockNames(
        functools.partial(_contents, cells), functools.partial(_fill, cells), names, lambda: _contents(others)
    )


def _cell(held: dict[str, CellType], name: str) -> CellType | None:
    """The cell of a name; in a class, Python calls `__name` by `_Class__name`."""
    if name in held or not name.startswith("__"):
        return held.get(name)
    return next((cell for known, cell in held.items() if known.endswith(name)), None)


def _contents(cells: Iterable[CellType | _Global]) -> tuple[Any, ...]:
    return tuple(_content(cell) for cell in cells)


def _content(cell: CellType | _Global) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def _fill(cells: Sequence[CellType | _Global], values: tuple[Any, ...]) -> None:
    for cell, value in zip(cells, values, strict=True):
        cell.cell_contents = value
