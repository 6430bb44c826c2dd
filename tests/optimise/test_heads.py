"""Attention takes heads apart and puts them together itself, from opset 23 on."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.lower.through_onnx import check
from trueport.optimise.names import NAMES


class Attends(nn.Module):
    """Of one thing to another, with as many heads of keys as it is told."""

    def __init__(self, shared: int, masked: bool) -> None:
        super().__init__()
        self.query, self.out = nn.Linear(12, 12), nn.Linear(12, 12)
        self.key, self.value = nn.Linear(12, 3 * shared), nn.Linear(12, 3 * shared)
        self.masked, self.shared = masked, shared

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], -1, 3).transpose(1, 2)

    def forward(self, x: Tensor, y: Tensor, seen: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(y)), self.heads(self.value(y))
        options = {"attn_mask": seen[:, None, None]} if self.masked else {"is_causal": True, "scale": 0.3}
        mixed = F.scaled_dot_product_attention(q, k, v, enable_gqa=self.shared < 4, **options)
        return self.out(mixed.transpose(1, 2).flatten(2))


def given(batch: int, length: int, keys: int) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(length)
    x, y = torch.randn(batch, length, 12, generator=draw), torch.randn(batch, keys, 12, generator=draw)
    return x, y, torch.rand(batch, keys, generator=draw) > 0.3


FREE = {0: {0: "b", 1: "s"}, 1: {0: "b", 1: "t"}, 2: {0: "b", 1: "t"}}


@pytest.mark.parametrize(("shared", "masked"), [(4, True), (4, False), (2, True), (1, False)])
def test_heads_are_taken_apart_inside(shared: int, masked: bool) -> None:
    model = check(
        Attends(shared, masked), given(2, 3, 5), given(1, 1, 7), given(3, 6, 2),
        free=FREE, opset=23, passes=NAMES, rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    written = [node.op_type for node in model.graph]
    assert "Attention" in written
    assert not {"Transpose", "Reshape"} & set(written), written


def test_what_is_read_between_stays() -> None:
    """Heads in another order, a result that is read before it is put together, values that come another way."""

    def forward(x: Tensor) -> tuple[Tensor, ...]:
        apart = x.view(2, 3, 4, 3).transpose(1, 2)
        other = x.view(2, 3, 3, 4).permute(0, 3, 1, 2)
        mixed = F.scaled_dot_product_attention(apart, apart, apart)
        moved = F.scaled_dot_product_attention(apart, apart, apart * 2)
        return (
            mixed.transpose(1, 2).flatten(2), mixed.sum(1), moved.transpose(1, 2).flatten(2),
            F.scaled_dot_product_attention(other, other, other).transpose(1, 2).flatten(2),
            F.scaled_dot_product_attention(apart, apart, apart * 3).flatten(2),
        )  # fmt: skip

    model = check(forward, (given(2, 3, 5)[0],), opset=23, passes=NAMES, rtol=1e-4, atol=1e-5)
    assert not any("q_num_heads" in node.attributes for node in model.graph)
