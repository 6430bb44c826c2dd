"""Where a foreign file leaves eager: without a captured graph to compare with, values are recognised by themselves.

Eager's results are noted as the user's lines make them, and every value of the file is tapped. Where a result is found
among the file's values on an input that agrees, and no longer on the input that fails, the difference begins. Values
that the exporter fused are found on neither, and say nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import onnx
import torch
from torch.overrides import TorchFunctionMode

from trueport import temporary
from trueport.source import Place, Where
from trueport.torch_internals import TORCH_FOLDER, is_inside_vmap
from trueport.verify.faults.mismatch import Divergence
from trueport.verify.judging.compare import judge, tolerance_for
from trueport.verify.runtime.origin import written_out
from trueport.verify.runtime.sandbox import Limits, Optimisation, Worker, WorkerFailure
from trueport.verify.runtime.tensors import TensorData

_OUR_FOLDER = __file__.rsplit("verify", 1)[0]
_BETWEEN = ("probe_runtime.py", "torch_control_flow.py")
"""What of ours may stand between a line of the user's and the operator that it calls."""
_SMALLEST, _LARGEST = 2, 1 << 18
"""Elements of a value that is worth recognising: one number may be anybody's."""
_MOST_VALUES = 400
_LARGEST_FILE = 256 << 20

Key = tuple[str, int, str, int]
"""File, line, function of torch, and the how-manieth of its kind."""


@dataclass
class Noted:
    """What eager made, in its order."""

    values: dict[Key, torch.Tensor] = field(default_factory=dict)


class _Noting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.noted = Noted()
        self._counts: dict[tuple[str, int, str], int] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and _SMALLEST <= result.numel() <= _LARGEST:
            where = _users_line()
            if where is not None and len(self.noted.values) < _MOST_VALUES and _can_be_kept(result):
                name = getattr(func, "__name__", "").strip("_")
                at = (*where, name)
                self._counts[at] = count = self._counts.get(at, 0) + 1
                self.noted.values[(*at, count)] = result.detach().clone()
        return result


def _can_be_kept(result: torch.Tensor) -> bool:
    return not result.is_complex() and not is_inside_vmap(result)


def _users_line() -> tuple[str, int] | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OUR_FOLDER) and not file.endswith(_BETWEEN):
            return None  # what we do around the model's own run: copies, the state put back
        if not file.startswith((TORCH_FOLDER, _OUR_FOLDER, "<")):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


@dataclass(frozen=True)
class Recogniser:
    """Follows a difference into a file by the values that eager makes."""

    path: Path
    run_eager: Callable[[Sequence[object]], object]
    feed: Callable[[Sequence[object]], Mapping[str, TensorData]]
    worker: Worker
    limits: Limits
    working: tuple[torch.dtype, ...]

    def first(self, failing: Sequence[object], agreeing: Sequence[object]) -> Divergence | None:
        """The first of eager's values that the file has on the agreeing input and not on the failing one."""
        theirs = self._theirs(agreeing, failing)
        if theirs is None:
            return None
        right, wrong = (self._noted(values) for values in (agreeing, failing))
        for key, value in wrong.values.items():
            known = right.values.get(key)
            if known is not None and self._has(theirs[0], known) and not self._has(theirs[1], value):
                return _at(key, "whose value the file has on other inputs and not on this one")
        return None

    def lost_after(self, failing: Sequence[object]) -> Divergence | None:
        """Where no input agrees: after the last of eager's values that the file has."""
        theirs = self._theirs(failing)
        if theirs is None:
            return None
        noted = list(self._noted(failing).values.items())
        has = [self._has(theirs[0], value) for _, value in noted]
        if True not in has or has[-1]:
            return None
        last = len(has) - 1 - has[::-1].index(True)
        return _at(noted[last + 1][0], "from which on the file has none of eager's values")

    def _theirs(self, *inputs: Sequence[object]) -> list[Mapping[tuple[int, ...], Sequence[TensorData]]] | None:
        """What the file makes of each of these, by shape; None where it cannot be tapped, or only runs as a whole."""
        if self.path.stat().st_size > _LARGEST_FILE:
            return None
        with temporary.folder() as folder:
            try:
                whole = tapped(self.path, Path(folder, "tapped.onnx"))
                with self.worker.load(whole, self.limits, Optimisation.NONE) as loaded:
                    return [_by_shape(loaded.run(self.feed(values))) for values in inputs]
            except (WorkerFailure, OSError, ValueError):
                return None

    def _noted(self, values: Sequence[object]) -> Noted:
        noting = _Noting()
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]
        with noting, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.run_eager(copies)
        return noting.noted

    def _has(self, theirs: Mapping[tuple[int, ...], Sequence[TensorData]], value: torch.Tensor) -> bool:
        tolerance = tolerance_for(value.dtype, self.working)
        return any(judge(value, got, tolerance).difference is None for got in theirs.get(tuple(value.shape), ()))


def _at(key: Key, how: str) -> Divergence:
    file, line, name, _ = key
    return Divergence(Place((Where(file, line),)), f"begins at `{name}`, {how}")


def _by_shape(outputs: Mapping[str, Any]) -> dict[tuple[int, ...], list[TensorData]]:
    found: dict[tuple[int, ...], list[TensorData]] = {}
    for value in outputs.values():
        for item in value if isinstance(value, tuple) else (value,):
            found.setdefault(item.shape, []).append(item)
    return found


def tapped(path: Path, target: Path) -> Path:
    """A copy of the file in which every value of the outermost graph is an output, and functions are written out."""
    model = written_out(onnx.load(path, "protobuf"))
    outputs = {output.name for output in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if name and name not in outputs]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    onnx.save(model, target)
    return target
