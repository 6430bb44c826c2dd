"""Harmless variations of a file: another text, the same answers. Who accuses one of them cries wolf."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime

from benchmarks.mutants.cases import Change
from benchmarks.mutants.edit import Builder, DoesNotApply, Edit, Value


def unchanged(edit: Edit) -> None:
    """The file as it was exported."""


def renamed(edit: Edit) -> None:
    """Every value inside gets another name, and nothing is left of who exported the file."""
    names: dict[str, str] = {}
    ends = {value.name for value in [*edit.model.graph.input, *edit.model.graph.output]}
    for graph in edit.graphs():
        inner = [] if graph is edit.model.graph else [value.name for value in graph.input]
        made = [*inner, *(t.name for t in graph.initializer), *(o for node in graph.node for o in node.output if o)]
        for name in made:
            if name not in ends:
                names[name] = f"v{len(names)}"
    for graph in edit.graphs():
        del graph.value_info[:]
        for value in [*graph.input, *graph.output, *graph.initializer]:
            value.name = names.get(value.name, value.name)
        for index, node in enumerate(graph.node):
            node.name = f"n{index}"
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
            del node.metadata_props[:]
    del edit.model.metadata_props[:]
    edit.model.producer_name = "somebody"


def identities(edit: Edit) -> None:
    """An Identity behind every node."""

    def same(op: Builder, value: Value) -> Value:
        return op.Identity(value)

    for at in edit.nodes():
        if at.node.op_type not in ("Constant", "SequenceEmpty") and at.node.output[0]:
            edit.behind(at, same)


def operands_swapped(edit: Edit) -> None:
    """`a + b` as `b + a`, and `a > b` as `b < a`."""
    turned = {"Add": "Add", "Mul": "Mul", "Greater": "Less", "Less": "Greater", "And": "And", "Or": "Or"}
    turned |= {"GreaterOrEqual": "LessOrEqual", "LessOrEqual": "GreaterOrEqual", "Equal": "Equal"}
    found = edit.nodes(*turned)
    if not found:
        raise DoesNotApply("nothing to turn round")
    for at in found:
        at.node.op_type = turned[at.node.op_type]
        at.node.input[:] = [at.node.input[1], at.node.input[0]]


def transposed_twice(edit: Edit) -> None:
    """Every product of matrices from operands that were turned over and back."""
    found = edit.nodes("MatMul", "Softmax", "Relu", "Gather", "Where")
    if not found:
        raise DoesNotApply("nothing to turn over")
    for at in found:
        edit.before(at, lambda op, value: op.Transpose(op.Transpose(value)))


def negated_comparisons(edit: Edit) -> None:
    """`where(c, a, b)` as `where(not c, b, a)`."""
    found = edit.nodes("Where")
    if not found:
        raise DoesNotApply("no Where")
    for at in found:
        at.node.input[1], at.node.input[2] = at.node.input[2], at.node.input[1]
        edit.before(at, lambda op, value: op.Not(value))


def optimised(path: Path, to: Path) -> None:
    """As ONNX Runtime itself rewrites the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(to)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    onnx.load(to)


VARIATIONS: dict[str, Change] = {
    "as exported": unchanged,
    "renamed": renamed,
    "identities": identities,
    "operands swapped": operands_swapped,
    "transposed twice": transposed_twice,
    "where negated": negated_comparisons,
}
"""By the name of the control."""
