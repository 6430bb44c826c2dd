"""Sizes that are not the same in every run, as ONNX integers.

A size is a sympy expression over symbols. A symbol is bound by an axis of a tensor (`Shape` of it), by a compound axis
that can be solved for it (an input of length `2*s + 1`), or by a 0-d tensor (`.item()`, a Python number among the
inputs). Nothing is emitted before a translation asks; then each expression is computed once per scope.

Expressions are computed as tensors of shape [1], so that they join into shapes without any reshaping; `scalar` takes
the axis off where a 0-d tensor is needed. What is made of 0-d tensors (the counter of a loop) and is wanted as one is
computed without axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir
import sympy

from trueport.graph.regions import Number, Size
from trueport.lower.exact.arithmetic import compute
from trueport.lower.scope import Scope, Shelf
from trueport.lower.tensor import Emitter, Tensor

AnySize: TypeAlias = int | sympy.Basic | Number


@dataclass(frozen=True, slots=True)
class _Axis:
    """A symbol that is found on an axis: `multiple * symbol + offset` is its length."""

    tensor: Tensor
    axis: int
    scope: Scope
    """The graph in which it is told."""
    multiple: int = 1
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        return self.multiple == 1 and self.offset == 0


@dataclass(frozen=True, slots=True)
class _Item:
    """A symbol that is the content of a 0-d tensor."""

    tensor: Tensor


class Sizes:
    """The size arithmetic of one model."""

    def __init__(self, builder: Emitter) -> None:
        self._op = builder
        self._names: Mapping[sympy.Basic, sympy.Basic] = {}
        self._minimum: Mapping[sympy.Basic, int] = {}
        self._results: Mapping[sympy.Basic, sympy.Basic] = {}
        self._sources: Shelf[sympy.Basic, _Axis | _Item] = Shelf("size sources")
        self._lengths: Shelf[sympy.Basic, Tensor] = Shelf("sizes of shape [1]")
        self._scalars: Shelf[sympy.Basic, Tensor] = Shelf("sizes of shape []")
        self._vectors: Shelf[tuple[object, ...], Tensor] = Shelf("shapes")
        self._on_axes: set[sympy.Basic] = set()
        self._without_axes = False
        """Whether 0-d tensors are computed just now."""
        self._declared: dict[sympy.Basic, str | int] = {}

    # What is known beforehand

    def name(self, symbols: Mapping[sympy.Symbol, str | int], minimum: Mapping[sympy.Symbol, int]) -> None:
        """The user's names of the free sizes (a number where one is fixed after all), and how small each may be."""
        self._names = {
            symbol: sympy.Integer(name) if isinstance(name, int) else sympy.Symbol(name)
            for symbol, name in symbols.items()
        }
        self._minimum = dict(minimum)

    def name_results(self, symbols: Mapping[sympy.Symbol, str]) -> None:
        """Names for sizes that only a run tells, where an output has them."""
        self._results = {symbol: sympy.Symbol(name) for symbol, name in symbols.items() if symbol not in self._names}

    def declared(self, sizes: Sequence[Size]) -> ir.Shape:
        """Sizes as ONNX declares them: numbers, and the user's names where the size is free."""
        return ir.Shape([size if isinstance(size, int) else self._declare(size) for size in sizes])

    def _declare(self, size: sympy.Expr) -> int | str:
        if size.is_Integer:
            return int(size)
        if (declared := self._declared.get(size)) is None:
            known = size.xreplace({**self._results, **self._names})
            declared = self._declared[size] = int(known) if known.is_Integer else self._word(known)
        return declared

    def _word(self, size: sympy.Expr) -> str:
        """`n//2` speaks for itself; an expression of a number that only the run tells says nothing, and gets a name."""
        computed = size.atoms(sympy.Function) and not size.free_symbols <= set(self._names.values())
        return f"computed_{len(self._declared)}" if computed else str(size)

    def is_given(self, sizes: Sequence[Size]) -> bool:
        """Whether the shapes of the inputs tell these sizes. Others are told by values: how many a mask selects."""
        return all(isinstance(size, int) or size.free_symbols <= set(self._names) for size in sizes)

    # Binding

    def bind(self, tensor: Tensor, sizes: Sequence[Size]) -> None:
        """Learn the symbols that the axes of this tensor give."""
        for axis, size in enumerate(sizes):
            if isinstance(size, int) or size.is_Integer:
                continue
            if size.is_Symbol:
                self._on_axes.add(size)
                if self._sources.get(self._op.scope, size) is None:
                    self._sources.put(self._op.scope, size, _Axis(tensor, axis, self._op.scope))
            elif (solved := _solve(size)) is not None:
                symbol, multiple, offset = solved
                if self._sources.get(self._op.scope, symbol) is None:
                    self._sources.put(self._op.scope, symbol, _Axis(tensor, axis, self._op.scope, multiple, offset))

    def is_bound(self, symbol: sympy.Symbol) -> bool:
        """Whether something here tells a symbol."""
        return self._sources.get(self._op.scope, symbol) is not None

    def bind_number(self, number: Number, tensor: Tensor) -> None:
        """Learn the symbol of a Python number that is the content of a 0-d tensor."""
        expr = number.expr
        symbols = [s for s in expr.free_symbols if self._sources.get(self._op.scope, s) is None]
        if expr.is_Symbol:
            if symbols:
                self._sources.put(self._op.scope, expr, _Item(self._op.cast(tensor, number.dtype)))
        elif isinstance(expr, sympy.Eq) and expr.args[0].is_Symbol and expr.args[1] == 1 and symbols:
            # How the trace writes a bool that a tensor yields: `u0 == 1`.
            self._sources.put(self._op.scope, expr.args[0], _Item(self._op.cast(tensor, ir.DataType.BOOL)))
        elif len(symbols) == 1 and (solved := _solve(expr)) is not None:
            symbol, multiple, offset = solved
            self._sources.put(self._op.scope, symbol, _Item((tensor - offset) / multiple))

    # Asking

    def scalar(self, size: AnySize) -> Tensor:
        """As a 0-d tensor: int64, float64 or bool."""
        if isinstance(size, bool | int | float):
            return self._op.const(size, ir.DataType.DOUBLE if isinstance(size, float) else None)
        expr = _expr(size)
        if expr.is_Integer:
            return self._op.const(int(expr))
        found = self._scalars.get(self._op.scope, expr)
        if found is None:
            with self._op.for_all():
                found = self._new_scalar(expr)
            found.sizes = ()
            self._scalars.put(self._op.scope, expr, found)
        return _in_kind(self._op, found, size)

    def _new_scalar(self, expr: sympy.Basic) -> Tensor:
        source = self._sources.get(self._op.scope, expr)
        if isinstance(source, _Item):
            return source.tensor
        if isinstance(source, _Axis):
            with self._op.around(source.scope):  # a loop asks once, before its first round
                found = self._op.Squeeze(self.length(expr), self._op.ints(0))
                return self._scalars.put(self._op.scope, expr, found)
        if (flag := self._flag(expr)) is not None:
            return flag
        if self._lengths.get(self._op.scope, expr) is None and self._holds_items(expr):
            return self._computed(expr, without_axes=True)
        return self._op.Squeeze(self.length(expr), self._op.ints(0))

    def _flag(self, expr: sympy.Basic) -> Tensor | None:
        """`u0 == 1` and `u0 != 1`, which is how the trace writes a bool, where u0 is the content of a bool tensor."""
        if not isinstance(expr, sympy.Eq | sympy.Ne) or not expr.args[0].is_Symbol or expr.args[1] != 1:
            return None
        source = self._sources.get(self._op.scope, expr.args[0])
        if not isinstance(source, _Item) or source.tensor.dtype != ir.DataType.BOOL:
            return None
        return source.tensor if isinstance(expr, sympy.Eq) else self._op.Not(source.tensor)

    def _holds_items(self, expr: sympy.Basic) -> bool:
        sources = (self._sources.get(self._op.scope, symbol) for symbol in expr.free_symbols)
        return not expr.is_Symbol and any(isinstance(source, _Item) for source in sources)

    def length(self, size: AnySize) -> Tensor:
        """As a tensor of shape [1]."""
        expr = _expr(size)
        found = self._lengths.get(self._op.scope, expr)
        if found is None:
            known = None if expr.is_Symbol else self._scalars.get(self._op.scope, expr)
            with self._op.for_all():
                if known is not None:
                    found = self._op.Reshape(known, self._op.ints(1))
                else:
                    found = self._computed(expr, without_axes=False)
            found.sizes = (1,)
            self._lengths.put(self._op.scope, expr, found)
        return found

    def part(self, expr: sympy.Basic) -> Tensor:
        """A part of the expression that is being computed, in the form in which the whole is wanted."""
        return self.scalar(expr) if self._without_axes else self.length(expr)

    def constant(self, value: bool | int | float, dtype: ir.DataType) -> Tensor:
        """The same for a number."""
        return self._op.const(value if self._without_axes else [value], dtype)

    def vector(self, sizes: Sequence[AnySize | Tensor]) -> Tensor:
        """As a 1-d int64 tensor; a constant when all are known."""
        items = [_plain(size) for size in sizes]
        if all(isinstance(item, int) for item in items):
            return self._op.ints(*items)  # type: ignore[arg-type]
        key = tuple(items)
        found = self._vectors.get(self._op.scope, key)
        if found is None:
            with self._op.for_all():
                parts = list(self._parts(items))
                found = parts[0] if len(parts) == 1 else self._op.Concat(*parts, axis=0)
            found.sizes = (len(items),)
            self._vectors.put(self._op.scope, key, found)
        return found

    def reshape_target(self, before: Sequence[Size] | None, after: Sequence[AnySize]) -> tuple[Tensor, bool]:
        """The second input of `Reshape`, as constant as it can be, and whether a zero in it is meant as a zero.

        1. A size that stays on its axis is `0` (copy it).
        2. One size may be `-1` when all others are known to be positive; an empty tensor would leave it open.
        3. The rest is computed. What is computed may turn out to be zero; then no zero can mean a copy.
        """
        items = [_plain(size) for size in after]
        known = [isinstance(item, int) for item in items]
        copied = [
            not known[i] and before is not None and i < len(before) and item == before[i]
            for i, item in enumerate(items)
        ]
        open_ = [i for i in range(len(items)) if not known[i] and not copied[i]]
        if len(open_) == 1 and all(i == open_[0] or self.is_positive(item) for i, item in enumerate(items)):
            items[open_[0]] = -1
            open_ = []
        if 0 in items or not all(self.is_positive(items[i]) for i in open_):
            return self.vector(items), True
        return self.vector([0 if copy else item for item, copy in zip(items, copied, strict=True)]), False

    def is_positive(self, size: AnySize | Tensor) -> bool:
        """Known to be at least 1, in every run."""
        if isinstance(size, int):
            return size > 0
        if isinstance(size, Number):
            size = size.expr
        if not isinstance(size, sympy.Basic):
            return False
        if size.is_Integer:
            return bool(size > 0)
        if size.is_Symbol:
            return self._minimum.get(size, 0) >= 1
        return isinstance(size, sympy.Mul) and all(self.is_positive(factor) for factor in size.args)

    def is_natural(self, expr: sympy.Basic) -> bool:
        """Known not to be negative, in every run."""
        if expr.is_Symbol:
            return expr in self._on_axes or bool(expr.is_nonnegative)
        if expr.is_number:
            return bool(expr >= 0)
        if type(expr).__name__ in ("Add", "Mul", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "Min", "Pow"):
            return all(self.is_natural(part) for part in expr.args)
        if type(expr).__name__ == "Max":
            return any(self.is_natural(part) for part in expr.args)
        return False

    # Computing

    def _computed(self, expr: sympy.Basic, without_axes: bool) -> Tensor:
        before, self._without_axes = self._without_axes, without_axes
        try:
            return self._compute(expr)
        finally:
            self._without_axes = before

    def _compute(self, expr: sympy.Basic) -> Tensor:
        if not expr.is_Symbol:
            return compute(self._op, expr)
        source = self._sources.get(self._op.scope, expr)
        if source is None:
            raise LookupError(f"the size {expr} is used where no tensor in sight has it")
        if isinstance(source, _Item):
            return self._op.Reshape(source.tensor, self._op.ints(1))
        with self._op.around(source.scope):
            length = self._op.Shape(source.tensor, start=source.axis, end=source.axis + 1)
            if source.offset:
                length = length - source.offset
            if source.multiple != 1:
                length = length / source.multiple
            length.sizes = (1,)
            return self._lengths.put(self._op.scope, expr, length)

    def _parts(self, items: Sequence[int | sympy.Basic | Tensor]) -> Iterable[Tensor]:
        """Joins of runs: neighbouring known sizes are one constant, neighbouring axes of a tensor one `Shape`."""
        start = 0
        while start < len(items):
            stop = start + 1
            item = items[start]
            if isinstance(item, int):
                while stop < len(items) and isinstance(items[stop], int):
                    stop += 1
                yield self._op.ints(*items[start:stop])  # type: ignore[arg-type]
            elif isinstance(item, sympy.Basic):
                source = self._plain_axis(item)
                while source and stop < len(items) and self._is_axis(items[stop], source, stop - start):
                    stop += 1
                if source and stop - start > 1:
                    yield self._op.Shape(source.tensor, start=source.axis, end=source.axis + stop - start)
                else:
                    yield self.length(item)
            else:
                yield self._op.Reshape(self._op.cast(item, ir.DataType.INT64), self._op.ints(1))
            start = stop

    def _plain_axis(self, expr: sympy.Basic) -> _Axis | None:
        source = self._sources.get(self._op.scope, expr) if expr.is_Symbol else None
        return source if isinstance(source, _Axis) and source.is_plain else None

    def _is_axis(self, item: object, first: _Axis, steps: int) -> bool:
        """Whether `item` is the length of the axis that comes `steps` after the first one."""
        sizes, axis = first.tensor.sizes or (), first.axis + steps
        return axis < len(sizes) and not isinstance(item, int) and item == sizes[axis]


