"""What an ONNX operator takes and gives, read once per operator from the schemas of the `onnx` package.

`onnx_ir.schemas.OpSignature.from_op_schema` costs as much as building a dozen nodes; this keeps only what building a
node needs: which inputs must agree in dtype, which dtype an output then has, and how an attribute is spelt.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

TENSOR_TYPES: dict[str, ir.DataType] = {
    "tensor(float)": ir.DataType.FLOAT,
    "tensor(double)": ir.DataType.DOUBLE,
    "tensor(float16)": ir.DataType.FLOAT16,
    "tensor(bfloat16)": ir.DataType.BFLOAT16,
    "tensor(int8)": ir.DataType.INT8,
    "tensor(int16)": ir.DataType.INT16,
    "tensor(int32)": ir.DataType.INT32,
    "tensor(int64)": ir.DataType.INT64,
    "tensor(uint8)": ir.DataType.UINT8,
    "tensor(uint16)": ir.DataType.UINT16,
    "tensor(uint32)": ir.DataType.UINT32,
    "tensor(uint64)": ir.DataType.UINT64,
    "tensor(bool)": ir.DataType.BOOL,
    "tensor(string)": ir.DataType.STRING,
    "tensor(complex64)": ir.DataType.COMPLEX64,
    "tensor(complex128)": ir.DataType.COMPLEX128,
    "tensor(float8e4m3fn)": ir.DataType.FLOAT8E4M3FN,
    "tensor(float8e4m3fnuz)": ir.DataType.FLOAT8E4M3FNUZ,
    "tensor(float8e5m2)": ir.DataType.FLOAT8E5M2,
    "tensor(float8e5m2fnuz)": ir.DataType.FLOAT8E5M2FNUZ,
}


TENSOR_NAMES: dict[ir.DataType, str] = {dtype: name for name, dtype in TENSOR_TYPES.items()}


class NeedsOpset(LookupError):
    """The opset cannot say what a translation asks for; a later one can."""

    def __init__(self, what: str, opset: int) -> None:
        super().__init__(f"ONNX has {what} since opset {opset}")
        self.what, self.opset = what, opset


@dataclass(frozen=True, slots=True)
class SchemaSlot:
    """One input or output: a dtype that never changes, or the name of the dtype that it shares with others."""

    shares: str
    dtype: ir.DataType | None


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    domain: str
    since_version: int
    inputs: tuple[SchemaSlot, ...]
    outputs: tuple[SchemaSlot, ...]
    attributes: dict[str, ir.AttributeType]
    allowed: dict[str, frozenset[str]]
    """Dtypes that each shared name admits, as ONNX writes them."""
    has_body: bool
    """Defined by a function over other operators, which a runtime without a kernel may expand."""
    most_inputs: int

    def input(self, index: int) -> SchemaSlot:
        return self.inputs[index] if index < len(self.inputs) else self.inputs[-1]

    def missing(self, inputs: int, attributes: Mapping[str, object]) -> str | None:
        """What the operator does not have of this: so many inputs, or an attribute."""
        if inputs > self.most_inputs:
            return f"{inputs} inputs"
        unknown = (name for name, value in attributes.items() if value is not None and name not in self.attributes)
        return next((f"the attribute `{name}`" for name in unknown), None)


@functools.cache
def signature_of(name: str, opset: int, domain: str = "") -> Signature:
    """The signature of an operator as of an opset. Raises NeedsOpset when only a later opset has it."""
    try:
        schema = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError as error:
        for later in range(opset + 1, onnx.defs.onnx_opset_version() + 1 if not domain else 0):
            if onnx.defs.has(name, later, domain):
                raise NeedsOpset(name, later) from error
        raise LookupError(f"ONNX has no operator {domain or 'ai.onnx'}::{name} in opset {opset}") from error
    allowed = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}

    def slot(param: OpSchema.FormalParameter) -> SchemaSlot:
        types = allowed.get(param.type_str, frozenset((param.type_str,)))
        fixed = TENSOR_TYPES.get(next(iter(types))) if len(types) == 1 else None
        # Heterogeneous variadic inputs (the carried values of a Loop) share a name without sharing a dtype.
        shares = param.type_str if param.is_homogeneous else ""
        return SchemaSlot(shares, fixed)

    return Signature(
        name=schema.name,
        domain=schema.domain,
        since_version=schema.since_version,
        inputs=tuple(slot(p) for p in schema.inputs),
        outputs=tuple(slot(p) for p in schema.outputs),
        attributes={n: _attribute_type(a) for n, a in schema.attributes.items()},
        allowed=allowed,
        has_body=bool(
            getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False)
        ),
        most_inputs=schema.max_input,
    )


def _attribute_type(attribute: OpSchema.Attribute) -> ir.AttributeType:
    return ir.AttributeType[str(attribute.type).rpartition(".")[2]]
