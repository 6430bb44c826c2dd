"""Casts for the runtime: a node that it has no kernel for is computed in a wider dtype, and its result cast back.

1. A node whose dtypes ONNX allows and have a kernel is left alone, and so is one that has no kernel in any dtype: the
   runtime expands it by its definition in ONNX.
2. bfloat16 is computed in float32 and rounded back, which is what eager does on the CPU.
3. Integers and truth are computed in the nearest wider integer that has a kernel; nothing is lost.
4. Failing that, wide integers are computed in floating point, and float64 in float32: digits may be lost, and the
   note is a warning.

float16 is not touched where ONNX has the operator in it: the runtime inserts those casts itself, and a model in half
precision is meant for a device that has the kernels. Where an older opset does not have it (IsInf before 20), it is
computed in float32 as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp502_cast_inserted import CastInserted
from trueport.lower.noted import noted_place
from trueport.lower.passes.graphs import every_graph
from trueport.lower.passes.kernels import has_kernel
from trueport.lower.signature import TENSOR_NAMES, Signature, signature_of

_D = ir.DataType
WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    _D.BFLOAT16: (_D.FLOAT,),
    _D.FLOAT16: (_D.FLOAT,),
    _D.DOUBLE: (_D.FLOAT,),
    _D.BOOL: (_D.UINT8, _D.INT32, _D.INT64, _D.FLOAT),
    _D.INT8: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.UINT8: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.INT16: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.UINT16: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.INT32: (_D.INT64, _D.DOUBLE, _D.FLOAT),
    _D.UINT32: (_D.INT64, _D.DOUBLE),
    _D.INT64: (_D.DOUBLE, _D.FLOAT),
    _D.UINT64: (_D.INT64,),
}
"""For each dtype, those that may stand in for it, the nearest first."""
_LOSSY = frozenset(
    ((_D.DOUBLE, _D.FLOAT), (_D.INT32, _D.FLOAT), (_D.INT64, _D.FLOAT), (_D.INT64, _D.DOUBLE), (_D.UINT64, _D.INT64))
)
_UNTYPED = frozenset(("If", "Loop", "Scan", "Constant", "Cast", "Identity", "Shape"))
_OF_SEQUENCES = frozenset(("SplitToSequence", "SequenceEmpty", "SequenceInsert"))
"""Written for dtypes that have a kernel (sequences.py); a sequence cannot be cast."""


def legalise(model: ir.Model) -> tuple[Diagnostic, ...]:
    """Insert the casts, and say for which dtypes."""
    inserted: dict[tuple[ir.DataType, ir.DataType], list[ir.Node]] = {}
    opset = model.graph.opset_imports[""]
    for graph in every_graph(model.graph):
        for node in list(graph):
            if (
                node.domain
                or node.op_type in _UNTYPED | _OF_SEQUENCES
                or all(x is None or x.dtype == _D.FLOAT for x in node.inputs)
            ):
                continue
            signature = signature_of(node.op_type, opset)
            dtypes = _dtypes(signature, node)
            allowed = _is_allowed(signature, dtypes)
            if allowed and (has_kernel(signature, dtypes) or all(dtype == _D.FLOAT16 for dtype in dtypes.values())):
                continue
            if (found := _replacement(signature, dtypes)) is not None:
                names, wide = found
                narrow = dtypes[names[0]]
                _wrap(graph, node, signature, names, wide)
                inserted.setdefault((narrow, wide), []).append(node)
    return tuple(_note(narrow, wide, nodes) for (narrow, wide), nodes in inserted.items())


def _dtypes(signature: Signature, node: ir.Node) -> dict[str, ir.DataType]:
    """The dtype behind each shared name of the schema, in this node."""
    found: dict[str, ir.DataType] = {}
    slots = [(signature.input(i), x) for i, x in enumerate(node.inputs)]
    slots += [(signature.outputs[min(i, len(signature.outputs) - 1)], x) for i, x in enumerate(node.outputs)]
    for slot, value in slots:
        if value is not None and value.dtype is not None and slot.shares:
            found.setdefault(slot.shares, value.dtype)
    return found


def _is_allowed(signature: Signature, dtypes: Mapping[str, ir.DataType]) -> bool:
    """Whether ONNX has the operator in these dtypes; the runtime's kernels may know more than it accepts."""
    return all(
        name not in signature.allowed or TENSOR_NAMES.get(dtype, "") in signature.allowed[name]
        for name, dtype in dtypes.items()
    )


