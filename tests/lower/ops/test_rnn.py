"""Recurrent layers arrive as one ONNX node per layer, with batch and time free, a batch of none included."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from tests.lower.ops.faithful import faithful, operators

LAYERS = {
    "lstm": lambda: nn.LSTM(3, 4),
    "lstm, two layers, both directions": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
    "lstm without bias": lambda: nn.LSTM(3, 4, bias=False, batch_first=True),
    "lstm with dropout, which is off": lambda: nn.LSTM(3, 4, num_layers=2, dropout=0.5).eval(),
    "gru": lambda: nn.GRU(3, 4, batch_first=True),
    "gru, two layers, both directions": lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "gru without bias": lambda: nn.GRU(3, 4, bias=False),
    "rnn": lambda: nn.RNN(3, 4, bidirectional=True, batch_first=True),
    "rnn with relu": lambda: nn.RNN(3, 4, num_layers=2, nonlinearity="relu"),
    "in half precision": lambda: nn.LSTM(3, 4).half(),
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_batch_and_time_stay_free(layer):
    layer = layer()
    dtype = next(layer.parameters()).dtype
    program = faithful(layer, torch.randn(5, 2, 3, dtype=dtype), free=({0, 1},))
    assert not {"Loop", "Scan"} & set(operators(program))


STATEFUL = {
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2), 2),
    "gru": (lambda: nn.GRU(3, 4, num_layers=2), 1),
    "rnn": (lambda: nn.RNN(3, 4, num_layers=2), 1),
}


@pytest.mark.parametrize(("layer", "states"), STATEFUL.values(), ids=STATEFUL)
def test_first_states_are_inputs_of_each_layer(layer, states):
    given = tuple(torch.randn(2, 2, 4) for _ in range(states))
    layer = layer()
    free = ({0, 1}, *({1} for _ in given))
    faithful(lambda x, *hx: layer(x, hx if states == 2 else hx[0]), torch.randn(5, 2, 3), *given, free=free)


def test_states_that_are_zeros_are_left_to_onnx_and_a_batch_that_is_never_empty_needs_no_padding():
    model = nn.LSTM(3, 4)
    shapes = ({1: torch.export.Dim("batch", min=1)},)
    program = trueport.export(model, (torch.randn(5, 2, 3),), dynamic_shapes=shapes)
    (lstm,) = [node for node in program.model.graph if node.op_type == "LSTM"]
    assert len(lstm.inputs) == 4
    assert "Pad" not in operators(program)


def test_the_weights_keep_the_names_of_the_state_dict():
    model = nn.GRU(3, 4)
    program = faithful(model, torch.randn(5, 2, 3))
    assert set(program.model.graph.initializers) == set(model.state_dict())


CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_is_one_step(cell):
    faithful(cell(3, 4), torch.randn(2, 3), free=({0},))


def test_an_unbatched_sequence():
    faithful(nn.GRU(3, 4), torch.randn(5, 3), free=({0},))


def test_packed_sequences_are_refused_at_the_line_that_uses_them():
    layer = nn.LSTM(3, 4)

    def forward(x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
        return layer(packed)[1][0]

    with pytest.raises(trueport.ExportError) as refused:
        faithful(forward, torch.randn(5, 2, 3))
    assert any("packed" in found.message for found in refused.value.diagnostics)
    assert {found.where.function.rpartition(".")[2] for found in refused.value.diagnostics} == {"forward"}
