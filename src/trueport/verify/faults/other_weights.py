"""Whether a file was made of another set of weights than the model has: then all outputs differ, and nothing else is
wrong. Most often the model was made anew, and nobody loaded its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import onnx
import torch
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.spelling import Option, told

_LARGEST_FILE = 1 << 30
_LARGEST = 1 << 22
"""Elements of a weight that is looked at."""
_CLOSE = 1e-4


def with_other_weights(found: Sequence[Diagnostic], path: Path, model: torch.nn.Module) -> tuple[Diagnostic, ...]:
    """Findings about a file that agrees on no input: where none of the model's weights is in it, they say so."""
    wrong = any(isinstance(each, WrongValues) for each in found)
    count = _none_of(path, model) if wrong else 0
    if not count:
        return tuple(found)
    seen = f"none of the model's {count} weights is in the file: it was made of others"
    weights = Option("load them before (model.load_state_dict)", "give them with --weights FILE")
    return tuple(_told(each, seen, weights) for each in found)


def _told(found: Diagnostic, seen: str, weights: Option) -> Diagnostic:
    if not isinstance(found, WrongValues):
        return found
    fix = told("the model has weights of its own, freshly made perhaps: ", weights)
    return replace(found, seen=(seen, *found.seen), fix=fix)


def _none_of(path: Path, model: torch.nn.Module) -> int:
    """How many weights were looked for in vain; 0 where one was found, or none could be looked for."""
    if path.stat().st_size > _LARGEST_FILE:
        return 0
    held = dict[int, list[tuple[float, float]]]()
    for values in _weights_in(path):
        held.setdefault(values.numel(), []).append(_sums(values))
    wanted = [each.detach() for each in model.parameters() if 1 < each.numel() <= _LARGEST and each.is_floating_point()]
    wanted = [each for each in wanted if each.numel() in held and each.unique().numel() > 1]
    for tensor in wanted:
        own = _sums(tensor)
        if any(all(map(_near, own, theirs)) for theirs in held[tensor.numel()]):
            return 0
    return len(wanted)


def _weights_in(path: Path) -> Iterator[torch.Tensor]:
    """The float weights that the file holds itself. Where it names other files, those are not read: they may be any."""
    try:
        model = onnx.load(path, "protobuf", load_external_data=False)
    except (DecodeError, OSError):
        return
    constants = [each.t for node in model.graph.node if node.op_type == "Constant" for each in node.attribute]
    for tensor in (*model.graph.initializer, *constants):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.data_type not in _FLOATS:
            continue
        try:
            yield torch.from_numpy(numpy_helper.to_array(tensor).astype("float64"))
        except (ValueError, TypeError):  # its data is not what its shape says
            continue


_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


def _sums(values: torch.Tensor) -> tuple[float, float]:
    """What stays the same when a weight is transposed."""
    wide = values.double()
    return wide.sum().item(), wide.abs().sum().item()


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other), 1e-3)