def _replacement(signature: Signature, dtypes: Mapping[str, ir.DataType]) -> tuple[tuple[str, ...], ir.DataType] | None:
    """(shared names to widen, the wider dtype): the nearest that has a kernel; None to leave the node alone."""
    for narrow in dict.fromkeys(dtypes.values()):
        if narrow == _D.FLOAT16 and _is_allowed(signature, {n: d for n, d in dtypes.items() if d == narrow}):
            continue
        for wide in WIDER.get(narrow, ()):
            allowed = TENSOR_NAMES[wide]
            names = tuple(
                n for n, dtype in dtypes.items() if dtype == narrow and allowed in signature.allowed.get(n, ())
            )
            if names and has_kernel(signature, {**dtypes, **dict.fromkeys(names, wide)}):
                return names, wide
            # No kernel in any dtype: the runtime expands the definition, which bfloat16 would stop half-way.
            if names and narrow == _D.BFLOAT16 and signature.has_body:
                return names, wide
    return None


def _wrap(graph: ir.Graph, node: ir.Node, signature: Signature, names: Sequence[str], wide: ir.DataType) -> None:
    for i, value in enumerate(node.inputs):
        if value is not None and signature.input(i).shares in names:
            cast = _cast(node, value, f"{node.name}_in_{i}", wide)
            graph.insert_before(node, cast)
            node.replace_input_with(i, cast.outputs[0])
    for i, value in enumerate(node.outputs):
        slot = signature.outputs[min(i, len(signature.outputs) - 1)]
        if slot.shares not in names or value.dtype is None:
            continue
        narrow, cast = value.dtype, _cast(node, value, f"{node.name}_out_{i}", value.dtype)
        # The cast takes over the name and the users of the value, so that nobody after it sees a difference.
        result = cast.outputs[0]
        value.name, result.name = result.name, value.name
        result.shape, result.dtype = value.shape, narrow
        ir.convenience.replace_all_uses_with(value, result, replace_graph_outputs=True)
        cast.replace_input_with(0, value)
        value.dtype = wide
        graph.insert_after(node, cast)


def _cast(node: ir.Node, value: ir.Value, name: str, to: ir.DataType) -> ir.Node:
    out = ir.Value(name=name, type=ir.TensorType(to), shape=value.shape)
    return ir.Node(
        "",
        "Cast",
        [value],
        [ir.AttrInt64("to", int(to))],
        outputs=[out],
        name=f"cast_{name}",
        metadata_props=dict(node.metadata_props),
    )


def _note(narrow: ir.DataType, wide: ir.DataType, nodes: Sequence[ir.Node]) -> CastInserted:
    counts = Counter(node.op_type for node in nodes)
    lossy = (narrow, wide) in _LOSSY
    precise = ", with fewer digits" if lossy else ""
    return CastInserted(
        message=f"ONNX Runtime computes {_spell(narrow)} in {_spell(wide)} for {len(nodes)} nodes{precise}",
        place=noted_place(nodes[0].metadata_props),
        label=nodes[0].op_type,
        seen=tuple(f"{name}: {number}" for name, number in counts.most_common(8)),
        severity=Severity.WARNING if lossy else None,
    )


def _spell(dtype: ir.DataType) -> str:
    return {_D.FLOAT: "float32", _D.DOUBLE: "float64"}.get(dtype, dtype.name.lower())
