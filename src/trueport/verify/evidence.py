"""A counterexample on disk: the input, eager's answer, and a script of ten lines that shows the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
import numpy as np, onnxruntime as ort
saved = np.load({data!r})
session = ort.InferenceSession({model!r}, providers=["CPUExecutionProvider"])
types = {types!r}  # ONNX element types, for what numpy has no name for
value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
feeds = {{name: value(np.ascontiguousarray(saved["in." + name]), types[name]) for name in types}}
for name, got in zip({outputs!r}, session.run_with_ort_values({outputs!r}, feeds)):
    print(f"{{name}}\\n  eager {{saved['eager.' + name]!r}}\\n  ONNX  {{got.numpy()!r}}")
'''


def save(
    folder: Path,
    model: Path,
    feeds: Mapping[str, TensorData],
    outputs: Sequence[str],
    expected: Sequence[Expected],
) -> Path:
    """Write both files into `folder`, which is made where it is not there. Returns the script."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"in.{name}": _bits(data) for name, data in feeds.items()}
    # A sequence of tensors is no array, and onnxruntime gives it in another way; the script leaves it out.
    plain = {n: v for n, v in zip(outputs, expected, strict=True) if isinstance(v, torch.Tensor | bool | int | float)}
    arrays |= {f"eager.{name}": _array(value) for name, value in plain.items()}
    np.savez(folder / DATA, **arrays)  # type: ignore[arg-type]
    types = {name: data.element_type for name, data in feeds.items()}
    script = folder / SCRIPT
    content = _SCRIPT.format(model=str(model), data=str(folder / DATA), types=types, outputs=list(plain))
    script.write_text(content, encoding="utf-8")
    return script


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
