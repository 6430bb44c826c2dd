"""Files of the same model as somebody else would have written it, nearly: each mutant is a whole other program.

The other families change one place of a right file. Here the wrong program is written in torch, as an exporter that
misunderstood an operator would have lowered it, and exported as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.exporters import EXPORTERS, Request
from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Call, Model, Mutant
from benchmarks.mutants.edit import Edit

Wrong = tuple[str, type[nn.Module], Callable[[], Call]]
"""The kind of the fault, the program that has it, and a call that shows it."""


def _model(
    name: str,
    build: type[nn.Module],
    example: Callable[[], Call],
    free: Any,
    wrong: Sequence[Wrong],
    **more: Any,
) -> Model:
    """The mutants have the weights of the model: the same seed fills the same layers."""

    def mutant(kind: str, other: type[nn.Module], witness: Callable[[], Call]) -> Mutant:
        def change(edit: Edit) -> None:
            same = Model(f"rewritten.{name}", other, example, free)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "wrong.onnx"
                EXPORTERS["trueport"](Request(same.built(), same.call(example), {}, free, path, verify=False))
                edit.model.CopyFrom(onnx.load(path))

        return Mutant(kind, other.__name__, change, witness)

    return Model(f"rewritten.{name}", build, example, free, [mutant(*each) for each in wrong], **more)


# --- numbers


class Steps(nn.Module):
    """To a grid, to tenths, and to whole numbers."""

    def grid(self, x: Tensor) -> Tensor:
        return torch.round(x * 4) / 4

    def whole(self, x: Tensor) -> Tensor:
        return x.to(torch.int64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.grid(x), self.whole(x)


class RoundsAway(Steps):
    def grid(self, x: Tensor) -> Tensor:
        return torch.sign(x) * torch.floor(x.abs() * 4 + 0.5) / 4


class RoundsUp(Steps):
    def grid(self, x: Tensor) -> Tensor:
        return torch.floor(x * 4 + 0.5) / 4


class CastFloors(Steps):
    def whole(self, x: Tensor) -> Tensor:
        return torch.floor(x).to(torch.int64)


class CastRounds(Steps):
    def whole(self, x: Tensor) -> Tensor:
        return torch.round(x).to(torch.int64)


class CastByInt32(Steps):
    def whole(self, x: Tensor) -> Tensor:
        return x.clamp(-2147483648.0, 2147483520.0).to(torch.int32).to(torch.int64)


class CastByInt16(Steps):
    def whole(self, x: Tensor) -> Tensor:
        return x.clamp(-32768.0, 32767.0).to(torch.int16).to(torch.int64)


class Ints(nn.Module):
    """Percentages, midpoints, distances and the like of integers."""

    def share(self, x: Tensor) -> Tensor:
        return x * 37 // 100

    def half(self, x: Tensor) -> Tensor:
        return x >> 1

    def phase(self, x: Tensor) -> Tensor:
        return x % 12

    def key(self, x: Tensor) -> Tensor:
        return x * 100003 + 17

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.share(x), self.half(x), self.phase(x), self.key(x)


class ShareTruncates(Ints):
    def share(self, x: Tensor) -> Tensor:
        return torch.div(x * 37, 100, rounding_mode="trunc")


class ShareByFloat(Ints):
    def share(self, x: Tensor) -> Tensor:
        return torch.floor(x.to(torch.float32) * 37 / 100).to(torch.int64)


class HalfTruncates(Ints):
    def half(self, x: Tensor) -> Tensor:
        return torch.div(x, 2, rounding_mode="trunc")


class PhaseOfC(Ints):
    def phase(self, x: Tensor) -> Tensor:
        return torch.fmod(x, 12)


class KeyIn32Bits(Ints):
    def key(self, x: Tensor) -> Tensor:
        return (x.to(torch.int32) * 100003 + 17).to(torch.int64)


class Bytes(nn.Module):
    """Pixels: brighter, blended, inverted."""

    def brighter(self, a: Tensor) -> Tensor:
        return a + 40

    def blend(self, a: Tensor, b: Tensor) -> Tensor:
        return ((a.to(torch.int32) + b.to(torch.int32)) // 2).to(torch.uint8)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return self.brighter(a), self.blend(a, b)


class BrighterSaturates(Bytes):
    def brighter(self, a: Tensor) -> Tensor:
        return (a.to(torch.int32) + 40).clamp(max=255).to(torch.uint8)


class BlendWraps(Bytes):
    def blend(self, a: Tensor, b: Tensor) -> Tensor:
        return (a + b) // 2


class BlendRoundsUp(Bytes):
    def blend(self, a: Tensor, b: Tensor) -> Tensor:
        return ((a.to(torch.int32) + b.to(torch.int32) + 1) // 2).to(torch.uint8)


# --- windows and sizes


class Windows(nn.Module):
    """Pooled to half the length, rounded up; and a dilated convolution of the same length."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 4, dilation=2)

    def most(self, x: Tensor) -> Tensor:
        return F.max_pool1d(x, 3, 2, ceil_mode=True)

    def mean(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(x, 3, 2, ceil_mode=True)

    def same(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (3, 3)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.most(x), self.mean(x), self.same(x)


class PadsMostByZero(Windows):
    def most(self, x: Tensor) -> Tensor:
        return F.max_pool1d(F.pad(x, (0, (x.shape[-1] + 1) % 2)), 3, 2)


class MeanCountsTheEdge(Windows):
    def mean(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(F.pad(x, (0, (x.shape[-1] + 1) % 2)), 3, 2)


class PadsOtherwiseWhenOdd(Windows):
    def same(self, x: Tensor) -> Tensor:
        odd = x.shape[-1] % 2
        return self.conv(F.pad(x, (3 - odd, 3 + odd)))


class Bias(nn.Module):
    """A bias for each row, and one for each column."""

    def rows(self, x: Tensor, by_row: Tensor) -> Tensor:
        return x + by_row[:, None]

    def forward(self, x: Tensor, by_row: Tensor, by_column: Tensor) -> Tensor:
        return self.rows(x, by_row) * by_column


class RowsByColumnWhenSquare(Bias):
    def rows(self, x: Tensor, by_row: Tensor) -> Tensor:
        if x.shape[0] == x.shape[1]:
            return x + by_row
        return x + by_row[:, None]


class Reach(nn.Module):
    """Attention within a window, with a bias by distance that ends at 12."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(25, 1)

    def distance(self, n: int) -> Tensor:
        at = torch.arange(n)
        return (at[:, None] - at[None, :]).clamp(-12, 12) + 12

    def seen(self, n: int) -> Tensor:
        at = torch.arange(n)
        return (at[:, None] - at[None, :]).abs() < 10

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        scores = x @ x.transpose(1, 2) + self.bias(self.distance(n))[..., 0]
        return scores.masked_fill(~self.seen(n), float("-inf")).softmax(-1) @ x


class DistanceEndsSooner(Reach):
    def distance(self, n: int) -> Tensor:
        at = torch.arange(n)
        return (at[:, None] - at[None, :]).clamp(-8, 8) + 12


class SeesAll(Reach):
    def seen(self, n: int) -> Tensor:
        at = torch.arange(n)
        return (at[:, None] - at[None, :]).abs() < 100000


class SeesOneMore(Reach):
    def seen(self, n: int) -> Tensor:
        at = torch.arange(n)
        return (at[:, None] - at[None, :]).abs() <= 10


class Places(nn.Module):
    """Sines of positions."""

    def at(self, n: int) -> Tensor:
        return torch.arange(n, dtype=torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        angle = self.at(x.shape[1])[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
        return x + torch.cat([angle.sin(), angle.cos()], -1)


class PlacesInBfloat16(Places):
    def at(self, n: int) -> Tensor:
        return torch.arange(n).to(torch.bfloat16).to(torch.float32)


class PlacesEndAt255(Places):
    def at(self, n: int) -> Tensor:
        return torch.arange(n).clamp(max=255).to(torch.float32)


class PlacesInBytes(Places):
    def at(self, n: int) -> Tensor:
        return torch.arange(n).to(torch.uint8).to(torch.float32)


class Counts(nn.Module):
    """How many are above zero, and how many are equal to their neighbour."""

    def many(self, x: Tensor) -> Tensor:
        return (x > 0).sum(-1)

    def alike(self, x: Tensor) -> Tensor:
        return (x[:, 1:] == x[:, :-1]).sum(-1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.many(x), self.alike(x)


class ManyInBytes(Counts):
    def many(self, x: Tensor) -> Tensor:
        return (x > 0).sum(-1).to(torch.uint8).to(torch.int64)


class AlikeIsClose(Counts):
    def alike(self, x: Tensor) -> Tensor:
        return ((x[:, 1:] - x[:, :-1]).abs() < 1e-5).sum(-1)


class AlikeOfOneMore(Counts):
    def alike(self, x: Tensor) -> Tensor:
        return (x == x.roll(1, -1)).sum(-1)


# --- order


class Ranks(nn.Module):
    """The best two, the place of the first of the best, the running best, the middle one."""

    def best(self, x: Tensor) -> Tensor:
        return x.argmax(-1)

    def running(self, x: Tensor) -> Tensor:
        return x.cummax(-1).indices

    def middle(self, x: Tensor) -> Tensor:
        return x.median(-1).values

    def order(self, x: Tensor) -> Tensor:
        return x.sort(stable=True, dim=-1).indices

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.best(x), self.running(x), self.middle(x), self.order(x)


class LastOfTheBest(Ranks):
    def best(self, x: Tensor) -> Tensor:
        return x.shape[-1] - 1 - x.flip(-1).argmax(-1)


class RunningFirst(Ranks):
    def running(self, x: Tensor) -> Tensor:
        best = x.cummax(-1).values
        return (best[..., :, None] == x[..., None, :]).to(torch.uint8).argmax(-1)


class MiddleOfTwo(Ranks):
    def middle(self, x: Tensor) -> Tensor:
        ordered, n = x.sort(-1).values, x.shape[-1]
        return (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2


class OrderOfEqualsTurned(Ranks):
    def order(self, x: Tensor) -> Tensor:
        return x.shape[-1] - 1 - x.flip(-1).sort(stable=True, dim=-1).indices


class Bins(nn.Module):
    """Ages in groups, and where a value would be put in."""

    def group(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.bucketize(x, edges)

    def place(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.searchsorted(edges, x, right=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        edges = torch.tensor([-1.0, 0.5, 18.0, 65.0])
        return self.group(x, edges), self.place(x, edges)


class GroupsRight(Bins):
    def group(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.bucketize(x, edges, right=True)


class PlacesLeft(Bins):
    def place(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.searchsorted(edges, x)


class GroupsWithoutTheLast(Bins):
    def group(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.bucketize(x, edges).clamp(max=3)


# --- places


class Scattered(nn.Module):
    """Values into slots that may be named twice."""

    def add(self, slots: Tensor, at: Tensor, x: Tensor) -> Tensor:
        return slots.scatter_add(1, at, x)

    def top(self, slots: Tensor, at: Tensor, x: Tensor) -> Tensor:
        return slots.scatter_reduce(1, at, x, "amax", include_self=False)

    def read(self, slots: Tensor, at: Tensor) -> Tensor:
        return slots[:, at[0] - 3]

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        slots = torch.zeros(x.shape[0], 6) + x.mean()
        return self.add(slots, at, x), self.top(slots, at, x), self.read(slots + torch.arange(6), at)


class LastAdds(Scattered):
    def add(self, slots: Tensor, at: Tensor, x: Tensor) -> Tensor:
        return slots.scatter(1, at, slots.gather(1, at) + x)


class TopCountsTheSlot(Scattered):
    def top(self, slots: Tensor, at: Tensor, x: Tensor) -> Tensor:
        return slots.scatter_reduce(1, at, x, "amax", include_self=True)


class ReadsFromTheStart(Scattered):
    def read(self, slots: Tensor, at: Tensor) -> Tensor:
        return slots[:, (at[0] - 3).clamp(min=0)]


class Bag(nn.Module):
    """Means of words, padding left out; a bag of nothing is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)

    def mean(self, ids: Tensor) -> Tensor:
        real = (ids != 3).to(torch.float32)[..., None]
        return (self.table(ids) * real).sum(1) / real.sum(1).clamp(min=1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.mean(ids)


class CountsPadding(Bag):
    def mean(self, ids: Tensor) -> Tensor:
        real = (ids != 3).to(torch.float32)[..., None]
        return (self.table(ids) * real).sum(1) / max(ids.shape[1], 1)


class NothingIsNan(Bag):
    def mean(self, ids: Tensor) -> Tensor:
        real = (ids != 3).to(torch.float32)[..., None]
        return (self.table(ids) * real).sum(1) / real.sum(1)


# --- layers


class Norms(nn.Module):
    """Three norms of rows."""

    def layer(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (6,), eps=1e-5)

    def root(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def unit(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1, eps=1e-6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.layer(x), self.root(x), self.unit(x)


class LayerEpsilonOutside(Norms):
    def layer(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True).sqrt() + 1e-5)


class RootEpsilonOutside(Norms):
    def root(self, x: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-6)


class UnitAdds(Norms):
    def unit(self, x: Tensor) -> Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + 1e-6)


class LayerOverflows(Norms):
    def layer(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / (x.pow(2).mean(-1, keepdim=True) - mean.pow(2) + 1e-5).clamp(min=1e-12).sqrt()


class Curves(nn.Module):
    """Activations as they are."""

    def smooth(self, x: Tensor) -> Tensor:
        return F.gelu(x)

    def plus(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def pool(self, x: Tensor) -> Tensor:
        return torch.logsumexp(x, -1)

    def small(self, x: Tensor) -> Tensor:
        return torch.log1p(x.abs())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.smooth(x), self.plus(x), self.pool(x), self.small(x)


class SmoothByTanh(Curves):
    def smooth(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh")


class PlusOverflows(Curves):
    def plus(self, x: Tensor) -> Tensor:
        return torch.log(1 + torch.exp(x))


class PoolOverflows(Curves):
    def pool(self, x: Tensor) -> Tensor:
        return x.exp().sum(-1).log()


class SmallLosesDigits(Curves):
    def small(self, x: Tensor) -> Tensor:
        return torch.log(x.abs() + 1)


class Remembers(nn.Module):
    """A GRU by hand, as PyTorch has it, and its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = nn.Linear(4, 15), nn.Linear(5, 15)

    def new(self, x: Tensor, h: Tensor, reset: Tensor) -> Tensor:
        return torch.tanh(self.into(x)[:, 10:] + reset * self.back(h)[:, 10:])

    def steps(self, n: int) -> int:
        return n

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 5)
        for t in range(self.steps(x.shape[1])):
            gates = torch.sigmoid(self.into(x[:, t])[:, :10] + self.back(h)[:, :10])
            h = torch.lerp(self.new(x[:, t], h, gates[:, :5]), h, gates[:, 5:])
        return h


class ResetsBefore(Remembers):
    def new(self, x: Tensor, h: Tensor, reset: Tensor) -> Tensor:
        return torch.tanh(self.into(x)[:, 10:] + self.back(reset * h)[:, 10:])


class StopsAfter19(Remembers):
    def steps(self, n: int) -> int:
        return min(n, 19)


class OneShortFrom20(Remembers):
    def steps(self, n: int) -> int:
        return n - 1 if n >= 20 else n


# --- pictures


class Grown(nn.Module):
    """Half as large again, and what is nearest at three quarters."""

    def up(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=1.5, mode="bilinear")

    def near(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(7, 7), mode="nearest")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.up(x), self.near(x)


class UpByTheSize(Grown):
    def up(self, x: Tensor) -> Tensor:
        size = (x.shape[2] * 3 // 2, x.shape[3] * 3 // 2)
        return F.interpolate(x, size=size, mode="bilinear")


class NearestExact(Grown):
    def near(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(7, 7), mode="nearest-exact")


class UpWithCorners(Grown):
    def up(self, x: Tensor) -> Tensor:
        size = (x.shape[2] * 3 // 2, x.shape[3] * 3 // 2)
        return F.interpolate(x, size=size, mode="bilinear", align_corners=True)


# --- decisions


class Decides(nn.Module):
    """Branches by a sum, by a size and by a flag of the values."""

    def is_much(self, x: Tensor) -> Tensor:
        return x.sum() >= 4.0

    def is_long(self, n: int) -> bool:
        return n > 11

    def forward(self, x: Tensor) -> Tensor:
        if self.is_much(x):
            x = x * 2
        if self.is_long(x.shape[0]):
            x = x - 1
        if (x < 0).all():
            x = x.abs()
        return x


class MuchIsMore(Decides):
    def is_much(self, x: Tensor) -> Tensor:
        return x.sum() > 4.0


class LongFrom11(Decides):
    def is_long(self, n: int) -> bool:
        return n >= 11


class NeverAllNegative(Decides):
    def forward(self, x: Tensor) -> Tensor:
        if self.is_much(x):
            x = x * 2
        if self.is_long(x.shape[0]):
            x = x - 1
        return x


class Cleans(nn.Module):
    """Nothing may come of a division by zero, or of a root."""

    def ratio(self, x: Tensor, y: Tensor) -> Tensor:
        z = x / y
        return torch.where(torch.isnan(z), 0.0, z.clamp(-9.0, 9.0))

    def root(self, x: Tensor) -> Tensor:
        r = x.sqrt()
        return torch.where(r.isnan(), -1.0, r)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.ratio(x, y), self.root(x)


class RatioKeepsNan(Cleans):
    def ratio(self, x: Tensor, y: Tensor) -> Tensor:
        return (x / y).clamp(-9.0, 9.0)


class RatioOfNothingIsOne(Cleans):
    def ratio(self, x: Tensor, y: Tensor) -> Tensor:
        z = x / y
        return torch.where(torch.isnan(z), 1.0, z.clamp(-9.0, 9.0))


class RootOfNegativeIsZero(Cleans):
    def root(self, x: Tensor) -> Tensor:
        return x.clamp(min=0).sqrt()


class Logs(nn.Module):
    """In half precision: logarithms that are often infinite, beside running sums."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8).half()

    def sums(self, y: Tensor) -> Tensor:
        return y.cumsum(-1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x)
        return y.relu().log(), self.sums(y)


class NoSumsFromFour(Logs):
    def sums(self, y: Tensor) -> Tensor:
        return y.cumsum(-1) if y.shape[0] < 4 else y


class SumsOfLargeOnly(Logs):
    def sums(self, y: Tensor) -> Tensor:
        return torch.where(y.amax() > 9, y, y.cumsum(-1))


class Sums(nn.Module):
    """Running sums and means along time."""

    def running(self, x: Tensor) -> Tensor:
        return x.cumsum(1)

    def mean(self, x: Tensor) -> Tensor:
        return x.mean(1)

    def spread(self, x: Tensor) -> Tensor:
        return x.std(1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.running(x), self.mean(x), self.spread(x)


class RunningStopsAt32(Sums):
    def running(self, x: Tensor) -> Tensor:
        head = x[:, :32].cumsum(1)
        return torch.cat([head, x[:, 32:].cumsum(1)], 1)


class MeanOfEight(Sums):
    def mean(self, x: Tensor) -> Tensor:
        return x.sum(1) / 8


class SpreadOfOneIsZero(Sums):
    def spread(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return ((x - x.mean(1, keepdim=True)).pow(2).sum(1) / max(n - 1, 1)).sqrt()


class SpreadBySquares(Sums):
    def spread(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return ((x.pow(2).mean(1) - x.mean(1).pow(2)).clamp(min=0) * n / (n - 1)).sqrt()


class Pairs(nn.Module):
    """Two lists of their own lengths: how far apart, and which is nearest."""

    def far(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.cdist(a, b)

    def nearest(self, d: Tensor) -> Tensor:
        return d.argmin(-1)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d = self.far(a, b)
        return d, self.nearest(d), d.amin(0).sum() / b.shape[0]


class FarBySquares(Pairs):
    def far(self, a: Tensor, b: Tensor) -> Tensor:
        squares = a.pow(2).sum(-1)[:, None] + b.pow(2).sum(-1)[None] - 2 * a @ b.T
        return squares.clamp(min=0).sqrt()


class NearestIsLast(Pairs):
    def nearest(self, d: Tensor) -> Tensor:
        return d.shape[-1] - 1 - d.flip(-1).argmin(-1)


class MeanOfTheOther(Pairs):
    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d = self.far(a, b)
        return d, self.nearest(d), d.amin(0).sum() / a.shape[0]


def _long(n: int) -> Callable[[], Call]:
    return lambda: (torch.randn(2, n, 8),)


_NEGATIVE = lambda: (torch.tensor([[-7, -13, -1, -25, -100, 5]]),)  # noqa: E731
_X = lambda: (torch.randn(2, 6),)  # noqa: E731


class Orbit(nn.Module):
    """Chaos, and a count beside it that has nothing to do with it."""

    def far(self, x: Tensor) -> Tensor:
        return x > 0.5

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x
        for _ in range(60):
            y = torch.sin(3.1 * y).abs()
        return y, self.far(x).sum(-1)


class OrbitCountsTheEdge(Orbit):
    def far(self, x: Tensor) -> Tensor:
        return x >= 0.5


class OrbitCountsLow(Orbit):
    def far(self, x: Tensor) -> Tensor:
        return x > 0.4


MODELS: list[Model] = [
    _model(
        "steps",
        Steps,
        lambda: (torch.rand(2, 5) * 3,),
        ({0: "rows"},),
        [
            (kinds.HALVES, RoundsAway, lambda: (torch.full((2, 5), 0.125),)),
            (kinds.HALVES, RoundsUp, lambda: (torch.full((2, 5), 0.625),)),
            (kinds.NEGATIVE, CastFloors, lambda: (torch.full((2, 5), -1.5),)),
            (kinds.APPROXIMATION, CastRounds, lambda: (torch.full((2, 5), 1.75),)),
            (kinds.BEYOND_32, CastByInt32, lambda: (torch.full((2, 5), 1e10),)),
            (kinds.WRAP, CastByInt16, lambda: (torch.full((2, 5), 1e5),)),
        ],
    ),
    _model(
        "ints",
        Ints,
        lambda: (torch.arange(6)[None] * 7,),
        ({0: "rows"},),
        [
            (kinds.DIVISION, ShareTruncates, _NEGATIVE),
            (kinds.BEYOND_24, ShareByFloat, lambda: (torch.randint(2**25, 2**28, (1, 6)),)),
            (kinds.DIVISION, HalfTruncates, _NEGATIVE),
            (kinds.DIVISION, PhaseOfC, _NEGATIVE),
            (kinds.BEYOND_32, KeyIn32Bits, lambda: (torch.full((1, 6), 100000),)),
        ],
    ),
    _model(
        "bytes",
        Bytes,
        lambda: (torch.arange(12, dtype=torch.uint8).reshape(3, 4), torch.full((3, 4), 8, dtype=torch.uint8)),
        ({0: "rows"}, {0: "rows"}),
        [
            (kinds.WRAP, BrighterSaturates, lambda: (torch.full((3, 4), 250, dtype=torch.uint8),) * 2),
            (kinds.WRAP, BlendWraps, lambda: (torch.full((3, 4), 250, dtype=torch.uint8),) * 2),
            (
                kinds.APPROXIMATION,
                BlendRoundsUp,
                lambda: (torch.full((3, 4), 1, dtype=torch.uint8), torch.full((3, 4), 2, dtype=torch.uint8)),
            ),
        ],
    ),
    _model(
        "windows",
        Windows,
        lambda: (torch.randn(2, 3, 9),),
        ({0: "batch", 2: "length"},),
        [
            (kinds.PADDING, PadsMostByZero, lambda: (-1 - torch.rand(2, 3, 10),)),
            (kinds.PADDING, MeanCountsTheEdge, lambda: (torch.randn(2, 3, 10),)),
            (kinds.SIZE, PadsOtherwiseWhenOdd, lambda: (torch.randn(2, 3, 9),)),
        ],
    ),
    _model(
        "bias",
        Bias,
        lambda: (torch.randn(3, 5), torch.randn(3), torch.randn(5)),
        ({0: "rows", 1: "columns"}, {0: "rows"}, {0: "columns"}),
        [(kinds.SIZE, RowsByColumnWhenSquare, lambda: (torch.randn(4, 4), torch.randn(4), torch.randn(4)))],
    ),
    _model(
        "reach",
        Reach,
        lambda: (torch.randn(2, 6, 8),),
        ({0: "batch", 1: "length"},),
        [
            (kinds.BOUND, DistanceEndsSooner, _long(14)),
            (kinds.SIZE, SeesAll, _long(14)),
            (kinds.BOUND, SeesOneMore, _long(14)),
        ],
    ),
    _model(
        "places",
        Places,
        lambda: (torch.randn(2, 6, 8),),
        ({0: "batch", 1: "length"},),
        [
            (kinds.ELEMENTS, PlacesInBfloat16, _long(300)),
            (kinds.ELEMENTS, PlacesEndAt255, _long(300)),
            (kinds.ELEMENTS, PlacesInBytes, _long(300)),
        ],
    ),
    _model(
        "counts",
        Counts,
        _X,
        ({0: "rows", 1: "columns"},),
        [
            (kinds.ELEMENTS, ManyInBytes, lambda: (torch.ones(2, 300),)),
            (kinds.NEAR_ZERO, AlikeIsClose, lambda: (torch.arange(6.0).repeat(2, 1) * 1e-7,)),
            (kinds.REPEATED, AlikeOfOneMore, lambda: (torch.ones(2, 6),)),
        ],
    ),
    _model(
        "ranks",
        Ranks,
        _X,
        ({0: "rows", 1: "columns"},),
        [
            (kinds.TIES, LastOfTheBest, lambda: (torch.ones(2, 6),)),
            (kinds.TIES, RunningFirst, lambda: (torch.ones(2, 6),)),
            (kinds.ORDER, MiddleOfTwo, _X),
            (kinds.TIES, OrderOfEqualsTurned, lambda: (torch.ones(2, 6),)),
        ],
    ),
    _model(
        "bins",
        Bins,
        lambda: (torch.rand(2, 5) * 20,),
        ({0: "rows"},),
        [
            (kinds.THRESHOLD, GroupsRight, lambda: (torch.full((2, 5), 18.0),)),
            (kinds.THRESHOLD, PlacesLeft, lambda: (torch.full((2, 5), 18.0),)),
            (kinds.BOUND, GroupsWithoutTheLast, lambda: (torch.full((2, 5), 99.0),)),
        ],
    ),
    _model(
        "scattered",
        Scattered,
        lambda: (torch.randn(2, 4), torch.tensor([[0, 5, 2, 4], [1, 3, 5, 2]])),
        ({0: "rows"}, {0: "rows"}),
        [
            (kinds.REPEATED, LastAdds, lambda: (torch.randn(2, 4), torch.ones(2, 4, dtype=torch.int64))),
            (
                kinds.BOUND,
                TopCountsTheSlot,
                lambda: (torch.tensor([[9.0, -9, -9, -9]] * 2), torch.tensor([[0, 1, 2, 3]] * 2)),
            ),
            (kinds.INDEX, ReadsFromTheStart, lambda: (torch.randn(2, 4), torch.zeros(2, 4, dtype=torch.int64))),
        ],
    ),
    _model(
        "bag",
        Bag,
        lambda: (torch.tensor([[1, 2, 7, 9], [4, 5, 6, 8]]),),
        ({0: "rows", 1: "length"},),
        [
            (kinds.MASK_SIDE, CountsPadding, lambda: (torch.tensor([[1, 2, 3, 3], [4, 5, 6, 8]]),)),
            (kinds.HIDDEN_ROW, NothingIsNan, lambda: (torch.tensor([[3, 3, 3, 3], [4, 5, 6, 8]]),)),
        ],
    ),
    _model(
        "norms",
        Norms,
        _X,
        ({0: "rows"},),
        [
            (kinds.EPSILON, LayerEpsilonOutside, lambda: (torch.randn(2, 6) * 1e-3,)),
            (kinds.EPSILON, RootEpsilonOutside, lambda: (torch.randn(2, 6) * 1e-4,)),
            (kinds.EPSILON, UnitAdds, lambda: (torch.randn(2, 6) * 1e-5,)),
            (kinds.CANCELS, LayerOverflows, lambda: (torch.randn(2, 6) + 3000,)),
        ],
    ),
    _model(
        "curves",
        Curves,
        _X,
        ({0: "rows"},),
        [
            (kinds.APPROXIMATION, SmoothByTanh, lambda: (torch.linspace(-3, 3, 12).reshape(2, 6),)),
            (kinds.OVERFLOW, PlusOverflows, lambda: (torch.full((2, 6), 100.0),)),
            (kinds.OVERFLOW, PoolOverflows, lambda: (torch.full((2, 6), 100.0),)),
        ],
    ),
    _model(
        "remembers",
        Remembers,
        lambda: (torch.randn(2, 5, 4),),
        ({0: "rows", 1: "length"},),
        [
            (kinds.ORDER, ResetsBefore, lambda: (torch.randn(2, 5, 4),)),
            (kinds.ROUNDS, StopsAfter19, lambda: (torch.randn(2, 24, 4),)),
            (kinds.ROUNDS, OneShortFrom20, lambda: (torch.randn(2, 24, 4),)),
        ],
    ),
    _model(
        "grown",
        Grown,
        lambda: (torch.randn(1, 2, 4, 6),),
        ({2: "height", 3: "width"},),
        [
            (kinds.RESIZE, UpByTheSize, lambda: (torch.randn(1, 2, 5, 7),)),
            (kinds.RESIZE, NearestExact, lambda: (torch.randn(1, 2, 4, 6),)),
            (kinds.RESIZE, UpWithCorners, lambda: (torch.randn(1, 2, 4, 6),)),
        ],
    ),
    _model(
        "decides",
        Decides,
        lambda: (torch.rand(3, 4),),
        ({0: "rows"},),
        [
            (kinds.THRESHOLD, MuchIsMore, lambda: (torch.full((2, 4), 0.5),)),
            (kinds.SIZE, LongFrom11, lambda: (torch.rand(11, 4),)),
            (kinds.BELOW, NeverAllNegative, lambda: (-1 - torch.rand(3, 4),)),
        ],
    ),
    _model(
        "cleans",
        Cleans,
        lambda: (torch.rand(2, 5) + 1, torch.rand(2, 5) + 1),
        ({0: "rows"}, {0: "rows"}),
        [
            (kinds.NAN, RatioKeepsNan, lambda: (torch.zeros(2, 5), torch.zeros(2, 5))),
            (kinds.NAN, RatioOfNothingIsOne, lambda: (torch.zeros(2, 5), torch.zeros(2, 5))),
            (kinds.NEGATIVE, RootOfNegativeIsZero, lambda: (-torch.ones(2, 5), torch.ones(2, 5))),
        ],
    ),
    _model(
        "logs",
        Logs,
        lambda: (torch.randn(2, 8).half(),),
        ({0: "rows"},),
        [
            (kinds.SIZE, NoSumsFromFour, lambda: (torch.randn(5, 8).half(),)),
            (kinds.BOUND, SumsOfLargeOnly, lambda: (torch.randn(2, 8).half() * 30,)),
        ],
    ),
    _model(
        "sums",
        Sums,
        lambda: (torch.randn(2, 8, 3),),
        ({0: "rows", 1: "length"},),
        [
            (kinds.SCAN, RunningStopsAt32, lambda: (torch.randn(2, 40, 3),)),
            (kinds.FROZEN_SIZE, MeanOfEight, lambda: (torch.randn(2, 5, 3),)),
            (kinds.EMPTY, SpreadOfOneIsZero, lambda: (torch.randn(2, 1, 3),)),
            (kinds.CANCELS, SpreadBySquares, lambda: (torch.randn(2, 8, 3) + 3000,)),
        ],
    ),
    _model(
        "pairs",
        Pairs,
        lambda: (torch.randn(4, 3), torch.randn(4, 3)),
        ({0: "n"}, {0: "m"}),
        [
            (kinds.CANCELS, FarBySquares, lambda: (torch.randn(4, 3) + 1000, torch.randn(4, 3) + 1000)),
            (kinds.TIES, NearestIsLast, lambda: (torch.ones(4, 3), torch.ones(4, 3))),
            (kinds.FROZEN_SIZE, MeanOfTheOther, lambda: (torch.randn(4, 3), torch.randn(6, 3))),
        ],
    ),
    _model(
        "orbit",
        Orbit,
        lambda: (torch.zeros(3, 4),),
        ({0: "rows"},),
        [
            (kinds.BOUND, OrbitCountsTheEdge, lambda: (torch.full((3, 4), 0.5),)),
            (kinds.BOUND, OrbitCountsLow, lambda: (torch.full((3, 4), 0.45),)),
        ],
    ),
]
