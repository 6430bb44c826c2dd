"""Normalisations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    at_least,
    at_output,
    attributes,
    before,
    behind,
    elements_above,
    entry,
    number,
    place_from,
    rows_above,
    size_divides,
    size_is,
    size_power_of_two,
    times,
    when,
)


class RootMeanSquare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Layer(nn.Module):
    """A plain LayerNorm between two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(5, 5), nn.LayerNorm(5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.norm(self.a(x)))


class Standardise(nn.Module):
    """Each series by its own mean and deviation."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)


class OverBatch(nn.Module):
    """By the mean and deviation over all rows."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()


class Unit(nn.Module):
    """Vectors of length one, and their similarities."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        a = torch.nn.functional.normalize(a, dim=-1)
        b = torch.nn.functional.normalize(b, dim=-1)
        return a @ b.transpose(0, 1)


class Groups(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm1d(4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.norm(x), self.instance(x)


class MinMax(nn.Module):
    """Into 0..1, each row by its own ends."""

    def forward(self, x: Tensor) -> Tensor:
        low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
        return (x - low) / (high - low).clamp(min=1e-6)


class Share(nn.Module):
    """Each value's share of its row; a row without anything is spread evenly."""

    def forward(self, x: Tensor) -> Tensor:
        total = x.sum(1, keepdim=True)
        return torch.where(total == 0, torch.ones_like(x) / x.shape[1], x / total)


def outside_the_root(edit: Edit) -> None:
    """x / (sqrt(v) + eps) instead of x / sqrt(v + eps)."""
    root = edit.node("Sqrt")
    added = edit.producer(root.node.input[0])
    plain, epsilon = added.node.input[0], added.node.input[1]
    edit.before(root, lambda op, value: plain)
    edit.behind(edit.node("Sqrt"), lambda op, value: op.Add(value, epsilon))


def mean_of_first(edit: Edit, count: int = 5) -> None:
    """The mean is that of the first rows."""

    def mean(op: Builder, value: Value) -> Value:
        first = op.Slice("x", np.asarray([0]), np.asarray([count]), np.asarray([0]))
        return op.ReduceMean(first, np.asarray([0]), keepdims=0)

    edit.before(edit.node("Sub"), mean, 1)


def turned_where_square(op: Builder, value: Value) -> Value:
    square = op.Equal(op.size(value, 0), op.size(value, 1))
    return op.Where(square, op.Reshape(op.Transpose(value, perm=[1, 0]), op.Shape(value)), value)


