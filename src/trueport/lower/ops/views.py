"""Operators that only rearrange: the same elements under other sizes or another order of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import LAST, axes_of, axis_of
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

Sizes = Sequence[int | Number]


@op(
    "aten::alias",
    "aten::clone",
    "aten::contiguous",
    "aten::detach",
    "aten::lift",
    "aten::lift_fresh",
    "aten::lift_fresh_copy",
    "aten::alias_copy",
    "aten::detach_copy",
)
def same(op: Builder, self: Tensor, **_layout: Any) -> Tensor:
    """clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor; ONNX values have no memory to speak of."""
    return self


@op("aten::_to_copy", "prims::convert_element_type")
def to_copy(op: Builder, self: Operand, *_positional: Any, **_options: Any) -> Tensor:
    """_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor; under `vmap`, of a plain number as well."""
    return op.scalar(self, op.result.dtype)


@op("aten::copy")
def copy(op: Builder, self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"""
    return op.expand(op.cast(src, op.result.dtype), op.result.shape)


@op(
    "aten::view",
    "aten::reshape",
    "aten::_unsafe_view",
    "aten::_reshape_copy",
    "aten::view_copy",
    "aten::_reshape_alias",
    "aten::flatten.using_ints",
    "aten::unflatten.int",
    "aten::view_as",
)
def view(op: Builder, self: Tensor, *_sizes: Any) -> Tensor:
    """view(Tensor(a) self, SymInt[] size) -> Tensor(a); eager has worked out the sizes."""
    return op.reshape(self, op.result.shape)


@op("aten::expand", "aten::expand_copy", "aten::broadcast_to", "aten::expand_as")
def expand(op: Builder, self: Tensor, *_sizes: Any, implicit: bool = False) -> Tensor:
    """expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"""
    return op.expand(self, op.result.shape)


@op("aten::permute", "aten::permute_copy")
def permute(op: Builder, self: Tensor, dims: Sequence[int]) -> Tensor:
    """permute(Tensor(a) self, int[] dims) -> Tensor(a)"""
    return op.transpose(self, [axis_of(dim, self.rank) for dim in dims])


@op("aten::transpose.int", "aten::transpose_copy.int", "aten::swapaxes", "aten::swapdims")
def transpose(op: Builder, self: Tensor, dim0: int, dim1: int) -> Tensor:
    """transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"""
    order = list(range(self.rank))
    if order:
        first, second = axis_of(dim0, self.rank), axis_of(dim1, self.rank)
        order[first], order[second] = order[second], order[first]
    return op.transpose(self, order)


@op("aten::t", "aten::t_copy", "aten::numpy_T")
def t(op: Builder, self: Tensor) -> Tensor:
    """t(Tensor(a) self) -> Tensor(a)"""
    return op.transpose(self, list(reversed(range(self.rank))))


@op("aten::unsqueeze", "aten::unsqueeze_copy")
def unsqueeze(op: Builder, self: Tensor, dim: int) -> Tensor:
    """unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"""
    return op.Unsqueeze(self, op.ints(axis_of(dim, self.rank + 1)))


@op(
    "aten::squeeze",
    "aten::squeeze.dim",
    "aten::squeeze.dims",
    "aten::squeeze_copy",
    "aten::squeeze_copy.dim",
    "aten::squeeze_copy.dims",
)
def squeeze(op: Builder, self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a); an axis that is not of size 1 stays."""
    asked = range(self.rank) if dim is None else axes_of(dim, self.rank) if dim != [] else []
    axes = [axis for axis in asked if axis < self.rank and self.known_sizes[axis] == 1]
    sizes = {axis: self.known_sizes[axis] for axis in asked if axis < self.rank}
    ones = [axis for axis, size in sizes.items() if size == 1 or not isinstance(size, int)]
    if self.rank - len(ones) == len(op.result.shape):  # where `if x.shape[0] == 1` holds, a free size is 1 as well
        axes = ones
    if self.rank - len(axes) != len(op.result.shape):
        raise ValueError(f"whether axes {list(asked)} of sizes {self.sizes} are of size 1 is not the same in every run")
    return op.Squeeze(self, op.ints(*axes)) if axes else self


@op("aten::flip")
def flip(op: Builder, self: Tensor, dims: Sequence[int]) -> Tensor:
    """flip(Tensor self, int[] dims) -> Tensor"""
    axes = [axis_of(dim, self.rank) for dim in dims]
    if not axes or not self.rank:
        return self
    each = len(axes)
    return op.Slice(self, op.ints(*[-1] * each), op.ints(*[-LAST] * each), op.ints(*axes), op.ints(*[-1] * each))


@op("aten::repeat")
def repeat(op: Builder, self: Tensor, repeats: Sizes) -> Tensor:
    """repeat(Tensor self, SymInt[] repeats) -> Tensor"""
    lead = len(repeats) - self.rank
    if lead:
        self = op.Unsqueeze(self, op.ints(*range(lead)))
    return op.Tile(self, op.shape(repeats)) if repeats else self


@op("aten::tile")
def tile(op: Builder, self: Tensor, dims: Sizes) -> Tensor:
    """tile(Tensor self, SymInt[] dims) -> Tensor"""
    return repeat(op, self, [*[1] * (self.rank - len(dims)), *dims])


@op("aten::pixel_shuffle")
def pixel_shuffle(op: Builder, self: Tensor, upscale_factor: int) -> Tensor:
    """pixel_shuffle(Tensor self, int upscale_factor) -> Tensor. The runtime has no DepthToSpace of integers."""
    if self.rank == 4 and self.element.is_floating_point():
        return op.DepthToSpace(self, blocksize=upscale_factor, mode="CRD")
    *lead, channels, height, width = self.known_sizes
    factor, n = upscale_factor, len(lead)
    apart = op.reshape(self, [*lead, channels // factor**2, factor, factor, height, width])
    woven = op.transpose(apart, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return op.reshape(woven, op.result.shape)


@op("aten::pixel_unshuffle")
def pixel_unshuffle(op: Builder, self: Tensor, downscale_factor: int) -> Tensor:
    """pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"""
    *lead, channels, _, _ = self.known_sizes
    factor, n = downscale_factor, len(lead)
    *_, height, width = op.result.shape
    apart = op.reshape(self, [*lead, channels, height, factor, width, factor])
    woven = op.transpose(apart, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return op.reshape(woven, op.result.shape)
