"""Exports a function or a module, and does not take the product's word for it: what was written is run in ONNX Runtime
and compared with eager here once more, at the example and at fixed other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import trueport
from tests.lower.through_onnx import agree, run
from trueport.program import Program

Free = tuple[set[int] | None, ...]
"""For each input, its free axes; they may be anything from 0 on."""


def faithful(
    function: Callable[..., Any], *inputs: Any, free: Free | None = None, unique: bool = True, rtol: float | None = None
) -> Program:
    """The exported program. Raises ExportError where it is not faithful or a free axis did not stay free.

    Not `unique` are results of which several are right (the signs of singular vectors): only the product knows how to
    compare those. `rtol` is for results that lose digits on their way.
    """
    shapes = (
        tuple({axis: torch.export.Dim.DYNAMIC for axis in axes} if axes else None for axes in free) if free else None
    )
    program = trueport.export(function, inputs, dynamic_shapes=shapes)
    assert program.report.verified
    assert program.report.checks
    plain = all(isinstance(given, torch.Tensor | int | float) for given in inputs)
    if unique and plain:
        for given in (inputs, *_other_sizes(inputs, free)):
            expected = _eager(function, given)
            if expected is not _REFUSED:
                agree(expected, run(program.model, [_as_carried(each) for each in given]), rtol)
    return program


_REFUSED = object()


def _eager(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in given]
    try:
        with torch.no_grad():
            return function(*copies)
    except (RuntimeError, ValueError, IndexError):
        return _REFUSED


def _as_carried(given: Any) -> Any:
    return torch.view_as_real(given) if isinstance(given, torch.Tensor) and given.is_complex() else given


def _other_sizes(inputs: tuple[Any, ...], free: Free | None) -> Iterator[tuple[Any, ...]]:
    """Free axes of one size grow together, the elements beginning again."""
    for more in (1, 13) if free else ():
        yield tuple(
            _grown(given, axes, more) if isinstance(given, torch.Tensor) and axes else given
            for given, axes in zip(inputs, free or (), strict=False)
        )


def _grown(tensor: torch.Tensor, axes: set[int], more: int) -> torch.Tensor:
    for axis in axes:
        if tensor.shape[axis]:
            at = torch.arange(tensor.shape[axis] + more) % tensor.shape[axis]
            tensor = tensor.index_select(axis, at)
    return tensor


def operators(program: Program) -> list[str]:
    return [node.op_type for node in program.model.graph]
