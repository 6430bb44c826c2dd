"""A counterexample on disk: the input, eager's answer, and a script of ten lines that shows the difference."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

_AND_OF_LISTS = """\
for name, count in {lists!r}.items():  # sequences of tensors
    right = [saved[f"eager.{{name}}[{{i}}]"] for i in range(count)]
    print(f"{{name}}\\n  eager {{right!r}}\\n  ONNX  {{session.run([name], feeds)[0]!r}}")
"""
"""Put behind it where outputs are sequences of tensors."""

_SCRIPT_OF_CALLS = '''\
"""Calls {model} {count} times, one after the other, and prints each answer beside what eager PyTorch gave there."""
import os, numpy as np, onnxruntime as ort
here = os.path.dirname(os.path.abspath(__file__))
saved, types = np.load(os.path.join(here, {data!r})), {types!r}  # types: ONNX's numbers for them
session = ort.InferenceSession(os.path.join(here, {model!r}), providers=["CPUExecutionProvider"])
value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
for call in range({count}):
    feeds = {{name: value(np.ascontiguousarray(saved[f"{{call}}.in.{{name}}"]), types[name]) for name in types}}
    for name, got in zip({outputs!r}, session.run_with_ort_values({outputs!r}, feeds)):
        right = saved[f"{{call}}.eager.{{name}}"]
        print(f"call {{call + 1}}: {{name}}\\n  eager {{right!r}}\\n  ONNX  {{got.numpy()!r}}")
'''


@dataclass(frozen=True, slots=True)
class Call:
    """What the runtime was given, and what eager gave."""

    feeds: Mapping[str, TensorData]
    expected: Sequence[Expected]


@dataclass(frozen=True, slots=True)
class Kept:
    """What to tell of a counterexample: how to see it, or why it could not be kept; and its folder, if it was."""

    words: str
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a counterexample is kept. An export that failed left no model, so its copy goes there too."""

    folder: Path
    with_model: bool = False
    home: Path = field(default_factory=Path.cwd)
    """The working folder of now: the model may change it."""

    def kept(self, model: Path, call: Call, outputs: Sequence[str]) -> Kept:
        """Write the input, eager's answer and the script; an older counterexample is replaced."""
        return self._kept(model, [call], outputs)

    def kept_calls(self, model: Path, calls: Sequence[Call], outputs: Sequence[str]) -> Kept:
        """The same for several calls, one after the other."""
        return self._kept(model, calls, outputs, script=_SCRIPT_OF_CALLS)

    def _kept(self, model: Path, calls: Sequence[Call], outputs: Sequence[str], script: str = _SCRIPT) -> Kept:
        try:
            written = self._save(model, calls, outputs, script)
        except OSError as failure:
            why = failure.strerror or failure
            return Kept(f"the counterexample could not be kept in {self.folder}: {why}", None)
        return Kept(f"to see it: python {written}", self.folder)

    def _save(self, model: Path, calls: Sequence[Call], outputs: Sequence[str], script: str) -> Path:
        folder = self.home / self.folder
        folder.mkdir(parents=True, exist_ok=True)
        if self.with_model:
            for part in model.parent.glob(f"{model.name}*"):  # its data file begins with its name
                shutil.copyfile(part, folder / part.name)
        # A sequence of tensors is no array, and onnxruntime gives it in another way; of several calls it is left out.
        plain = [
            name
            for at, name in enumerate(outputs)
            if all(isinstance(call.expected[at], torch.Tensor | bool | int | float) for call in calls)
        ]
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        for number, call in enumerate(calls):
            which = "" if script is _SCRIPT else f"{number}."
            arrays |= {f"{which}in.{name}": _bits(data) for name, data in call.feeds.items()}
            named = dict(zip(outputs, call.expected, strict=True))
            arrays |= {f"{which}eager.{name}": _array(named[name]) for name in plain}
        answer = zip(outputs, calls[0].expected, strict=True)
        lists = {name: list(value) for name, value in answer if isinstance(value, Sequence)}
        if script is _SCRIPT:
            for name, items in lists.items():
                arrays |= {f"eager.{name}[{at}]": _array(item) for at, item in enumerate(items)}
        np.savez(folder / DATA, **arrays)  # type: ignore[arg-type]
        place = folder / SCRIPT
        file = model.name if self.with_model else str(model.absolute())
        counts = {name: len(items) for name, items in lists.items()}
        types = {name: data.element_type for name, data in calls[0].feeds.items()}
        if lists and script is _SCRIPT:
            script = script + _AND_OF_LISTS if plain else script[: script.index("for name, got")] + _AND_OF_LISTS
        text = script.format(model=file, data=DATA, types=types, outputs=plain, count=len(calls), lists=counts)
        place.write_text(text, encoding="utf-8")
        return self.folder / SCRIPT

    def withdraw(self) -> None:
        """Take back what was saved: it spoke of a model that is not the one to be told about."""
        for name in (DATA, SCRIPT, "model.onnx", "model.onnx.data"):
            (self.home / self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder holds other things, or was never made
            (self.home / self.folder).rmdir()


def _bits(data: TensorData) -> np.ndarray[Any, Any]:
    """The tensor in its own dtype, or its bits where numpy has no such dtype (bfloat16, float8)."""
    dtype = getattr(torch, data.dtype, None)
    try:
        kind = np.dtype(data.dtype)
    except TypeError:
        size = dtype.itemsize if dtype is not None else 1
        kind = np.dtype(f"uint{8 * size}")
    return np.frombuffer(data.data, dtype=kind).reshape(data.shape)


def _array(value: Expected) -> np.ndarray[Any, Any]:
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    plain = value.detach().cpu().resolve_conj().resolve_neg()
    exotic = plain.dtype is torch.bfloat16 or (plain.element_size() == 1 and plain.is_floating_point())
    return np.asarray((plain.float() if exotic else plain).numpy())
