"""Rotary embedding as people write it is one operator from opset 23 on; what only looks like it stays."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

from tests.lower.through_onnx import check, model_of, run
from trueport.optimise.names import NAMES
from trueport.optimise.sequence import optimise

FREQUENCIES = 10_000 ** -(torch.arange(0, 8, 2).float() / 8)
FREE = {0: {0: "b", 2: "s"}, 1: {0: "b", 2: "s"}}
Function = Callable[[Tensor, Tensor], object]


def given(batch: int, length: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(batch + length)
    return torch.randn(batch, 4, length, 8, generator=draw), torch.randn(batch, 2, length, 8, generator=draw)


def angles(length: int) -> Tensor:
    return torch.arange(length)[:, None].float() * FREQUENCIES


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def as_transformers(q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    """Angles for each of the batch, joined with themselves, and a scale on both."""
    both = torch.cat((angles(q.shape[2]), angles(q.shape[2])), dim=-1).expand(q.shape[0], -1, -1)
    cos, sin = (both.cos() * 1.25)[:, None], (both.sin() * 1.25)[:, None]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def once_for_the_batch(q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    both = torch.cat((angles(q.shape[2]),) * 2, dim=-1)
    cos, sin = both.cos(), both.sin()
    return rotate_half(q) * sin + q * cos, k * cos + sin * rotate_half(k)


TABLE = torch.cat((angles(16), angles(16)), dim=-1)


def from_a_table(q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    cos, sin = (table[torch.arange(q.shape[2])][None, None] for table in (TABLE.cos(), TABLE.sin()))
    (a, b), (c, d) = q.chunk(2, dim=-1), k.chunk(2, dim=-1)
    return q * cos + torch.cat((-b, a), -1) * sin, k * cos + torch.cat((-d, c), -1) * sin


def by_halves(q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    cos, sin = (table[None, None] for table in (angles(q.shape[2]).cos(), angles(q.shape[2]).sin()))

    def rotated(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    return rotated(q), rotated(k)


@pytest.mark.parametrize("function", [as_transformers, once_for_the_batch, from_a_table, by_halves])
def test_it_is_one_operator(function: Function) -> None:
    others = [given(1, 1), given(2, 16), given(0, 3), given(2, 0)]
    model = check(function, given(3, 5), *others, free=FREE, opset=23, passes=NAMES, rtol=1e-4, atol=1e-5)
    written = [node.op_type for node in model.graph]
    assert written.count("RotaryEmbedding") == 2
    assert not {"Neg", "Sub"} & set(written), written
    assert written.count("Expand") <= 2  # cos and sin, for both
    older = check(function, given(3, 5), free=FREE, opset=22, passes=NAMES, rtol=1e-4, atol=1e-5)
    assert "RotaryEmbedding" not in {node.op_type for node in older.graph}


def other_halves(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(q.shape[2]), 2 * angles(q.shape[2])), dim=-1)
    return q * both.cos() + rotate_half(q) * both.sin()


def the_other_way_round(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(q.shape[2]),) * 2, dim=-1)
    half = q.shape[-1] // 2
    return q * both.cos() + torch.cat((q[..., half:], -q[..., :half]), dim=-1) * both.sin()


def of_two_things(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(q.shape[2]),) * 2, dim=-1)
    return q * both.cos() + rotate_half(q + 1) * both.sin()


def uneven(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(q.shape[2]),) * 2, dim=-1)
    return q * both.cos() + torch.cat((-q[..., 3:], q[..., :3]), dim=-1) * both.sin()


def an_angle_for_each_head(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(4),) * 2, dim=-1)[:, None]
    return q * both.cos() + rotate_half(q) * both.sin()


def signs_changed(q: Tensor, k: Tensor) -> Tensor:
    cos, sin = angles(q.shape[2]).cos(), angles(q.shape[2]).sin()
    a, b = q.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + b * sin), dim=-1)


def interleaved(q: Tensor, k: Tensor) -> Tensor:
    both = angles(q.shape[2]).repeat_interleave(2, -1)
    turned = torch.stack((-q[..., 1::2], q[..., ::2]), dim=-1).flatten(-2)
    return q * both.cos() + turned * both.sin()


def in_double_precision(q: Tensor, k: Tensor) -> Tensor:
    both = torch.cat((angles(q.shape[2]),) * 2, dim=-1).double()
    return q.double() * both.cos() + rotate_half(q.double()) * both.sin()


OTHERS = [other_halves, the_other_way_round, of_two_things, uneven, an_angle_for_each_head, signs_changed]


@pytest.mark.parametrize("function", [*OTHERS, interleaved, in_double_precision])
def test_what_only_looks_like_it_stays(function: Function) -> None:
    model = check(function, given(3, 5), given(2, 4), free=FREE, opset=23, passes=NAMES, rtol=1e-4, atol=1e-5)
    assert "RotaryEmbedding" not in {node.op_type for node in model.graph}


class Rotated(nn.Module):
    """Queries and keys of one thing, rotated by the same angles, or by others."""

    def __init__(self, same: bool = True) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 32), nn.Linear(8, 16), nn.Linear(8, 16)
        self.same = same

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = (
            part(x).view(*x.shape[:2], part.out_features // 8, 8).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        both = torch.cat((angles(x.shape[1]),) * 2, dim=-1)
        cos, sin = both.cos(), both.sin()
        other = sin if self.same else -sin
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * other, v * 2


@pytest.mark.parametrize("opset", [13, 20, 23])
@pytest.mark.parametrize("same", [True, False])
def test_3_queries_and_keys_are_rotated_at_once(opset: int, same: bool) -> None:
    def given_rows(batch: int, length: int) -> tuple[Tensor]:
        return (torch.randn(batch, length, 8, generator=torch.Generator().manual_seed(batch + length)),)

    others = [given_rows(1, 1), given_rows(0, 3), given_rows(2, 0)]
    free = {0: {0: "b", 1: "s"}}
    model = check(Rotated(same), given_rows(2, 3), *others, free=free, opset=opset, passes=NAMES, rtol=1e-4, atol=1e-5)
    kinds = [node.op_type for node in model.graph]
    rotations = "RotaryEmbedding" if opset == 23 else "Concat"
    wide = [node for node in model.graph if node.op_type == rotations and node.outputs[0].dtype == ir.DataType.FLOAT]
    assert len([node for node in wide if node.outputs[0].shape.rank() == 4]) == (1 if same else 2), kinds


@pytest.mark.parametrize("function", [as_transformers, once_for_the_batch, from_a_table, in_double_precision])
def test_4_before_opset_23_the_sign_goes_to_the_sines(function: Function) -> None:
    others = [given(1, 1), given(2, 16), given(0, 3), given(2, 0)]
    model = check(function, given(3, 5), *others, free=FREE, opset=20, passes=NAMES, rtol=1e-4, atol=1e-5)
    kinds = [node.op_type for node in model.graph]
    assert not {"Neg", "Slice"} & set(kinds), kinds


def test_4_is_the_same_to_the_last_bit() -> None:
    """With infinities and zeros of both signs among the rows."""
    q, k = given(2, 6)
    q[0, 0, :, 0], q[0, 1, :, 5], q[0, 2, :, 3] = float("inf"), 0.0, -0.0
    plain = model_of(once_for_the_batch, (q, k), FREE, 20)
    changed = model_of(once_for_the_batch, (q, k), FREE, 20)
    optimise(changed, ["constants", "rotary", "dead_code"])
    assert "Neg" not in {node.op_type for node in changed.graph}
    for one, other in zip(run(plain, (q, k)), run(changed, (q, k)), strict=True):
        assert torch.equal(torch.as_tensor(one).isnan(), torch.as_tensor(other).isnan())
        bits = [torch.as_tensor(each).nan_to_num(nan=7.0).view(torch.int32) for each in (one, other)]
        assert torch.equal(*bits)
