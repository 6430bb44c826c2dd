"""Operators whose own definition in torch reads every size as a plain number, said with sizes that may be free."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch

from trueport.torch_internals import OpOverload, decomposition_of

aten = torch.ops.aten


def _take_along_dim(tensor: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """`gather`, after both were broadcast along the other axes; places count round and round, as in eager."""
    if dim is None:
        return tensor.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % tensor.dim()
    pairs = list(zip(tensor.shape, indices.shape, strict=True))
    common = [_broadcast(one, other) for one, other in pairs]
    wide = tensor.expand([tensor.shape[axis] if i == axis else size for i, size in enumerate(common)])
    places = indices.expand([indices.shape[axis] if i == axis else size for i, size in enumerate(common)])
    return wide.gather(axis, places % tensor.shape[axis])


def _broadcast(one: Any, other: Any) -> Any:
    """Of two sizes the one that is not known to be 1; a number rather than a symbol."""
    if isinstance(one, int):
        return other if one == 1 else one
    return one if isinstance(other, int) and other == 1 else other


def _combinations(tensor: torch.Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """Torch counts the items out in plain numbers; here, of every pair (or more) of places, those in order count."""
    if r < 2:
        return NotImplemented
    places = torch.meshgrid([torch.arange(tensor.shape[0])] * r, indexing="ij")
    steps = [a <= b if with_replacement else a < b for a, b in itertools.pairwise(places)]
    kept = reduce(torch.logical_and, steps)
    return torch.stack([tensor[place[kept]] for place in places], 1)


def _kron(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Every element of one times the whole other."""
    rank = max(one.dim(), other.dim())
    left, right = ([1] * (rank - x.dim()) + list(x.shape) for x in (one, other))
    product = one.reshape([s for size in left for s in (size, 1)]) * other.reshape(
        [s for size in right for s in (1, size)]
    )
    return product.reshape([a * b for a, b in zip(left, right, strict=True)])


def _multi_dot(tensors: Sequence[torch.Tensor]) -> Any:
    """From the left, where the sizes that torch would choose the order by are free."""
    if all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
        definition = decomposition_of(aten.linalg_multi_dot.default)
        assert definition is not None
        return definition(tensors)
    return reduce(torch.matmul, tensors)


PRODUCTS: dict[OpOverload, Callable[..., Any]] = {
    aten.combinations.default: _combinations,
    aten.kron.default: _kron,
    aten.linalg_multi_dot.default: _multi_dot,
    aten.take_along_dim.default: _take_along_dim,
}
