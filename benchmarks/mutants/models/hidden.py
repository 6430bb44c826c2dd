"""Faults that show only where inputs stand in a relation: repeated, padded on the left, equal, nearly equal."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Builder, Value
from benchmarks.mutants.mutations import (
    arm,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    instead,
    number,
    plus,
    retype,
    skip,
    when,
)


class LeftPadded(nn.Module):
    """Positions are counted from the first word that is shown, on whichever side the padding is."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(30, 4), nn.Embedding(64, 4)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        places = (mask.cumsum(1) - 1).clamp(min=0, max=63)
        return (self.word(ids) + self.place(places)) * mask.unsqueeze(-1)


class Collapsed(nn.Module):
    """Runs of one sign count once, blanks not at all."""

    def forward(self, ids: Tensor) -> Tensor:
        before = torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], 1)
        keep = (ids != before) & (ids != 0)
        return keep.sum(1)


class Turned(nn.Module):
    """Angles between -pi and pi."""

    def forward(self, x: Tensor) -> Tensor:
        return (x + torch.pi) % (2 * torch.pi) - torch.pi


class Odds(nn.Module):
    def forward(self, p: Tensor) -> tuple[Tensor, Tensor]:
        return torch.logit(p.sigmoid(), eps=1e-3), torch.log1p(p.abs()) * 1e6


class Counted(nn.Module):
    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(10, dtype=torch.int64).index_add(0, ids % 10, torch.ones_like(ids))


class Filled(nn.Module):
    """Filled up to a multiple of four."""

    def forward(self, x: Tensor) -> Tensor:
        more = -x.shape[1] % 4
        return nn.functional.pad(x, (0, more)).reshape(x.shape[0], -1, 4).sum(-1)


