"""Recurrent layers arrive as one ONNX node per layer, with batch and time free, a batch of none included."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves

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
    named = {name.split(".")[0] for name in program.model.graph.initializers if not name.startswith("const")}
    assert named < set(model.state_dict())  # `weight_ih_l0.reordered`; both biases are one, under the first one's name
    plain = trueport.export(model, (torch.randn(5, 2, 3),), optimize=False).model.graph
    assert set(plain.initializers) == set(model.state_dict())


CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_is_one_step(cell):
    faithful(cell(3, 4), torch.randn(2, 3), free=({0},))


def test_an_unbatched_sequence():
    faithful(nn.GRU(3, 4), torch.randn(5, 3), free=({0},))


BY_STEPS = {
    "lstm with a projection": lambda: nn.LSTM(3, 6, num_layers=2, proj_size=4, bidirectional=True),
    "lstm with a projection and no bias": lambda: nn.LSTM(3, 6, proj_size=2, bias=False, batch_first=True),
    "projection in half precision": lambda: nn.LSTM(3, 6, proj_size=2).half(),
    "lstm in float64": lambda: nn.LSTM(3, 4, bidirectional=True).double(),
    "gru in float64": lambda: nn.GRU(3, 4, num_layers=2).double(),
    "rnn in float64": lambda: nn.RNN(3, 4, nonlinearity="relu").double(),
}


@pytest.mark.parametrize("layer", BY_STEPS.values(), ids=BY_STEPS)
def test_what_onnx_has_no_operator_or_no_kernel_for_goes_step_by_step(layer):
    layer = layer()
    program = faithful(layer, torch.randn(5, 2, 3, dtype=next(layer.parameters()).dtype), free=({0, 1},))
    assert "Loop" in operators(program)


class Packed(nn.Module):
    """Pads again what a recurrent layer made of packed sequences; returns all that it gave."""

    def __init__(self, layer, in_order=False, padding=0.0):
        super().__init__()
        self.layer, self.in_order, self.padding = layer, in_order, padding

    def forward(self, x, lengths):
        first = self.layer.batch_first
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.in_order)
        output, last = self.layer(packed)
        padded, again = pad_packed_sequence(output, batch_first=first, padding_value=self.padding)
        return padded, again, last


PACKED = {
    "lstm": lambda: Packed(nn.LSTM(3, 4)),
    "longest first": lambda: Packed(nn.LSTM(3, 4), in_order=True),
    "gru, two layers, both directions": lambda: Packed(nn.GRU(3, 4, num_layers=2, bidirectional=True), padding=-1.0),
    "rnn": lambda: Packed(nn.RNN(3, 4, nonlinearity="relu")),
    "lstm with a projection": lambda: Packed(nn.LSTM(3, 4, proj_size=2, bidirectional=True)),
}


@pytest.mark.parametrize("model", PACKED.values(), ids=PACKED)
def test_packed_sequences_keep_their_lengths_open(model):
    model = model()
    program = faithful(model, torch.randn(5, 3, 3), torch.tensor([5, 3, 2]), free=({0, 1}, {0}))
    for lengths in ([4, 4, 1, 1], [2], [6, 1]):
        given = torch.randn(6, len(lengths), 3), torch.tensor(lengths)
        for expected, got in zip(tree_leaves(model(*given)), tree_leaves(program(*given)), strict=True):
            torch.testing.assert_close(got, expected)


def test_packed_sequences_in_any_order_with_first_states_and_a_total_length():
    layer = nn.LSTM(3, 4, bidirectional=True, batch_first=True)

    def forward(x, mask, h, c):
        packed = pack_padded_sequence(x, mask.sum(1), batch_first=True, enforce_sorted=False)
        output, (h, c) = layer(packed, (h, c))
        return pad_packed_sequence(output, batch_first=True, total_length=x.shape[1])[0], h, c

    def given(*lengths, time):
        mask = torch.arange(time) < torch.tensor(lengths)[:, None]
        return (
            torch.randn(len(lengths), time, 3),
            mask,
            torch.randn(2, len(lengths), 4),
            torch.randn(2, len(lengths), 4),
        )

    program = faithful(forward, *given(2, 5, 3, time=5), free=({0, 1}, {0, 1}, {1}, {1}))
    others = given(1, 4, time=6)
    for expected, got in zip(forward(*others), program(*others), strict=True):
        torch.testing.assert_close(got, expected)


def test_the_data_of_packed_sequences_may_be_worked_on():
    layer, head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, _ = layer(packed)
        return pad_packed_sequence(output._replace(data=head(output.data)), batch_first=True)[0]

    program = faithful(forward, torch.randn(3, 4, 3), torch.tensor([4, 1, 3]), free=({0, 1}, {0}))
    others = torch.randn(2, 6, 3), torch.tensor([1, 4])
    torch.testing.assert_close(program(*others), forward(*others))


def test_sequences_of_open_lengths_are_padded_to_the_longest():
    program = faithful(
        lambda a, b: nn.utils.rnn.pad_sequence([a, b], batch_first=True, padding_value=-1.0),
        torch.randn(3, 2),
        torch.randn(5, 2),
        free=({0}, {0}),
    )
    a, b = torch.randn(6, 2), torch.randn(2, 2)
    expected = nn.utils.rnn.pad_sequence([a, b], batch_first=True, padding_value=-1.0)
    torch.testing.assert_close(program(a, b), expected)
