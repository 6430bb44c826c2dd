"""How a node is written in an opset that is older than the form in which translations write it.

Translations write each operator as opset 18 has it (`PLAIN`), and newer where they ask for it. What an older opset says
otherwise is said here, once for all translations, when the node is built: the same operator with other inputs and
attributes, or other operators that compute the same. What an older opset cannot say is refused, with the lowest that
can. Dtypes are no matter of forms: where an older opset has an operator in fewer of them, `passes/legalise.py` casts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import onnx
import onnx_ir as ir

from trueport.lower.signature import NeedsOpset, signature_of
from trueport.lower.tensor import Emitter, Tensor

PLAIN = 18
"""Since then, what a free size may need (axes, lengths) is an input."""

FLOAT, HALVES = ir.DataType.FLOAT, (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True, slots=True)
class Asked:
    """A node of the standard domain that a translation asks for."""

    name: str
    inputs: tuple[Tensor | None, ...]
    attributes: Mapping[str, Any]
    count: int
    """How many of its outputs are wanted."""

    def input(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def without(self, *attributes: str) -> Asked:
        return replace(self, attributes={k: v for k, v in self.attributes.items() if k not in attributes})


Form = Callable[[Emitter, Asked], "Asked | tuple[Tensor, ...]"]
"""The node in an older form, or what other nodes give in its place."""
_FORMS: dict[str, list[tuple[int, Form]]] = {}


def _below(opset: int, *names: str) -> Callable[[Form], Form]:
    """Register how these operators are written below an opset."""

    def register(form: Form) -> Form:
        for name in names:
            _FORMS.setdefault(name, []).append((opset, form))
        return form

    return register


def older_form(op: Emitter, opset: int, asked: Asked) -> Asked | tuple[Tensor, ...]:
    """A node as this opset writes it, or the results of others in its place. Raises NeedsOpset if there is no way."""
    for below, form in _FORMS.get(asked.name, ()):
        if opset < below:
            found = form(op, asked)
            if not isinstance(found, Asked):
                return found
            asked = found
    _refuse_newer(asked, opset)
    return asked


def _refuse_newer(asked: Asked, opset: int) -> None:
    """Raise where the node has an input or an attribute that came with a later opset."""
    signature = signature_of(asked.name, opset)
    missing = signature.missing(len(asked.inputs), asked.attributes)
    if missing is None:
        return
    for later in range(opset + 1, onnx.defs.onnx_opset_version() + 1):
        if signature_of(asked.name, later).missing(len(asked.inputs), asked.attributes) is None:
            raise NeedsOpset(f"{asked.name} with {missing}", later)


def _constant(x: Tensor) -> list[int] | None:
    return None if x.const_value is None else [int(each) for each in x.const_value.numpy().reshape(-1)]


def _given(x: Tensor | None) -> Tensor:
    assert x is not None, "an input that the operator cannot do without"
    return x


@_below(18, *"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd".split())
@_below(18, "ReduceSumSquare")
def _axes_in_an_attribute(op: Emitter, asked: Asked) -> Asked | tuple[Tensor, ...]:
    x, axes = _given(asked.input(0)), asked.input(1)
    numbers: list[int] | None = []
    if axes is not None and (numbers := _constant(axes)) is None:
        raise NeedsOpset(f"{asked.name} over axes that are computed", 18)
    if not numbers and asked.attributes.get("noop_with_empty_axes"):
        return (op.Identity(x),)
    plain = asked.without("noop_with_empty_axes")
    attributes = {**plain.attributes, "axes": numbers} if numbers else plain.attributes
    return replace(plain, inputs=(x,), attributes=attributes)


@_below(18, "Split")
def _equal_parts(op: Emitter, asked: Asked) -> Asked:
    """Without lengths, the parts are equal; there are as many as outputs."""
    return asked.without("num_outputs")


@_below(14, "Reshape")
def _zero_is_a_copy(op: Emitter, asked: Asked) -> Asked | tuple[Tensor, ...]:
    """A zero in the target means a copy of the input's size on that axis, whether or not it is meant so.

    So what is reshaped is made to have a size of zero on every axis if it is empty, and is otherwise left as it is.
    """
    x, target = _given(asked.input(0)), _given(asked.input(1))
    plain = asked.without("allowzero")
    numbers = _constant(target)
    if not asked.attributes.get("allowzero") or (numbers is not None and 0 not in numbers):
        return plain
    rank = len(numbers) if numbers is not None else None if target.sizes is None else target.sizes[0]
    if rank is None and target.shape is not None and isinstance(target.shape[0], int):
        rank = target.shape[0]
    if not isinstance(rank, int):
        raise NeedsOpset("Reshape to a number of axes that is computed, of what may be empty", 14)
    if rank < 2:
        return replace(plain, inputs=(x, op.ints(*[-1] * rank)))
    row = op.Reshape(x, op.ints(*[1] * (rank - 1), -1))  # whose elements stay together: they are copied at once
    number = op.Size(x)
    number.settle(())
    ends = op.Expand(op.Min(number, 1), op.ints(rank - 1))
    others = op.ints(*range(rank - 1))
    return replace(plain, inputs=(op.Slice(row, op.ints(*[0] * (rank - 1)), ends, others), target))


def reshaped(x: ir.Value) -> ir.Value | None:
    """What a `Reshape` gave `x` for, in the form of any opset; None if none did."""
    node = x.producer()
    if node is None or node.op_type != "Reshape":
        return None
    given = node.inputs[0]
    cut = None if given is None else given.producer()
    # A `Slice` of the user's has sizes; the one that makes nothing of nothing has none.
    if cut is None or cut.op_type != "Slice" or not isinstance(given, Tensor) or given.sizes is not None:
        return given
    whole = None if cut.inputs[0] is None else reshaped(cut.inputs[0])
    return given if whole is None else whole


@_below(15, "Shape")
def _all_sizes(op: Emitter, asked: Asked) -> Asked | tuple[Tensor, ...]:
    """All sizes are asked for, once, and those that are wanted taken out."""
    start, end = asked.attributes.get("start") or 0, asked.attributes.get("end")
    if not start and end is None:
        return asked.without("start", "end")
    x = _given(asked.input(0))
    sizes = op.shared("all sizes", x.name, make=lambda: op.Shape(x))
    return (op.Slice(sizes, op.ints(start), op.ints(2**31 - 1 if end is None else end), op.ints(0)),)


@_below(14, "Relu")
def _relu(op: Emitter, asked: Asked) -> Asked | tuple[Tensor, ...]:
    x = _given(asked.input(0))
    return (op.Max(x, 0),) if x.element.is_integer() else asked


@_below(14, "HardSwish")
def _hard_swish(op: Emitter, asked: Asked) -> tuple[Tensor, ...]:
    x = _given(asked.input(0))
    return (op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5)),)


@_below(14, "Trilu")
def _trilu(op: Emitter, asked: Asked) -> tuple[Tensor, ...]:
    """Where the column is at or beyond the diagonal, counted from the row; below, at or before it."""
    x, diagonal = _given(asked.input(0)), asked.input(1)
    sizes = op.Shape(x)

    def places(axis: int) -> Tensor:
        length = op.Squeeze(op.Slice(sizes, op.ints(axis), op.ints(axis + 1 or 2**31 - 1)), op.ints(0))
        return op.Range(op.const(0), length, op.const(1))

    rows = op.Unsqueeze(places(-2), op.ints(1))
    edge = rows if diagonal is None else op.Add(rows, diagonal)
    columns = places(-1)
    upper = asked.attributes.get("upper", 1)
    kept = op.GreaterOrEqual(columns, edge) if upper else op.LessOrEqual(columns, edge)
    return (op.Where(kept, x, op.const(0, x.element)),)


@_below(14, "BatchNormalization")
def _no_training(op: Emitter, asked: Asked) -> Asked:
    return asked if asked.attributes.get("training_mode") else asked.without("training_mode")


@_below(17, "LayerNormalization")
def _layer_normalization(op: Emitter, asked: Asked) -> tuple[Tensor, ...]:
    """As its definition says, in operators that ONNX Runtime makes one again. Statistics are of single precision."""
    x, scale, bias = _given(asked.input(0)), _given(asked.input(1)), asked.input(2)
    if asked.count > 1 or (x.sizes is None and x.shape is None):
        raise NeedsOpset("LayerNormalization with its statistics", 17)
    axis = asked.attributes.get("axis", -1)
    axes = op.ints(*range(axis + x.rank if axis < 0 else axis, x.rank))
    wide = op.cast(x, FLOAT) if x.dtype in HALVES else x
    apart = op.Sub(wide, op.ReduceMean(wide, axes, keepdims=1))
    variance = op.ReduceMean(op.Pow(apart, op.const(2, wide.element)), axes, keepdims=1)
    root = op.Sqrt(op.Add(variance, asked.attributes.get("epsilon", 1e-5)))
    out = op.Mul(op.cast(op.Div(apart, root), x.element), scale)
    return (out if bias is None else op.Add(out, bias),)


@_below(18, "ScatterElements", "ScatterND")
def _no_extremes(op: Emitter, asked: Asked) -> Asked:
    if (reduction := asked.attributes.get("reduction")) in ("max", "min"):
        raise NeedsOpset(f"{asked.name} that takes the {reduction}", 18)
    return asked


@_below(16, "ScatterElements", "ScatterND")
def _no_reduction(op: Emitter, asked: Asked) -> Asked:
    if (asked.attributes.get("reduction") or "none") in ("add", "mul"):
        raise NeedsOpset(f"{asked.name} that adds or multiplies", 16)
    return asked.without("reduction")


@_below(16, "RoiAlign")
def _roi_align(op: Emitter, asked: Asked) -> Asked:
    """Without a word, the coordinates are those of `output_half_pixel`; regions that are `aligned` came later."""
    if asked.attributes.get("coordinate_transformation_mode") == "output_half_pixel":
        return asked.without("coordinate_transformation_mode")
    return asked


@_below(20, "GridSample")
def _grid_sample(op: Emitter, asked: Asked) -> Asked:
    x = _given(asked.input(0))
    if x.sizes is not None and x.rank != 4:
        raise NeedsOpset(f"GridSample of {x.rank - 2} dimensions", 20)
    mode = asked.attributes.get("mode", "linear")
    return replace(
        asked, attributes={**asked.attributes, "mode": {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)}
    )


@_below(19, "Cast")
def _cast(op: Emitter, asked: Asked) -> Asked:
    """What `saturate` speaks of, the dtypes of eight bits, came with it."""
    return asked if ir.DataType(asked.attributes["to"]).name.startswith("FLOAT8") else asked.without("saturate")