def _expr(size: AnySize) -> sympy.Basic:
    if isinstance(size, Number):
        return size.expr
    return sympy.Integer(size) if isinstance(size, int) else size


def _plain(size: AnySize | Tensor) -> int | sympy.Basic | Tensor:
    if isinstance(size, Number):
        size = size.expr
    if isinstance(size, sympy.Basic) and size.is_Integer:
        return int(size)
    return size


def _solve(size: sympy.Basic) -> tuple[sympy.Symbol, int, int] | None:
    """(symbol, multiple, offset) of a size that is linear in its only symbol, whatever the offset."""
    if len(size.free_symbols) != 1:
        return None
    (symbol,) = size.free_symbols
    multiple = sympy.diff(size, symbol) if isinstance(size, sympy.Add | sympy.Mul) else None
    if multiple is None or not multiple.is_Integer or multiple == 0:
        return None
    offset = size.subs(symbol, 0)
    return (symbol, int(multiple), int(offset)) if offset.is_Integer else None


def _in_kind(op: Emitter, value: Tensor, size: AnySize) -> Tensor:
    """A Number says of which Python type it is; an expression over integers may stand for a float."""
    if not isinstance(size, Number):
        return value
    wanted = {int: ir.DataType.INT64, float: ir.DataType.DOUBLE, bool: ir.DataType.BOOL}[size.kind]
    return op.cast(value, wanted)
