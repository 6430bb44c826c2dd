"""What the ONNX reference evaluator says to an input on which onnxruntime and eager disagree."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueport import temporary
from trueport.verify.judging.compare import Expected, Tolerance, judge
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, from_torch

_EVALUATOR = Path(__file__).with_name("evaluator.py")
_SAID = "the ONNX reference evaluator: "
_LARGEST_FILE = 64 << 20
"""It computes in plain numpy, operator by operator: a large model would only use up its time."""
_MEMORY = 8 << 30
"""Bytes of address space."""


def second_opinion(
    path: Path,
    feeds: Mapping[str, TensorData],
    expected: Mapping[str, Expected],
    tolerances: Sequence[Tolerance],
    seconds: float = 10.0,
) -> tuple[str, ...]:
    """One fact for the finding, or none where the evaluator cannot be asked."""
    if path.stat().st_size > _LARGEST_FILE or any(not _numpy_has(data) for data in feeds.values()):
        return ()
    answers = _answers(path, feeds, seconds)
    if answers is None:
        return ()
    judged = [
        judge(value, answer, tolerance).difference
        for (name, value), tolerance in zip(expected.items(), tolerances, strict=True)
        if (answer := _answer(answers, name)) is not None
    ]
    if not judged:
        return ()
    if any(difference is not None for difference in judged):
        return (_SAID + "differs from eager as well, so the model itself is at fault",)
    return (_SAID + "agrees with eager, so the runtime is at fault",)


def _answer(answers: Mapping[str, np.ndarray[Any, Any]], name: str) -> RuntimeValue | None:
    """What it gave for an output; of a sequence, each tensor is in `answers` with its number."""
    if f"{name}[]" in answers:
        return tuple(_data(answers[f"{name}[{at}]"]) for at in range(int(answers[f"{name}[]"])))
    return _data(answers[name]) if name in answers else None


def _data(array: np.ndarray[Any, Any]) -> TensorData:
    return from_torch(torch.from_numpy(np.array(array)))


def _answers(path: Path, feeds: Mapping[str, TensorData], seconds: float) -> dict[str, np.ndarray[Any, Any]] | None:
    with temporary.folder() as folder:
        given, answers = Path(folder, "feeds.npz"), Path(folder, "answers.npz")
        arrays = {name: np.frombuffer(data.data, data.dtype).reshape(data.shape) for name, data in feeds.items()}
        names = np.array(json.dumps(list(arrays)))
        numbered = {f"a{at}": array for at, array in enumerate(arrays.values())}  # a name may be any text
        np.savez(given, names=names, **numbered)  # type: ignore[arg-type]
        limits = (str(os.getpid()), str(_MEMORY), str(math.ceil(2 * seconds)))
        files = (str(path), str(given), str(answers))
        command = [sys.executable or "", "-I", str(_EVALUATOR), *limits, *_library_folders(), *files]
        try:
            done = subprocess.run(command, timeout=seconds, capture_output=True, check=False)
        except (subprocess.TimeoutExpired, OSError):  # too slow, or no process can be started
            return None
        if done.returncode != 0 or not answers.exists():
            return None
        with np.load(answers) as found:
            return {name: found[f"a{at}"] for at, name in enumerate(json.loads(str(found["names"])))}


def _numpy_has(data: TensorData) -> bool:
    return not data.dtype.startswith(("bfloat", "float8", "float4", "int4", "uint4", "int2", "uint2", "string"))


def _library_folders() -> list[str]:
    found = [importlib.util.find_spec(name) for name in ("onnx", "numpy")]
    return [str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin]
