"""An ONNX file in ONNX Runtime, called with the arguments of the torch model."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch

from benchmarks.compare import Array
from benchmarks.leaves import Leaf

_BFLOAT16 = onnx.TensorProto.BFLOAT16

NUMPY_OF = {
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


class InputsDoNotFit(Exception):
    """The model's inputs cannot be told from the arguments."""


class OnnxModel:
    """Loads once; each call feeds the named leaves of `(args, kwargs)` and returns flat arrays."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def __call__(self, leaves: Sequence[tuple[str, Leaf]]) -> list[Array]:
        feed = self.feed(leaves)
        names = [output.name for output in self._session.get_outputs()]
        if not self._has_bfloat16():
            return list(_flat_arrays(self._session.run(names, feed)))
        values = {name: _as_value(array) for name, array in feed.items()}
        return [_read(value) for value in self._session.run_with_ort_values(names, values)]

    def feed(self, leaves: Sequence[tuple[str, Leaf]]) -> dict[str, Array]:
        """What the runtime is given, by the names of the file's inputs."""
        return {i.name: _as_array(leaf, i.type, i.shape) for i, leaf in self._pair(leaves)}

    def _has_bfloat16(self) -> bool:
        """numpy has no such dtype, and so the plain way in and out of the runtime does not either."""
        ends = [*self._session.get_inputs(), *self._session.get_outputs()]
        return any(end.type == "tensor(bfloat16)" for end in ends)

    def _pair(self, leaves: Sequence[tuple[str, Leaf]]) -> list[tuple[Any, Leaf]]:
        """By name, so that inputs which an exporter froze may be missing; else by position, with or without numbers."""
        inputs = self._session.get_inputs()
        named = dict(leaves)
        if all(i.name in named for i in inputs):
            return [(i, named[i.name]) for i in inputs]
        everything = [leaf for _, leaf in leaves]
        tensors = [leaf for leaf in everything if isinstance(leaf, torch.Tensor)]
        for candidates in (everything, tensors):
            if len(candidates) == len(inputs):
                return list(zip(inputs, candidates, strict=True))
        names = ", ".join(i.name for i in inputs)
        raise InputsDoNotFit(f"the model takes [{names}], the call has [{', '.join(named)}]")


def _as_array(leaf: Leaf, onnx_type: str, shape: list[object]) -> Array:
    if isinstance(leaf, torch.Tensor):
        leaf = leaf.detach().resolve_conj().resolve_neg().contiguous()
        if leaf.is_complex() and "complex" not in onnx_type:
            leaf = torch.view_as_real(leaf)
        if leaf.dtype is torch.bfloat16:
            array: Array = leaf.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
            return array
        return leaf.numpy()
    dtype = NUMPY_OF[onnx_type]
    return np.full([1] * len(shape), leaf, dtype=dtype)


def _as_value(array: Array) -> Any:
    if array.dtype != ml_dtypes.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(array.shape), _BFLOAT16)
    if array.size:
        ctypes.memmove(value.data_ptr(), np.ascontiguousarray(array).ctypes.data, array.nbytes)
    return value


def _read(value: Any) -> Array:
    if value.element_type() != _BFLOAT16:
        return np.asarray(value.numpy())
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()) if value.tensor_size_in_bytes() else b""
    return np.frombuffer(raw, dtype=ml_dtypes.bfloat16).reshape(value.shape())


def _flat_arrays(outputs: Sequence[Any]) -> Sequence[Array]:
    flat: list[Array] = []
    for value in outputs:
        if isinstance(value, list):  # an ONNX sequence
            flat.extend(_flat_arrays(value))
        else:
            flat.append(np.asarray(value))
    return flat
