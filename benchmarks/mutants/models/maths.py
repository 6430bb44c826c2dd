"""Activations, logarithms, quadrants, infinities and NaN."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    FLOAT,
    HALF,
    at_input,
    at_least,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    instead,
    number,
    plus,
    relu,
    rows_above,
    through,
    when,
)


class Gelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Softplus(nn.Module):
    """Scales that are positive."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return F.softplus(x), F.silu(x)


class LogSumExp(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.logsumexp(-1), F.log_softmax(x, -1)


class Polar(nn.Module):
    """Length and angle."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sqrt(x * x + y * y), torch.atan2(y, x)


class Ratio(nn.Module):
    """Division that may give infinity, as the caller expects."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        quotient = a / b
        return quotient, torch.isinf(quotient)


class Reciprocal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 1.0 / x


class Double(nn.Module):
    """Geodesy: coordinates in double precision."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sin(x) * 6_378_137.0, x.floor()


class NanMean(nn.Module):
    """Missing values are NaN."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        missing = x.isnan()
        filled = torch.where(missing, torch.zeros_like(x), x)
        return filled.sum(1) / (~missing).sum(1), missing.sum(1)


class Logs(nn.Module):
    """Decibels, not below -80."""

    def forward(self, power: Tensor) -> Tensor:
        decibels = 10 * torch.log10(power.clamp(min=1e-10))
        return torch.maximum(decibels, decibels.amax() - 80)


class Powers(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x**3, torch.pow(x.abs() + 0.1, y)


class Focal(nn.Module):
    """A loss, with probabilities kept away from 0 and 1."""

    def forward(self, p: Tensor, target: Tensor) -> Tensor:
        p = p.clamp(1e-4, 1 - 1e-4)
        chosen = torch.where(target == 1, p, 1 - p)
        return (-((1 - chosen) ** 2) * chosen.log()).mean()


class Wave(nn.Module):
    """Phases wrapped into one turn."""

    def forward(self, phase: Tensor) -> Tensor:
        return torch.remainder(phase + math.pi, 2 * math.pi) - math.pi


class Signs(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sign(x), torch.sqrt(x.abs()) * torch.sign(x)


def row(*values: float) -> Tensor:
    return torch.tensor([list(values)])


def no_shift(edit: Edit) -> None:
    """log(sum(exp(x))) as it stands: it overflows."""
    edit.output(0, lambda op, value: op.Log(op.ReduceSum(op.Exp("x"), np.asarray([-1]), keepdims=0)))


def above_zero(edit: Edit) -> None:
    """`target > 0` for `target == 1`."""
    same = edit.node("Equal")
    edit.instead(same, lambda op, operands: op.Greater(operands[0], np.int64(0)))


def with_sign(edit: Edit) -> None:
    """The remainder of C, not of Python."""

    def remainder(op: Builder, value: Value) -> Value:
        moved = op.Add("phase", np.float32(math.pi))
        return op.Sub(op.Mod(moved, np.float32(2 * math.pi), fmod=1), np.float32(math.pi))

    edit.output(0, remainder)


MODELS = [
    Model(
        "maths.gelu",
        Gelu,
        lambda: (torch.randn(3, 4),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.APPROXIMATION,
                "by tanh",
                attributes("Gelu", approximate="tanh"),
                lambda: (torch.randn(30, 4) * 4,),
            ),
            Mutant(
                kinds.APPROXIMATION,
                "by sigmoid",
                instead(
                    "Gelu", lambda op, operands: op.Mul(operands[0], op.Sigmoid(op.Mul(operands[0], np.float32(1.702))))
                ),
                lambda: (torch.randn(30, 4) * 2,),
            ),
            Mutant(kinds.NEGATIVE, "no negative part", behind("Gelu", relu), lambda: (torch.randn(30, 4),)),
        ],
    ),
    Model(
        "maths.softplus",
        Softplus,
        lambda: (torch.randn(3, 4),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.OVERFLOW,
                "exp overflows",
                at_output(0, lambda op, v: op.Log(op.Add(op.Exp("x"), np.float32(1)))),
                lambda: (torch.full((1, 4), 100.0),),
            ),
            Mutant(
                kinds.BOUND,
                "straight from 5 on",
                at_output(0, lambda op, v: op.Where(op.Greater("x", np.float32(5)), "x", v)),
                lambda: (torch.full((1, 4), 5.5),),
            ),
            Mutant(
                kinds.BOUND,
                "zero below -6",
                at_output(1, lambda op, v: op.Where(op.Less("x", np.float32(-6)), np.float32(0), v)),
                lambda: (torch.full((1, 4), -6.5),),
            ),
        ],
    ),
    Model(
        "maths.log_sum_exp",
        LogSumExp,
        lambda: (torch.randn(3, 5),),
        ({0: "rows", 1: "classes"},),
        [
            Mutant(kinds.OVERFLOW, "without shift", no_shift, lambda: (torch.full((2, 5), 95.0),)),
            Mutant(kinds.BOUND, "logits end at 60", at_input(0, at_most(60)), lambda: (torch.full((2, 5), 75.0),)),
            Mutant(
                kinds.MASK_FILL, "logits from -60 on", at_input(0, at_least(-60)), lambda: (torch.full((2, 5), -75.0),)
            ),
            Mutant(
                kinds.AXIS, "over rows where square", attributes("LogSoftmax", axis=0), lambda: (torch.randn(5, 5),)
            ),
        ],
    ),
    Model(
        "maths.polar",
        Polar,
        lambda: (torch.randn(6), torch.randn(6)),
        ({0: "points"}, {0: "points"}),
        [
            Mutant(
                kinds.ZERO_SIGN,
                "the negative axis",
                at_output(
                    1,
                    lambda op, v: op.Where(
                        op.And(op.Equal("y", np.float32(0)), op.Less("x", np.float32(0))), np.float32(0), v
                    ),
                ),
                lambda: (torch.tensor([-1.0]), torch.tensor([0.0])),
            ),
            Mutant(
                kinds.ZERO_SIGN,
                "the vertical axis",
                at_output(1, lambda op, v: op.Where(op.Equal("x", np.float32(0)), np.float32(0), v)),
                lambda: (torch.tensor([0.0]), torch.tensor([2.0])),
            ),
            Mutant(
                kinds.ZERO_SIGN,
                "third quadrant",
                at_output(
                    1,
                    lambda op, v: op.Where(
                        op.And(op.Less("y", np.float32(0)), op.Less("x", np.float32(0))),
                        op.Add(v, np.float32(6.2831853)),
                        v,
                    ),
                ),
                lambda: (torch.tensor([-1.0]), torch.tensor([-2.0])),
            ),
            Mutant(
                kinds.OVERFLOW,
                "length above 1e4",
                at_output(0, at_most(1e4)),
                lambda: (torch.tensor([1e6]), torch.tensor([2.0])),
            ),
        ],
    ),
    Model(
        "maths.ratio",
        Ratio,
        lambda: (torch.randn(4), torch.rand(4) + 0.5),
        ({0: "values"}, {0: "values"}),
        [
            Mutant(
                kinds.INFINITY,
                "largest float",
                at_output(0, lambda op, v: op.Min(op.Max(v, np.float32(-3.4028235e38)), np.float32(3.4028235e38))),
                lambda: (torch.tensor([1.0]), torch.tensor([0.0])),
            ),
            Mutant(
                kinds.INFINITY,
                "divisor kept from zero",
                at_output(0, lambda op, v: op.Div("a", op.Where(op.Equal("b", np.float32(0)), np.float32(1e-12), "b"))),
                lambda: (torch.tensor([1.0, -1.0]), torch.tensor([0.0, 0.0])),
            ),
            Mutant(
                kinds.NAN,
                "zero by zero is zero",
                at_output(0, lambda op, v: op.Where(op.IsNaN(v), np.float32(0), v)),
                lambda: (torch.tensor([0.0]), torch.tensor([0.0])),
            ),
            Mutant(
                kinds.INFINITY,
                "only plus infinity is told",
                attributes("IsInf", detect_negative=0),
                lambda: (torch.tensor([-1.0]), torch.tensor([0.0])),
            ),
        ],
    ),
    Model(
        "maths.reciprocal",
        Reciprocal,
        lambda: (torch.rand(4) + 0.5,),
        ({0: "values"},),
        [
            Mutant(
                kinds.ZERO_SIGN,
                "minus zero is zero",
                at_input(0, lambda op, v: op.Add(v, np.float32(0))),
                lambda: (torch.tensor([-0.0, 1.0]),),
            ),
            Mutant(kinds.INFINITY, "at most 1e30", at_output(0, at_most(1e30)), lambda: (torch.tensor([0.0, 1.0]),)),
            Mutant(
                kinds.INFINITY,
                "at most the largest float",
                at_output(0, at_most(3.4028234663852886e38)),
                lambda: (torch.tensor([0.0, 1.0]),),
            ),
            Mutant(
                kinds.OVERFLOW,
                "subnormal is zero",
                at_input(0, lambda op, v: op.Where(op.Less(op.Abs(v), np.float32(1e-30)), op.Sub(v, v), v)),
                lambda: (torch.tensor([1e-35, 1.0]),),
            ),
        ],
    ),
    Model(
        "maths.double",
        Double,
        lambda: (torch.randn(3, 4, dtype=torch.float64),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.APPROXIMATION,
                "in float32",
                at_output(0, through(FLOAT)),
                lambda: (torch.randn(3, 4, dtype=torch.float64),),
            ),
            Mutant(
                kinds.APPROXIMATION,
                "rows from 40 on in float32",
                at_output(0, when(rows_above(40), through(FLOAT))),
                lambda: (torch.randn(50, 4, dtype=torch.float64),),
            ),
            Mutant(
                kinds.BEYOND_24,
                "steps through float32",
                at_output(1, through(FLOAT)),
                lambda: (torch.full((1, 4), 2.0**24 + 1, dtype=torch.float64),),
            ),
        ],
    ),
    Model(
        "maths.nan_mean",
        NanMean,
        lambda: (torch.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, 6.0]]),),
        ({0: "rows", 1: "values"},),
        [
            Mutant(
                kinds.NAN,
                "missing at the first place is not seen",
                behind(
                    "IsNaN",
                    lambda op, v: op.And(v, op.Greater(op.Range(np.int64(0), op.size(v, 1), np.int64(1)), np.int64(0))),
                ),
                lambda: (torch.tensor([[float("nan"), 2.0, 3.0]]),),
            ),
            Mutant(
                kinds.NAN,
                "all missing gives zero",
                at_output(0, lambda op, v: op.Where(op.IsNaN(v), np.float32(0), v)),
                lambda: (torch.full((1, 3), float("nan")),),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "divided by three",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Equal(op.ReduceSum(op.Cast(op.IsNaN("x"), to=7), np.asarray([1]), keepdims=0), np.int64(0)),
                        op.Div(op.ReduceSum("x", np.asarray([1]), keepdims=0), np.float32(3)),
                        v,
                    ),
                ),
                lambda: (torch.randn(2, 4),),
            ),
        ],
    ),
    Model(
        "maths.logs",
        Logs,
        lambda: (torch.rand(3, 4),),
        ({0: "frames"},),
        [
            Mutant(kinds.BOUND, "from 1e-9 on", number(1e-10, 1e-9), lambda: (torch.full((1, 4), 1e-12),)),
            Mutant(kinds.CONSTANT, "not below -79", number(80, 79), lambda: (torch.tensor([[1.0, 1e-9, 1e-3, 1e-8]]),)),
            Mutant(
                kinds.ROWS,
                "above 50 frames",
                at_output(0, when(rows_above(50), plus(0.1))),
                lambda: (torch.rand(60, 4),),
            ),
        ],
    ),
    Model(
        "maths.powers",
        Powers,
        lambda: (torch.rand(5), torch.rand(5)),
        ({0: "values"}, {0: "values"}),
        [
            Mutant(
                kinds.NEGATIVE,
                "cube of the magnitude",
                at_output(0, lambda op, v: op.Abs(v)),
                lambda: (torch.tensor([-2.0]), torch.tensor([1.0])),
            ),
            Mutant(
                kinds.FLAG, "negative exponents", at_input(1, relu), lambda: (torch.tensor([2.0]), torch.tensor([-1.0]))
            ),
            Mutant(
                kinds.APPROXIMATION,
                "exponent through half",
                at_input(1, through(HALF)),
                lambda: (torch.tensor([9.0]), torch.tensor([7.3331])),
            ),
        ],
    ),
    Model(
        "maths.focal",
        Focal,
        lambda: (torch.rand(3, 4), torch.ones(3, 4, dtype=torch.int64)),
        ({0: "rows"}, {0: "rows"}),
        [
            Mutant(
                kinds.FROZEN_VALUE,
                "all targets are one",
                before("Where", 0, lambda op, v: op.Or(v, op.Not(v))),
                lambda: (torch.rand(3, 4), torch.zeros(3, 4, dtype=torch.int64)),
            ),
            Mutant(
                kinds.THRESHOLD,
                "any target above zero is one",
                above_zero,
                lambda: (torch.rand(3, 4), torch.full((3, 4), 2)),
            ),
            Mutant(
                kinds.BOUND,
                "probabilities from 1e-3",
                number(1e-4, 1e-3),
                lambda: (torch.zeros(3, 4), torch.ones(3, 4, dtype=torch.int64)),
            ),
        ],
    ),
    Model(
        "maths.wave",
        Wave,
        lambda: (torch.rand(5) * 9,),
        ({0: "samples"},),
        [
            Mutant(kinds.DIVISION, "with the sign of the phase", with_sign, lambda: (torch.tensor([-5.0]),)),
            Mutant(
                kinds.APPROXIMATION,
                "a turn of 6.283",
                number(6.283185307179586, 6.283),
                lambda: (torch.tensor([100.0]),),
            ),
            Mutant(
                kinds.BOUND,
                "phases above 1000 as they are",
                at_output(0, lambda op, v: op.Where(op.Greater("phase", np.float32(1000)), "phase", v)),
                lambda: (torch.tensor([1001.0]),),
            ),
        ],
        others=(),  # torch.onnx writes the remainder as x - floor(x / y) * y, which is a whole turn off at 5 pi
    ),
    Model(
        "maths.signs",
        Signs,
        lambda: (torch.randn(5),),
        ({0: "values"},),
        [
            Mutant(
                kinds.THRESHOLD,
                "zero is positive",
                at_output(0, lambda op, v: op.Where(op.Equal(v, np.float32(0)), np.float32(1), v)),
                lambda: (torch.zeros(3),),
            ),
            Mutant(
                kinds.BOUND,
                "small ones are zero",
                at_output(1, lambda op, v: op.Where(op.Less(op.Abs("x"), np.float32(1e-4)), np.float32(0), v)),
                lambda: (torch.full((2,), 5e-5),),
            ),
            Mutant(
                kinds.NEGATIVE,
                "negative from -100 on",
                at_input(0, at_least(-100)),
                lambda: (torch.full((2,), -200.0),),
            ),
        ],
    ),
]
