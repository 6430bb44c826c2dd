"""Recurrent layers, and packed sequences by masks: how long each sequence is stays open.

Torch packs in C++, over the memory of the lengths. Here the same layout is computed: `batch_sizes[t]` counts the
sequences, longest first, that have a step t; the data is every step of every sequence, by time and then by row. A
recurrent layer on packed data is one operator (`aten::lstm.data`), which `lower` translates.

Torch finds the sizes that a recurrent operator gives by unrolling it over time; they are said here at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from trueport.decompositions.arguments import flat
from trueport.decompositions.registry import decomposes, sizes_of
from trueport.torch_internals import known_to_hold, padded_sequence_of_packed
from trueport.torch_internals.symbolic import same_number

aten = torch.ops.aten
_ROWS = "_trueport_rows"
"""Set on the `batch_sizes` of our own packing: the size of the batch, which is its first element."""
_KERNELS = {
    "LSTM": aten.lstm.data,
    "GRU": aten.gru.data,
    "RNN_TANH": aten.rnn_tanh.data,
    "RNN_RELU": aten.rnn_relu.data,
}


@decomposes(aten._pack_padded_sequence.default)
def _pack_padded(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)"""
    steps = input.transpose(0, 1) if batch_first else input
    longest = lengths[0].item()
    known_to_hold(longest >= 1)
    known_to_hold(longest <= steps.shape[0])
    batch_sizes = (torch.arange(longest).unsqueeze(1) < lengths).sum(1)
    setattr(batch_sizes, _ROWS, steps.shape[1])
    return steps[torch.arange(steps.shape[0]).unsqueeze(1) < lengths], batch_sizes


@decomposes(padded_sequence_of_packed(), aten._pad_packed_sequence.default)
def _pad_packed(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[Tensor, Tensor]:
    """_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length)
    -> (Tensor, Tensor)"""
    present = torch.arange(_rows_of(batch_sizes)) < batch_sizes.unsqueeze(1)
    places = (present.flatten().cumsum(0) - 1).clamp(min=0).reshape(present.shape)
    outside = present.reshape(*present.shape, *(1 for _ in data.shape[1:])).logical_not()
    padded = data[places].masked_fill(outside, padding_value)
    missing = total_length - batch_sizes.shape[0]
    if not same_number(missing, 0):
        after = padded.new_full((missing, *padded.shape[1:]), padding_value)
        padded = torch.cat([padded, after])
    return padded.transpose(0, 1) if batch_first else padded, present.sum(0)


@decomposes(aten.pad_sequence.default)
def _pad_sequences(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side="right")
    -> Tensor"""
    longest: Any = sequences[0].shape[0]
    for sequence in sequences[1:]:
        longest = torch.sym_max(longest, sequence.shape[0])
    padded = []
    for sequence in sequences:
        filling = sequence.new_full((longest - sequence.shape[0], *sequence.shape[1:]), padding_value)
        padded.append(torch.cat([sequence, filling] if padding_side == "right" else [filling, sequence]))
    return torch.stack(padded, 0 if batch_first else 1)


def _rows_of(batch_sizes: Tensor) -> Any:
    """The size of the batch: known where we packed it, otherwise the first element."""
    known = getattr(batch_sizes, _ROWS, None)
    return batch_sizes[0].item() if known is None else known


@decomposes(nn.LSTM, nn.GRU, nn.RNN)
def _packed_layer(module: nn.RNNBase, input: Any, hx: Any = None) -> Any:
    """The forward of `nn.LSTM`, `nn.GRU` and `nn.RNN`; torch's own reads the size of a packed batch as a number."""
    if not isinstance(input, PackedSequence):
        return type(module).forward(module, input, hx)
    data, batch_sizes, order, back = input
    if hx is None:
        count = module.num_layers * (2 if module.bidirectional else 1)
        rows = _rows_of(batch_sizes)
        widths = [module.proj_size or module.hidden_size, module.hidden_size][: 2 if module.mode == "LSTM" else 1]
        states = [torch.zeros(count, rows, width, dtype=data.dtype, device=data.device) for width in widths]
    else:
        states = _permuted(list(flat(hx)), order)
    output, *lasts = _KERNELS[module.mode](
        data,
        batch_sizes,
        states if module.mode == "LSTM" else states[0],
        module._flat_weights,
        module.bias,
        module.num_layers,
        module.dropout,
        module.training,
        module.bidirectional,
    )
    lasts = _permuted(lasts, back)
    return PackedSequence(output, batch_sizes, order, back), tuple(lasts) if len(lasts) > 1 else lasts[0]


def _permuted(states: Sequence[Tensor], order: Tensor | None) -> list[Tensor]:
    return list(states) if order is None else [state.index_select(1, order) for state in states]


@sizes_of(aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input)
def _recurrent(
    input: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = input.shape[0 if batch_first else 1]
    _must_agree(hx.shape[1], batch, "batch")
    width = hx.shape[2] * (2 if bidirectional else 1)
    return input.new_empty((*input.shape[:2], width)), input.new_empty((hx.shape[0], batch, hx.shape[2]))


@sizes_of(aten.lstm.input)
def _lstm(input: torch.Tensor, hx: Sequence[torch.Tensor], *settings: Any) -> tuple[torch.Tensor, ...]:
    hidden, cell = hx
    output, last = _recurrent(input, hidden, *settings)
    _must_agree(cell.shape[1], last.shape[1], "batch")
    return output, last, input.new_empty((last.shape[0], last.shape[1], cell.shape[2]))


def _must_agree(given: Any, wanted: Any, what: str) -> None:
    if given != wanted:
        raise ValueError(f"the {what} size of the initial state is {given}, that of the input {wanted}")


@sizes_of(aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data)
def _packed_recurrent(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    width = hx.shape[2] * (2 if bidirectional else 1)
    return data.new_empty((data.shape[0], width)), data.new_empty(hx.shape)


@sizes_of(aten.lstm.data)
def _packed_lstm(
    data: torch.Tensor, batch_sizes: torch.Tensor, hx: Sequence[torch.Tensor], *settings: Any
) -> tuple[torch.Tensor, ...]:
    output, last = _packed_recurrent(data, batch_sizes, hx[0], *settings)
    return output, last, data.new_empty(hx[1].shape)
