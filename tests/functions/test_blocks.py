"""Which nodes of a graph are one call of a module: the cases of `functions/blocks.py`."""

from __future__ import annotations

import onnx_ir as ir
from torch import nn

from trueport.functions.blocks import Block, Item, laid_out
from trueport.graph.regions import ModuleCall
from trueport.lower.noted import CALL
from trueport.source import Place


class Module(nn.Module):
    pass


CALLS = [ModuleCall(f"m{number}", Module, Place()) for number in range(5)]


def graph_of(text: str) -> ir.Graph:
    """A line for each node: what it makes, what it reads, and the calls that it belongs to."""
    values = {"x": ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT))}
    nodes = []
    for line in text.split(";"):
        made, read, call = (part.strip() for part in line.split("|"))
        node = ir.Node("", "Sum", [values[name] for name in read.split()], name=made, num_outputs=1)
        node.outputs[0].name = made
        if call:
            node.metadata_props[CALL] = call
        values[made] = node.outputs[0]
        nodes.append(node)
    return ir.Graph([values["x"]], [nodes[-1].outputs[0]], nodes=nodes)


def shown(items: list[Item] | tuple[Item, ...]) -> str:
    return " ".join(
        f"{item.call.path}({shown(list(item.items))})" if isinstance(item, Block) else item.name or "" for item in items
    )


def arranged(text: str) -> str:
    graph = graph_of(text)
    return shown(list(laid_out(graph, CALLS).items[graph]))


def test_calls_within_calls() -> None:
    text = "a|x|0; b|a|0.1; c|b|0.1; d|c|0.1; e|d|0; f|e|"
    assert arranged(text) == "m0(a m1(b c d) e) f"


def test_a_few_nodes_are_no_block() -> None:
    assert arranged("a|x|0; b|a|0; c|b|") == "a b c"


def test_what_lies_between_is_computed_before_or_after() -> None:
    assert arranged("a|x|0; p|x|; b|a|0; q|b p|; c|b p|0; r|c q|") == "p m0(a b c) q r"


def test_what_leaves_a_block_and_comes_back_leaves_none() -> None:
    """Case 2: of the calls inside of it there are blocks all the same."""
    text = "a|x|0; out|a|; b|out|0; c|b|0.1; d|c|0.1; e|d|0.1; f|e|0; g|f|"
    assert arranged(text) == "a out b m1(c d e) f g"


def test_two_blocks_that_need_each_other() -> None:
    """Case 2: each could be one by itself, and both cannot."""
    text = "a|x|0; p|a|1; q|x|1; r|q|1; b|r|0; c|b|0; d|c p|"
    assert arranged(text) == "q r m0(a b c) p d"


def test_what_calls_have_in_common_stands_around_them() -> None:
    """Case 1: the first of them made it."""
    layers = "s|x|0*; t|s|0*; a|x t|0; b|a|0; c|b|0; d|c t|1; e|d|1; f|e|1"
    assert arranged(layers) == "s t m0(a b c) m1(d e f)"
    alone = "s|x|0*; a|x s|0; b|a|0; c|b|0; d|c|1; e|d|1; f|e|1"
    assert arranged(alone) == "m0(s a b c) m1(d e f)"


def test_what_is_made_of_a_blocks_own_stays_in_it() -> None:
    """Case 1: the other reads it as an output."""
    assert arranged("a|x|0; b|a|0; s|b|0*; c|s b|0; d|s c|1; e|d|1; f|e|1") == "m0(a b s c) m1(d e f)"


def test_nodes_of_a_call_in_another_graph() -> None:
    """Case 3: what a loop has outside of its body."""
    body = graph_of("a|x|0; b|a|0; c|b|0; d|c|")
    outside = graph_of("p|x|0; q|p|0; r|q|")
    branch = ir.Node("", "If", [], [ir.AttrGraph("then_branch", body)], num_outputs=1, name="if")
    outside.append(branch)
    layout = laid_out(outside, CALLS)
    assert shown(list(layout.items[outside])) == "p q r if"
    assert shown(list(layout.items[body])) == "m0(a b c) d"
