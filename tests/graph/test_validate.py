"""The rules that every graph keeps, each broken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from tests.capture.helpers import assert_captured
from trueport.cli import debugging
from trueport.graph.regions import Control, Graph, Node, Number, Region, Value
from trueport.graph.validate import ASKED, InvalidGraph, check, check_if_asked


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y, kept = self.fc(x), []
        if y.sum() > 0:
            y = y * 2
        for row in y:
            kept.append(row * x.shape[0])
        return torch.stack(kept), y[y[:, 0] > 0]


@pytest.fixture
def graph() -> Graph:
    return assert_captured(Net(), (torch.ones(2, 3),), dynamic_shapes={"x": {0: "n"}})


def node_of(region: Region, op: Control) -> Node:
    return next(node for node in region.nodes if node.op is op)


def exchange(region: Region, old: Node, **changes: Any) -> None:
    region.nodes[region.nodes.index(old)] = replace(old, **changes)


def test_what_was_captured_is_legal(graph: Graph) -> None:
    check(graph)


def read_before_it_is_made(graph: Graph) -> None:
    graph.root.nodes.reverse()


def read_what_is_made_nowhere(graph: Graph) -> None:
    graph.root.outputs[0] = Value(torch.float32, (3,))


def read_out_of_a_region_that_has_ended(graph: Graph) -> None:
    arm = node_of(graph.root, Control.IF).regions[0]
    graph.root.outputs[0] = arm.nodes[0].outputs[0]


def made_twice(graph: Graph) -> None:
    graph.root.nodes.append(graph.root.nodes[0])


def symbol_that_nothing_binds(graph: Graph) -> None:
    graph.root.outputs.append(Number(sympy.Symbol("u99"), int))


def arm_with_an_output_less(graph: Graph) -> None:
    node_of(graph.root, Control.IF).regions[1].outputs.pop()


def arm_of_another_dtype(graph: Graph) -> None:
    node = node_of(graph.root, Control.IF)
    made = node.outputs[0]
    assert isinstance(made, Value)
    exchange(graph.root, node, outputs=(replace(made, dtype=torch.int64),))


def arm_with_parameters(graph: Graph) -> None:
    node_of(graph.root, Control.IF).regions[0].params.append(Value(torch.float32, (3,)))


def one_arm(graph: Graph) -> None:
    node = node_of(graph.root, Control.IF)
    exchange(graph.root, node, regions=node.regions[:1])


def loop_without_the_number_of_the_round(graph: Graph) -> None:
    node_of(graph.root, Control.LOOP).regions[0].params.pop(0)


def loop_that_starts_with_more_than_it_carries(graph: Graph) -> None:
    node = node_of(graph.root, Control.LOOP)
    exchange(graph.root, node, args=(*node.args, 1))


def loop_that_hands_on_less(graph: Graph) -> None:
    node_of(graph.root, Control.LOOP).regions[0].outputs.pop()


def operator_without_its_output(graph: Graph) -> None:
    node = graph.root.nodes[-1]
    exchange(graph.root, node, outputs=())


def input_that_is_no_parameter(graph: Graph) -> None:
    graph.root.params.clear()


BROKEN: list[tuple[Callable[[Graph], None], str]] = [
    (read_before_it_is_made, "is not made before"),
    (read_what_is_made_nowhere, "is not made before"),
    (read_out_of_a_region_that_has_ended, "in a region that has ended"),
    (made_twice, "a second time"),
    (symbol_that_nothing_binds, "u99"),
    (arm_with_an_output_less, "outputs of an arm"),
    (arm_of_another_dtype, "takes"),
    (arm_with_parameters, "has parameters"),
    (one_arm, "has 1 arms"),
    (loop_without_the_number_of_the_round, "the number of the round"),
    (loop_that_starts_with_more_than_it_carries, "starts with"),
    (loop_that_hands_on_less, "outputs of the body"),
    (operator_without_its_output, "has 0 outputs"),
    (input_that_is_no_parameter, "are not the inputs"),
]


@pytest.mark.parametrize(("breaks", "told"), BROKEN, ids=[breaks.__name__ for breaks, _ in BROKEN])
def test_a_broken_rule_is_told(graph: Graph, breaks: Callable[[Graph], None], told: str) -> None:
    breaks(graph)
    with pytest.raises(InvalidGraph, match=told):
        check_if_asked(graph, "tidied")


def test_what_nobody_reads_may_be_anything_until_it_is_left_out(graph: Graph) -> None:
    """Attempts at tracing a loop leave nodes behind that speak of rounds which are over."""
    symbol_that_nothing_binds(graph)
    check(graph, tidied=False)
    made_twice(graph)
    with pytest.raises(InvalidGraph, match="a second time"):
        check(graph, tidied=False)


def test_nobody_pays_who_did_not_ask(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ASKED)
    graph.root.nodes.reverse()
    check_if_asked(graph, "traced")


def test_debugging_asks() -> None:
    """The command line names the variable itself, since it starts without torch."""
    assert debugging.VALIDATE == ASKED
