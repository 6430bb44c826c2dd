"""Recurrent layers: LSTM, GRU and plain RNN, each layer one ONNX node.

The weights stay as the state dict has them, under its names: ONNX orders the gates differently, and a `Gather` of rows
puts them in order (runtimes fold it when they load the model). ONNX is time-major, its outputs keep the two directions
apart, and its optional first states are zero, so that states which are zeros anyway are left out. What ONNX has no
operator for (a projection) or runtimes no kernel (float64) goes step by step, see `recurrence.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.ops.layers.recurrence import (
    Direction,
    Step,
    gru_step,
    lstm_step,
    relu_step,
    run_direction,
    tanh_step,
)
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_COMPUTES_IN = ir.DataType.FLOAT


@dataclass(frozen=True)
class _Cell:
    """An ONNX recurrent operator. `gates` says which of torch's gates stands at each of ONNX's places."""

    name: str
    gates: tuple[int, ...]
    step: Step
    attributes: Mapping[str, Any] = field(default_factory=dict)
    activation: str | None = None
    takes_no_rows: bool = False
    """Whether ONNX Runtime runs it on a batch of none; for LSTM and GRU it ends the process instead."""


_LSTM = _Cell(
    "LSTM", gates=(0, 3, 1, 2), step=lstm_step
)  # torch: input, forget, cell, output; ONNX: input, output, forget, cell
# torch: reset, update, new; ONNX: update, reset, new
_GRU = _Cell("GRU", gates=(1, 0, 2), step=gru_step, attributes={"linear_before_reset": 1})
_TANH = _Cell("RNN", gates=(0,), step=tanh_step, activation="Tanh", takes_no_rows=True)
_RELU = _Cell("RNN", gates=(0,), step=relu_step, activation="Relu", takes_no_rows=True)


@dataclass(frozen=True)
class _Layers:
    """What the ATen call says about the stack of layers, in the order of its arguments after the states."""

    params: Sequence[Tensor]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def weights(self, layer: int) -> list[Sequence[Tensor]]:
        """Per direction: input weight, hidden weight and, if any, their biases."""
        count = len(self.params) // (self.num_layers * self.directions)
        first = layer * self.directions
        return [self.params[i * count : (i + 1) * count] for i in range(first, first + self.directions)]


@op("aten::lstm.input")
def lstm(
    op: Builder, input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout,
    bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
    """
    return _run(op, _LSTM, input, hx, _Layers(params, *settings))


