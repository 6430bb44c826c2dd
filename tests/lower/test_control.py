"""If and Loop: graphs inside nodes, which read what is around them and share nothing outwards."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import sympy
import torch

from tests.lower.by_hand import aten, call, control, graph, number, value
from tests.lower.through_onnx import run
from trueport.graph.regions import Control, Graph, Number, Region
from trueport.lower.lower import lower


def results(captured: Graph, *inputs: torch.Tensor) -> list:
    model = lower(captured).model
    assert model is not None
    return [out.numpy().tolist() for out in run(model, inputs)]


def names(model: ir.Model) -> list[str]:
    return [out.name for node in ir.traversal.RecursiveGraphIterator(model.graph) for out in node.outputs]


def test_an_arm_may_return_what_it_did_not_make():
    x, yes, doubled, out = value(3), value(dtype=torch.bool), value(3), value(3)
    arms = Region([], [call(aten.mul.Tensor, x, 2, out=doubled)], [doubled]), Region([], [], [x])
    captured = graph({"x": x, "yes": yes}, [control(Control.IF, [yes], arms, [out])], [out])
    data = torch.tensor([1.0, 2.0, 3.0])
    assert results(captured, data, torch.tensor(True)) == [[2.0, 4.0, 6.0]]
    assert results(captured, data, torch.tensor(False)) == [[1.0, 2.0, 3.0]]


def test_constants_of_an_arm_stay_in_it():
    """Both arms and what follows use the same number; each scope has it where it can see it."""
    x, yes, out, after = value(3), value(dtype=torch.bool), value(3), value(3)
    a, b = value(3), value(3)
    arms = (
        Region([], [call(aten.mul.Tensor, x, 2.5, out=a)], [a]),
        Region([], [call(aten.add.Tensor, x, 2.5, out=b)], [b]),
    )
    nodes = [control(Control.IF, [yes], arms, [out]), call(aten.sub.Tensor, out, 2.5, out=after)]
    captured = graph({"x": x, "yes": yes}, nodes, [after])
    assert results(captured, torch.ones(3), torch.tensor(False)) == [[1.0] * 3]
    model = lower(captured).model
    assert model is not None
    assert len(set(names(model))) == len(names(model))


def test_an_arm_may_yield_a_number_which_then_is_a_size():
    yes, n, out = value(dtype=torch.bool), number("n"), value(sympy.Symbol("n", integer=True), dtype=torch.int64)
    arms = Region([], [], [3]), Region([], [], [5])
    nodes = [control(Control.IF, [yes], arms, [n]), call(aten.arange.default, n, out=out)]
    captured = graph({"yes": yes}, nodes, [out, n])
    assert results(captured, torch.tensor(True)) == [[0, 1, 2], 3]
    assert results(captured, torch.tensor(False)) == [[0, 1, 2, 3, 4], 5]


def test_sizes_inside_an_arm_are_not_used_outside():
    rows = sympy.Symbol("rows", integer=True, nonnegative=True)
    x, yes, out = value(rows, 2), value(dtype=torch.bool), value(2 * rows)
    a, b, after = value(2 * rows), value(2 * rows), value(2 * rows)
    arms = (
        Region([], [call(aten.view.default, x, (-1,), out=a)], [a]),
        Region([], [call(aten.zeros.default, (Number(2 * rows, int),), out=b)], [b]),
    )
    nodes = [control(Control.IF, [yes], arms, [out]), call(aten.ones_like.default, out, out=after)]
    captured = graph({"x": x, "yes": yes}, nodes, [out, after])
    assert results(captured, torch.ones(2, 2), torch.tensor(False)) == [[0.0] * 4, [1.0] * 4]
    assert results(captured, torch.ones(1, 2), torch.tensor(True)) == [[1.0] * 2, [1.0] * 2]


def growing(times: object) -> Graph:
    """`for i in range(times): x = cat([x, x[:1] * i])`, with the first of each round collected."""
    before, after = sympy.symbols("before after", integer=True)
    start, carried, grown, last = value(2), value(before), value(before + 1), value(after)
    first, scaled, stacked = value(1), value(1), value(sympy.Symbol("rounds", integer=True), 1)
    i = number("i")
    body = Region(
        [i, carried],
        [
            call(aten.slice.Tensor, carried, 0, 0, 1, out=first),
            call(aten.mul.Tensor, first, i, out=scaled),
            call(aten.cat.default, (carried, scaled), out=grown),
        ],
        [True, grown, scaled],
    )
    loop = control(Control.LOOP, [times, None, start], [body], [last, stacked])
    inputs = {"x": start} | ({"times": times} if isinstance(times, Number) else {})
    return graph(inputs, [loop], [last, stacked])


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_loop_whose_value_grows(times):
    x = torch.tensor([2.0, 5.0])
    expected = [[2.0, 5.0, *[2.0 * i for i in range(times)]], [[2.0 * i] for i in range(times)]]
    assert results(growing(number("times")), x, torch.tensor(times)) == expected
    assert results(growing(times), x) == expected


def test_a_loop_that_goes_on_while_a_condition_holds():
    n, carried, halved, going, last = (value(dtype=torch.int64) for _ in range(5))
    still = value(dtype=torch.bool)
    first = value(dtype=torch.bool)
    body = Region(
        [number("i"), carried],
        [call(aten.floor_divide.default, carried, 2, out=halved), call(aten.gt.Scalar, halved, 1, out=still)],
        [still, halved],
    )
    nodes = [call(aten.gt.Scalar, n, 1, out=first), control(Control.LOOP, [None, first, n], [body], [last])]
    captured = graph({"n": n}, nodes, [last])
    assert going.dtype is last.dtype
    assert [results(captured, torch.tensor(k))[0] for k in (40, 1, 0)] == [1, 1, 0]
