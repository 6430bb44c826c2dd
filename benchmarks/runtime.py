"""An ONNX file in ONNX Runtime, called with the arguments of the torch model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from benchmarks.compare import Array
from benchmarks.leaves import Leaf

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
        feed = {i.name: _as_array(leaf, i.type, i.shape) for i, leaf in self._pair(leaves)}
        return list(_flat_arrays(self._session.run(None, feed)))

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
        return leaf.detach().contiguous().numpy()
    dtype = NUMPY_OF[onnx_type]
    return np.full([1] * len(shape), leaf, dtype=dtype)


def _flat_arrays(outputs: Sequence[Any]) -> Sequence[Array]:
    flat: list[Array] = []
    for value in outputs:
        if isinstance(value, list):  # an ONNX sequence
            flat.extend(_flat_arrays(value))
        else:
            flat.append(np.asarray(value))
    return flat
