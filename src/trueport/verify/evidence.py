"""A counterexample on disk: the input, eager's answer, and a script of ten lines that shows the difference."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueport.verify.compare import Expected
from trueport.verify.tensors import TensorData

DATA = "counterexample.npz"
SCRIPT = "show_difference.py"

_SCRIPT = '''\
"""Runs {model} on the saved input, and prints it beside what eager PyTorch gave."""
import os, numpy as np, onnxruntime as ort
here = os.path.dirname(os.path.abspath(__file__))
saved, types = np.load(os.path.join(here, {data!r})), {types!r}  # types: ONNX's numbers for them
session = ort.InferenceSession(os.path.join(here, {model!r}), providers=["CPUExecutionProvider"])
value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
feeds = {{name: value(np.ascontiguousarray(saved["in." + name]), types[name]) for name in types}}
for name, got in zip({outputs!r}, session.run_with_ort_values({outputs!r}, feeds)):
    print(f"{{name}}\\n  eager {{saved['eager.' + name]!r}}\\n  ONNX  {{got.numpy()!r}}")
'''


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a counterexample is kept. An export that failed left no model, so its copy goes there too."""

    folder: Path
    with_model: bool = False

    def save(
        self, model: Path, feeds: Mapping[str, TensorData], outputs: Sequence[str], expected: Sequence[Expected]
    ) -> Path:
        """Write the input, eager's answer and the script; an older counterexample is replaced. Returns the script."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.with_model:
            for part in model.parent.glob(f"{model.name}*"):  # its data file begins with its name
                shutil.copyfile(part, self.folder / part.name)
        arrays = {f"in.{name}": _bits(data) for name, data in feeds.items()}
        # A sequence of tensors is no array, and onnxruntime gives it in another way; the script leaves it out.
        plain = {
            n: v for n, v in zip(outputs, expected, strict=True) if isinstance(v, torch.Tensor | bool | int | float)
        }
        arrays |= {f"eager.{name}": _array(value) for name, value in plain.items()}
        np.savez(self.folder / DATA, **arrays)  # type: ignore[arg-type]
        script = self.folder / SCRIPT
        named = model.name if self.with_model else str(model.absolute())
        types = {name: data.element_type for name, data in feeds.items()}
        script.write_text(_SCRIPT.format(model=named, data=DATA, types=types, outputs=list(plain)), encoding="utf-8")
        return script

    def withdraw(self) -> None:
        """Take back what was saved: it spoke of a model that is not the one to be told about."""
        for name in (DATA, SCRIPT, "model.onnx", "model.onnx.data"):
            (self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder holds other things, or was never made
            self.folder.rmdir()


def _bits(data: TensorData) -> np.ndarray[Any, Any]:
    """The tensor in its own dtype, or its bits where numpy has no such dtype (bfloat16, float8)."""
    dtype = getattr(torch, data.dtype, None)
    try:
        kind = np.dtype(data.dtype)
    except TypeError:
        size = dtype.itemsize if dtype is not None else 1
        kind = np.dtype(f"uint{8 * size}")
    return np.frombuffer(data.data, dtype=kind).reshape(data.shape)


def _array(value: torch.Tensor | bool | int | float) -> np.ndarray[Any, Any]:
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    plain = value.detach().cpu().resolve_conj().resolve_neg()
    exotic = plain.dtype is torch.bfloat16 or (plain.element_size() == 1 and plain.is_floating_point())
    return np.asarray((plain.float() if exotic else plain).numpy())
