"""What the opset has no dtype for is refused, with the lowest opset that has it.

`legalise` has cast what can be cast. Left are values that a later opset made possible: numbers of eight bits, bfloat16
carried by a loop, a sequence handed on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import onnx
import onnx_ir as ir

from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.lower.failed import needs_opset
from trueport.lower.noted import noted_place
from trueport.lower.passes.graphs import every_graph
from trueport.lower.signature import TENSOR_NAMES, NeedsOpset, signature_of


def refuse_newer_dtypes(model: ir.Model) -> Iterator[OpsetUnsupported]:
    opset = model.graph.opset_imports[""]
    for graph in every_graph(model.graph):
        for node in graph:
            if node.domain:
                continue
            for value in (*node.inputs, *node.outputs):
                spelt = None if value is None else _spelt(value.type)
                later = None if spelt is None else _since(node.op_type, opset, spelt)
                if later is not None:
                    needed = NeedsOpset(f"{node.op_type} of {spelt}", later)
                    notes = node.metadata_props
                    yield needs_opset(needed, noted_place(notes), notes.get("trueport.op", node.op_type))
                    break


def _spelt(kind: ir.TypeProtocol | None) -> str | None:
    """As the schemas write it: `tensor(float)`, `seq(tensor(float))`."""
    if isinstance(kind, ir.SequenceType):
        inner = _spelt(kind.elem_type)
        return None if inner is None else f"seq({inner})"
    return TENSOR_NAMES.get(kind.dtype) if isinstance(kind, ir.TensorType) else None


@functools.cache
def _since(name: str, opset: int, spelt: str) -> int | None:
    """The first later opset that has the operator for such values; None if this one has it, or none does."""
    if _has(name, opset, spelt):
        return None
    return next((o for o in range(opset + 1, onnx.defs.onnx_opset_version() + 1) if _has(name, o, spelt)), None)


def _has(name: str, opset: int, spelt: str) -> bool:
    signature = signature_of(name, opset)
    slots = (*signature.inputs, *signature.outputs)
    return any(spelt in allowed for allowed in signature.allowed.values()) or any(spelt == s.shares for s in slots)
