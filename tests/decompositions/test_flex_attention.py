"""flex_attention is captured as the operators that it stands for, with the user's own functions in between."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.attention import flex_attention as flex

from tests.capture.helpers import assert_exported


class RelativePositions(nn.Module):
    """A learnt bias by distance, read from a parameter inside the score function; two heads share keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4, 13))

    def forward(self, q, kv):
        def nearer_is_better(score, batch, head, at, other):
            return score + self.bias[head, at - other + 6]

        return flex.flex_attention(q, kv, kv, score_mod=nearer_is_better, enable_gqa=True)


class Padded(nn.Module):
    """Causal, and blind to what is beyond each row's length."""

    def forward(self, q, lengths):
        mask = flex.create_block_mask(
            lambda batch, head, at, other: (at >= other) & (other < lengths[batch]),
            q.size(0), None, q.size(2), q.size(2), device="cpu",
        )  # fmt: skip
        return flex.flex_attention(q, q, q, block_mask=mask)


def test_a_score_function_that_reads_a_parameter():
    q, kv = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    assert_exported(
        RelativePositions(),
        (q, kv),
        [(torch.randn(3, 4, 6, 8), torch.randn(3, 2, 6, 8))],
        dynamic_shapes=({0: "batch"}, {0: "batch"}),
    )


def test_a_mask_of_lengths_over_free_sizes():
    assert_exported(
        Padded(),
        (torch.randn(2, 4, 6, 8), torch.tensor([6, 3])),
        [(torch.randn(3, 4, 9, 8), torch.tensor([1, 9, 4]))],
        dynamic_shapes=({0: "batch", 2: "length"}, {0: "batch"}),
    )


def test_torch_is_as_before_afterwards():
    before = flex.flex_attention_hop
    assert_exported(RelativePositions(), (torch.randn(1, 4, 6, 8), torch.randn(1, 2, 6, 8)))
    assert flex.flex_attention_hop is before
    assert not flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
