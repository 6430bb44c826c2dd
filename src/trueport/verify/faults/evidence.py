"""A counterexample on disk: the input, eager's answer, and a script of ten lines that shows the difference."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueport.verify.judging.compare import Expected
from trueport.verify.runtime.tensors import TensorData

DATA = "counterexample.npz"
SCRIPT = "show_difference.py"
_PLAIN = re.compile(r"[\w:-][\w.:-]{,99}", re.ASCII)

_BEGINNING = '''\
"""Runs the model on the saved input, and prints its answer beside what eager PyTorch gave."""
import os, numpy as np, onnxruntime as ort
here = os.path.dirname(os.path.abspath(__file__))
saved = np.load(os.path.join(here, {data}))
session = ort.InferenceSession(os.path.join(here, {model}), providers=["CPUExecutionProvider"])
inputs, outputs = {inputs}, {outputs}  # as what each is saved, and ONNX's number for an input's dtype
value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type'''

_ONE_CALL = r"""
feeds = {name: value(np.ascontiguousarray(saved["in." + key]), dtype) for name, (key, dtype) in inputs.items()}
for name, got in zip(outputs, session.run_with_ort_values(list(outputs), feeds)):
    print(f"{ascii(name)[1:-1]:.200}\n  eager {saved['eager.' + outputs[name]]!r}\n  ONNX  {got.numpy()!r}")
"""

_LISTS = r"""
feeds = {name: value(np.ascontiguousarray(saved["in." + key]), dtype) for name, (key, dtype) in inputs.items()}
for name, (key, count) in lists.items():
    right = [saved[f"eager.{key}[{i}]"] for i in range(count)]
    print(f"{ascii(name)[1:-1]:.200}\n  eager {right!r}\n  ONNX  {session.run([name], feeds)[0]!r}")
"""

_SEVERAL_CALLS = r"""
for call in range(count):
    given = {name: (saved[f"{call}.in.{key}"], dtype) for name, (key, dtype) in inputs.items()}
    feeds = {name: value(np.ascontiguousarray(array), dtype) for name, (array, dtype) in given.items()}
    for name, got in zip(outputs, session.run_with_ort_values(list(outputs), feeds)):
        right = saved[f"{call}.eager.{outputs[name]}"]
        print(f"call {call + 1}: {ascii(name)[1:-1]:.200}\n  eager {right!r}\n  ONNX  {got.numpy()!r}")
"""


def _script(model: str, inputs: object, outputs: object, lists: object, count: int | None) -> str:
    """Whatever came from outside (names, the path of the model) stands in it as a literal that `ascii` wrote, and
    nowhere else: a name can hold quotes, backslashes and line breaks."""
    text = _BEGINNING.format(data=ascii(DATA), model=ascii(model), inputs=ascii(inputs), outputs=ascii(outputs))
    if count is not None:
        return f"{text}\ncount = {count}{_SEVERAL_CALLS}"
    if outputs or not lists:
        text += _ONE_CALL
    return f"{text}\nlists = {lists!a}  # sequences of tensors{_LISTS}" if lists else text


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """What the runtime was given, and what eager gave."""

    feeds: Mapping[str, TensorData]
    expected: Sequence[Expected]


@dataclass(frozen=True, slots=True)
class KeptEvidence:
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

    def kept(self, model: Path, call: ComparedCall, outputs: Sequence[str]) -> KeptEvidence:
        """Write the input, eager's answer and the script; an older counterexample is replaced."""
        return self._kept(model, [call], outputs, in_turn=False)

    def kept_calls(self, model: Path, calls: Sequence[ComparedCall], outputs: Sequence[str]) -> KeptEvidence:
        """The same for several calls, one after the other."""
        return self._kept(model, calls, outputs, in_turn=True)

    def _kept(self, model: Path, calls: Sequence[ComparedCall], outputs: Sequence[str], in_turn: bool) -> KeptEvidence:
        try:
            written = self._save(model, calls, outputs, in_turn)
        except OSError as failure:
            why = failure.strerror or failure
            return KeptEvidence(f"the counterexample could not be kept in {self.folder}: {why}", None)
        return KeptEvidence(f"to see it: python {shlex.quote(str(written))}", self.folder)

    def _save(self, model: Path, calls: Sequence[ComparedCall], outputs: Sequence[str], in_turn: bool) -> Path:
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
        given, answered = _keys(calls[0].feeds), _keys(outputs)
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        for number, call in enumerate(calls):
            which = f"{number}." if in_turn else ""
            arrays |= {f"{which}in.{given[name]}": _bits(data) for name, data in call.feeds.items()}
            named = dict(zip(outputs, call.expected, strict=True))
            arrays |= {f"{which}eager.{answered[name]}": _array(named[name]) for name in plain}
        answer = zip(outputs, calls[0].expected, strict=True)
        lists = {name: list(value) for name, value in answer if isinstance(value, Sequence) and not in_turn}
        for name, items in lists.items():
            arrays |= {f"eager.{answered[name]}[{at}]": _array(item) for at, item in enumerate(items)}
        np.savez(folder / DATA, **arrays)  # type: ignore[arg-type]
        text = _script(
            model.name if self.with_model else str(model.absolute()),
            {name: (given[name], data.element_type) for name, data in calls[0].feeds.items()},
            {name: answered[name] for name in plain},
            {name: (answered[name], len(items)) for name, items in lists.items()},
            len(calls) if in_turn else None,
        )
        (folder / SCRIPT).write_text(text, encoding="ascii")
        return self.folder / SCRIPT

    def withdraw(self) -> None:
        """Take back what was saved: it spoke of a model that is not the one to be told about."""
        for name in (DATA, SCRIPT, "model.onnx", "model.onnx.data"):
            (self.home / self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder holds other things, or was never made
            (self.home / self.folder).rmdir()


def _keys(names: Iterable[str]) -> dict[str, str]:
    """Under which name each is saved: its own where that may be the name of a file, or else its number."""
    return {name: name if _PLAIN.fullmatch(name) else f"#{number}" for number, name in enumerate(names)}


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
