"""Products of matrices, and linear algebra that torch says by plain sizes or by single elements of an axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.registry import decomposes, free_size, holds_symbol, sizes_of
from trueport.torch_internals import decomposition_of
from trueport.torch_internals.symbolic import has_hint, is_symbolic

aten = torch.ops.aten


@decomposes(aten.combinations.default)
def _combinations(tensor: torch.Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """Torch counts the items out in plain numbers; here, of every pair (or more) of places, those in order count."""
    if r < 2:
        return NotImplemented
    places = torch.meshgrid([torch.arange(tensor.shape[0])] * r, indexing="ij")
    steps = [a <= b if with_replacement else a < b for a, b in itertools.pairwise(places)]
    kept = reduce(torch.logical_and, steps)
    return torch.stack([tensor[place[kept]] for place in places], 1)


@decomposes(aten.kron.default)
def _kron(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Every element of one times the whole other."""
    rank = max(one.dim(), other.dim())
    left, right = ([1] * (rank - x.dim()) + list(x.shape) for x in (one, other))
    product = one.reshape([s for size in left for s in (size, 1)]) * other.reshape(
        [s for size in right for s in (1, size)]
    )
    return product.reshape([a * b for a, b in zip(left, right, strict=True)])


_MANY_ROWS = 25
"""More of them, and torch computes Euclidean distances as products."""


@decomposes(aten.cdist.default)
def _cdist(x1: torch.Tensor, x2: torch.Tensor, p: float = 2, compute_mode: int | None = None) -> torch.Tensor:
    """Torch asks first whether there are any elements at all, which decides nothing. Where only the run tells the rows,
    the differences themselves are taken."""

    def many(rows: Any) -> bool:
        return bool(rows > _MANY_ROWS) if not is_symbolic(rows) or has_hint(rows) else False

    rows = sorted((x1.shape[-2], x2.shape[-2]), key=is_symbolic)  # a plain number may spare the question
    if p != 2 or not (compute_mode == 1 or (not compute_mode and any(map(many, rows)))):
        return aten._cdist_forward.default(x1, x2, p, compute_mode)  # type: ignore[no-any-return]
    one, other = ((x**2).sum(-1, keepdim=True) for x in (x1, x2))
    left = torch.cat([x1 * -2, one, torch.ones_like(one)], -1)
    right = torch.cat([x2, torch.ones_like(other), other], -1)
    return (left @ right.mT).clamp(min=0).sqrt()


@decomposes(torch.cross, torch.Tensor.cross, when=free_size)
def _cross(input: torch.Tensor, other: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Without an axis, along the first one of three: that a free axis before it has another size is an assumption."""
    axes = (axis for axis, size in enumerate(input.shape) if dim is None and size == 3)
    axis = next(axes, -1) if dim is None else dim
    return aten.linalg_cross.default(input, other, dim=axis)  # type: ignore[no-any-return]


@decomposes(torch.vander)
def _vander(x: torch.Tensor, N: Any = None, increasing: bool = False) -> torch.Tensor:
    """So many powers of each number, multiplied up as eager does; `N` is a plain number to torch."""
    column = torch.arange(N)
    powers = torch.where(column == 0, torch.ones((), dtype=x.dtype), x.unsqueeze(-1)).cumprod(-1)
    return powers if increasing else powers.flip(-1)


@decomposes(aten.linalg_multi_dot.default)
def _multi_dot(tensors: Sequence[torch.Tensor]) -> Any:
    """From the left, where the sizes that torch would choose the order by are free."""
    if not holds_symbol([tensor.shape for tensor in tensors]):
        definition = decomposition_of(aten.linalg_multi_dot.default)
        assert definition is not None
        return definition(tensors)
    return reduce(torch.matmul, tensors)


@decomposes(aten.linalg_cond.default, aten.linalg_cond.p_str)
def _cond(a: torch.Tensor, p: float | str | None = None) -> torch.Tensor:
    """The largest by the smallest singular value, or the product of two norms."""
    if p in (None, 2, -2):
        values = torch.linalg.svdvals(a)
        # Beside a value that changes neither, so that a matrix without elements has the condition 0, as in eager.
        most, least = torch.amax(F.pad(values, (0, 1)), -1), torch.amin(F.pad(values, (0, 1), value=math.inf), -1)
        return torch.div(least, most) if p == -2 else torch.div(most, least)
    inverse, info = torch.linalg.inv_ex(a)
    inverse = inverse.masked_fill((info > 0)[..., None, None], float("inf"))
    return torch.mul(torch.linalg.matrix_norm(a, p), torch.linalg.matrix_norm(inverse, p))


@sizes_of(aten.geqrf.default)
def _reflections(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    least = torch.sym_min(*self.shape[-2:])
    return torch.empty_like(self), self.new_empty((*self.shape[:-2], least))


@sizes_of(aten.linalg_lstsq.default)
def _least_squares(
    self: torch.Tensor, b: torch.Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[torch.Tensor, ...]:
    """Sizes as eager gives them on the CPU, where `gelsy` is the default; the rank is taken to be full."""
    is_vector = b.dim() == self.dim() - 1
    right = b.unsqueeze(-1) if is_vector else b
    rows, columns = self.shape[-2:]
    batch = torch.broadcast_shapes(self.shape[:-2], right.shape[:-2])
    solution = self.new_empty((*batch, columns, right.shape[-1]))
    wants_residuals = driver in ("gels", "gelsd", "gelss") and rows > columns
    real = self.dtype.to_real()
    residuals = self.new_empty((*batch, right.shape[-1]) if wants_residuals else (0,), dtype=real)
    rank = self.new_empty((0,) if driver == "gels" else batch, dtype=torch.int64)
    has_values = driver in ("gelsd", "gelss")
    values = self.new_empty((*batch, torch.sym_min(rows, columns)) if has_values else (0,), dtype=real)
    return solution.squeeze(-1) if is_vector else solution, residuals, rank, values