MODELS = [
    Model(
        "norms.rms",
        RootMeanSquare,
        lambda: (torch.randn(3, 6),),
        ({0: "rows"},),
        [
            Mutant(kinds.EPSILON, "epsilon 1e-3", number(1e-6, 1e-3), lambda: (torch.randn(3, 6) * 0.01,)),
            Mutant(kinds.EPSILON, "epsilon 1e-5", number(1e-6, 1e-5), lambda: (torch.randn(3, 6) * 0.001,)),
            Mutant(kinds.EPSILON, "no epsilon", number(1e-6, 0), lambda: (torch.zeros(3, 6),)),
            Mutant(
                kinds.OVERFLOW,
                "squares end at 65504",
                behind("ReduceMean", lambda op, v: op.Min(v, np.float32(65504))),
                lambda: (torch.randn(3, 6) * 1000,),
            ),
            Mutant(kinds.WEIGHT, "last weight", entry((6,), 5, 1.0), lambda: (torch.randn(3, 6),)),
        ],
    ),
    Model(
        "norms.layer",
        Layer,
        lambda: (torch.randn(4, 5, 5),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(
                kinds.AXIS,
                "over rows where square",
                before(
                    "LayerNormalization",
                    0,
                    lambda op, v: op.Where(
                        op.Equal(op.size(v, 1), op.size(v, 2)),
                        op.Reshape(op.Transpose(v, perm=[0, 2, 1]), op.Shape(v)),
                        v,
                    ),
                ),
                lambda: (torch.randn(1, 5, 5),),
            ),
            Mutant(
                kinds.WEIGHT,
                "square weight turned",
                lambda edit: edit.change(lambda a: a.shape == (5, 5), np.transpose, 0),
                lambda: (torch.randn(1, 3, 5),),
            ),
            Mutant(
                kinds.SIZE,
                "lengths 16, 32, 64",
                at_output(0, when(size_power_of_two(16, 1), times(0.9))),
                lambda: (torch.randn(1, 16, 5),),
            ),
            Mutant(
                kinds.EPSILON,
                "epsilon 1e-3",
                attributes("LayerNormalization", epsilon=1e-3),
                lambda: (torch.zeros(1, 2, 5),),
            ),
        ],
    ),
    Model(
        "norms.standardise",
        Standardise,
        lambda: (torch.randn(3, 6),),
        ({0: "rows", 1: "time"},),
        [
            Mutant(
                kinds.VARIANCE,
                "biased",
                at_output(
                    0,
                    lambda op, v: op.Mul(
                        v,
                        op.Sqrt(
                            op.Div(
                                op.Cast(op.size(v, 1), to=1),
                                op.Cast(op.Max(op.Sub(op.size(v, 1), np.int64(1)), np.int64(1)), to=1),
                            )
                        ),
                    ),
                ),
                lambda: (torch.randn(3, 6),),
            ),
            Mutant(
                kinds.NAN,
                "one value is no NaN",
                at_output(0, lambda op, v: op.Where(size_is(1, 1)(op, v), np.float32(0), v)),
                lambda: (torch.randn(3, 1),),
            ),
            Mutant(kinds.EPSILON, "epsilon 1e-3", number(1e-5, 1e-3), lambda: (torch.randn(3, 6) * 1e-3,)),
            Mutant(
                kinds.VARIANCE,
                "biased above 100",
                at_output(0, lambda op, v: op.Where(rows_above(100, 1)(op, v), op.Mul(v, np.float32(1.004)), v)),
                lambda: (torch.randn(3, 110),),
            ),
        ],
    ),
    Model(
        "norms.over_batch",
        OverBatch,
        lambda: (torch.randn(5, 3),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.VARIANCE,
                "unbiased",
                at_output(
                    0,
                    lambda op, v: op.Mul(
                        v,
                        op.Sqrt(
                            op.Div(
                                op.Cast(op.Max(op.Sub(op.size(v, 0), np.int64(1)), np.int64(1)), to=1),
                                op.Cast(op.size(v, 0), to=1),
                            )
                        ),
                    ),
                ),
                lambda: (torch.randn(5, 3),),
            ),
            Mutant(kinds.EPSILON, "outside the root", outside_the_root, lambda: (torch.randn(5, 3) * 1e-3,)),
            Mutant(kinds.FROZEN_SIZE, "five rows", mean_of_first, lambda: (torch.randn(9, 3),)),
            Mutant(
                kinds.ROWS,
                "mean of the first 333 rows",
                lambda edit: mean_of_first(edit, 333),
                lambda: (torch.randn(400, 3),),
            ),
        ],
    ),
    Model(
        "norms.unit",
        Unit,
        lambda: (torch.randn(3, 4), torch.randn(3, 4)),
        ({0: "m"}, {0: "n"}),
        [
            Mutant(
                kinds.AXIS,
                "turned over where square",
                at_output(0, turned_where_square),
                lambda: (torch.randn(4, 4), torch.randn(4, 4)),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "wrong where a row is itself",
                at_output(0, lambda op, v: op.Where(op.Greater(v, np.float32(0.99999)), np.float32(0), v)),
                lambda: (torch.ones(2, 4), torch.ones(2, 4)),
            ),
            Mutant(kinds.NAN, "zero vectors give NaN", number(1e-12, 0), lambda: (torch.zeros(2, 4), torch.ones(2, 4))),
            Mutant(
                kinds.ELEMENTS,
                "above 10,000 pairs",
                at_output(0, when(elements_above(10_000), times(0.99))),
                lambda: (torch.randn(120, 4), torch.randn(90, 4)),
            ),
        ],
    ),
    Model(
        "norms.groups",
        Groups,
        lambda: (torch.randn(2, 4, 5),),
        ({0: "batch", 2: "length"},),
        [
            Mutant(
                kinds.SIZE,
                "17 places",
                at_output(0, when(size_is(17, 2), times(1.05))),
                lambda: (torch.randn(2, 4, 17),),
            ),
            Mutant(
                kinds.BATCH,
                "second row by the first",
                at_output(1, lambda op, v: op.Where(place_from(1, -3)(op, v), op.Mul(v, np.float32(1.001)), v)),
                lambda: (torch.randn(3, 4, 5),),
            ),
            Mutant(
                kinds.SIZE,
                "odd lengths",
                at_output(1, when(size_divides(2, 1, 2), times(1.01))),
                lambda: (torch.randn(2, 4, 7),),
            ),
        ],
    ),
    Model(
        "norms.min_max",
        MinMax,
        lambda: (torch.randn(3, 5),),
        ({0: "rows", 1: "values"},),
        [
            Mutant(
                kinds.BELOW,
                "high starts from -1",
                behind("ReduceMax", at_least(-1)),
                lambda: (torch.tensor([[-9.0, -4.0, -5.0]]),),
            ),
            Mutant(
                kinds.BELOW,
                "low starts from 0",
                behind("ReduceMin", lambda op, v: op.Min(v, np.float32(0))),
                lambda: (torch.tensor([[9.0, 4.0, 5.0]]),),
            ),
            Mutant(kinds.TIES, "a level row gives NaN", number(1e-6, 0), lambda: (torch.ones(2, 4),)),
        ],
    ),
    Model(
        "norms.share",
        Share,
        lambda: (torch.rand(3, 4),),
        ({0: "rows", 1: "values"},),
        [
            Mutant(
                kinds.THRESHOLD,
                "empty rows give NaN",
                at_output(0, lambda op, v: op.Div("x", op.ReduceSum("x", np.asarray([1]), keepdims=1))),
                lambda: (torch.zeros(2, 4),),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "a quarter for each",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Equal(op.ReduceSum("x", np.asarray([1]), keepdims=1), np.float32(0)), np.float32(0.25), v
                    ),
                ),
                lambda: (torch.zeros(2, 5),),
            ),
            Mutant(
                kinds.THRESHOLD,
                "tiny rows count as empty",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Less(op.Abs(op.ReduceSum("x", np.asarray([1]), keepdims=1)), np.float32(1e-6)),
                        op.Div(np.float32(1), op.Cast(op.size(v, 1), to=1)),
                        v,
                    ),
                ),
                lambda: (torch.tensor([[1e-9, 3e-9]]),),
            ),
        ],
    ),
]
