"""The free sizes and Python numbers of a trace, as torch's symbols, and what was decided about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import sympy
import torch

from trueport.capture.stops.places import Places
from trueport.graph.regions import Number, Size, SizeAssumption
from trueport.load.job import AxisSize, FreeSize
from trueport.source import Place
from trueport.torch_internals import DecidingShapes, FakeTensorMode, outside_all_modes
from trueport.torch_internals.bounds import opposite
from trueport.torch_internals.expressions import without_common_factor
from trueport.torch_internals.symbolic import expr_of, number_kind, statement_of, symbol_behind


class Symbols:
    """Owns the ShapeEnv of one trace."""

    def __init__(self, places: Places, asked: Callable[[sympy.Basic], bool | sympy.Basic]) -> None:
        self._places = places
        self.shapes = DecidingShapes(asked, self._note_decision)
        self.fake_mode = FakeTensorMode(self.shapes)
        self.assumptions: list[SizeAssumption] = []
        self.size_symbols: dict[sympy.Symbol, FreeSize] = {}
        self.number_symbols: dict[sympy.Symbol, str] = {}
        self.hints: dict[sympy.Symbol, int | float] = {}
        self._sizes: dict[str, torch.SymInt] = {}

    # --- making symbols

    def free_size(self, size: FreeSize, hint: int) -> torch.SymInt:
        known = self._sizes.get(size.name)
        if known is None:
            known = self._sizes[size.name] = self.shapes.new_size(size.name, hint, size.minimum, size.maximum)
            symbol = expr_of(known)
            self.size_symbols[symbol] = size
            self.hints[symbol] = hint
        return known

    def axis(self, axis: AxisSize, hints: Mapping[str, int]) -> Any:
        """The length of a free axis; `hints` are the sizes in the trace."""
        return axis.length({size.name: self.free_size(size, hints[size.name]) for size in axis.sizes})

    def number(self, name: str, value: int | float | bool) -> Any:
        """A Python number argument that stays an input."""
        new: dict[Any, Callable[..., Any]] = {
            bool: self.shapes.new_bool,
            int: self.shapes.new_int,
            float: self.shapes.new_float,
        }
        made = new[number_kind(value)](name, value)
        symbol = symbol_behind(made)
        self.number_symbols[symbol] = name
        self.hints[symbol] = value
        return made

    def fake_like(self, example: torch.Tensor, sizes: list[Any]) -> torch.Tensor:
        """A fake tensor of these sizes, laid out in memory in the example's order of axes."""
        strides: list[Any] = [1] * len(sizes)
        step: Any = 1
        order = sorted(range(len(sizes)), key=lambda a: (example.stride(a), -a)) if _is_dense(example) else None
        for axis in order if order is not None else reversed(range(len(sizes))):
            strides[axis] = step
            step = step * sizes[axis]
        with outside_all_modes(), self.fake_mode:
            return torch.empty_strided(sizes, strides, dtype=example.dtype, device=example.device)

    # --- reading them back

    def size(self, value: Any) -> Size:
        if isinstance(value, int):
            return value
        expr = expr_of(value)
        return int(expr) if expr.is_Integer else expr

    def number_of(self, value: Any) -> Any:
        """A symbolic Python number as a Number, or as a plain one where it is known after all."""
        expr = expr_of(value)
        if isinstance(value, torch.SymInt):
            return int(expr) if expr.is_Integer else Number(expr, int)
        if isinstance(value, torch.SymFloat):
            return float(expr) if expr.is_number else Number(expr, float)
        if expr in (sympy.true, sympy.false):
            return bool(expr)
        return Number(expr, bool)

    def assume(self, flag: Any, place: Place) -> bool:
        """Take for granted, for eager to judge, what depends on free sizes alone; False where more than that does."""
        said = statement_of(flag)
        if said is None or not said.free_symbols or not said.free_symbols <= self.size_symbols.keys():
            return False
        names = sorted(self.size_symbols[symbol].name for symbol in said.free_symbols)
        self.assumptions.append(SizeAssumption(said, place, True, tuple(names)))
        return True

    def where(self, test: Any, holds: bool) -> AbstractContextManager[None]:
        """While a test holds, or does not: what it says of numbers is known."""
        said = statement_of(test)
        if said is None:
            return nullcontext()
        return self.shapes.where(said if holds else opposite(said))

    def _note_decision(self, decided: sympy.Basic) -> None:
        expr = without_common_factor(decided)
        names = [self.size_symbols[s].name for s in expr.free_symbols if s in self.size_symbols]
        names += [self.number_symbols[s] for s in expr.free_symbols if s in self.number_symbols]
        by_user = self._places.decided_by_user()
        self.assumptions.append(SizeAssumption(expr, self._places.here(), by_user, tuple(sorted(names))))


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the strides are those of some order of the axes without holes (contiguous, transposed, channels last)."""
    step = 1
    for axis in sorted(range(tensor.dim()), key=lambda a: (tensor.stride(a), tensor.size(a))):
        if tensor.size(axis) == 1:
            continue
        if tensor.stride(axis) != step:
            return False
        step *= tensor.size(axis)
    return tensor.numel() > 0
