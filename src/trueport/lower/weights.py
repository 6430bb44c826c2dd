"""Weights as initializers that share torch's storage until they are written."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import onnx_ir as ir
import torch

from trueport import progress
from trueport.graph.regions import Value, Weight
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.tensor import Tensor

_PIECE = 4 << 20
"""Bytes of a weight that are made contiguous at once, where it is a view with gaps or a transposition."""


class Output(Protocol):
    """What weights are written to."""

    def write(self, data: memoryview | bytes, /) -> int: ...


class WeightTensor(ir.Tensor[torch.Tensor]):
    """A torch tensor seen as an ONNX one. Nothing is copied until the bytes are asked for.

    Writing goes from torch's memory to the file. A weight that is a view with gaps or a transposition is made
    contiguous by torch, a few rows at a time: numpy would take thirty times as long for it.
    """

    def __init__(self, tensor: torch.Tensor, name: str) -> None:
        super().__init__(tensor.detach(), dtype=onnx_dtype(tensor.dtype), shape=ir.Shape(tensor.shape), name=name)

    @property
    def source(self) -> torch.Tensor:
        """The user's own tensor."""
        return self.raw

    def numpy(self) -> np.ndarray[Any, Any]:
        return _as_numpy(self.source, self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def tobytes(self) -> bytes:
        return _bytes(self.source).tobytes()

    def tofile(self, file: Output) -> None:
        source = self.source
        for piece in source.split(_rows_at_once(source)) if _has_rows(source) else (source,):
            file.write(_bytes(piece).data)
        progress.advance(self.nbytes)


def _has_rows(tensor: torch.Tensor) -> bool:
    """Whether it is to be made contiguous piece by piece."""
    return tensor.ndim > 1 and tensor.nbytes > _PIECE and not tensor.is_contiguous()


def _rows_at_once(tensor: torch.Tensor) -> int:
    return max(1, _PIECE * tensor.shape[0] // tensor.nbytes)


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The elements in order, as bytes: torch's own memory where it is contiguous already."""
    dense = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    flat = dense.reshape(-1)
    # A tensor of one element counts as contiguous whatever its stride.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8).numpy()


def _as_numpy(tensor: torch.Tensor, dtype: ir.DataType) -> np.ndarray[Any, Any]:
    """numpy has no bfloat16 and no 8-bit floats of its own: their bits are handed over under ml_dtypes' names."""
    tensor = tensor.resolve_conj().resolve_neg()
    if dtype.numpy().isbuiltin == 1:
        return tensor.numpy(force=True)
    bits = torch.uint8 if tensor.element_size() == 1 else torch.uint16
    return tensor.view(bits).numpy(force=True).view(dtype.numpy())


class Weights:
    """The weights that the model uses, each stored once. A weight that no node reads is left out."""

    def __init__(self, op: Builder, weights: tuple[Weight, ...]) -> None:
        self._op = op
        self._by_value = {weight.value: weight for weight in weights}
        self._stored: dict[tuple[object, ...], Tensor] = {}
        self.initializers: list[Tensor] = []

    def find(self, value: Value) -> Tensor | None:
        weight = self._by_value.get(value)
        return None if weight is None else self._initializer(weight)

    def _initializer(self, weight: Weight) -> Tensor:
        key = _storage(weight.tensor)
        if (found := self._stored.get(key)) is None:
            tensor = weight.tensor
            if tensor.is_complex():  # carried as pairs, see complex/numbers.py
                tensor = torch.view_as_real(tensor.detach().resolve_conj())
            found = Tensor(self._op, weight.name, onnx_dtype(tensor.dtype), tuple(tensor.shape))
            found.const_value = WeightTensor(tensor, weight.name)
            self._stored[key] = found
            self.initializers.append(found)
        return found


def _storage(tensor: torch.Tensor) -> tuple[object, ...]:
    """Equal for two tensors that are the same elements of the same memory, in the same order."""
    where = tensor.untyped_storage().data_ptr() if tensor.numel() else id(tensor)
    return where, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj()


def add_weights_to_inputs(model: ir.Model) -> None:
    """List the model's weights among its inputs: what the file holds is then what they are if nobody gives others."""
    graph = model.graph
    for value in graph.initializers.values():
        if isinstance(value.const_value, WeightTensor) and value not in graph.inputs:
            graph.inputs.append(value)
