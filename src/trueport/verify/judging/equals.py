"""Which of several equal values comes first: torch leaves it open for `topk`, `kthvalue`, `median`, `mode` and an
unstable `sort`, and its kernels make use of that. ONNX takes the one with the lowest place.

Where an answer differs from eager's, eager is asked once more with that choice made. If this is the runtime's answer,
it is one of those that eager may give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trueport.torch_internals.eager_modes import EagerMode

aten = torch.ops.aten
Pair = tuple[torch.Tensor, torch.Tensor]


class FirstOfEquals(EagerMode):
    """`met` tells whether there was a choice to make at all."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        settled = _SETTLED.get(func)
        if settled is None:
            return func(*args, **kwargs)
        self.met = True
        return settled(*args, **kwargs)


def _sort(tensor: torch.Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Pair:
    found = torch.sort(tensor, dim=dim, descending=descending, stable=True)
    return found.values, found.indices


def _topk(tensor: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    values, indices = _sort(tensor, dim, largest)
    if not tensor.dim():
        return values, indices
    # Tensors of their own, as eager's are: a view of some columns cannot be seen as another shape (`.view(batch, -1)`).
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


def _kthvalue(tensor: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    values, indices = _sort(tensor, dim)
    if not tensor.dim():
        return values, indices
    found = values.narrow(dim, k - 1, 1).contiguous(), indices.narrow(dim, k - 1, 1).contiguous()
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


def _median(tensor: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    return _kthvalue(tensor, (tensor.shape[dim] + 1) // 2 if tensor.dim() else 1, dim, keepdim)


def _mode(tensor: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """The value is settled, its place is not: the last one."""
    values, places = aten.mode.default(tensor, dim, True)
    if tensor.dim():
        length = tensor.shape[dim]
        along = torch.arange(length).reshape([length if i == dim % tensor.dim() else 1 for i in range(tensor.dim())])
        places = torch.where(tensor == values, along, -1).amax(dim, keepdim=True)
    return (values, places) if keepdim or not tensor.dim() else (values.squeeze(dim), places.squeeze(dim))


_SETTLED: dict[Any, Callable[..., Pair]] = {
    aten.sort.default: _sort,
    aten.sort.stable: _sort,
    aten.topk.default: _topk,
    aten.kthvalue.default: _kthvalue,
    aten.median.dim: _median,
    aten.mode.default: _mode,
}
