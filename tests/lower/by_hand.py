"""Graphs of regions written down by hand, for what no ATen call shows alone: If, Loop, numbers that regions yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from trueport.graph.regions import Control, Graph, GraphInput, GraphOutput, Node, Number, Region, Returns, Value, Weight
from trueport.load.structures import flatten
from trueport.source import Place, Where

aten = torch.ops.aten
HERE = Place((Where("model.py", 7, "forward"),), "layers.0")


def value(*shape: Any, dtype: torch.dtype = torch.float32) -> Value:
    return Value(dtype, tuple(shape))


def number(name: str) -> Number:
    return Number(sympy.Symbol(name, integer=True), int)


def call(op: Any, *args: Any, out: Value | Number) -> Node:
    return Node(op, args, {}, (out,), Returns.ONE, HERE)


def control(op: Control, args: Sequence[Any], regions: Sequence[Region], outputs: Sequence[Value | Number]) -> Node:
    return Node(op, tuple(args), {}, tuple(outputs), Returns.TUPLE, HERE, tuple(regions))


def graph(
    inputs: dict[str, Value | Number], nodes: Sequence[Node], outputs: Sequence[Any], weights: Sequence[Weight] = ()
) -> Graph:
    return Graph(
        inputs=tuple(GraphInput(name, given) for name, given in inputs.items()),
        outputs=tuple(GraphOutput(f"out{i}", out) for i, out in enumerate(outputs)),
        root=Region(list(inputs.values()), list(nodes), list(outputs)),
        weights=tuple(weights),
        returns=flatten([0] * len(outputs))[1],
        size_symbols={},
        number_symbols={},
        examples={},
    )
