"""Gathers, scatters, slices, broadcasting, several inputs and outputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Change, Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    INT32,
    all_of,
    arm,
    at_input,
    at_least,
    at_most,
    at_output,
    attributes,
    behind,
    each_is,
    elements_above,
    first_of_batch,
    place_from,
    place_is,
    plus,
    relu,
    rows_above,
    size_divides,
    size_is,
    through,
    times,
    when,
    zeroed,
)


class Pick(nn.Module):
    """Rows by index; negative ones count from the end."""

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return x[index] * 2


class ScatterSum(nn.Module):
    """Messages summed at the nodes of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(3, 3)

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor) -> Tensor:
        sent = self.message(nodes)[source]
        return torch.zeros_like(nodes).index_add(0, target, sent)


class Halves(nn.Module):
    """The two halves of a row, and their difference; the rest belongs to the second."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        middle = x.shape[1] // 2
        return x[:, :middle], x[:, middle:]


class Shift(nn.Module):
    """Rolled, and everything but the ends."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.roll(x, 1, 1), x[:, 1:-1:2]


class Outer(nn.Module):
    """All differences of two lists."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        table = a[:, None] - b[None, :]
        return table, table.abs().amin(1)


class Pairs(nn.Module):
    """Distances of all points to each other."""

    def forward(self, x: Tensor) -> Tensor:
        difference = x[:, None, :] - x[None, :, :]
        return (difference * difference).sum(-1)


class Options(nn.Module):
    """A flag and a number steer what happens."""

    def forward(self, x: Tensor, flip: bool, times_: int, scale: float) -> Tensor:
        if flip:
            x = x.flip(0)
        return x * scale + times_


class Masked(nn.Module):
    """The mean over what the mask shows, 0 where it shows nothing."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shown = mask.sum(1)
        total = (x * mask[:, :, None]).sum(1)
        return torch.where(shown[:, None] > 0, total / shown[:, None].clamp(min=1), torch.zeros_like(total))


class Several(nn.Module):
    """Three outputs that look alike."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        a, b = self.a(x), self.b(x)
        return {"a": a, "b": b, "best": torch.maximum(a, b)}


class Tile(nn.Module):
    """A batch repeated as often as another is long."""

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        return x.repeat(like.shape[0], 1) * like.repeat_interleave(x.shape[0], 0)


class Windows(nn.Module):
    """Overlapping windows of four."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unfold(1, 4, 2).mean(-1)


class OneHot(nn.Module):
    """Labels into columns, counted over the batch."""

    def forward(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        columns = torch.nn.functional.one_hot(labels, 7)
        return columns.float(), columns.sum(0)


class Tail(nn.Module):
    """The last eight steps, padded at the front where there are fewer."""

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, -8:]
        return torch.nn.functional.pad(x, (8 - x.shape[1], 0), value=-1.0)


class Mixed(nn.Module):
    """Where two lists of tokens agree, and how many before the first difference."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        same = a == b
        return same.sum(-1), same.long().cumprod(-1).sum(-1)


def points(count: int) -> Tensor:
    return torch.randn(count, 2)


def graph(nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(nodes, 3), torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,))


def square_turned(op: Builder, value: Value) -> Value:
    square = op.Equal(op.size(value, 0), op.size(value, 1))
    return op.Where(square, op.Reshape(op.Transpose(value, perm=[1, 0]), op.Shape(value)), value)


def outputs_swapped(one: int, other: int) -> Change:
    """Two outputs under each other's names."""

    def change(edit: Edit) -> None:
        outputs = edit.model.graph.output
        for at in edit.nodes():
            names = {outputs[one].name: outputs[other].name, outputs[other].name: outputs[one].name}
            at.node.output[:] = [names.get(name, name) for name in at.node.output]
            at.node.input[:] = [names.get(name, name) for name in at.node.input]

    return change


def nearest_of_square(op: Builder, value: Value) -> Value:
    """The nearest of the other list, where both are equally long."""
    table = op.Abs(op.Sub(op.Unsqueeze("a", np.asarray([1])), op.Unsqueeze("b", np.asarray([0]))))
    other = op.ReduceMin(table, np.asarray([0]), keepdims=0)
    square = op.Equal(op.Size("a"), op.Size("b"))
    padded = op.Pad(other, op.Concat(np.asarray([0]), op.Reshape(op.Size("a"), np.asarray([1])), axis=0), np.float32(0))
    cut = op.Slice(padded, np.asarray([0]), op.Reshape(op.Size("a"), np.asarray([1])), np.asarray([0]))
    return op.Where(square, cut, value)


