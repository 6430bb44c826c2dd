"""What the algorithms of linear algebra share: batches of matrices in float64, masks and single rows.

Every algorithm here works on [batch, rows, columns] in float64, whatever the dtype of the model: eager's own result is
then the less exact one, and the two agree as far as the dtype goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import sympy

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import count
from trueport.lower.tensor import Tensor

DOUBLE, INT64, INT32 = ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.INT32


def smaller(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else sympy.Min(a, b)


def larger(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else sympy.Max(a, b)


def batch_of(x: Tensor) -> tuple[Size, ...]:
    """The sizes before those of the matrix."""
    return x.known_sizes[:-2]


def stacked(op: Builder, x: Tensor) -> Tensor:
    """[..., rows, columns] as [batch, rows, columns], in float64."""
    return op.cast(op.reshape(x, (count(batch_of(x)), *x.known_sizes[-2:])), DOUBLE)


def unstacked(op: Builder, x: Tensor, batch: Sequence[Size]) -> Tensor:
    """[batch, ...] with the axes of the batch as the model has them."""
    return op.reshape(x, (*batch, *x.known_sizes[1:]))


def sized(x: Tensor, *sizes: Size) -> Tensor:
    """`x`, of which we know the sizes."""
    x.settle(sizes)
    return x


def flipped(op: Builder, x: Tensor) -> Tensor:
    """The transposed matrices."""
    return op.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def down(op: Builder, rows: Size) -> Tensor:
    """0, 1, ... as a column."""
    return op.Unsqueeze(op.range(rows), op.ints(1))


def where_row_is(op: Builder, rows: Size, k: Tensor) -> Tensor:
    """[rows, 1]: true at row k."""
    return op.Equal(down(op, rows), k)


def lower_part(op: Builder, x: Tensor, diagonal: int = 0) -> Tensor:
    """Zero above the diagonal. `Trilu` does not take what is empty."""
    rows, columns = x.known_sizes[-2:]
    keep = op.GreaterOrEqual(op.Add(down(op, rows), diagonal), op.range(columns))
    return _kept(op, x, keep)


def upper_part(op: Builder, x: Tensor, diagonal: int = 0) -> Tensor:
    """Zero below the diagonal."""
    rows, columns = x.known_sizes[-2:]
    keep = op.LessOrEqual(op.Add(down(op, rows), diagonal), op.range(columns))
    return _kept(op, x, keep)


def _kept(op: Builder, x: Tensor, keep: Tensor) -> Tensor:
    return sized(op.Where(keep, x, op.const(0, x.element)), *x.known_sizes)


def identity(op: Builder, rows: Size, columns: Size | None = None, dtype: ir.DataType = DOUBLE) -> Tensor:
    """Ones on the diagonal, [rows, columns]."""
    columns = rows if columns is None else columns
    return sized(op.cast(op.Equal(down(op, rows), op.range(columns)), dtype), rows, columns)


def identities(op: Builder, batch: Size, rows: Size, columns: Size | None = None) -> Tensor:
    """[batch, rows, columns]"""
    return op.expand(identity(op, rows, columns), (batch, rows, rows if columns is None else columns))


def with_unit_diagonal(op: Builder, x: Tensor) -> Tensor:
    rows, columns = x.known_sizes[-2:]
    on_it = op.Equal(down(op, rows), op.range(columns))
    return sized(op.Where(on_it, op.const(1, x.element), x), *x.known_sizes)


def diagonal_of(op: Builder, x: Tensor) -> Tensor:
    """[batch, n] of square matrices [batch, n, n]."""
    batch, size = x.known_sizes[:2]
    on_it = op.Equal(down(op, size), op.range(size))
    return sized(op.ReduceSum(op.Where(on_it, x, op.const(0, x.element)), op.ints(1), keepdims=0), batch, size)


def rows_in_order(op: Builder, x: Tensor, order: Tensor) -> Tensor:
    """Row order[b, i] of matrix b becomes its row i; `order` is [batch, n]."""
    index = op.Unsqueeze(order, op.ints(2))
    picked = op.GatherND(x, index, batch_dims=1)
    batch, rows = order.known_sizes
    return sized(picked, batch, rows, x.known_sizes[2])


def columns_in_order(op: Builder, x: Tensor, order: Tensor) -> Tensor:
    return flipped(op, rows_in_order(op, flipped(op, x), order))


def inverse_order(op: Builder, order: Tensor) -> Tensor:
    """The order that undoes one, [batch, n]."""
    batch, n = order.known_sizes
    places = op.expand(op.range(n), (batch, n))
    return sized(op.ScatterElements(order, order, places, axis=1), batch, n)
