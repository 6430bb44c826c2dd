"""Recurrent layers step by step, for what ONNX's own operators leave out: an LSTM with a projection, and float64.

The share of the input in every gate is one matrix product for all steps; a `Loop` adds the share of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.tensor import Tensor

Step = Callable[[Builder, Tensor, Tensor, Sequence[Tensor]], list[Tensor]]
"""From the share of the input, the share of the hidden state, and the states to the next states."""


@dataclass(frozen=True)
class Direction:
    """One direction of one layer: its weights in torch's layout, and whether it goes from the last step backwards."""

    weights: Sequence[Tensor]
    has_biases: bool
    reverse: bool

    def inputs_share(self, op: Builder, x: Tensor) -> Tensor:
        return self._share(op, x, 0)

    def states_share(self, op: Builder, hidden: Tensor) -> Tensor:
        return self._share(op, hidden, 1)

    def projected(self, op: Builder, hidden: Tensor) -> Tensor:
        """The hidden state by the projection, which is the last weight of an LSTM that has one."""
        count = 5 if self.has_biases else 3
        return op.MatMul(hidden, op.transpose(self.weights[-1], (1, 0))) if len(self.weights) == count else hidden

    def _share(self, op: Builder, x: Tensor, which: int) -> Tensor:
        product = op.MatMul(x, op.transpose(self.weights[which], (1, 0)))
        return op.Add(product, self.weights[2 + which]) if self.has_biases else product


def lstm_step(op: Builder, x: Tensor, h: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    enter, forget, new, leave = _gates(op, op.Add(x, h), 4)
    cell = op.Add(op.Mul(op.Sigmoid(forget), states[1]), op.Mul(op.Sigmoid(enter), op.Tanh(new)))
    return [op.Mul(op.Sigmoid(leave), op.Tanh(cell)), cell]


def gru_step(op: Builder, x: Tensor, h: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    (x_reset, x_keep, x_new), (h_reset, h_keep, h_new) = _gates(op, x, 3), _gates(op, h, 3)
    keep = op.Sigmoid(op.Add(x_keep, h_keep))
    new = op.Tanh(op.Add(x_new, op.Mul(op.Sigmoid(op.Add(x_reset, h_reset)), h_new)))
    return [op.Add(new, op.Mul(keep, op.Sub(states[0], new)))]


def tanh_step(op: Builder, x: Tensor, h: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    return [op.Tanh(op.Add(x, h))]


def relu_step(op: Builder, x: Tensor, h: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    return [op.Relu(op.Add(x, h))]


def run_direction(
    op: Builder, step: Step, direction: Direction, x: Tensor, first: Sequence[Tensor], lengths: Tensor | None
) -> tuple[Tensor, list[Tensor]]:
    """The hidden state after every step [time, batch, hidden], and the last states [batch, hidden].

    Beyond the end of its sequence (`lengths`), a row keeps its states and shows zeros.
    """
    shares = direction.inputs_share(op, x)
    time = x.known_sizes[0]
    present = None if lengths is None else within(op, lengths, x)
    rounds, going = op.size(time), op.const(True)
    last_step = op.Sub(rounds, 1) if direction.reverse else rounds
    with op.inside():
        here = Tensor(op, op.new_name("iteration"), ir.DataType.INT64, ())
        goes_on = Tensor(op, op.new_name("condition"), ir.DataType.BOOL, ())
        states = [Tensor(op, op.new_name("state"), x.element, state.sizes) for state in first]
        at = op.Sub(last_step, here) if direction.reverse else here
        share = op.Gather(shares, at, axis=0)
        following = step(op, share, direction.states_share(op, states[0]), states)
        following[0] = shown = direction.projected(op, following[0])
        if present is not None:
            runs = op.Gather(present, at, axis=0)
            following = [op.Where(runs, new, old) for new, old in zip(following, states, strict=True)]
            shown = op.Where(runs, shown, op.const(0, x.element))
        outputs = [op.Identity(goes_on), *following, op.Identity(shown)]
        body = ir.Graph([here, goes_on, *states], outputs, nodes=op.scope.nodes, name=op.new_name("step"))
    lasts = [Tensor(op, op.new_name("last"), x.element, state.sizes) for state in first]
    stacked = Tensor(op, op.new_name("steps"), x.element, (time, *first[0].known_sizes))
    op.append("Loop", [rounds, going, *first], [ir.AttrGraph("body", body)], [*lasts, stacked])
    if direction.reverse:
        sizes = stacked.sizes
        stacked = op.Slice(stacked, op.ints(-1), op.ints(-(2**63)), op.ints(0), op.ints(-1))
        stacked.settle(sizes)
    return stacked, lasts


def within(op: Builder, lengths: Tensor, x: Tensor) -> Tensor:
    """Which steps of `x` [time, batch, ...] belong to their sequence, as [time, batch, 1]."""
    steps = op.Unsqueeze(op.range(x.known_sizes[0]), op.ints(1))
    return op.Unsqueeze(op.Less(steps, op.cast(lengths, ir.DataType.INT64)), op.ints(2))


def _gates(op: Builder, joined: Tensor, count: int) -> tuple[Tensor, ...]:
    return op.many("Split", count, joined, axis=-1, num_outputs=count)
