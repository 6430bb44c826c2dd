"""What can be told at export time: values that depend on nothing but the model's own tensors.

Asked only where a trace needs a number (`.item()` of a buffer, `nonzero` of a fixed mask); nothing is folded here.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from trueport.capture import limits
from trueport.decompositions.arguments import flat
from trueport.graph.regions import Node, Number, Value, Weight, filled_in, values_in
from trueport.source import Place
from trueport.torch_internals import OpOverload, outside_all_modes


class _NotConstant(Exception):
    """The value depends on an input, on randomness, or is too large to compute here."""


class Constants:
    """The producers of the values of one trace, and the real tensors behind the constant ones."""

    def __init__(self) -> None:
        self._producer: dict[Value, Node] = {}
        self._known: dict[Value, torch.Tensor] = {}
        self._weights: set[Value] = set()
        self.relied_on: set[Value] = set()
        """The weights whose present values the trace has looked at."""

    def holds(self, weight: Weight) -> None:
        self._known[weight.value] = weight.tensor
        self._weights.add(weight.value)

    def producer(self, value: Value) -> Node | None:
        return self._producer.get(value)

    def place_of(self, value: Value) -> Place | None:
        """The line that made a value."""
        node = self.producer(value)
        return node.place if node is not None else None

    def made_by(self, node: Node) -> None:
        self._producer.update(dict.fromkeys(values_in(node.outputs), node))

    def evaluate(self, value: Value) -> torch.Tensor | None:
        """The real tensor behind a value, or None where it is not the same in every run."""
        try:
            return self._evaluate(value)
        except _NotConstant:
            return None

    def run(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """The operator on constants, or None where an argument is not one."""
        try:
            return self._run(op, args, kwargs)
        except _NotConstant:
            return None

    def _evaluate(self, value: Value) -> torch.Tensor:
        waiting = [value]
        while waiting:
            wanted = waiting[-1]
            if wanted in self._known:
                self.relied_on |= {wanted} & self._weights
                waiting.pop()
                continue
            node = self._producer.get(wanted)
            op = None if node is None else node.call
            if node is None or op is None or not _is_steady(op):
                raise _NotConstant
            missing = [v for v in values_in(node.given) if v not in self._known]
            if missing:
                waiting.extend(missing)
                continue
            made = zip(node.outputs, flat(self._run(op, node.args, node.kwargs)), strict=True)
            self._known.update((value, result) for output, result in made for value in values_in(output))
        return self._known[value]

    def _run(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        real_args = filled_in(args, self._real, _refused)
        real_kwargs = {k: filled_in(v, self._real, _refused) for k, v in kwargs.items()}
        with outside_all_modes(), torch.no_grad():
            return op(*real_args, **real_kwargs)

    def _real(self, value: Value) -> torch.Tensor:
        real = self._evaluate(value) if value.has_plain_sizes else None
        if real is None or real.numel() > limits.ELEMENTS_OF_A_CONSTANT:
            raise _NotConstant
        return real


def _refused(_: Number) -> NoReturn:
    raise _NotConstant


def _is_steady(op: OpOverload) -> bool:
    return torch.Tag.nondeterministic_seeded not in op.tags
