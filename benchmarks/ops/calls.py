"""The model that one sample of an operator becomes. A diagnosis must point into this file: it is the user's here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Call(torch.nn.Module):
    """One call of an operator. Its tensors are the inputs, those inside lists too; everything else is held fixed."""

    def __init__(self, function: Callable[..., Any], rebuild: Callable[[Sequence[torch.Tensor]], Any]) -> None:
        super().__init__()
        self.function = function
        self.rebuild = rebuild

    def forward(self, tensors: list[torch.Tensor]) -> Any:
        args, kwargs = self.rebuild(tensors)
        return self.function(*args, **kwargs)
