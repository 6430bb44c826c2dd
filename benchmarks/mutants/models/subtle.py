"""Files that are wrong where nobody looks: kinds that the other families do not have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Change, Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    FLOAT,
    INT8,
    INT32,
    UINT8,
    arm,
    at_input,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    instead,
    number,
    plus,
    retype,
    swap,
    through,
    weight,
    zeroed,
)


class Ring(nn.Module):
    """Neighbours on a ring, and an item that is counted from the end."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 0.5 * x.roll(1, -1) - 0.25 * x.roll(-2, -1), x[:, -3]


class Past(nn.Module):
    """Causal attention beside a cache: a query sees the whole past, and what came before it now."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        now, whole = q.shape[1], k.shape[1]
        at = torch.arange(now)[:, None] + (whole - now)
        seen = torch.arange(whole)[None, :] <= at
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v


class Twins(nn.Module):
    """Two layers of one shape, normed by what was counted in training."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        with torch.no_grad():
            self.norm.running_mean.copy_(torch.randn(6))  # type: ignore[union-attr]
            self.norm.running_var.copy_(torch.rand(6) + 0.5)  # type: ignore[union-attr]

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.one(x)) * torch.sigmoid(self.two(x))
        return self.norm(y)


class Cleaned(nn.Module):
    """What a division by zero leaves is replaced."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.nan_to_num(x / y, nan=0.5, posinf=10.0, neginf=-10.0)


class Wide(nn.Module):
    """Seconds since 1970 in float64, and a number of parts in int64."""

    def forward(self, time: Tensor, parts: Tensor) -> tuple[Tensor, Tensor]:
        return (time % 86400.0) / 3600.0, parts * 1000 + 7


class Pooled(nn.Module):
    """Averages that do not count the padding."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool1d(3, 2, padding=1, count_include_pad=False)
        self.up = nn.ConvTranspose1d(2, 2, 3, 2, padding=1, output_padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.pool(x))


