"""Dtypes: between torch and ONNX, and which one eager computes in."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from trueport.graph.regions import Node, Number, Value
from trueport.lower.tensor import Emitter, Operand, Tensor
from trueport.torch_internals.schemas import argument_names

TO_ONNX: dict[torch.dtype, ir.DataType] = {
    torch.bfloat16: ir.DataType.BFLOAT16,
    torch.bool: ir.DataType.BOOL,
    torch.complex64: ir.DataType.COMPLEX64,
    torch.complex128: ir.DataType.COMPLEX128,
    torch.float16: ir.DataType.FLOAT16,
    torch.float32: ir.DataType.FLOAT,
    torch.float64: ir.DataType.DOUBLE,
    torch.float8_e4m3fn: ir.DataType.FLOAT8E4M3FN,
    torch.float8_e4m3fnuz: ir.DataType.FLOAT8E4M3FNUZ,
    torch.float8_e5m2: ir.DataType.FLOAT8E5M2,
    torch.float8_e5m2fnuz: ir.DataType.FLOAT8E5M2FNUZ,
    torch.int8: ir.DataType.INT8,
    torch.int16: ir.DataType.INT16,
    torch.int32: ir.DataType.INT32,
    torch.int64: ir.DataType.INT64,
    torch.uint8: ir.DataType.UINT8,
    torch.uint16: ir.DataType.UINT16,
    torch.uint32: ir.DataType.UINT32,
    torch.uint64: ir.DataType.UINT64,
}
TO_TORCH: dict[ir.DataType, torch.dtype] = {onnx: ours for ours, onnx in TO_ONNX.items()}


def onnx_dtype(dtype: torch.dtype) -> ir.DataType:
    try:
        return TO_ONNX[dtype]
    except KeyError:
        raise ValueError(f"ONNX has no dtype for {dtype}") from None


def torch_dtype(dtype: ir.DataType) -> torch.dtype:
    return TO_TORCH[dtype]


@functools.cache
def _stand_in(dtype: torch.dtype, has_axes: bool) -> torch.Tensor:
    return torch.empty((1,) if has_axes else (), dtype=dtype, device="meta")


def promoted(*operands: Operand) -> ir.DataType:
    """The dtype in which eager computes on these together: `torch.result_type`, over any number of them.

    A 0-d tensor weighs less than one with axes, and a Python number less than both, as in eager.
    """
    ranks: dict[int, torch.dtype] = {}
    for operand in operands:
        if isinstance(operand, Tensor):
            level, dtype = (2 if operand.rank else 1), torch_dtype(operand.element)
        elif isinstance(operand, Number):
            level, dtype = 0, _default_of(operand.kind)
        elif isinstance(operand, bool | int | float):
            level, dtype = 0, _default_of(type(operand))
        else:
            continue
        ranks[level] = torch.promote_types(ranks[level], dtype) if level in ranks else dtype
    result: torch.dtype | None = None
    for level in (2, 1, 0):
        if level not in ranks:
            continue
        result = ranks[level] if result is None else _yield_to(result, ranks[level])
    if result is None:
        raise ValueError("nothing to promote")
    return onnx_dtype(result)


def _default_of(kind: type) -> torch.dtype:
    return {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}[kind]


@functools.cache
def _yield_to(strong: torch.dtype, weak: torch.dtype) -> torch.dtype:
    """A weaker operand changes the dtype only when it is of a higher category (bool < integer < floating)."""
    return torch.result_type(_stand_in(strong, True), _stand_in(weak, False))


_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "less", "greater", "not_equal"))
_LOGICAL = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))
_SPECIAL = ("erf", "erfc", "exp2", "expit", "expm1", "log1p", "logit", "sinc", "xlogy")
_UNTAGGED = frozenset(
    ("fix", "floor_divide", "masked_fill", "rsub", "true_divide", *(f"special_{name}" for name in _SPECIAL))
)
"""Elementwise operators that torch does not tag so."""
_NEVER_CAST = frozenset(("condition", "mask"))


def align(op: Emitter, node: Node, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Operands of an elementwise operator, in the dtype in which eager computes it.

    1. The dtype of the result, where that is not bool; but float32 for bfloat16, which is rounded only at the end.
    2. For a comparison, the dtype that the operands promote to.
    3. For a logical operator, bool.

    Conditions and masks keep theirs. Python numbers follow the tensors that they meet, when the node is built.
    """
    result = node.outputs[0] if node.outputs else None
    if not isinstance(result, Value) or not _is_elementwise(node):
        return args, kwargs
    name = _base_name(node)
    if result.dtype is not torch.bool:
        dtype = ir.DataType.FLOAT if result.dtype is torch.bfloat16 else onnx_dtype(result.dtype)
    elif name in _COMPARISONS:
        dtype = promoted(*args)
    elif name in _LOGICAL:
        dtype = ir.DataType.BOOL
    else:
        return args, kwargs
    names = argument_names(node.op)

    def cast(name: str, x: Any) -> Any:
        return op.cast(x, dtype) if isinstance(x, Tensor) and name not in _NEVER_CAST else x

    return (
        [cast(name, x) for name, x in zip(names, args, strict=False)],
        {name: cast(name, x) for name, x in kwargs.items()},
    )


def parts_dtype(node: Node, operands: Sequence[Value]) -> torch.dtype | None:
    """The dtype in which eager computes the parts of complex operands; None where the operator promotes nothing."""
    result = node.outputs[0] if node.outputs else None
    if not isinstance(result, Value) or not operands or not _is_elementwise(node):
        return None
    if result.dtype.is_complex:
        return result.dtype.to_real()
    if _base_name(node) not in _COMPARISONS:
        return None
    levels = ([x.dtype for x in operands if bool(x.shape) is has_axes] for has_axes in (True, False))
    promoted_each = [functools.reduce(torch.promote_types, level) for level in levels if level]
    common: torch.dtype = functools.reduce(_yield_to, promoted_each)
    return common.to_real()


def _is_elementwise(node: Node) -> bool:
    return torch.Tag.pointwise in node.op.tags or _base_name(node) in _UNTAGGED  # type: ignore[union-attr]


def _base_name(node: Node) -> str:
    return str(node.op).split(".")[1]