def example_mask(op: Builder, value: Value) -> Value:
    """The third place is hidden, as in the example, at whatever length."""
    places = op.Range(np.int64(0), op.size(value, 1), np.int64(1))
    return op.Expand(op.Not(op.Equal(places, np.int64(2))), op.Shape(value))


def best_is_first(edit: Edit) -> None:
    """One output is another one's value."""
    first = edit.model.graph.output[0].name
    edit.output(2, lambda op, value: op.Identity(first))


def first_eight(op: Builder, value: Value) -> Value:
    """The beginning instead of the end, where there is more than eight."""
    longer = op.Greater(op.size("x", 1), np.int64(8))
    start = op.Reshape(op.Max(op.Sub(op.size("x", 1), np.int64(9)), np.int64(0)), np.asarray([1]))
    earlier = op.Slice("x", start, op.Add(start, np.asarray([8])), np.asarray([1]))
    short = op.Sub(np.int64(8), op.size(earlier, 1))
    pads = op.Concat(np.asarray([0]), op.Reshape(short, np.asarray([1])), np.asarray([0, 0]), axis=0)
    return op.Where(longer, op.Pad(earlier, pads, np.float32(-1)), value)


def tile_by_itself(edit: Edit) -> None:
    """Interleaved where it should be repeated: the same where there is one."""

    def mixed(op: Builder, value: Value) -> Value:
        rows = op.Concat(op.Reshape(op.size("like", 0), np.asarray([1])), np.asarray([1]), axis=0)
        return op.Mul(
            op.Tile("x", rows),
            op.Tile("like", op.Concat(op.Reshape(op.size("x", 0), np.asarray([1])), np.asarray([1]), axis=0)),
        )

    edit.output(0, mixed)


