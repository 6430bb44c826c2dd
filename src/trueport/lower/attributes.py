"""Python values as ONNX attributes, spelt as the operator's schema demands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from trueport.lower.dtypes import onnx_dtype

_Kind = ir.AttributeType


def attribute(name: str, value: Any, kind: ir.AttributeType | None = None) -> ir.Attr:
    """One attribute. Without a schema (`kind` is None) the Python type decides."""
    if isinstance(value, ir.Attr):
        return value
    if isinstance(value, torch.dtype):
        value = int(onnx_dtype(value))
    if kind is None:
        kind = _kind_of(value)
    return ir.Attr(name, kind, _CONVERT[kind](value))


def _tensor(value: Any) -> ir.TensorProtocol:
    if isinstance(value, ir.TensorProtocol):
        return value
    return ir.Tensor(np.asarray(value))


def _kind_of(value: Any) -> ir.AttributeType:
    if isinstance(value, bool | int):
        return _Kind.INT
    if isinstance(value, float):
        return _Kind.FLOAT
    if isinstance(value, str):
        return _Kind.STRING
    if isinstance(value, list | tuple):
        if all(isinstance(item, int) for item in value):
            return _Kind.INTS
        if all(isinstance(item, str) for item in value):
            return _Kind.STRINGS
        return _Kind.FLOATS
    if isinstance(value, ir.Graph):
        return _Kind.GRAPH
    return _Kind.TENSOR


_CONVERT: dict[ir.AttributeType, Callable[[Any], Any]] = {
    _Kind.INT: int,
    _Kind.FLOAT: float,
    _Kind.STRING: str,
    _Kind.INTS: lambda value: tuple(int(item) for item in value),
    _Kind.FLOATS: lambda value: tuple(float(item) for item in value),
    _Kind.STRINGS: tuple,
    _Kind.TENSOR: _tensor,
    _Kind.GRAPH: lambda value: value,
}
