"""Recurrent layers: LSTM, GRU and plain RNN, each layer one ONNX node.

The weights stay as the state dict has them, under its names: ONNX orders the gates differently, and a `Gather` of rows
puts them in order (runtimes fold it when they load the model). ONNX is time-major, its outputs keep the two directions
apart, and its optional first states are zero, so that states which are zeros anyway are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from trueport.capture.graph import Size
from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_COMPUTES_IN = ir.DataType.FLOAT


@dataclass(frozen=True)
class _Cell:
    """An ONNX recurrent operator. `gates` says which of torch's gates stands at each of ONNX's places."""

    name: str
    gates: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    activation: str | None = None
    takes_no_rows: bool = False
    """Whether ONNX Runtime runs it on a batch of none; for LSTM and GRU it ends the process instead."""


_LSTM = _Cell("LSTM", gates=(0, 3, 1, 2))  # torch: input, forget, cell, output; ONNX: input, output, forget, cell
_GRU = _Cell("GRU", gates=(1, 0, 2), attributes={"linear_before_reset": 1})  # reset, update, new; update, reset, new
_TANH = _Cell("RNN", gates=(0,), activation="Tanh", takes_no_rows=True)
_RELU = _Cell("RNN", gates=(0,), activation="Relu", takes_no_rows=True)


@dataclass(frozen=True)
class _Layers:
    """What the ATen call says about the stack of layers, in the order of its arguments after the states."""

    params: Sequence[Tensor]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool

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
    layers = _Layers(params, *settings)
    if hx[0].known_sizes[2] != hx[1].known_sizes[2]:
        raise NotImplementedError("ONNX has no LSTM with a projection (proj_size)")
    return _run(op, _LSTM, input, hx, layers)


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


def _run(op: Builder, cell: _Cell, input: Tensor, states: Sequence[Tensor], layers: _Layers) -> tuple[Tensor, ...]:
    if layers.train and layers.dropout:
        raise NotImplementedError("dropout between the layers is on; export the model in eval mode")
    dtype = input.element
    if dtype == ir.DataType.DOUBLE:
        raise NotImplementedError("runtimes compute recurrent layers in float32 only; use model.float()")
    sizes = input.known_sizes
    batch = sizes[0 if layers.batch_first else 1]
    rows = _Rows(op, batch, exact=cell.takes_no_rows or op.sizes.is_positive(batch))
    x = op.transpose(input, (1, 0, 2)) if layers.batch_first else input
    x = rows.at_least_one(op.cast(x, _COMPUTES_IN))
    firsts = [_first_state(op, rows, state) for state in states]
    lasts: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers.num_layers):
        x, *ends = _layer(op, cell, x, [_of_layer(op, first, layer, layers) for first in firsts], layer, layers)
        for kept, end in zip(lasts, ends, strict=True):
            kept.append(end)
    x = rows.as_given(x)
    x = op.Transpose(x, perm=[1, 0, 2]) if layers.batch_first else x
    joined = [ends[0] if len(ends) == 1 else op.Concat(*ends, axis=0) for ends in lasts]
    return tuple(op.cast(out, dtype) for out in (x, *(rows.as_given(end) for end in joined)))


def _layer(
    op: Builder, cell: _Cell, x: Tensor, firsts: Sequence[Tensor | None], layer: int, layers: _Layers
) -> tuple[Tensor, ...]:
    """One layer, both directions: the outputs [time, batch, directions * hidden], and the last states."""
    weights = [[op.cast(w, _COMPUTES_IN) for w in of_direction] for of_direction in layers.weights(layer)]
    hidden = int(weights[0][1].known_sizes[1])
    bias = None
    if layers.has_biases:
        bias = _joined(op, [op.Concat(*(_rows(op, cell, b, hidden) for b in w[2:4]), axis=1) for w in weights])
    outputs = op.many(
        cell.name,
        1 + len(firsts),
        x,
        _joined(op, [_rows(op, cell, w[0], hidden) for w in weights]),
        _joined(op, [_rows(op, cell, w[1], hidden) for w in weights]),
        bias,
        None,
        *firsts,
        hidden_size=hidden,
        direction="bidirectional" if layers.bidirectional else "forward",
        activations=[cell.activation] * layers.directions if cell.activation else None,
        **cell.attributes,
    )
    if layers.bidirectional:
        apart = op.Transpose(outputs[0], perm=[0, 2, 1, 3])
        return op.Reshape(apart, op.ints(0, 0, 2 * hidden)), *outputs[1:]
    return op.Squeeze(outputs[0], op.ints(1)), *outputs[1:]


def _rows(op: Builder, cell: _Cell, weight: Tensor, hidden: int) -> Tensor:
    """A weight or a bias in ONNX's order of gates, below a new axis for the direction."""
    if len(cell.gates) == 1:
        return op.Unsqueeze(weight, op.ints(0))
    order = np.concatenate([np.arange(gate * hidden, (gate + 1) * hidden) for gate in cell.gates])
    return op.Gather(weight, op.const(order[None]), axis=0)


def _joined(op: Builder, directions: Sequence[Tensor]) -> Tensor:
    return directions[0] if len(directions) == 1 else op.Concat(*directions, axis=0)


def _first_state(op: Builder, rows: _Rows, state: Tensor) -> Tensor | None:
    return None if _is_zero(state) else rows.at_least_one(op.cast(state, _COMPUTES_IN))


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
        missing = sympy.Max(0, 1 - self._batch)
        return x if self._exact else self._op.Pad(x, self._op.shape([0, 0, 0, 0, missing, 0]))

    def as_given(self, x: Tensor) -> Tensor:
        return (
            x if self._exact else self._op.Slice(x, self._op.ints(0), self._op.shape([self._batch]), self._op.ints(1))
        )
