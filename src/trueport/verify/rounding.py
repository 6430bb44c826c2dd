"""Eager as another machine might round it: each result of each operator moved by its last bit.

Moving only the inputs does not show what rounding does to an input of zeros, or to a picture of one colour: a stack of
normalisations divides the last bit of what should be nothing by what should be nothing, and again in the next layer.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from trueport.torch_internals.eager_modes import EagerMode

_SUMS = re.compile("mm|mv|dot|einsum|sum|mean|var|std|norm|conv|fft|linalg|attention|pool")
"""Operators that add up many numbers, by their names."""


class RoundedOtherwise(EagerMode):
    """Without `whole`, whole numbers stay: they may be counts and sentinels, and arithmetic on them is exact. But a
    score may also have been rounded to 1."""

    def __init__(self, seed: int, whole: bool = False) -> None:
        super().__init__()
        self._whole = whole
        self._chance = torch.Generator().manual_seed(seed)

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if any(each.alias_info is not None for each in func._schema.returns):
            return result  # a view, or written in place: the same numbers under another name
        return self._moved(result, _SUMS.search(func.__name__) is not None)

    def _moved(self, tensor: Any, sums: bool) -> Any:
        if isinstance(tensor, tuple | list):
            return type(tensor)(self._moved(each, sums) for each in tensor)
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
            return tensor
        if tensor.is_complex():
            return torch.view_as_complex(self._moved(torch.view_as_real(tensor.resolve_conj()), sums))
        if not tensor.is_floating_point():
            return tensor
        signs = (torch.randint(0, 2, tuple(tensor.shape), generator=self._chance) * 2 - 1).to(tensor.dtype)
        # What is left where large parts cancel is rounded as they were.
        size = tensor.abs().amax() if sums and tensor.numel() else tensor
        moved = tensor + torch.finfo(tensor.dtype).eps * size * signs
        return moved if self._whole else torch.where(tensor == tensor.round(), tensor, moved)
