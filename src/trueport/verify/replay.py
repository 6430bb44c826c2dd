"""Running a captured graph with real tensors, operator by operator.

eager == replay says that the capture is right; replay == ONNX Runtime says that the lowering is right. When a model is
wrong, the pair tells which half lied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch

from trueport.graph.regions import (
    Control,
    Graph,
    GraphOutput,
    Node,
    Number,
    OpenItems,
    Region,
    Returns,
    Size,
    Value,
    filled_in,
    symbols_of,
)
from trueport.torch_internals import OpOverload
from trueport.torch_internals.symbolic import plain_number

Watch = Callable[[Node, Sequence[Any]], None]

_OF_VALUES: dict[OpOverload, OpOverload] = {torch.ops.aten.view.default: torch.ops.aten.reshape.default}
"""A value of a graph has no strides. Those that a round of a loop or an arm happens to give a tensor may be other than
the trace's, and `view` would refuse them."""


def replay(graph: Graph, inputs: Mapping[str, Any], watch: Watch | None = None) -> dict[str, Any]:
    """Outputs by name for inputs by name. `watch` is shown every node with what it gave."""
    return Replay(watch).run(graph, inputs)


class Replay:
    """What is known while a graph runs: tensors of values, numbers of symbols."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.tensors: dict[Value, torch.Tensor] = {}
        self.symbols: dict[sympy.Basic, sympy.Basic] = {}
        self._watch = watch

    def run(self, graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
        for weight in graph.weights:
            self.tensors[weight.value] = weight.tensor.detach()
        for given in graph.inputs:
            self.bind(given.value, inputs[given.name])
        with torch.no_grad():
            self.region(graph.root)
            return {output.name: self.output(output) for output in graph.outputs}

    def region(self, region: Region) -> list[Any]:
        for node in region.nodes:
            results = self.node(node)
            for output, result in zip(node.outputs, results, strict=True):
                if output is not None:
                    self.bind(output, result)
            if self._watch is not None:
                self._watch(node, results)
        return [self.read(output) for output in region.outputs]

    def node(self, node: Node) -> Sequence[Any]:
        if node.op is Control.IF:
            then, otherwise = node.regions
            return self.region(then if bool(self.read(node.args[0])) else otherwise)
        if node.op is Control.LOOP:
            return self._loop(node)
        op = node.call
        assert op is not None
        returned = _OF_VALUES.get(op, op)(*self.read(node.args), **{k: self.read(v) for k, v in node.kwargs.items()})
        if node.returns is Returns.NOTHING:
            return ()
        return returned if node.returns in (Returns.TUPLE, Returns.LIST) else (returned,)

    def _loop(self, node: Node) -> Sequence[Any]:
        trips, going, *carried = (self.read(a) for a in node.args)
        body = node.regions[0]
        scanned: list[list[Any]] = []
        step = 0
        outside = dict(self.symbols)
        while (trips is None or step < int(trips)) and (going is None or bool(going)):
            self.symbols = dict(outside)  # a size of one round is another in the next
            for parameter, given in zip(body.params, [step, *carried], strict=True):
                self.bind(parameter, given)
            going, *rest = self.region(body)
            carried, step = rest[: len(carried)], step + 1
            scanned.append(rest[len(carried) :])
        self.symbols = outside
        if scanned:
            return [*carried, *(torch.stack(list(parts)) for parts in zip(*scanned, strict=True))]
        return [*carried, *(self._no_rows(output) for output in node.outputs[len(carried) :])]

    def _no_rows(self, output: Any) -> torch.Tensor:
        """A scanned output of a loop that never ran."""
        sizes = [int(sympy.sympify(size).xreplace(self.symbols)) for size in output.shape[1:]]
        return torch.empty([0, *sizes], dtype=output.dtype)

    def bind(self, output: Value | Number, result: Any) -> None:
        """Give a value its tensor, and the symbols that first appear in its sizes their numbers."""
        if isinstance(output, Number):
            plain = plain_number(result)
            assert isinstance(output.expr, sympy.Symbol)
            self.symbols[output.expr] = sympy.Float(plain) if isinstance(plain, float) else sympy.Integer(int(plain))
            return
        if not isinstance(result, torch.Tensor):  # a Python number that an arm yields where the other has a tensor
            result = torch.tensor(result, dtype=output.dtype)
        self.tensors[output] = result
        for axis, size in enumerate(output.shape):
            self._bind_size(size, result.shape[axis])

    def _bind_size(self, size: Size, length: int) -> None:
        unknown = [s for s in symbols_of(size) if s not in self.symbols]
        if len(unknown) == 1:
            solutions = sympy.solve(sympy.sympify(size).xreplace(self.symbols) - length, unknown[0])
            if len(solutions) == 1 and solutions[0].is_integer:
                self.symbols[unknown[0]] = sympy.Integer(int(solutions[0]))

    def read(self, argument: Any) -> Any:
        return filled_in(argument, self.tensors.__getitem__, self._plain)

    def _plain(self, number: Number) -> Any:
        # `doit`: torch's Max(-5, 5), in what was a larger expression, is not worked out by itself.
        return number.kind(number.expr.xreplace(self.symbols).doit())

    def output(self, output: GraphOutput) -> Any:
        return self._items(output.value) if isinstance(output.value, OpenItems) else self.read(output.constant)

    def _items(self, items: OpenItems) -> Any:
        """The tensors of a list; of a list of numbers, the tensor that holds them."""
        rows = self.tensors[items.rows]
        if items.number is not None:
            return rows
        if items.table is not None:
            sizes: list[list[int]] = self.tensors[items.table].tolist()
            flat = rows.split([math.prod(own) for own in sizes])
            return [_shaped(part, own, items.axis) for part, own in zip(flat, sizes, strict=True)] if sizes else []
        if items.lengths is not None:
            lengths: list[int] = self.tensors[items.lengths].tolist()
            return list(rows.split(lengths, items.axis)) if lengths else []
        return list(rows.unbind(items.axis))


def _shaped(flat: torch.Tensor, sizes: list[int], along: int) -> torch.Tensor:
    first = [sizes[along], *sizes[:along], *sizes[along + 1 :]]
    return flat.reshape(first).movedim(0, along)
