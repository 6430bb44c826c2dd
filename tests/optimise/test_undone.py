"""Pairs of nodes of which the second undoes the first, and those that only look like it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from tests.optimise.graphs import run_pass

_D = ir.DataType


class Drawing:
    """A small ONNX graph, drawn node by node."""

    def __init__(self, dtype: ir.DataType = _D.FLOAT) -> None:
        self.x = ir.Value(name="x", type=ir.TensorType(dtype), shape=ir.Shape([1, 2]))
        self.nodes: list[ir.Node] = []

    def add(self, kind: str, *inputs: ir.Value, dtype: ir.DataType = _D.FLOAT, **attributes: ir.Attr) -> ir.Value:
        out = ir.Value(name=f"{kind}_{len(self.nodes)}", type=ir.TensorType(dtype))
        self.nodes.append(ir.Node("", kind, inputs, attributes.values(), outputs=[out]))
        return out

    def axes(self, *axes: int) -> ir.Value:
        return self.add("Constant", dtype=_D.INT64, value=ir.AttrTensor("value", ir.tensor(np.array(axes, np.int64))))

    def cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        return self.add("Cast", value, dtype=to, to=ir.AttrInt64("to", int(to)))

    def model(self, out: ir.Value) -> ir.Model:
        graph = ir.Graph([self.x], [out], nodes=self.nodes, opset_imports={"": 20}, name="main")
        return ir.Model(graph, ir_version=10)


def kinds(model: ir.Model) -> list[str]:
    for name in ("identities", "moves", "dead_code"):
        run_pass(model, name)
    return [node.op_type for node in model.graph if node.op_type != "Constant"]


def test_an_axis_that_is_put_there_and_taken_off():
    draw = Drawing()
    wide = draw.add("Unsqueeze", draw.x, draw.axes(0))
    assert kinds(draw.model(draw.add("Neg", draw.add("Squeeze", wide, draw.axes(0))))) == ["Neg"]


def test_an_axis_that_is_taken_off_and_put_there():
    draw = Drawing()
    narrow = draw.add("Squeeze", draw.x, draw.axes(0))
    assert kinds(draw.model(draw.add("Neg", draw.add("Unsqueeze", narrow, draw.axes(0))))) == ["Neg"]


def test_another_axis_is_another_thing():
    draw = Drawing()
    wide = draw.add("Unsqueeze", draw.x, draw.axes(0))
    last = draw.add("Neg", draw.add("Squeeze", wide, draw.axes(1)))
    assert kinds(draw.model(last)) == ["Unsqueeze", "Squeeze", "Neg"]


def test_axes_that_only_the_run_tells_are_left_alone():
    draw = Drawing(_D.INT64)
    wide = draw.add("Unsqueeze", draw.x, draw.add("Neg", draw.axes(0), dtype=_D.INT64))
    last = draw.add("Squeeze", wide, draw.add("Neg", draw.axes(0), dtype=_D.INT64))
    assert kinds(draw.model(draw.add("Abs", last))) == ["Neg", "Unsqueeze", "Neg", "Squeeze", "Abs"]


def test_an_output_of_the_model_keeps_its_name():
    draw = Drawing()
    out = draw.add("Squeeze", draw.add("Unsqueeze", draw.x, draw.axes(0)), draw.axes(0))
    model = draw.model(out)
    assert kinds(model) == ["Identity"]
    assert model.graph.outputs == [out]
    assert model.graph.node(-1).inputs == (draw.x,)


@pytest.mark.parametrize(
    ("first", "between", "kept"),
    [
        (_D.BOOL, _D.INT64, []),
        (_D.FLOAT, _D.DOUBLE, []),
        (_D.INT32, _D.INT64, []),
        (_D.INT64, _D.DOUBLE, ["Cast", "Cast"]),  # beyond 2**53 it is another number
        (_D.DOUBLE, _D.FLOAT, ["Cast", "Cast"]),
        (_D.FLOAT, _D.INT64, ["Cast", "Cast"]),
        (_D.INT64, _D.BOOL, ["Cast", "Cast"]),
    ],
)
def test_a_cast_and_back(first, between, kept):
    draw = Drawing(first)
    back = draw.cast(draw.cast(draw.x, between), first)
    assert kinds(draw.model(draw.add("Shape", back, dtype=_D.INT64))) == [*kept, "Shape"]


def test_no_of_no():
    draw = Drawing(_D.BOOL)
    twice = draw.add("Not", draw.add("Not", draw.x, dtype=_D.BOOL), dtype=_D.BOOL)
    assert kinds(draw.model(draw.add("Shape", twice, dtype=_D.INT64))) == ["Shape"]


def test_a_branch_on_what_is_not_so():
    draw = Drawing(_D.BOOL)
    arms = []
    for name, value in (("then_branch", 1), ("else_branch", 2)):
        inner = Drawing()
        number = inner.axes(value)
        arms.append(ir.AttrGraph(name, ir.Graph([], [number], nodes=inner.nodes, name=name)))
    negated = draw.add("Not", draw.x, dtype=_D.BOOL)
    out = draw.add("If", negated, dtype=_D.INT64, then=arms[0], orelse=arms[1])
    model = draw.model(out)
    assert kinds(model) == ["If"]
    branch = model.graph.node(-1)
    assert branch.inputs == (draw.x,)
    assert branch.attributes["then_branch"].as_graph() is arms[1].as_graph()
    assert branch.attributes["else_branch"].as_graph() is arms[0].as_graph()
