"""The model in float64 and complex128: a yardstick for how far eager's own answer is off."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from trueport.load.job import Job

_LARGEST = 150 << 20
"""Bytes of weights. A larger model twice over takes too much memory; then `verify/judging/rounding.py` judges alone."""


class Precisely:
    """Runs a model in float64. The copy is made when it is first asked for, which most never are.

    Raises whatever a model raises that is not made for float64.
    """

    def __init__(self, job: Job, run: Callable[[Job, Sequence[object]], Any]) -> None:
        self._job, self._run = job, run
        self._wide: Job | None = None

    def __call__(self, values: Sequence[object]) -> Any:
        if self._wide is None:
            tensors = [*self._job.model.parameters(), *self._job.model.buffers()]
            if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > _LARGEST:
                raise MemoryError("too large to be copied for a yardstick")
            self._wide = replace(self._job, model=_wide(copy.deepcopy(self._job.model)))
        return self._run(self._wide, [_widened(value) for value in values])


def _wide(model: torch.nn.Module) -> torch.nn.Module:
    """torch's own `double` leaves complex weights as they are, and their products with wide values are refused."""
    model.double()
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_complex():
            tensor.data = tensor.data.to(torch.complex128)
    return model


def _widened(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():
        return value.to(torch.complex128)
    return value.double() if value.is_floating_point() else value