@op("aten::gru.input")
def gru(op: Builder, input: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout,
    bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    """
    return _run(op, _GRU, input, [hx], _Layers(params, *settings))


@op("aten::rnn_tanh.input")
def rnn_tanh(op: Builder, input: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """rnn_tanh.input: as gru.input"""
    return _run(op, _TANH, input, [hx], _Layers(params, *settings))


@op("aten::rnn_relu.input")
def rnn_relu(op: Builder, input: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """rnn_relu.input: as gru.input"""
    return _run(op, _RELU, input, [hx], _Layers(params, *settings))


@op("aten::lstm.data")
def lstm_packed(
    op: Builder, data: Tensor, batch_sizes: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)
    """
    return _run_packed(op, _LSTM, data, batch_sizes, hx, _Layers(params, *settings))


@op("aten::gru.data")
def gru_packed(
    op: Builder, data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
    """
    return _run_packed(op, _GRU, data, batch_sizes, [hx], _Layers(params, *settings))


@op("aten::rnn_tanh.data")
def rnn_tanh_packed(
    op: Builder, data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """rnn_tanh.data: as gru.data"""
    return _run_packed(op, _TANH, data, batch_sizes, [hx], _Layers(params, *settings))


@op("aten::rnn_relu.data")
def rnn_relu_packed(
    op: Builder, data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """rnn_relu.data: as gru.data"""
    return _run_packed(op, _RELU, data, batch_sizes, [hx], _Layers(params, *settings))


def _run_packed(
    op: Builder, cell: _Cell, data: Tensor, batch_sizes: Tensor, states: Sequence[Tensor], layers: _Layers
) -> tuple[Tensor, ...]:
    """Packed steps are put into a padded batch, of which ONNX is told the lengths, and its results packed again.

    `batch_sizes` says for each step how many sequences, the longest first, are that long.
    """
    time, batch = batch_sizes.known_sizes[0], states[0].known_sizes[1]
    present = op.Less(op.range(batch), op.Unsqueeze(batch_sizes, op.ints(1)))
    flat = op.Reshape(present, op.ints(-1))
    places = op.Sub(op.CumSum(op.cast(flat, ir.DataType.INT64), op.const(0)), 1)
    places = op.reshape(op.Max(places, op.const(0)), (time, batch))
    x = op.Gather(data, places, axis=0)
    x.settle((time, batch, *data.known_sizes[1:]))
    lengths = op.ReduceSum(op.cast(present, ir.DataType.INT64), op.ints(0), keepdims=0)
    padded, *lasts = _run(op, cell, x, states, layers, lengths)
    rows = op.Reshape(padded, op.ints(-1, int(op.result.shape[1])))
    return op.Compress(rows, flat, axis=0), *lasts


def _run(
    op: Builder,
    cell: _Cell,
    input: Tensor,
    states: Sequence[Tensor],
    layers: _Layers,
    lengths: Tensor | None = None,
) -> tuple[Tensor, ...]:
    if layers.train and layers.dropout:
        raise NotImplementedError("dropout between the layers is on; export the model in eval mode")
    dtype = input.element
    by_steps = dtype == ir.DataType.DOUBLE or len({state.known_sizes[2] for state in states}) > 1
    computes_in = dtype if dtype == ir.DataType.DOUBLE else _COMPUTES_IN
    batch = input.known_sizes[0 if layers.batch_first else 1]
    exact = by_steps or cell.takes_no_rows or lengths is not None or op.sizes.is_positive(batch)
    rows = _Rows(op, batch, exact)
    x = op.transpose(input, (1, 0, 2)) if layers.batch_first else input
    x = rows.at_least_one(op.cast(x, computes_in))
    firsts = [None if _is_zero(state) and not by_steps else state for state in states]
    firsts = [None if state is None else rows.at_least_one(op.cast(state, computes_in)) for state in firsts]
    lasts: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers.num_layers):
        weights = [[op.cast(w, computes_in) for w in of_direction] for of_direction in layers.weights(layer)]
        if by_steps:
            x, *ends = _layer_by_steps(
                op, cell, x, [s for s in firsts if s is not None], layer, layers, weights, lengths
            )
        else:
            of_layer = [_of_layer(op, first, layer, layers) for first in firsts]
            apart, *ends = _layer(op, cell, x, of_layer, layers, weights, lengths)
            is_last = layer == layers.num_layers - 1
            apart = rows.as_given(apart, axis=2) if is_last else apart
            x = _side_by_side(op, apart, layers, batch_first=is_last and layers.batch_first)
        for kept, end in zip(lasts, ends, strict=True):
            kept.append(end)
    x = op.Transpose(x, perm=[1, 0, 2]) if by_steps and layers.batch_first else x
    joined = [ends[0] if len(ends) == 1 else op.Concat(*ends, axis=0) for ends in lasts]
    return tuple(op.cast(out, dtype) for out in (x, *(rows.as_given(end) for end in joined)))


def _layer_by_steps(
    op: Builder,
    cell: _Cell,
    x: Tensor,
    firsts: Sequence[Tensor],
    layer: int,
    layers: _Layers,
    weights: Sequence[Sequence[Tensor]],
    lengths: Tensor | None,
) -> tuple[Tensor, ...]:
    """One layer: the outputs [time, batch, directions * hidden], and the last states."""
    outputs: list[Tensor] = []
    ends: list[list[Tensor]] = [[] for _ in firsts]
    for i, of_direction in enumerate(weights):
        direction = Direction(of_direction, layers.has_biases, reverse=i == 1)
        starts = [op.Gather(first, op.const(layer * layers.directions + i), axis=0) for first in firsts]
        for start, first in zip(starts, firsts, strict=True):
            start.settle(first.known_sizes[1:])
        output, lasts = run_direction(op, cell.step, direction, x, starts, lengths)
        outputs.append(output)
        for kept, last in zip(ends, lasts, strict=True):
            kept.append(op.Unsqueeze(last, op.ints(0)))
    joined = outputs[0] if len(outputs) == 1 else op.Concat(*outputs, axis=-1)
    joined.settle((*x.known_sizes[:2], sum(output.known_sizes[2] for output in outputs)))
    return joined, *(_joined(op, kept) for kept in ends)


def _layer(
    op: Builder,
    cell: _Cell,
    x: Tensor,
    firsts: Sequence[Tensor | None],
    layers: _Layers,
    weights: Sequence[Sequence[Tensor]],
    lengths: Tensor | None,
) -> tuple[Tensor, ...]:
    """One layer, both directions: the outputs [time, directions, batch, hidden], and the last states."""
    hidden = int(weights[0][1].known_sizes[1])
    bias = None
    if layers.has_biases:
        bias = _joined(op, [op.Concat(*(_rows(op, cell, b, hidden) for b in w[2:4]), axis=1) for w in weights])
    return op.many(
        cell.name,
        1 + len(firsts),
        x,
        _joined(op, [_rows(op, cell, w[0], hidden) for w in weights]),
        _joined(op, [_rows(op, cell, w[1], hidden) for w in weights]),
        bias,
        None if lengths is None else op.cast(lengths, ir.DataType.INT32),
        *firsts,
        hidden_size=hidden,
        direction="bidirectional" if layers.bidirectional else "forward",
        activations=[cell.activation] * layers.directions if cell.activation else None,
        **cell.attributes,
    )


def _side_by_side(op: Builder, apart: Tensor, layers: _Layers, batch_first: bool) -> Tensor:
    """The outputs of both directions in one axis: [time, batch, directions * hidden], or with the batch first."""
    if layers.bidirectional:
        turned = op.Transpose(apart, perm=[2, 0, 1, 3] if batch_first else [0, 2, 1, 3])
        return op.Reshape(turned, op.ints(0, 0, 2 * int(layers.weights(0)[0][1].known_sizes[1])))
    one = op.Squeeze(apart, op.ints(1))
    return op.Transpose(one, perm=[1, 0, 2]) if batch_first else one


def _rows(op: Builder, cell: _Cell, weight: Tensor, hidden: int) -> Tensor:
    """A weight or a bias in ONNX's order of gates, below a new axis for the direction."""
    if len(cell.gates) == 1:
        return op.Unsqueeze(weight, op.ints(0))
    order = np.concatenate([np.arange(gate * hidden, (gate + 1) * hidden) for gate in cell.gates])
    return op.Gather(weight, op.const(order[None]), axis=0)


def _joined(op: Builder, directions: Sequence[Tensor]) -> Tensor:
    return directions[0] if len(directions) == 1 else op.Concat(*directions, axis=0)


def _of_layer(op: Builder, state: Tensor | None, layer: int, layers: _Layers) -> Tensor | None:
    if state is None or layers.num_layers == 1:
        return state
    start = layer * layers.directions
    return op.Slice(state, op.ints(start), op.ints(start + layers.directions), op.ints(0))


def _is_zero(state: Tensor) -> bool:
    """Whether a state is zeros of some size, which `nn.LSTM` makes when it is given none."""
    node = state.producer()
    if node is None:
        return False
    if node.op_type in ("Expand", "Identity"):
        content = node.inputs[0].const_value if node.inputs[0] is not None else None
    elif node.op_type == "ConstantOfShape":
        value = node.attributes.get("value")
        return value is None or not value.as_tensor().numpy().any()
    else:
        content = state.const_value
    return content is not None and not content.numpy().any()


class _Rows:
    """Keeps a batch of none away from the runtime: it gets one row of zeros, and its results are cut off again."""

    def __init__(self, op: Builder, batch: Size, exact: bool) -> None:
        self._op, self._batch, self._exact = op, batch, exact

    def at_least_one(self, x: Tensor) -> Tensor:
        return x if self._exact else self._op.Pad(x, self._missing())

    def _missing(self) -> Tensor:
        """The pads of time, batch and features: none, but one behind the batch where that is below 1."""
        op, batch = self._op, self._op.shape([self._batch])
        return op.cast(op.Less(batch, op.ints(0, 0, 0, 0, 1, 0)), ir.DataType.INT64)

    def as_given(self, x: Tensor, axis: int = 1) -> Tensor:
        if self._exact:
            return x
        op = self._op
        return op.Slice(x, op.ints(0), op.shape([self._batch]), op.ints(axis))
