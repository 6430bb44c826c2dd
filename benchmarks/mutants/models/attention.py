"""Attention with the masks of transformers, and tables of positions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Call, Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    INT8,
    INT32,
    UINT8,
    at_input,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    elements_above,
    entry,
    first_of_batch,
    index_at_most,
    number,
    place_from,
    place_is,
    plus,
    retype,
    size_is,
    skip,
    swap,
    through,
    times,
    weight,
    when,
    zeroed,
)


class MaskedAttention(nn.Module):
    """`masked_fill(~mask, -1e9)`: what most transformers do."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.scale = width**0.5

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / self.scale
        scores = scores.masked_fill(~mask[:, None, :], -1e9)
        return scores.softmax(-1) @ self.v(x)


class CausalAttention(nn.Module):
    """`finfo.min` above the diagonal."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) * 0.35
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ v


class Learned(nn.Module):
    """Learned positions: at most 256."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(50, width), nn.Embedding(256, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])
        return self.norm(self.token(ids) + self.position(places))


class Sinusoid(nn.Module):
    """Positions from sine and cosine, computed for the length at hand."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.register_buffer("rate", torch.exp(torch.arange(0, width, 2) * (-np.log(10000.0) / width)))
        self.mix = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[1], dtype=torch.float32)[:, None] * self.rate
        return self.mix(x + torch.cat([angles.sin(), angles.cos()], -1))


class CrossAttention(nn.Module):
    """Queries against a memory of another length, of which each row has so many valid places."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
        valid = torch.arange(memory.shape[1])[None, :] < lengths[:, None]
        scores = self.q(x) @ self.k(memory).transpose(1, 2)
        scores = torch.where(valid[:, None, :], scores, torch.full_like(scores, -1e9))
        return scores.softmax(-1) @ memory


class Cached(nn.Module):
    """One step of decoding: what was seen before comes in and goes out."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        seen = torch.cat([past, self.k(x)], 1)
        weights = (self.q(x) @ seen.transpose(1, 2) / 8**0.5).softmax(-1)
        return weights @ seen, seen


class Additive(nn.Module):
    """A mask of zeros and ones that is added, as BERT does it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        scores = scores + (1.0 - mask.float())[:, None, :] * -10000.0
        return scores.softmax(-1) @ x


class Library(nn.Module):
    """torch's own attention, with a mask."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, :])


class Heads(nn.Module):
    """Four heads, split and put together again."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * (width // 4) ** -0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Rotary(nn.Module):
    """Rotary positions."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.register_buffer("rate", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width))

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), self.rate)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def ids(batch: int, length: int, most: int = 50) -> Tensor:
    return torch.randint(0, most, (batch, length))


def masked(batch: int, length: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    mask = torch.rand(batch, length) > 0.4
    mask[:, 0] = True
    return torch.randn(batch, length, 8) * scale, mask


def one_key(batch: int, length: int, scale: float) -> Call:
    """One key is seen, and far below the others' fill for about half of the queries."""
    x, mask = masked(batch, length, scale)
    mask[:, 1:] = False
    return x, mask


def last_row_hidden() -> Call:
    x, mask = masked(3, 5)
    mask[-1] = False
    return x, mask


def crossed(batch: int, length: int, memory: int, lengths: list[int] | None = None) -> Call:
    given = torch.tensor(lengths) if lengths else torch.randint(1, memory + 1, (batch,))
    return torch.randn(batch, length, 8), torch.randn(batch, memory, 8), given


def one_key_added(scale: float) -> Call:
    x, mask = one_key(2, 9, scale)
    return x, mask.long()


def hidden_by_added(edit: Edit) -> None:
    scores = edit.node("Softmax").node.input[0]
    edit.behind(edit.node("Softmax"), lambda op, v: op.Where(op.Less(scores, np.float32(-5000)), np.float32(0), v))


def hidden_is_mean(edit: Edit) -> None:
    """A row whose keys are all hidden looks at all of them."""

    def shown(op: Builder, value: Value) -> Value:
        some = op.ReduceMax(op.Cast(value, to=INT32), np.asarray([1]), keepdims=1)
        return op.Or(value, op.Equal(some, np.int32(0)))

    edit.input(1, shown)


def four_places(edit: Edit) -> None:
    """The axes of heads and places are taken for each other where they are equally long."""

    def turned(op: Builder, value: Value) -> Value:
        square = op.Equal(op.size(value, 1), op.size(value, 2))
        return op.Where(square, op.Reshape(op.Transpose(value, perm=[0, 2, 1, 3]), op.Shape(value)), value)

    edit.before(edit.node("MatMul", nth=-2), turned)


def hidden_gives_zero(edit: Edit) -> None:
    """What some kernels give for rows that the mask hides throughout."""
    softmax = edit.node("Softmax")
    scores = softmax.node.input[0]
    edit.behind(softmax, lambda op, value: op.Where(op.Less(scores, np.float32(-1e8)), np.float32(0), value))


