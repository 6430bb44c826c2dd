"""Statistics that torch computes with a look at the values, or with a kernel of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from trueport.decompositions.registry import decomposes, sizes_of
from trueport.torch_internals import OpOverload
from trueport.torch_internals.symbolic import same_number

aten = torch.ops.aten


@decomposes(aten.cov.default)
def _cov(
    tensor: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """As torch's own, without the checks that the weights are not negative and do not add up to nothing."""
    rows = tensor if tensor.dim() == 2 else tensor.reshape(1, -1)
    weight = fweights
    if aweights is not None:
        weight = aweights if weight is None else weight * aweights
    total = torch.full((), rows.shape[1], dtype=torch.int64) if weight is None else weight.sum()
    average = (rows if weight is None else rows * weight).sum(1) / total
    divisor = total - correction
    if weight is not None and aweights is not None and correction != 0:
        divisor = total - correction * (weight * aweights).sum() / total
    apart = rows - average.unsqueeze(1)
    weighted = apart if weight is None else apart * weight
    return (torch.mm(apart, weighted.t().conj()) / divisor.clamp(min=0)).squeeze()


@decomposes(aten.mode.default)
def _mode(tensor: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the values that occur most often the smallest, and the last place where it is: each is compared with each."""
    if tensor.dim() == 0:
        return tensor.clone(), torch.zeros((), dtype=torch.int64)
    last = (tensor.to(torch.int32) if tensor.dtype is torch.bool else tensor).movedim(dim, -1)
    often = (last.unsqueeze(-1) == last.unsqueeze(-2)).sum(-1)
    most = often == often.amax(-1, keepdim=True)
    top = torch.full((), _largest(last.dtype), dtype=last.dtype)
    value = torch.where(most, last, top).amin(-1, keepdim=True)
    place = torch.where(last == value, torch.arange(last.shape[-1]), -1).amax(-1, keepdim=True)
    return _shown(value.to(tensor.dtype), dim, keepdim), _shown(place, dim, keepdim)


def _largest(dtype: torch.dtype) -> float | int:
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _shown(column: torch.Tensor, dim: int, keepdim: bool) -> torch.Tensor:
    return column.movedim(-1, dim) if keepdim else column.squeeze(-1)


@decomposes(aten.nanmedian.dim)
def _nanmedian_dim(tensor: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower middle of what is a number; NaN where nothing is."""
    if tensor.dim() == 0:
        return tensor.clone(), torch.zeros((), dtype=torch.int64)
    if not tensor.is_floating_point():
        return torch.median(tensor, dim, keepdim)
    last = tensor.movedim(dim, -1)
    missing = last.isnan()
    in_order, places = torch.where(missing, float("inf"), last).sort(-1)
    numbers = (~missing).sum(-1, keepdim=True)
    middle = ((numbers - 1) // 2).clamp(min=0)
    value = torch.where(numbers > 0, in_order.gather(-1, middle), float("nan"))
    return _shown(value, dim, keepdim), _shown(places.gather(-1, middle), dim, keepdim)


@decomposes(aten.nanmedian.default)
def _nanmedian(tensor: torch.Tensor) -> torch.Tensor:
    return _nanmedian_dim(tensor.reshape(-1), 0)[0]


@decomposes(aten.quantile.default, aten.quantile.scalar)
def _quantile(
    tensor: torch.Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> torch.Tensor:
    """As torch's own, without the check that q is from 0 to 1, for which it reads the values up to 2.11."""
    ordered = _in_order(tensor, dim)
    last = ordered.shape[-1] - 1
    ranks = torch.where(ordered.isnan().any(-1, keepdim=True), last, _levels(tensor, q).reshape(-1) * last)
    return _at_ranks(ordered, ranks, tensor, q, dim, keepdim, interpolation)


@decomposes(aten.nanquantile.default, aten.nanquantile.scalar)
def _nanquantile(
    tensor: torch.Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> torch.Tensor:
    """NaNs are the last in order; where there is nothing else, the first of them is taken."""
    ordered = _in_order(tensor, dim)
    ranks = _levels(tensor, q).reshape(-1) * (ordered.isnan().logical_not().sum(-1, keepdim=True) - 1)
    return _at_ranks(ordered, torch.where(ranks < 0, 0, ranks), tensor, q, dim, keepdim, interpolation)


def _levels(tensor: torch.Tensor, q: Any) -> torch.Tensor:
    return q if isinstance(q, torch.Tensor) else torch.full((), q, dtype=tensor.dtype)


def _in_order(tensor: torch.Tensor, dim: int | None) -> torch.Tensor:
    rows = tensor.reshape(-1) if dim is None or tensor.dim() == 0 else tensor.movedim(dim, -1)
    return rows.sort(-1).values


def _at_ranks(
    ordered: torch.Tensor,
    ranks: torch.Tensor,
    tensor: torch.Tensor,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
) -> torch.Tensor:
    """What stands at these places, or between two of them; one column for each of q."""
    moved = {"lower": torch.floor, "higher": torch.ceil, "nearest": torch.round}.get(interpolation, torch.clone)(ranks)
    below = moved.long()
    found = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = torch.full_like(moved, 0.5) if interpolation == "midpoint" else moved - below
        found = found.lerp(ordered.gather(-1, moved.ceil().long()), weights)
    if keepdim and tensor.dim():
        found = found.reshape([1] * tensor.dim() + [-1]) if dim is None else found.unsqueeze(dim % tensor.dim())
    return found.movedim(-1, 0) if isinstance(q, torch.Tensor) and q.dim() else found.squeeze(-1)


@decomposes(torch.histc, aten.histc.default)
def _histc(input: torch.Tensor, bins: Any = 100, min: Any = 0, max: Any = 0) -> torch.Tensor:
    """By the place of each value in the range, and not by a search among the edges, as eager counts here."""
    values = input.reshape(-1)
    if min == max:  # the range of the values, or one to either side of the only one
        low, high = values.amin(), values.amax()
        single = low == high
        low, high = torch.where(single, low - 1, low), torch.where(single, high + 1, high)
    else:
        low, high = (torch.full((), end, dtype=values.dtype) for end in (min, max))
    inside = (values >= low) & (values <= high)
    place = torch.where(inside, (values - low) * bins / (high - low), 0).to(torch.int64).clamp(max=bins - 1)
    return torch.zeros(bins, dtype=values.dtype).index_add(0, place, inside.to(values.dtype))


@decomposes(aten.histogram.bin_ct)
def _histogram_of_count(
    tensor: torch.Tensor, bins: int = 100, *, range: Sequence[float] | None = None, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = _outer_edges(tensor.reshape(-1, 1), range)
    return _histogram(tensor, _even_edges(low[0], high[0], bins), **options)


@decomposes(aten.histogram.bins_tensor)
def _histogram(
    tensor: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return _counted(tensor.reshape(-1, 1), [bins], weight, density), bins


@decomposes(aten._histogramdd_bin_edges.default)
def _histogramdd_edges(
    tensor: torch.Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **_: Any
) -> list[torch.Tensor]:
    points = tensor.reshape(-1, tensor.shape[-1])
    low, high = _outer_edges(points, range)
    return [_even_edges(low[i], high[i], number) for i, number in enumerate(bins)]


@decomposes(aten._histogramdd_from_bin_cts.default)
def _histogramdd_of_counts(
    tensor: torch.Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **options: Any
) -> torch.Tensor:
    return _histogramdd(tensor, _histogramdd_edges(tensor, bins, range=range), **options)


@decomposes(aten._histogramdd_from_bin_tensors.default)
def _histogramdd(
    tensor: torch.Tensor, bins: Sequence[torch.Tensor], *, weight: torch.Tensor | None = None, density: bool = False
) -> torch.Tensor:
    return _counted(tensor.reshape(-1, tensor.shape[-1]), list(bins), weight, density)


def _outer_edges(points: torch.Tensor, given: Sequence[float] | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The ends of the range, for each coordinate; where all values are one, half a step to either side of it."""
    if given is not None:
        ends = torch.tensor(list(given), dtype=points.dtype).reshape(-1, 2)
        low, high = ends[:, 0], ends[:, 1]
    elif same_number(points.shape[0], 0):
        low, high = points.new_zeros(points.shape[1]), points.new_ones(points.shape[1])
    else:
        low, high = points.amin(0), points.amax(0)
    single = low == high
    return torch.where(single, low - 0.5, low), torch.where(single, high + 0.5, high)


def _even_edges(low: torch.Tensor, high: torch.Tensor, bins: int) -> torch.Tensor:
    """As `linspace`: from either end in its half, so that both are exact."""
    step = (high - low) / bins
    index = torch.arange(bins + 1)
    return torch.where(index < (bins + 1) // 2, low + step * index, high - step * (bins - index))


def _counted(
    points: torch.Tensor, edges: Sequence[torch.Tensor], weight: torch.Tensor | None, density: bool
) -> torch.Tensor:
    """How many points, or how much weight, lies in each box. The last box of an axis has both of its edges."""
    sizes = [edge.shape[0] - 1 for edge in edges]
    inside = torch.ones((), dtype=torch.bool)
    box = torch.zeros((), dtype=torch.int64)
    for axis, edge in enumerate(edges):
        value = points[:, axis].contiguous()
        place = torch.searchsorted(edge.contiguous(), value, right=True) - 1
        inside = inside & (value >= edge[0]) & (value <= edge[-1])
        box = box * sizes[axis] + place.clamp(0, sizes[axis] - 1)
    amount = torch.ones((), dtype=points.dtype) if weight is None else weight.reshape(-1)
    added = torch.where(inside, amount, 0).to(points.dtype)
    counts = torch.zeros(math.prod(sizes), dtype=points.dtype).index_add(0, box, added).reshape(sizes)
    if not density:
        return counts
    for axis, edge in enumerate(edges):
        widths = edge[1:] - edge[:-1]
        counts = counts / widths.reshape([-1 if i == axis else 1 for i in range(len(edges))])
    return counts / added.sum()


@sizes_of(aten.mean.default, aten.mean.dim)
def _mean(self: torch.Tensor, *axes: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """As the sum: of complex numbers, torch divides by a plain count."""
    return self.sum(*axes, dtype=dtype)


def _spread(op: OpOverload) -> None:
    """Of complex numbers torch takes the parts together by their number, as a plain one."""

    @sizes_of(op)
    def results(self: torch.Tensor, *args: Any, **options: Any) -> Any:
        if not self.is_complex():
            return op(self, *args, **options)
        returned = op(self.new_empty(self.shape, dtype=self.dtype.to_real()), *args, **options)
        if isinstance(returned, torch.Tensor):
            return returned
        spread, middle = returned
        return spread, self.new_empty(middle.shape)


for _name in ("var", "std", "var_mean", "std_mean"):
    for _form in ("default", "dim", "correction"):
        _spread(getattr(getattr(aten, _name), _form))


@sizes_of(aten.topk.default)
def _topk(
    self: torch.Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Torch looks whether there are as many, which decides by `k`; eager refuses more."""
    sizes = list(self.shape)
    if sizes:
        sizes[dim] = k
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)