class Between(nn.Module):
    """Bounds that are inputs: where they cross, the upper one holds."""

    def forward(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return torch.clamp(x, low, high)


class Shifts(nn.Module):
    """Bits and unsigned bytes."""

    def forward(self, x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x >> 2, torch.where(a > b, a - b, b - a), (a.to(torch.int16) + b.to(torch.int16)) // 2


class Padded(nn.Module):
    """A mean over the words that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 5, padding_idx=0)

    def forward(self, ids: Tensor) -> Tensor:
        mask = (ids != 0).unsqueeze(-1).float()
        total = (self.table(ids) * mask).sum(1)
        return total / mask.sum(1).clamp(min=1.0)


class Unknown(nn.Module):
    """Words beyond the table are one word; negative ones count from its end."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)

    def forward(self, ids: Tensor) -> Tensor:
        ids = torch.where(ids < 0, ids + 30, ids)
        ids = torch.where((ids >= 30) | (ids < 0), torch.full_like(ids, 29), ids)
        return self.table(ids)


class Gates(nn.Module):
    """Functions that have near relatives."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        f = nn.functional
        return (
            f.gelu(x),
            f.hardswish(x),
            f.softplus(x, beta=2.0, threshold=6.0),
            f.elu(x, alpha=0.7),
            f.softshrink(x, 0.3),
            f.mish(x),
        )


class Resampled(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        f = nn.functional
        wide = f.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return wide, f.interpolate(x, size=(5, 7), mode="nearest")


class Ranks(nn.Module):
    """Places of the sorted, equals in their order; and the lower of two middles."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        order = torch.sort(x, dim=-1, descending=True, stable=True)[1]
        return order, x.median(-1)[0]


class Stepping(nn.Module):
    """A state that goes in and comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        new = self.cell(x, state)
        return new.relu(), new * 0.9 + state * 0.1


class Bounded(nn.Module):
    """As many rounds as asked for, at most twelve."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        for _ in range(min(int(n), 12)):
            x = x * 0.75 + 1.0
        return x


class Sized(nn.Module):
    """Another formula for a short and for a long input."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 9:
            return x.mean(0)
        return x.sum(0)


class Grid(nn.Module):
    """Coordinates, rows first, below the diagonal."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows, columns = torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij")
        return (rows * 10 + columns).float() + x, torch.tril(x, -1)


class Signed(nn.Module):
    """Remainders by what is given."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.remainder(x, y), torch.div(x, y, rounding_mode="trunc")


class Spectrum(nn.Module):
    """A spectrum, shifted and turned."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        s = torch.fft.rfft(x, norm="ortho")
        return s.abs(), torch.fft.irfft(s.conj() * s, n=x.shape[-1], norm="ortho")


class Chosen(nn.Module):
    """The best few, and the value in the place of a missing one."""

    def forward(self, x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        masked = x.masked_fill(~keep, float("-inf"))
        best, at = masked.topk(3, -1)
        return torch.where(best == float("-inf"), torch.zeros_like(best), best), torch.where(keep.any(-1), at[:, 0], -1)


def _frozen(op_type: str, value: object, nth: int = 0) -> Change:
    return instead(op_type, lambda op, operands: op.constant(np.asarray(value)), nth)


def _twins_swapped(edit: Edit) -> None:
    """Two layers of one shape change places."""
    one, two = edit.node("Gemm"), edit.node("Gemm", nth=1)
    for operand in (1, 2):
        one.node.input[operand], two.node.input[operand] = two.node.input[operand], one.node.input[operand]


def _last_of_equals(op: Builder, operands: Sequence[Value]) -> Value:
    """Equals in the reverse order: sorted from the other end, and turned round."""
    size = op.size(operands[0], 1)
    axis = np.asarray([1])
    turned = op.Slice(operands[0], np.asarray([-1]), np.asarray([-(2**31)]), axis, np.asarray([-1]))
    places = op.TopK(turned, operands[1], axis=1, largest=1, outputs=2)[1]
    return op.Sub(op.Sub(size, np.int64(1)), places)


def _rank_mutant(edit: Edit) -> None:
    at = edit.node("TopK")
    values, name = list(at.node.input), at.node.output[1]
    index = at.index
    at.graph.node[index].output[1] = edit.fresh("raw")
    op = Builder(edit, at.graph, index + 1)
    op.named(name, "Identity", _last_of_equals(op, values))


def _frozen_mask(edit: Edit) -> None:
    """The example has no padding."""
    edit.behind(edit.node("Cast"), lambda op, value: op.Add(op.Mul(value, np.float32(0)), np.float32(1)))


def _gates_exchanged(edit: Edit) -> None:
    one, two = edit.node("Sigmoid"), edit.node("Sigmoid", nth=1)
    one.node.input[0], two.node.input[0] = two.node.input[0], one.node.input[0]
    # the second sum is made before the first gate reads it
    for add in (edit.node("Add", nth=1),):
        made = add.graph.node[add.index]
        copy = type(made)()
        copy.CopyFrom(made)
        del add.graph.node[add.index]
        add.graph.node.insert(one.index, copy)


def bytes_of(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.uint8)


MODELS = [
    Model(
        "subtle.ring",
        Ring,
        lambda: (torch.randn(2, 6),),
        ({0: "rows", 1: "places"},),
        [
            Mutant(
                kinds.EDGE,
                "turned the other way",
                before("Sub", 1, lambda op, value: op.constant(np.int64(-1))),
                lambda: (torch.randn(1, 5),),
            ),
            Mutant(
                kinds.EDGE,
                "does not wrap",
                instead("Mod", lambda op, operands: op.Max(operands[0], np.int64(0))),
                lambda: (torch.randn(1, 5),),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "third from the end is the fourth",
                before("Gather", 1, lambda op, value: op.constant(np.int64(3)), nth=2),
                lambda: (torch.randn(1, 9),),
            ),
        ],
    ),
    Model(
        "subtle.past",
        Past,
        lambda: (torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)),
        (
            {0: "batch", 1: "now"},
            {0: "batch", 1: "whole"},
            {0: "batch", 1: "whole"},
        ),
        [
            Mutant(
                kinds.FROZEN_SIZE,
                "past of two",
                _frozen("Sub", np.asarray([2]), 0),
                lambda: (torch.randn(1, 3, 4), torch.randn(1, 9, 4), torch.randn(1, 9, 4)),
            ),
            Mutant(
                kinds.EDGE,
                "sees one too many",
                behind("Add", plus(1)),
                lambda: (torch.randn(1, 3, 4), torch.randn(1, 4, 4), torch.randn(1, 4, 4)),
            ),
            Mutant(
                kinds.EDGE,
                "the past is cut at 20",
                behind("Sub", at_most(20)),
                lambda: (torch.randn(1, 3, 4), torch.randn(1, 40, 4), torch.randn(1, 40, 4)),
            ),
            Mutant(
                kinds.SIZE,
                "without a past nothing is hidden",
                behind("LessOrEqual", lambda op, value: op.Or(value, op.Equal("Squeeze_11", np.int64(0)))),
                lambda: (torch.randn(1, 4, 4), torch.randn(1, 4, 4), torch.randn(1, 4, 4)),
            ),
        ],
    ),
    Model(
        "subtle.twins",
        Twins,
        lambda: (torch.randn(3, 6),),
        ({0: "rows"},),
        [
            Mutant(kinds.SWAP, "layers exchanged", _twins_swapped, lambda: (torch.randn(1, 6),)),
            Mutant(
                kinds.WEIGHT, "a square weight turned", weight((6, 6), lambda a: a.T, 1), lambda: (torch.randn(1, 6),)
            ),
            Mutant(
                kinds.SWAP,
                "mean and variance exchanged",
                swap("BatchNormalization", one=3, other=4),
                lambda: (torch.randn(1, 6),),
            ),
            Mutant(
                kinds.WEIGHT,
                "statistics of the first step",
                weight((6,), np.zeros_like, 4),
                lambda: (torch.randn(1, 6),),
            ),
            Mutant(
                kinds.EPSILON,
                "epsilon 1e-3",
                attributes("BatchNormalization", epsilon=1e-3),
                lambda: (torch.randn(1, 6),),
            ),
        ],
    ),
    Model(
        "subtle.cleaned",
        Cleaned,
        lambda: (torch.randn(3, 4), torch.randn(3, 4)),
        ({0: "rows"}, {0: "rows"}),
        [
            Mutant(
                kinds.NAN,
                "nothing by nothing is nothing",
                number(0.5, 0.0),
                lambda: (torch.zeros(1, 4), torch.zeros(1, 4)),
            ),
            Mutant(
                kinds.INFINITY,
                "the largest number",
                number(10.0, 3.4028234e38),
                lambda: (torch.ones(1, 4), torch.zeros(1, 4)),
            ),
            Mutant(
                kinds.INFINITY,
                "either sign is positive",
                number(-10.0, 10.0),
                lambda: (-torch.ones(1, 4), torch.zeros(1, 4)),
            ),
        ],
    ),
    Model(
        "subtle.wide",
        Wide,
        lambda: (torch.rand(4, dtype=torch.float64) * 1e5, torch.arange(4)),
        ({0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.BEYOND_24,
                "time through float32",
                at_input(0, through(FLOAT)),
                lambda: (torch.tensor([1.7e9 + 0.25], dtype=torch.float64), torch.tensor([1])),
            ),
            Mutant(
                kinds.BEYOND_32,
                "parts through int32",
                at_input(1, through(INT32)),
                lambda: (torch.ones(1, dtype=torch.float64), torch.tensor([2**40 + 5])),
            ),
            Mutant(
                kinds.WRAP,
                "product through int32",
                behind("Mul", through(INT32)),
                lambda: (torch.ones(1, dtype=torch.float64), torch.tensor([3_000_000])),
            ),
            Mutant(
                kinds.DIVISION,
                "before 1970 too early",
                retype("Xor", "And"),
                lambda: (torch.tensor([-5.0], dtype=torch.float64), torch.tensor([1])),
            ),
        ],
    ),
    Model(
        "subtle.pooled",
        Pooled,
        lambda: (torch.randn(1, 2, 8),),
        ({0: "batch", 2: "n"},),
        [
            Mutant(
                kinds.PADDING,
                "the padding counts",
                attributes("AveragePool", count_include_pad=1),
                lambda: (torch.randn(1, 2, 8),),
            ),
            Mutant(
                kinds.PADDING,
                "padded on one side",
                attributes("AveragePool", pads=[0, 2]),
                lambda: (torch.randn(1, 2, 8),),
            ),
            Mutant(
                kinds.EDGE,
                "nothing is added at the end",
                attributes("AveragePool", pads=[1, 0]),
                lambda: (torch.randn(1, 2, 7),),
            ),
            Mutant(
                kinds.PADDING,
                "the other side is longer",
                attributes("ConvTranspose", pads=[0, 1], output_padding=[0]),
                lambda: (torch.randn(1, 2, 8),),
            ),
        ],
    ),
    Model(
        "subtle.between",
        Between,
        lambda: (torch.randn(3, 4), -torch.rand(3, 4), torch.rand(3, 4)),
        ({0: "n"}, {0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.ORDER,
                "the lower bound holds where they cross",
                instead("Min", lambda op, operands: op.Max(op.Min("x", operands[1]), "low")),
                lambda: (torch.randn(1, 4), torch.full((1, 4), 2.0), torch.full((1, 4), -2.0)),
            ),
        ],
    ),
    Model(
        "subtle.shifts",
        Shifts,
        lambda: (torch.arange(5) * 9, bytes_of(1, 50, 99, 3, 7), bytes_of(20, 4, 99, 0, 8)),
        ({0: "n"}, {0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.DIVISION,
                "negatives towards zero",
                at_output(0, lambda op, value: op.Div("x", np.int64(4))),
                lambda: (torch.tensor([-5]), bytes_of(1), bytes_of(2)),
            ),
            Mutant(
                kinds.WRAP,
                "bytes compared with a sign",
                instead("Greater", lambda op, ab: op.Greater(*(op.Cast(each, to=INT8) for each in ab))),
                lambda: (torch.tensor([1]), bytes_of(200), bytes_of(20)),
            ),
            Mutant(
                kinds.WRAP,
                "their sum in a byte",
                behind("Add", through(UINT8)),
                lambda: (torch.tensor([1]), bytes_of(200), bytes_of(100)),
            ),
        ],
    ),
    Model(
        "subtle.padded",
        Padded,
        lambda: (torch.randint(1, 40, (2, 6)),),
        ({0: "batch", 1: "words"},),
        [
            Mutant(kinds.FROZEN_VALUE, "no word is padding", _frozen_mask, lambda: (torch.tensor([[3, 0, 0]]),)),
            Mutant(
                kinds.EMPTY,
                "nothing but padding gives NaN",
                number(1.0, 0.0),
                lambda: (torch.zeros(1, 3, dtype=torch.int64),),
            ),
            Mutant(
                kinds.SCALE,
                "divided by all words",
                instead("Max", lambda op, operands: op.Cast(op.size("ids", 1), to=FLOAT)),
                lambda: (torch.tensor([[3, 0, 0]]),),
            ),
        ],
    ),
    Model(
        "subtle.unknown",
        Unknown,
        lambda: (torch.randint(0, 30, (2, 6)),),
        ({0: "batch", 1: "words"},),
        [
            Mutant(kinds.INDEX, "negatives are the first", behind("Add", zeroed), lambda: (torch.tensor([[-3, 2]]),)),
            Mutant(
                kinds.INDEX,
                "30 is the first",
                before(
                    "Gather", 1, lambda op, value: op.Where(op.Equal("ids", np.int64(30)), op.Sub(value, value), value)
                ),
                lambda: (torch.tensor([[30, 2]]),),
            ),
            Mutant(
                kinds.INDEX,
                "far below is the first",
                before("Gather", 1, lambda op, value: op.Where("Less_7", op.Sub(value, value), value)),
                lambda: (torch.tensor([[-50, 2]]),),
            ),
            Mutant(
                kinds.BEYOND_32, "through int32", at_input(0, through(INT32)), lambda: (torch.tensor([[2**32 + 1, 2]]),)
            ),
        ],
    ),
    Model(
        "subtle.gates",
        Gates,
        lambda: (torch.randn(3, 4),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.APPROXIMATION,
                "gelu by tanh",
                attributes("Gelu", approximate="tanh"),
                lambda: (torch.randn(8, 4),),
            ),
            Mutant(
                kinds.BOUND,
                "hardswish to 4",
                instead("HardSwish", lambda op, x: op.Mul(x[0], op.HardSigmoid(x[0], alpha=0.125, beta=0.5))),
                lambda: (torch.randn(8, 4),),
            ),
            Mutant(kinds.THRESHOLD, "softplus straight from 3", number(6.0, 3.0), lambda: (torch.full((1, 4), 2.0),)),
            Mutant(kinds.CONSTANT, "elu of 1", attributes("Elu", alpha=1.0), lambda: (-torch.ones(1, 4),)),
            Mutant(kinds.NEGATIVE, "shrinks upwards only", behind("Min", zeroed), lambda: (-torch.ones(1, 4),)),
            Mutant(
                kinds.APPROXIMATION,
                "mish is swish",
                before("Mul", 1, lambda op, value: op.Sigmoid("x"), nth=-1),
                lambda: (torch.randn(8, 4),),
            ),
        ],
    ),
    Model(
        "subtle.resampled",
        Resampled,
        lambda: (torch.randn(1, 2, 4, 4),),
        ({0: "batch", 2: "height", 3: "width"},),
        [
            Mutant(
                kinds.RESIZE,
                "corners aligned",
                attributes("Resize", coordinate_transformation_mode="align_corners"),
                lambda: (torch.randn(1, 2, 4, 4),),
            ),
            Mutant(
                kinds.RESIZE,
                "asymmetric",
                attributes("Resize", coordinate_transformation_mode="asymmetric"),
                lambda: (torch.randn(1, 2, 4, 4),),
            ),
            Mutant(
                kinds.HALVES, "the nearest is rounded", retype("Floor", "Round"), lambda: (torch.randn(1, 2, 4, 4),)
            ),
            Mutant(
                kinds.AXIS,
                "height for width",
                lambda edit: edit.before(edit.node("Div", nth=1), lambda op, value: op.Cast(op.size("x", 2), to=FLOAT)),
                lambda: (torch.randn(1, 2, 4, 9),),
            ),
        ],
    ),
    Model(
        "subtle.ranks",
        Ranks,
        lambda: (torch.randn(2, 5),),
        ({0: "rows", 1: "n"},),
        [
            Mutant(kinds.TIES, "equals in reverse", _rank_mutant, lambda: (torch.ones(1, 4),)),
            Mutant(kinds.SIZE, "the upper middle", before("Div", 0, plus(1)), lambda: (torch.randn(1, 6),)),
        ],
    ),
    Model(
        "subtle.stepping",
        Stepping,
        lambda: (torch.randn(2, 3), torch.zeros(2, 4)),
        ({0: "rows"}, {0: "rows"}),
        [
            Mutant(
                kinds.OUTPUTS,
                "a dead state",
                at_output(1, lambda op, value: op.Mul("Mul_22", np.float32(1.0))),
                lambda: (torch.randn(1, 3), torch.ones(1, 4)),
            ),
            Mutant(
                kinds.FROZEN_VALUE,
                "the state begins at zero",
                before("Gemm", 0, zeroed, nth=1),
                lambda: (torch.randn(1, 3), torch.ones(1, 4)),
            ),
            Mutant(kinds.SWAP, "gates exchanged", _gates_exchanged, lambda: (torch.randn(1, 3), torch.ones(1, 4))),
        ],
    ),
    Model(
        "subtle.bounded",
        Bounded,
        lambda: (torch.randn(3), torch.tensor(4)),
        ({0: "n"}, None),
        [
            Mutant(kinds.ROUNDS, "eleven at most", number(12, 11), lambda: (torch.randn(2), torch.tensor(12))),
            Mutant(kinds.ROUNDS, "thirteen at most", number(12, 13), lambda: (torch.randn(2), torch.tensor(20))),
            Mutant(
                kinds.NEGATIVE, "less than none is one", number(0, 1, 0), lambda: (torch.randn(2), torch.tensor(-3))
            ),
        ],
    ),
    Model(
        "subtle.sized",
        Sized,
        lambda: (torch.randn(4, 3),),
        ({0: "n"},),
        [
            Mutant(kinds.THRESHOLD, "nine is long", retype("Greater", "GreaterOrEqual"), lambda: (torch.randn(9, 3),)),
            Mutant(kinds.CONSTANT, "ten is short", number(9, 10), lambda: (torch.randn(10, 3),)),
            Mutant(kinds.FROZEN_BRANCH, "always short", arm("else"), lambda: (torch.randn(12, 3),)),
        ],
    ),
    Model(
        "subtle.grid",
        Grid,
        lambda: (torch.randn(3, 3),),
        ({0: "height", 1: "width"},),
        [
            Mutant(
                kinds.EDGE,
                "the diagonal, where it is tall",
                before(
                    "Trilu", 1, lambda op, value: op.Where(op.Greater("Squeeze_4", "Squeeze_8"), np.int64(0), value)
                ),
                lambda: (torch.randn(5, 3),),
            ),
            Mutant(
                kinds.AXIS,
                "columns first where it is wide",
                at_output(
                    0,
                    lambda op, value: op.Where(
                        op.Less("Squeeze_4", "Squeeze_8"), op.Add(value, np.float32(1.0)), value
                    ),
                ),
                lambda: (torch.randn(3, 5),),
            ),
        ],
    ),
    Model(
        "subtle.signed",
        Signed,
        lambda: (torch.rand(3, 4) + 1, torch.rand(3, 4) + 1),
        ({0: "n"}, {0: "n"}),
        [
            Mutant(
                kinds.DIVISION,
                "with the sign of the first",
                lambda edit: edit.instead(edit.node("Where"), lambda op, each: each[2]),
                lambda: (-torch.ones(1, 4) * 1.5, torch.ones(1, 4)),
            ),
            Mutant(
                kinds.DIVISION,
                "down instead of to zero",
                at_output(1, lambda op, value: op.Floor("Div_11")),
                lambda: (-torch.ones(1, 4) * 1.5, torch.ones(1, 4)),
            ),
        ],
    ),
    Model(
        "subtle.spectrum",
        Spectrum,
        lambda: (torch.randn(2, 8),),
        ({0: "n"},),
        [
            Mutant(kinds.SCALE, "scaled once", number(2.8284270763397217, 1.0), lambda: (torch.randn(1, 8),)),
            Mutant(
                kinds.SWAP,
                "not conjugated",
                lambda edit: edit.change(
                    lambda a: a.shape == (2,) and a.dtype == np.float32 and float(a[1]) == -1.0, lambda a: abs(a), 0
                ),
                lambda: (torch.randn(1, 8),),
            ),
        ],
    ),
    Model(
        "subtle.chosen",
        Chosen,
        lambda: (torch.randn(2, 6), torch.ones(2, 6, dtype=torch.bool)),
        ({0: "batch", 1: "n"}, {0: "batch", 1: "n"}),
        [
            Mutant(
                kinds.HIDDEN_ROW,
                "missing ones stay",
                instead("Equal", lambda op, operands: op.Not(op.Equal(operands[0], operands[0]))),
                lambda: (torch.randn(1, 6), torch.tensor([[True, True, False, False, False, False]])),
            ),
            Mutant(
                kinds.HIDDEN_ROW,
                "no choice is the first",
                number(-1, 0),
                lambda: (torch.randn(1, 4), torch.zeros(1, 4, dtype=torch.bool)),
            ),
            Mutant(
                kinds.FROZEN_VALUE,
                "all are kept",
                before("Where", 0, lambda op, value: op.And(value, op.Not(value))),
                lambda: (torch.randn(1, 6), torch.tensor([[True, True, True, True, False, False]])),
            ),
        ],
    ),
]
