"""Torch leaves open which of equal values `topk`, `kthvalue`, `median` and an unstable `sort` put first.

Written here once more: the judge must not share code with what it judges.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
_SORTS = (aten.sort.default, aten.sort.stable)


class FirstOfEquals(TorchDispatchMode):
    """Of equals, the one with the lowest place; `met` tells whether any operator had the choice."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func in _SORTS:
            self.met = True
            names = ("dim", "descending") if func is aten.sort.default else ()
            given.update(zip(names, args[1:], strict=False))
            return tuple(torch.sort(args[0], **{"dim": -1, **given, "stable": True}))
        if func in (aten.topk.default, aten.kthvalue.default, aten.median.dim) and args[0].dim():
            self.met = True
            return _chosen(func, args, given)
        return func(*args, **given)


def _chosen(func: Any, args: Any, given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    names = {
        aten.topk.default: ("self", "k", "dim", "largest", "sorted"),
        aten.kthvalue.default: ("self", "k", "dim", "keepdim"),
        aten.median.dim: ("self", "dim", "keepdim"),
    }[func]
    said = {"dim": -1, "largest": func is aten.topk.default, **dict(zip(names, args, strict=False)), **given}
    tensor, dim = said["self"], said["dim"]
    in_order = torch.sort(tensor, dim=dim, descending=bool(said["largest"]), stable=True)
    if func is aten.topk.default:
        return in_order.values.narrow(dim, 0, said["k"]), in_order.indices.narrow(dim, 0, said["k"])
    place = said.get("k", (tensor.shape[dim] + 1) // 2) - 1
    values, indices = in_order.values.narrow(dim, place, 1), in_order.indices.narrow(dim, place, 1)
    return (values, indices) if said.get("keepdim") else (values.squeeze(dim), indices.squeeze(dim))