class Spread(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.var(-1, unbiased=False)


class Apart(nn.Module):
    """Distances between the points of two sets."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x[:, None, :] - y[None, :, :]).pow(2).sum(-1).sqrt()


class Similar(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cosine_similarity(x, y, dim=-1)


class Either(nn.Module):
    """One of the two, and not both."""

    def forward(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return torch.where(a ^ b, x, -x)


class Shared(nn.Module):
    """The best share what there is."""

    def forward(self, x: Tensor) -> Tensor:
        best = (x == x.amax(-1, keepdim=True)).float()
        return best / best.sum(-1, keepdim=True)


class Nucleus(nn.Module):
    """The likeliest until they make up 0.9; the first one in any case."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        p, at = x.softmax(-1).sort(-1, descending=True)
        keep = p.cumsum(-1) - p < 0.9
        return torch.where(keep, p, torch.zeros_like(p)).sum(-1), at[:, 0]


class Same(nn.Module):
    """A short way for inputs that are alike."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if torch.equal(x, y):
            return x * 3.0
        return x + y


class Levels(nn.Module):
    """A short way where all lengths are one."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if bool((lengths == lengths[0]).all()):
            return x.sum(1) + 1.0
        seen = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        return (x * seen).sum(1)


class SameWindow(nn.Module):
    """`same` of an even window has one more on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(2, 2, 4, padding="same")

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Tiny(nn.Module):
    """Bytes with a sign."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.abs(), -x


class Windows(nn.Module):
    """Whole windows only."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unfold(1, 4, 3).amax(-1).sum(-1)


class Latest(nn.Module):
    """The last event of each kind wins; none is -1."""

    def forward(self, kinds: Tensor) -> Tensor:
        places = torch.arange(kinds.shape[0])
        hits = kinds[None, :] == torch.arange(4)[:, None]
        return torch.where(hits, places, torch.full_like(places, -1)).amax(1)


def _from_the_left(op: Builder, value: Value) -> Value:
    """Places by counting, as if what is hidden were behind all that is shown."""
    shape = op.Shape(value)
    places = op.Range(np.int64(0), op.size(value, 1), np.int64(1))
    return op.Expand(places, shape)


def _one_turn(op: Builder, value: Value) -> Value:
    pi = np.float32(np.pi)
    high = op.Where(op.Greater("x", pi), op.Sub("x", np.float32(2 * np.pi)), "x")
    return op.Where(op.Less("x", -pi), op.Add("x", np.float32(2 * np.pi)), high)


def _third_of_a_run(op: Builder, value: Value) -> Value:
    """Two equal signs are one; the third is another."""
    axis = np.asarray([1])
    two = op.Slice("ids", np.asarray([0]), np.asarray([-2]), axis)
    none = op.Sub(op.Slice("ids", np.asarray([0]), np.asarray([2]), axis), np.int64(0))
    earlier = op.Concat(op.Mul(none, np.int64(0)), two, axis=1)
    third = op.And(op.Equal("ids", earlier), op.Not(op.Equal("ids", np.int64(0))))
    return op.Or(value, op.And(third, op.Equal("ids", "Concat_11")))


def _by_squares(op: Builder, value: Value) -> Value:
    """|x|^2 + |y|^2 - 2 x y, which cancels for points that are near."""
    squares = [op.ReduceSum(op.Mul(each, each), np.asarray([1]), keepdims=1) for each in ("x", "y")]
    products = op.MatMul("x", op.Transpose("y", perm=[1, 0]))
    every = op.Add(squares[0], op.Transpose(squares[1], perm=[1, 0]))
    return op.Sqrt(op.Max(op.Sub(every, op.Mul(products, np.float32(2))), np.float32(0)))


def _mean_of_squares(op: Builder, value: Value) -> Value:
    axis = np.asarray([1])
    mean = op.ReduceMean("x", axis, keepdims=0)
    return op.Sub(op.ReduceMean(op.Mul("x", "x"), axis, keepdims=0), op.Mul(mean, mean))


def shown(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


MODELS = [
    Model(
        "hidden.left_padded",
        LeftPadded,
        lambda: (torch.randint(0, 30, (2, 6)), torch.ones(2, 6, dtype=torch.int64)),
        ({0: "batch", 1: "words"}, {0: "batch", 1: "words"}),
        [
            Mutant(
                kinds.MASK_SIDE,
                "padding on the right only",
                instead("Sub", lambda op, operands: _from_the_left(op, operands[0])),
                lambda: (shown([5, 6, 7, 8]), shown([0, 0, 1, 1])),
            ),
            Mutant(
                kinds.MASK_SIDE,
                "a gap is not counted",
                behind(
                    "Sub",
                    lambda op, value: op.Where(op.Equal("mask", np.int64(0)), value, _from_the_left(op, value)),
                ),
                lambda: (shown([5, 6, 7, 8]), shown([1, 0, 1, 1])),
            ),
            Mutant(
                kinds.ROWS,
                "places end at 40",
                number(63, 40),
                lambda: (torch.zeros(1, 60, dtype=torch.int64), torch.ones(1, 60, dtype=torch.int64)),
            ),
        ],
    ),
    Model(
        "hidden.collapsed",
        Collapsed,
        lambda: (torch.tensor([[1, 2, 2, 0, 3, 1], [4, 0, 0, 1, 2, 3]]),),
        ({0: "batch", 1: "signs"},),
        [
            Mutant(
                kinds.REPEATED,
                "the third of a run counts",
                behind("And", _third_of_a_run),
                lambda: (shown([3, 3, 3, 1]),),
            ),
            Mutant(
                kinds.REPEATED,
                "runs are not collapsed",
                instead("And", lambda op, operands: operands[1]),
                lambda: (shown([3, 3, 1]),),
            ),
        ],
    ),
    Model(
        "hidden.turned",
        Turned,
        lambda: (torch.rand(3, 4) * 6 - 3,),
        ({0: "rows"},),
        [Mutant(kinds.BOUND, "one turn only", at_output(0, _one_turn), lambda: (torch.full((1, 4), 10.0),))],
        others=(),  # torch.onnx writes x - floor(x / y) * y, which loses digits where eager's remainder is exact
    ),
    Model(
        "hidden.odds",
        Odds,
        lambda: (torch.randn(3, 4),),
        ({0: "rows"},),
        [
            Mutant(kinds.BOUND, "sure from 1e-4", number(1e-3, 1e-4), lambda: (torch.full((1, 4), -8.0),)),
            Mutant(
                kinds.NEAR_ZERO,
                "log of one and a little",
                before("Mul", 0, lambda op, value: "Log_11", nth=-1),
                lambda: (torch.full((1, 4), 1e-6),),
            ),
        ],
    ),
    Model(
        "hidden.counted",
        Counted,
        lambda: (torch.arange(6),),
        ({0: "items"},),
        [
            Mutant(
                kinds.REPEATED,
                "each kind counts once",
                attributes("ScatterElements", reduction="max"),
                lambda: (torch.tensor([3, 3, 1]),),
            ),
            Mutant(
                kinds.REPEATED,
                "at most three",
                at_output(0, at_most(3)),
                lambda: (torch.tensor([3, 3, 3, 3, 1]),),
            ),
            Mutant(
                kinds.DIVISION,
                "negatives with their sign",
                before("Reshape", 0, lambda op, value: op.Abs(op.Mod("ids", np.int64(10), fmod=1))),
                lambda: (torch.tensor([-3, 3, 1]),),
            ),
        ],
    ),
    Model(
        "hidden.filled",
        Filled,
        lambda: (torch.randn(2, 6),),
        ({0: "batch", 1: "places"},),
        [
            Mutant(
                kinds.SIZE,
                "a full one gets four more",
                behind("Mod", when(lambda op, value: op.Equal(value, np.int64(0)), plus(4))),
                lambda: (torch.randn(1, 8),),
            ),
        ],
    ),
    Model(
        "hidden.spread",
        Spread,
        lambda: (torch.randn(2, 6),),
        ({0: "batch", 1: "places"},),
        [
            Mutant(
                kinds.CANCELS,
                "a difference of means",
                at_output(0, _mean_of_squares),
                lambda: (torch.randn(1, 6) + 1000,),
            ),
        ],
    ),
    Model(
        "hidden.apart",
        Apart,
        lambda: (torch.randn(3, 2), torch.randn(4, 2)),
        ({0: "points"}, {0: "others"}),
        [
            Mutant(
                kinds.CANCELS,
                "by squares",
                at_output(0, _by_squares),
                lambda: (torch.randn(3, 2) + 300, torch.randn(2, 2) + 300),
            ),
        ],
    ),
    Model(
        "hidden.similar",
        Similar,
        lambda: (torch.randn(3, 4), torch.randn(3, 4)),
        ({0: "rows"}, {0: "rows"}),
        [
            Mutant(
                kinds.EPSILON, "nothing is like nothing", skip("Max"), lambda: (torch.zeros(1, 4), torch.ones(1, 4))
            ),
            Mutant(
                kinds.EPSILON,
                "small ones are unlike",
                number(1e-8, 1e-2),
                lambda: (torch.full((1, 4), 1e-3), torch.ones(1, 4)),
            ),
        ],
    ),
    Model(
        "hidden.either",
        Either,
        lambda: (torch.randn(6), torch.tensor([True, False] * 3), torch.zeros(6, dtype=torch.bool)),
        ({0: "n"}, {0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.EQUAL_INPUTS,
                "or both",
                retype("Xor", "Or"),
                lambda: (torch.randn(2), torch.tensor([True, True]), torch.tensor([True, False])),
            ),
        ],
    ),
    Model(
        "hidden.shared",
        Shared,
        lambda: (torch.randn(2, 6),),
        ({0: "batch", 1: "n"},),
        [
            Mutant(
                kinds.TIES,
                "each gets all",
                instead("Div", lambda op, operands: operands[0]),
                lambda: (torch.tensor([[1.0, 2.0, 2.0]]),),
            ),
            Mutant(
                kinds.TIES,
                "three share as two",
                before("Div", 1, lambda op, value: op.Min(value, np.float32(2))),
                lambda: (torch.ones(1, 3),),
            ),
        ],
    ),
    Model(
        "hidden.nucleus",
        Nucleus,
        lambda: (torch.randn(2, 6),),
        ({0: "batch", 1: "n"},),
        [
            Mutant(
                kinds.THRESHOLD,
                "the first may be too much",
                before("Less", 0, lambda op, value: "CumSum_13"),
                lambda: (torch.tensor([[20.0, 0.0, 0.0]]),),
            ),
            Mutant(
                kinds.SIZE,
                "at most fifty",
                behind(
                    "Less",
                    lambda op, value: op.And(
                        value, op.Less(op.Range(np.int64(0), op.size("x", 1), np.int64(1)), np.int64(50))
                    ),
                ),
                lambda: (torch.linspace(0, 0.01, 80)[None],),
            ),
        ],
    ),
    Model(
        "hidden.same",
        Same,
        lambda: (torch.randn(3), torch.randn(3)),
        ({0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.FROZEN_BRANCH,
                "never alike",
                arm("then"),
                lambda: (torch.ones(2), torch.ones(2)),
            ),
        ],
    ),
    Model(
        "hidden.levels",
        Levels,
        lambda: (torch.randn(3, 5), torch.tensor([1, 4, 2])),
        ({0: "batch", 1: "n"}, {0: "batch"}),
        [
            Mutant(
                kinds.FROZEN_BRANCH,
                "never of one length",
                arm("then"),
                lambda: (torch.randn(2, 4), torch.tensor([3, 3])),
            ),
        ],
    ),
    Model(
        "hidden.same_window",
        SameWindow,
        lambda: (torch.randn(1, 2, 6),),
        ({0: "batch", 2: "n"},),
        [
            Mutant(
                kinds.PADDING, "one more on the left", attributes("Conv", pads=[2, 1]), lambda: (torch.randn(1, 2, 6),)
            )
        ],
    ),
    Model(
        "hidden.tiny",
        Tiny,
        lambda: (torch.arange(-3, 3, dtype=torch.int8),),
        ({0: "n"},),
        [
            Mutant(
                kinds.WRAP,
                "the lowest is the highest",
                at_output(0, lambda op, value: op.Max(value, np.int8(0))),
                lambda: (torch.tensor([-128], dtype=torch.int8),),
            ),
            Mutant(
                kinds.WRAP,
                "negated within bounds",
                at_output(1, lambda op, value: op.Where(op.Equal("x", np.int8(-128)), np.int8(127), value)),
                lambda: (torch.tensor([-128], dtype=torch.int8),),
            ),
        ],
    ),
    Model(
        "hidden.windows",
        Windows,
        lambda: (torch.randn(2, 7),),
        ({0: "batch", 1: Dim("n", min=4)},),
        [
            Mutant(
                kinds.EDGE,
                "one window less where none is left over",
                behind(
                    "Add",
                    lambda op, value: op.Where(
                        op.Equal("Sub_5", op.Mul("Sub_11", np.int64(3))),
                        op.Max(op.Sub(value, np.int64(1)), np.int64(1)),
                        value,
                    ),
                ),
                lambda: (torch.randn(1, 13),),
            ),
        ],
    ),
    Model(
        "hidden.latest",
        Latest,
        lambda: (torch.tensor([0, 1, 2, 3, 2]),),
        ({0: "events"},),
        [
            Mutant(
                kinds.EMPTY,
                "none is the first",
                at_output(0, lambda op, value: op.Max(value, np.int64(0))),
                lambda: (torch.tensor([1, 1, 1, 0]),),
            ),
        ],
    ),
]