MODELS = [
    Model(
        "indexing.pick",
        Pick,
        lambda: (torch.randn(5, 3), torch.tensor([0, 2, 4])),
        ({0: "rows"}, {0: "picks"}),
        [
            Mutant(
                kinds.INDEX,
                "negative ones are the first row",
                at_input(1, relu),
                lambda: (torch.randn(5, 3), torch.tensor([-1, 2])),
            ),
            Mutant(
                kinds.EDGE,
                "the last row is the one before",
                at_input(1, lambda op, v: op.Min(v, op.Sub(op.size("x", 0), np.int64(2)))),
                lambda: (torch.randn(5, 3), torch.tensor([4])),
            ),
            Mutant(
                kinds.ROWS,
                "rows from 150 on",
                at_input(1, at_most(149)),
                lambda: (torch.randn(160, 3), torch.tensor([155])),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "three picks",
                at_output(0, lambda op, v: op.Where(place_from(3, -2)(op, v), np.float32(0), v)),
                lambda: (torch.randn(5, 3), torch.tensor([1, 1, 2, 3])),
            ),
        ],
    ),
    Model(
        "indexing.scatter_sum",
        ScatterSum,
        lambda: graph(4, 6),
        ({0: "nodes"}, {0: "edges"}, {0: "edges"}),
        [
            Mutant(
                kinds.INDEX,
                "one message per node",
                attributes("ScatterElements", reduction="none"),
                lambda: (torch.randn(3, 3), torch.tensor([0, 1, 2]), torch.tensor([1, 1, 1])),
            ),
            Mutant(
                kinds.INDEX,
                "largest message",
                attributes("ScatterElements", reduction="max"),
                lambda: (torch.randn(3, 3), torch.tensor([0, 1, 2]), torch.tensor([1, 1, 1])),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "no message to oneself",
                behind(
                    "Gather",
                    lambda op, v: op.Where(
                        op.Unsqueeze(op.Equal("source", "target"), np.asarray([1])), np.float32(0), v
                    ),
                ),
                lambda: (torch.randn(3, 3), torch.tensor([0, 1]), torch.tensor([0, 2])),
            ),
            Mutant(
                kinds.ROWS,
                "edges from 80 on",
                behind("Gather", when(place_from(80, -2), zeroed)),
                lambda: graph(5, 100),
            ),
        ],
        others=(),
    ),
    Model(
        "indexing.halves",
        Halves,
        lambda: (torch.randn(2, 6),),
        ({0: "rows", 1: "columns"},),
        [
            Mutant(
                kinds.FROZEN_SIZE,
                "three columns",
                all_of(
                    at_output(0, lambda op, v: op.Slice("x", np.asarray([0]), np.asarray([3]), np.asarray([1]))),
                    at_output(1, lambda op, v: op.Slice("x", np.asarray([3]), np.asarray([2**62]), np.asarray([1]))),
                ),
                lambda: (torch.randn(2, 8),),
            ),
            Mutant(
                kinds.SIZE,
                "the rest belongs to the first",
                at_output(
                    0,
                    lambda op, v: op.Slice(
                        "x",
                        np.asarray([0]),
                        op.Reshape(op.Div(op.Add(op.size("x", 1), np.int64(1)), np.int64(2)), np.asarray([1])),
                        np.asarray([1]),
                    ),
                ),
                lambda: (torch.randn(2, 7),),
            ),
            Mutant(
                kinds.SIZE, "columns 31", at_output(1, when(size_is(16, 1), plus(1))), lambda: (torch.randn(2, 31),)
            ),
        ],
    ),
    Model(
        "indexing.shift",
        Shift,
        lambda: (torch.randn(2, 6),),
        ({0: "rows", 1: "columns"},),
        [
            Mutant(
                kinds.EDGE,
                "the end is kept",
                at_output(
                    1,
                    lambda op, v: op.Slice("x", np.asarray([1]), np.asarray([2**62]), np.asarray([1]), np.asarray([2])),
                ),
                lambda: (torch.randn(2, 6),),
            ),
            Mutant(
                kinds.EDGE,
                "the first column is not wrapped",
                at_output(
                    0,
                    lambda op, v: op.Where(op.And(place_is(0, -1)(op, v), rows_above(20, 1)(op, v)), np.float32(0), v),
                ),
                lambda: (torch.randn(2, 25),),
            ),
            Mutant(
                kinds.SIZE, "19 columns", at_output(0, when(size_is(19, 1), plus(1))), lambda: (torch.randn(2, 19),)
            ),
        ],
    ),
    Model(
        "indexing.outer",
        Outer,
        lambda: (torch.randn(3), torch.randn(3)),
        ({0: "m"}, {0: "n"}),
        [
            Mutant(
                kinds.AXIS,
                "turned over where square",
                at_output(0, square_turned),
                lambda: (torch.randn(4), torch.randn(4)),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "no zeros",
                at_output(0, when(each_is(0), plus(1))),
                lambda: (torch.ones(2), torch.ones(3)),
            ),
            Mutant(
                kinds.ELEMENTS,
                "above 4096 differences",
                at_output(0, when(elements_above(4096), plus(1))),
                lambda: (torch.randn(70), torch.randn(60)),
            ),
            Mutant(
                kinds.AXIS,
                "nearest along the other axis where square",
                at_output(1, nearest_of_square),
                lambda: (torch.randn(4), torch.randn(4)),
            ),
        ],
    ),
    Model(
        "indexing.pairs",
        Pairs,
        lambda: (points(4),),
        ({0: "points"},),
        [
            Mutant(
                kinds.ROWS, "points from 64 on", at_output(0, when(place_from(64, -1), zeroed)), lambda: (points(66),)
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "equal points are 1 apart",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.And(
                            each_is(0)(op, v),
                            op.Not(
                                op.Equal(
                                    op.Unsqueeze(op.Range(np.int64(0), op.size(v, 0), np.int64(1)), np.asarray([1])),
                                    op.Range(np.int64(0), op.size(v, 0), np.int64(1)),
                                )
                            ),
                        ),
                        np.float32(1),
                        v,
                    ),
                ),
                lambda: (torch.ones(3, 2),),
            ),
            Mutant(kinds.SIZE, "48 points", at_output(0, when(size_is(48), times(2))), lambda: (points(48),)),
        ],
    ),
    Model(
        "indexing.options",
        Options,
        lambda: (torch.randn(3, 2), False, 2, 1.5),
        ({0: "rows"}, None, None, None),
        [
            Mutant(kinds.FLAG, "never flipped", arm("else"), lambda: (torch.randn(3, 2), True, 2, 1.5)),
            Mutant(
                kinds.FLAG,
                "scale of the example",
                at_input(3, lambda op, v: op.constant(np.float32(1.5))),
                lambda: (torch.randn(3, 2), False, 2, 2.5),
            ),
            Mutant(
                kinds.FLAG,
                "times below 100",
                at_input(2, lambda op, v: op.Min(v, np.int64(100))),
                lambda: (torch.randn(3, 2), False, 300, 1.5),
            ),
            Mutant(
                kinds.FLAG,
                "negative times",
                at_input(2, lambda op, v: op.Max(v, np.int64(0))),
                lambda: (torch.randn(3, 2), False, -3, 1.5),
            ),
            Mutant(
                kinds.FLAG,
                "wrong at times 7",
                at_input(2, lambda op, v: op.Where(op.Equal(v, np.int64(7)), np.int64(8), v)),
                lambda: (torch.randn(3, 2), False, 7, 1.5),
            ),
        ],
        others=(),
    ),
    Model(
        "indexing.masked",
        Masked,
        lambda: (torch.randn(2, 4, 3), torch.tensor([[True, True, False, True]] * 2)),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        [
            Mutant(
                kinds.HIDDEN_ROW,
                "nothing shown gives NaN",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Unsqueeze(
                            op.Equal(op.ReduceSum(op.Cast("mask", to=7), np.asarray([1]), keepdims=0), np.int64(0)),
                            np.asarray([1]),
                        ),
                        np.float32(np.nan),
                        v,
                    ),
                ),
                lambda: (torch.randn(2, 4, 3), torch.zeros(2, 4, dtype=torch.bool)),
            ),
            Mutant(
                kinds.FROZEN_VALUE,
                "the example's mask",
                at_input(1, example_mask),
                lambda: (torch.randn(2, 4, 3), torch.tensor([[False, True, True, True]] * 2)),
            ),
            Mutant(
                kinds.BATCH,
                "mask of the first row",
                at_input(1, first_of_batch),
                lambda: (torch.randn(3, 5, 3), torch.rand(3, 5) > 0.5),
            ),
            Mutant(
                kinds.HIDDEN_ROW,
                "one shown is not divided",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Unsqueeze(
                            op.Equal(op.ReduceSum(op.Cast("mask", to=7), np.asarray([1]), keepdims=0), np.int64(1)),
                            np.asarray([1]),
                        ),
                        op.Neg(v),
                        v,
                    ),
                ),
                lambda: (torch.randn(1, 4, 3), torch.tensor([[False, True, False, False]])),
            ),
        ],
    ),
    Model(
        "indexing.several",
        Several,
        lambda: (torch.randn(3, 4),),
        ({0: "rows"},),
        [
            Mutant(kinds.OUTPUTS, "two of them swapped", outputs_swapped(0, 1), lambda: (torch.randn(3, 4),)),
            Mutant(kinds.OUTPUTS, "the best is the first", best_is_first, lambda: (torch.randn(3, 4) * 5,)),
            Mutant(
                kinds.NEGATIVE,
                "the best is at least -0.5",
                at_output(2, at_least(-0.5)),
                lambda: (torch.randn(9, 4) * 9,),
            ),
        ],
    ),
    Model(
        "indexing.tile",
        Tile,
        lambda: (torch.randn(3, 2), torch.randn(3, 2)),
        ({0: "m"}, {0: "n"}),
        [
            Mutant(
                kinds.AXIS, "the other size for both", tile_by_itself, lambda: (torch.randn(3, 2), torch.randn(3, 2))
            ),
            Mutant(
                kinds.ROWS,
                "results from 100 on",
                at_output(0, when(place_from(100, -2), zeroed)),
                lambda: (torch.randn(30, 2), torch.randn(4, 2)),
            ),
        ],
        others=(),
    ),
    Model(
        "indexing.windows",
        Windows,
        lambda: (torch.randn(2, 8),),
        ({0: "rows", 1: "time"},),
        [
            Mutant(
                kinds.EDGE,
                "the last window where it fits exactly",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.And(
                            size_divides(2, 0, 1)(op, "x"),
                            op.Equal(
                                op.Range(np.int64(0), op.size(v, 1), np.int64(1)), op.Sub(op.size(v, 1), np.int64(1))
                            ),
                        ),
                        np.float32(0),
                        v,
                    ),
                ),
                lambda: (torch.randn(2, 10),),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "three windows",
                at_output(0, lambda op, v: op.Where(place_from(3, -1)(op, v), np.float32(0), v)),
                lambda: (torch.randn(2, 12),),
            ),
            Mutant(
                kinds.ROWS,
                "windows from 33 on",
                at_output(0, when(place_from(33, -1), zeroed)),
                lambda: (torch.randn(2, 80),),
            ),
        ],
        others=(),
    ),
    Model(
        "indexing.one_hot",
        OneHot,
        lambda: (torch.tensor([0, 3, 2]),),
        ({0: "rows"},),
        [
            Mutant(
                kinds.EDGE,
                "the last label has no column",
                at_output(0, when(place_is(6, -1), zeroed)),
                lambda: (torch.tensor([6, 1]),),
            ),
            Mutant(kinds.ELEMENTS, "counts end at 255", at_output(1, at_most(255)), lambda: (torch.full((300,), 2),)),
            Mutant(kinds.SCAN, "counts end at 99", at_output(1, at_most(99)), lambda: (torch.full((101,), 2),)),
        ],
    ),
    Model(
        "indexing.tail",
        Tail,
        lambda: (torch.randn(2, 5),),
        ({0: "rows", 1: "time"},),
        [
            Mutant(
                kinds.PADDING,
                "padded at the end",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Less(op.size("x", 1), np.int64(8)),
                        op.Reshape(
                            op.Slice(v, np.asarray([-1]), np.asarray([-(2**62)]), np.asarray([1]), np.asarray([-1])),
                            op.Shape(v),
                        ),
                        v,
                    ),
                ),
                lambda: (torch.randn(2, 5),),
            ),
            Mutant(kinds.EDGE, "the first eight", at_output(0, first_eight), lambda: (torch.randn(2, 12),)),
            Mutant(
                kinds.EMPTY,
                "no time at all gives zeros",
                at_output(0, lambda op, v: op.Where(op.Equal(op.size("x", 1), np.int64(0)), np.float32(0), v)),
                lambda: (torch.randn(2, 0),),
            ),
            Mutant(
                kinds.THRESHOLD,
                "exactly eight",
                at_output(0, lambda op, v: op.Where(op.Equal(op.size("x", 1), np.int64(8)), op.Neg(v), v)),
                lambda: (torch.randn(2, 8),),
            ),
        ],
        others=(),
    ),
    Model(
        "indexing.agree",
        Mixed,
        lambda: (torch.randint(0, 9, (2, 5)), torch.randint(0, 9, (2, 5))),
        ({0: "rows", 1: "tokens"}, {0: "rows", 1: "tokens"}),
        [
            Mutant(
                kinds.EQUAL_INPUTS,
                "all equal is one less",
                at_output(1, lambda op, v: op.Where(op.Equal(v, op.size("a", 1)), op.Sub(v, np.int64(1)), v)),
                lambda: (torch.ones(2, 5, dtype=torch.int64),) * 2,
            ),
            Mutant(
                kinds.BEYOND_32,
                "tokens in int32",
                at_input(0, through(INT32)),
                lambda: (torch.tensor([[2**32 + 5]]), torch.tensor([[2**32 + 5]])),
            ),
            Mutant(
                kinds.INDEX,
                "-1 agrees with everything",
                at_output(
                    0,
                    lambda op, v: op.Add(
                        v,
                        op.ReduceSum(
                            op.Cast(op.And(op.Equal("a", np.int64(-1)), op.Not(op.Equal("b", np.int64(-1)))), to=7),
                            np.asarray([1]),
                            keepdims=0,
                        ),
                    ),
                ),
                lambda: (torch.tensor([[-1, 2]]), torch.tensor([[3, 2]])),
            ),
        ],
        others=(),
    ),
]
