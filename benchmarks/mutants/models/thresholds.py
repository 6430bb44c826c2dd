"""Rounding, thresholds, bounds, branches on values."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Edit
from benchmarks.mutants.mutations import (
    arm,
    at_most,
    at_output,
    before,
    behind,
    each_is,
    half_away,
    half_down,
    half_up,
    instead,
    number,
    plus,
    retype,
    rows_above,
    skip,
    truncated,
    when,
)


class Quantise(nn.Module):
    """Per-tensor quantisation to 8 bits, as training with quantisation does it."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = (x / 0.25).round().clamp(-128, 127)
        return q.to(torch.int8), q * 0.25


class RowQuantise(nn.Module):
    """Each row by its largest magnitude."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
        return (x / scale).round().to(torch.int32), scale


class Money(nn.Module):
    """Cents, and what is due with the tax rounded down."""

    def forward(self, price: Tensor) -> tuple[Tensor, Tensor]:
        return (price * 100).round(), (price * 1.25).floor()


class Bins(nn.Module):
    """Which of the boundaries a value has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.tensor([-1.0, 0.0, 0.5, 2.0, 10.0]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.bucketize(x, self.edges)


class Filter(nn.Module):
    """Boxes whose score is high enough."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        keep = scores > 0.5
        return boxes[keep], scores[keep]


class Clamped(nn.Module):
    """A gate with hard bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        gate = (self.fc(x) / 6 + 0.5).clamp(0, 1)
        return gate * x.clamp(-20, 20)


class Branches(nn.Module):
    """Which way depends on a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 25:
            return self.high(x)
        elif x.min() <= -4:
            return self.low(x) * 2
        return self.low(x)


class Brightness(nn.Module):
    """Pictures in 0..255 or 0..1: told apart by their largest value."""

    def forward(self, image: Tensor) -> Tensor:
        if image.max() > 1.0:
            image = image / 255
        return (image - 0.45) / 0.22


class Steps(nn.Module):
    """Heaviside with both sides written out."""

    def forward(self, x: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
        return (x >= level).float(), torch.where(x.abs() < 1, x * x, 2 * x.abs() - 1)


class Empty(nn.Module):
    """Nothing was detected: an answer of its own."""

    def forward(self, scores: Tensor) -> Tensor:
        hits = scores[scores > 0]
        if hits.numel() == 0:
            return torch.tensor([-1.0])
        return hits / hits.sum()


def rows(count: int, width: int = 4, scale: float = 1.0) -> tuple[Tensor]:
    return (torch.randn(count, width) * scale,)


def swap_comparison(edit: Edit) -> None:
    """Which side an edge belongs to."""
    turned = {"Greater": "GreaterOrEqual", "Less": "LessOrEqual", "GreaterOrEqual": "Greater", "LessOrEqual": "Less"}
    at = edit.node("GreaterOrEqual") if edit.nodes("GreaterOrEqual") else edit.node(*turned)
    at.node.op_type = turned[at.node.op_type]


MODELS = [
    Model(
        "thresholds.quantise",
        Quantise,
        lambda: rows(3),
        ({0: "rows"},),
        [
            Mutant(
                kinds.HALVES,
                "halves up",
                instead("Round", half_up),
                lambda: (torch.tensor([[0.125, 0.625, -0.125, 0.3]]),),
            ),
            Mutant(
                kinds.HALVES,
                "halves away from zero",
                instead("Round", half_away),
                lambda: (torch.tensor([[0.125, 0.625, -0.125, 0.3]]),),
            ),
            Mutant(
                kinds.HALVES,
                "halves down",
                instead("Round", half_down),
                lambda: (torch.tensor([[0.375, 0.625, -0.125, 0.3]]),),
            ),
            Mutant(kinds.BOUND, "from -127", number(-128, -127), lambda: (torch.full((1, 4), -90.0),)),
            Mutant(kinds.BOUND, "up to 126", number(127, 126), lambda: (torch.full((1, 4), 90.0),)),
            Mutant(kinds.CONSTANT, "scale 0.2501", number(0.25, 0.2501), lambda: rows(3, scale=9.0)),
        ],
    ),
    Model(
        "thresholds.row_quantise",
        RowQuantise,
        lambda: rows(3),
        ({0: "rows"},),
        [
            Mutant(
                kinds.HALVES, "halves up", instead("Round", half_up), lambda: (torch.tensor([[127.0, 0.5, 2.5, -0.5]]),)
            ),
            Mutant(
                kinds.NEGATIVE,
                "largest instead of largest magnitude",
                skip("Abs"),
                lambda: (torch.tensor([[-5.0, 1.0, 2.0, 0.0]]),),
            ),
            Mutant(kinds.CONSTANT, "smallest scale 1e-5", number(1e-8, 1e-3), lambda: (torch.full((2, 4), 1e-4),)),
            Mutant(
                kinds.BATCH,
                "scale of the first rows for those from 20 on",
                behind(
                    "Div",
                    lambda op, v: op.Where(
                        rows_above(20)(op, v),
                        op.Expand(op.Slice(v, np.asarray([0]), np.asarray([1]), np.asarray([0])), op.Shape(v)),
                        v,
                    ),
                ),
                lambda: rows(25),
            ),
        ],
    ),
    Model(
        "thresholds.money",
        Money,
        lambda: (torch.tensor([1.999, 3.5, 12.34]),),
        ({0: "prices"},),
        [
            Mutant(
                kinds.HALVES, "half a cent up", instead("Round", half_away), lambda: (torch.tensor([0.125, 0.375]),)
            ),
            Mutant(
                kinds.DIVISION, "refunds towards zero", instead("Floor", truncated), lambda: (torch.tensor([-1.5]),)
            ),
            Mutant(
                kinds.THRESHOLD,
                "whole sums one less",
                before("Floor", 0, when(lambda op, v: op.Equal(v, op.Floor(v)), plus(-0.5))),
                lambda: (torch.tensor([4.0]),),
            ),
            Mutant(kinds.BOUND, "prices above 1000", at_output(0, at_most(1e5)), lambda: (torch.tensor([1234.0]),)),
        ],
    ),
    Model(
        "thresholds.bins",
        Bins,
        lambda: (torch.randn(5),),
        ({0: "values"},),
        [
            Mutant(
                kinds.THRESHOLD,
                "edges belong to the other side",
                swap_comparison,
                lambda: (torch.tensor([0.5, 2.0, 10.0]),),
            ),
            Mutant(
                kinds.CONSTANT,
                "last edge",
                lambda edit: edit.change(
                    lambda a: a.size == 5 and a.dtype == np.float32, lambda a: np.where(a == 10, a + 1, a)
                ),
                lambda: (torch.tensor([10.5]),),
            ),
            Mutant(
                kinds.CONSTANT,
                "edge moved by 1e-3",
                lambda edit: edit.change(
                    lambda a: a.size == 5 and a.dtype == np.float32, lambda a: np.where(a == 2, a + 1e-3, a)
                ),
                lambda: (torch.tensor([2.0005]),),
            ),
        ],
    ),
    Model(
        "thresholds.filter",
        Filter,
        lambda: (torch.rand(5, 4), torch.rand(5)),
        ({0: "boxes"}, {0: "boxes"}),
        [
            Mutant(
                kinds.THRESHOLD,
                "0.5 is kept",
                retype("Greater", "GreaterOrEqual"),
                lambda: (torch.rand(3, 4), torch.tensor([0.5, 0.7, 0.1])),
            ),
            Mutant(
                kinds.CONSTANT, "0.505", number(0.5, 0.505), lambda: (torch.rand(3, 4), torch.tensor([0.502, 0.7, 0.1]))
            ),
            Mutant(
                kinds.ROWS,
                "boxes from 128 on are not kept",
                behind(
                    "Greater",
                    lambda op, v: op.And(v, op.Less(op.Range(np.int64(0), op.size(v, 0), np.int64(1)), np.int64(128))),
                ),
                lambda: (torch.rand(200, 4), torch.rand(200)),
            ),
            Mutant(
                kinds.EMPTY,
                "one is kept at least",
                behind(
                    "Greater",
                    lambda op, v: op.Or(
                        v,
                        op.And(
                            op.Equal(op.ReduceSum(op.Cast(v, to=7), keepdims=0), np.int64(0)),
                            op.Equal(op.Range(np.int64(0), op.size(v, 0), np.int64(1)), np.int64(0)),
                        ),
                    ),
                ),
                lambda: (torch.rand(3, 4), torch.zeros(3)),
            ),
        ],
    ),
    Model(
        "thresholds.clamped",
        Clamped,
        lambda: rows(3),
        ({0: "rows"},),
        [
            Mutant(kinds.BOUND, "up to 15", number(20, 15), lambda: rows(3, scale=40.0)),
            Mutant(kinds.BOUND, "from -19.9", number(-20, -19.9), lambda: rows(3, scale=40.0)),
        ],
    ),
    Model(
        "thresholds.branches",
        Branches,
        lambda: rows(2),
        ({0: "rows"},),
        [
            Mutant(kinds.FROZEN_BRANCH, "always the low way", arm("else"), lambda: (torch.full((3, 4), 9.0),)),
            Mutant(
                kinds.THRESHOLD,
                "25 goes the other way",
                retype("Greater", "GreaterOrEqual"),
                lambda: (torch.tensor([[20.0, 5.0, 0.0, 0.0]]),),
            ),
            Mutant(
                kinds.THRESHOLD,
                "-4 goes the other way",
                retype("LessOrEqual", "Less"),
                lambda: (torch.tensor([[-4.0, 5.0, 0.0, 0.0]]),),
            ),
            Mutant(kinds.CONSTANT, "from 25.5 on", number(25, 25.5), lambda: (torch.tensor([[20.25, 5.0, 0.0, 0.0]]),)),
        ],
    ),
    Model(
        "thresholds.brightness",
        Brightness,
        lambda: (torch.rand(3, 4, 4),),
        ({1: "height", 2: "width"},),
        [
            Mutant(kinds.FROZEN_BRANCH, "never divided", arm("else"), lambda: (torch.rand(3, 4, 4) * 255,)),
            Mutant(
                kinds.THRESHOLD, "white is divided", retype("Greater", "GreaterOrEqual"), lambda: (torch.ones(3, 2, 2),)
            ),
            Mutant(kinds.CONSTANT, "above 2", number(1, 2), lambda: (torch.full((3, 2, 2), 1.5),)),
        ],
    ),
    Model(
        "thresholds.steps",
        Steps,
        lambda: (torch.randn(3, 4), torch.randn(3, 4)),
        ({0: "rows"}, {0: "rows"}),
        [
            Mutant(
                kinds.EQUAL_INPUTS,
                "equal is below",
                retype("GreaterOrEqual", "Greater"),
                lambda: (torch.ones(1, 4), torch.ones(1, 4)),
            ),
            Mutant(
                kinds.CONSTANT, "knee at 1.1", number(1, 1.1, 0), lambda: (torch.full((1, 4), 1.05), torch.ones(1, 4))
            ),
            Mutant(
                kinds.THRESHOLD,
                "zero is not squared",
                at_output(1, when(each_is(0), plus(-1))),
                lambda: (torch.zeros(1, 4), torch.ones(1, 4)),
            ),
        ],
    ),
    Model(
        "thresholds.empty",
        Empty,
        lambda: (torch.randn(6),),
        ({0: "scores"},),
        [
            Mutant(kinds.EMPTY, "nothing gives nothing", arm("else"), lambda: (-torch.rand(4),)),
            Mutant(
                kinds.THRESHOLD,
                "zeros are hits",
                retype("Greater", "GreaterOrEqual"),
                lambda: (torch.tensor([0.0, 1.0]),),
            ),
            Mutant(kinds.CONSTANT, "-2 instead of -1", number(-1, -2), lambda: (-torch.rand(4),)),
        ],
    ),
]
