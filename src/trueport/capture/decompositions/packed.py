"""Packed sequences, by masks: how long each sequence is stays open.

Torch packs in C++, over the memory of the lengths. Here the same layout is computed: `batch_sizes[t]` counts the
sequences, longest first, that have a step t; the data is every step of every sequence, by time and then by row. A
recurrent layer on packed data is one operator (`aten::lstm.data`), which `lower` translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from trueport.torch_internals import known_to_hold

_ROWS = "_trueport_rows"
"""Set on the `batch_sizes` of our own packing: the size of the batch, which is its first element."""


def pack_padded(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)"""
    steps = input.transpose(0, 1) if batch_first else input
    longest = lengths[0].item()
    known_to_hold(longest >= 1)
    known_to_hold(longest <= steps.shape[0])
    batch_sizes = (torch.arange(longest).unsqueeze(1) < lengths).sum(1)
    setattr(batch_sizes, _ROWS, steps.shape[1])
    return steps[torch.arange(steps.shape[0]).unsqueeze(1) < lengths], batch_sizes


def pad_packed(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[Tensor, Tensor]:
    """_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length)
    -> (Tensor, Tensor)"""
    present = torch.arange(rows_of(batch_sizes)) < batch_sizes.unsqueeze(1)
    places = (present.flatten().cumsum(0) - 1).clamp(min=0).reshape(present.shape)
    outside = present.reshape(*present.shape, *(1 for _ in data.shape[1:])).logical_not()
    padded = data[places].masked_fill(outside, padding_value)
    missing = total_length - batch_sizes.shape[0]
    if not (isinstance(missing, int) and missing == 0):
        after = padded.new_full((missing, *padded.shape[1:]), padding_value)
        padded = torch.cat([padded, after])
    return padded.transpose(0, 1) if batch_first else padded, present.sum(0)


def pad_sequences(
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


def rows_of(batch_sizes: Tensor) -> Any:
    """The size of the batch: known where we packed it, otherwise the first element."""
    known = getattr(batch_sizes, _ROWS, None)
    return batch_sizes[0].item() if known is None else known


def recurrent(module: nn.RNNBase, input: Any, hx: Any = None) -> Any:
    """The forward of `nn.LSTM`, `nn.GRU` and `nn.RNN`; torch's own reads the size of a packed batch as a number."""
    if not isinstance(input, PackedSequence):
        return type(module).forward(module, input, hx)
    data, batch_sizes, order, back = input
    if hx is None:
        count = module.num_layers * (2 if module.bidirectional else 1)
        rows = rows_of(batch_sizes)
        widths = [module.proj_size or module.hidden_size, module.hidden_size][: 2 if module.mode == "LSTM" else 1]
        states = [torch.zeros(count, rows, width, dtype=data.dtype, device=data.device) for width in widths]
    else:
        states = _permuted([hx] if isinstance(hx, Tensor) else list(hx), order)
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


aten = torch.ops.aten
_KERNELS = {
    "LSTM": aten.lstm.data,
    "GRU": aten.gru.data,
    "RNN_TANH": aten.rnn_tanh.data,
    "RNN_RELU": aten.rnn_relu.data,
}