MODELS = [
    Model(
        "attention.masked",
        MaskedAttention,
        lambda: masked(2, 5),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        [
            Mutant(kinds.MASK_FILL, "fill is -50", number(-1e9, -50), lambda: one_key(2, 9, 30.0)),
            Mutant(kinds.MASK_FILL, "fill is -1e4", number(-1e9, -1e4), lambda: one_key(2, 9, 400.0)),
            Mutant(kinds.MASK_FILL, "fill is -200", number(-1e9, -200), lambda: one_key(3, 20, 60.0)),
            Mutant(kinds.HIDDEN_ROW, "hidden row is zero", hidden_gives_zero, last_row_hidden),
            Mutant(kinds.HIDDEN_ROW, "hidden row is NaN", number(-1e9, -np.inf), last_row_hidden),
            Mutant(kinds.BATCH, "mask of row 0", at_input(1, first_of_batch), lambda: masked(4, 7)),
            Mutant(kinds.SCALE, "no scale", skip("Div"), lambda: masked(2, 5, 2.0)),
            Mutant(kinds.AXIS, "softmax over queries", attributes("Softmax", axis=1), lambda: masked(2, 6)),
            Mutant(
                kinds.ROWS,
                "weights of keys from 70 on",
                behind("Softmax", when(place_from(70, -1), zeroed)),
                lambda: masked(1, 90),
            ),
            Mutant(
                kinds.WEIGHT,
                "square weight turned",
                weight((8, 8), np.transpose),
                lambda: masked(2, 5),
            ),
        ],
    ),
    Model(
        "attention.causal",
        CausalAttention,
        lambda: (torch.randn(2, 4, 8),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(
                kinds.ROWS,
                "mask only for the first 64",
                before("Softmax", 0, lambda op, v: op.Where(place_from(64, -1)(op, v), op.Max(v, np.float32(0)), v)),
                lambda: (torch.randn(1, 80, 8),),
            ),
            Mutant(
                kinds.SIZE,
                "wrong at 17",
                behind("Softmax", when(size_is(17, -1), times(0.5))),
                lambda: (torch.randn(1, 17, 8),),
            ),
            Mutant(
                kinds.SIZE,
                "wrong at 33",
                behind("Softmax", when(size_is(33, -1), times(0.5))),
                lambda: (torch.randn(1, 33, 8),),
            ),
            Mutant(
                kinds.MASK_FILL,
                "fill is -65504",
                number(-3.4028234663852886e38, -65504),
                lambda: (torch.randn(90, 3, 8) * 900,),
            ),
            Mutant(
                kinds.BATCH,
                "wrong from the second of a batch on",
                behind("Softmax", when(place_is(2, -3), times(1.01))),
                lambda: (torch.randn(4, 3, 8),),
            ),
        ],
    ),
    Model(
        "attention.learned",
        Learned,
        lambda: (ids(2, 6),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(
                kinds.ROWS, "positions end at 64", before("Gather", 1, index_at_most(63), -1), lambda: (ids(1, 65),)
            ),
            Mutant(
                kinds.ROWS, "positions end at 129", before("Gather", 1, index_at_most(128), -1), lambda: (ids(1, 200),)
            ),
            Mutant(kinds.TABLE, "last position", entry((256, 8), 255), lambda: (ids(1, 256),)),
            Mutant(kinds.TABLE, "last token", entry((50, 8), 49), lambda: (torch.tensor([[3, 49, 0]]),)),
            Mutant(kinds.TABLE, "one token in the middle", entry((50, 8), 37), lambda: (torch.tensor([[3, 37, 0]]),)),
            Mutant(kinds.EPSILON, "epsilon 1e-2", attributes("LayerNormalization", epsilon=1e-2), lambda: (ids(2, 6),)),
        ],
    ),
    Model(
        "attention.sinusoid",
        Sinusoid,
        lambda: (torch.randn(2, 6, 8),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(
                kinds.ROWS,
                "positions from 100 on",
                before("Sin", 0, when(place_from(100, -2), plus(0.1))),
                lambda: (torch.randn(1, 101, 8),),
            ),
            Mutant(
                kinds.ELEMENTS,
                "above 4096 elements",
                at_input(0, when(elements_above(4096), times(0.99))),
                lambda: (torch.randn(8, 100, 8),),
            ),
            Mutant(
                kinds.SIZE,
                "wrong at 48",
                before("Sin", 0, when(size_is(48, 0), plus(0.1))),
                lambda: (torch.randn(1, 48, 8),),
            ),
        ],
    ),
    Model(
        "attention.cross",
        CrossAttention,
        lambda: crossed(2, 4, 6),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "memory"}, {0: "batch"}),
        [
            Mutant(
                kinds.THRESHOLD, "one place too many", retype("Less", "LessOrEqual"), lambda: crossed(2, 4, 6, [3, 5])
            ),
            Mutant(kinds.WRAP, "lengths through int8", at_input(2, through(INT8)), lambda: crossed(1, 2, 200, [150])),
            Mutant(kinds.WRAP, "lengths through uint8", at_input(2, through(UINT8)), lambda: crossed(1, 2, 300, [280])),
            Mutant(kinds.BATCH, "lengths of row 0", at_input(2, first_of_batch), lambda: crossed(3, 4, 6, [1, 6, 3])),
            Mutant(kinds.HIDDEN_ROW, "length 0 gives zero", hidden_gives_zero, lambda: crossed(2, 3, 5, [4, 0])),
            Mutant(
                kinds.MASK_FILL,
                "fill is -100",
                number(-1e9, -100),
                lambda: tuple(v * 12 if v.is_floating_point() else v for v in crossed(2, 9, 8, [1, 2])),
            ),
        ],
    ),
    Model(
        "attention.cached",
        Cached,
        lambda: (torch.randn(2, 1, 8), torch.randn(2, 5, 8)),
        ({0: "batch"}, {0: "batch", 1: "past"}),
        [
            Mutant(
                kinds.ROWS,
                "cache of 128",
                behind("Concat", when(place_from(128, -2), zeroed)),
                lambda: (torch.randn(1, 1, 8), torch.randn(1, 140, 8)),
            ),
            Mutant(
                kinds.EMPTY,
                "nothing cached",
                behind("Concat", when(size_is(1, 1), times(2))),
                lambda: (torch.randn(2, 1, 8), torch.randn(2, 0, 8)),
            ),
            Mutant(
                kinds.OUTPUTS,
                "new key missing in the cache",
                at_output(1, when(place_from(12, -2), zeroed)),
                lambda: (torch.randn(1, 1, 8), torch.randn(1, 20, 8)),
            ),
        ],
    ),
    Model(
        "attention.additive",
        Additive,
        lambda: (torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.int64)),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        [
            Mutant(kinds.MASK_FILL, "adds -60", number(-10000, -60), lambda: one_key_added(30.0)),
            Mutant(kinds.MASK_FILL, "adds -1000", number(-10000, -1000), lambda: one_key_added(120.0)),
            Mutant(
                kinds.FLAG,
                "a mask of 2 counts as 1",
                at_input(1, at_most(1)),
                lambda: (torch.randn(2, 5, 8), torch.tensor([[1, 2, 0, 1, 1]] * 2)),
            ),
            Mutant(
                kinds.HIDDEN_ROW,
                "a hidden row is zero",
                hidden_by_added,
                lambda: (torch.randn(2, 5, 8), torch.tensor([[1] * 5, [0] * 5])),
            ),
            Mutant(
                kinds.BATCH,
                "mask of the first row",
                at_input(1, first_of_batch),
                lambda: (torch.randn(2, 5, 8), torch.tensor([[1] * 5, [1, 1, 0, 0, 0]])),
            ),
        ],
    ),
    Model(
        "attention.library",
        Library,
        lambda: masked(2, 5),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        [
            Mutant(kinds.HIDDEN_ROW, "a hidden row is the mean", hidden_is_mean, last_row_hidden),
            Mutant(
                kinds.ROWS,
                "keys from 110 on are hidden",
                at_input(1, lambda op, v: op.And(v, op.Not(place_from(110, -1)(op, v)))),
                lambda: (torch.randn(1, 120, 8), torch.ones(1, 120, dtype=torch.bool)),
            ),
            Mutant(kinds.SIZE, "length 24", at_output(0, when(size_is(24, 1), times(0.99))), lambda: masked(2, 24)),
        ],
    ),
    Model(
        "attention.heads",
        Heads,
        lambda: (torch.randn(2, 4, 16),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(kinds.SCALE, "scale of the whole width", number(0.5, 0.25), lambda: (torch.randn(2, 5, 16) * 2,)),
            Mutant(kinds.AXIS, "heads for places where there are four", four_places, lambda: (torch.randn(2, 4, 16),)),
            Mutant(
                kinds.ROWS,
                "queries from 66 on",
                behind("Softmax", when(place_from(66, -2), zeroed)),
                lambda: (torch.randn(1, 70, 16),),
            ),
            Mutant(
                kinds.ELEMENTS,
                "above 9000 weights",
                behind("Softmax", when(elements_above(9000), times(0.99))),
                lambda: (torch.randn(1, 50, 16),),
            ),
        ],
    ),
    Model(
        "attention.rotary",
        Rotary,
        lambda: (torch.randn(2, 5, 8),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(kinds.SWAP, "sign of the rotation", swap("Sub"), lambda: (torch.randn(2, 5, 8),)),
            Mutant(
                kinds.ROWS,
                "table of 300",
                before("Cos", 0, when(place_from(300, -2), zeroed)),
                lambda: (torch.randn(1, 310, 8),),
            ),
            Mutant(kinds.CONSTANT, "one rate", entry((4,), 3, 1.0), lambda: (torch.randn(2, 5, 8),)),
        ],
    ),
]
