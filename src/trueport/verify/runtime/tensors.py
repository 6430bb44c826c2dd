"""Tensors on their way to the worker and back: ONNX element type, shape, raw bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

# ONNX numbers its element types (TensorProto.DataType); these are the names that a torch user knows them by.
_NAMES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn_x2",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}
_NUMBERS = {name: number for number, name in _NAMES.items()}
_PACKED_BITS = {"uint4": 4, "int4": 4, "uint2": 2, "int2": 2}

# onnxruntime says `tensor(float)` and `tensor(double)`, and writes the float8 names without underscores.
_RUNTIME_NAMES = {"float": "float32", "double": "float64"} | {
    name.replace("_", ""): name for name in _NAMES.values() if name.startswith("float8")
}


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor as the worker carries it. `dtype` is torch's name for it where torch has one, else ONNX's (`int4`)."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def element_type(self) -> int:
        return _NUMBERS[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


RuntimeValue = TensorData | tuple[TensorData, ...]
"""What an output holds: a tensor, or a sequence of them."""


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def element_name(element_type: int) -> str:
    """The name of an ONNX element type, by its number."""
    return _NAMES.get(element_type, f"type {element_type}")


def dtype_of(runtime_type: str) -> str:
    """The dtype in one of onnxruntime's types: `tensor(float)` and `seq(tensor(float))` both hold float32."""
    inner = runtime_type.rsplit("(", 1)[-1].rstrip(")")
    return _RUNTIME_NAMES.get(inner, inner)


def tensor_data(element_type: int, shape: Sequence[int], data: bytes) -> TensorData:
    return TensorData(_NAMES[element_type], tuple(shape), data)


def from_torch(tensor: torch.Tensor) -> TensorData:
    """The bytes of a tensor, whatever its device, strides or dtype. No runtime computes with complex numbers: pairs."""
    plain = as_pairs(tensor.detach()).resolve_neg().cpu().contiguous()
    flat = plain.reshape(-1)
    # A tensor of one element counts as contiguous whatever its stride.
    raw = flat.as_strided(flat.shape, (1,)).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return TensorData(dtype_name(plain.dtype), tuple(plain.shape), raw)


def as_pairs(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as a real one whose last axis is (real, imaginary); any other as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def to_torch(value: TensorData) -> torch.Tensor:
    """A torch tensor of the same values; 2- and 4-bit integers, on which torch cannot compute, become int8 or uint8."""
    if bits := _PACKED_BITS.get(value.dtype):
        return _unpacked(value, bits)
    dtype = getattr(torch, value.dtype)
    if not value.data:
        return torch.empty(value.shape, dtype=dtype)
    return torch.frombuffer(bytearray(value.data), dtype=dtype).reshape(value.shape)


def _unpacked(value: TensorData, bits: int) -> torch.Tensor:
    if not value.data:
        return torch.empty(value.shape, dtype=torch.int8 if value.dtype[0] == "i" else torch.uint8)
    packed = torch.frombuffer(bytearray(value.data), dtype=torch.uint8)
    parts = torch.stack([(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], dim=1).reshape(-1)
    numbers = parts[: math.prod(value.shape)].reshape(value.shape)
    if value.dtype.startswith("u"):
        return numbers
    signed = numbers.to(torch.int8)
    return torch.where(signed >= 2 ** (bits - 1), signed - 2**bits, signed)
