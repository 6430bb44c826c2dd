"""Exports a function or a module, which includes the proof: eager and ONNX Runtime agree on drawn sizes and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import trueport
from trueport.program import Program

Free = tuple[set[int] | None, ...]
"""For each input, its free axes; they may be anything from 0 on."""


def faithful(function: Callable[..., Any], *inputs: Any, free: Free | None = None) -> Program:
    """The exported program. Raises ExportError where it is not faithful or a free axis did not stay free."""
    shapes = (
        tuple({axis: torch.export.Dim.DYNAMIC for axis in axes} if axes else None for axes in free) if free else None
    )
    return trueport.export(function, inputs, dynamic_shapes=shapes)


def operators(program: Program) -> list[str]:
    return [node.op_type for node in program.model.graph]
