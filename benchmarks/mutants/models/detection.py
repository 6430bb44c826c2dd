"""Detection heads: the best class, the best boxes, sorting, suppression of neighbours."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    at_input,
    at_least,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    elements_above,
    negated,
    number,
    place_from,
    plus,
    retype,
    rounds,
    rows_above,
    size_is,
    size_power_of_two,
    skip,
    times,
    when,
    zeroed,
)


class Classes(nn.Module):
    """The best class and how sure it is."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.head(x)
        return logits.argmax(-1), logits.softmax(-1).amax(-1)


class PlainArgMax(nn.Module):
    """Votes are counted, and the class with most of them wins: ties are common."""

    def forward(self, votes: Tensor) -> tuple[Tensor, Tensor]:
        return votes.argmax(1), votes.argmin(1)


class Best(nn.Module):
    """The three best boxes of each picture."""

    def forward(self, scores: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        top = scores.topk(3, 1)
        index = top.indices.unsqueeze(-1).expand(-1, -1, 4)
        return top.values, boxes.gather(1, index)


class Sorted(nn.Module):
    """All boxes by their score, best first; equals stay in order."""

    def forward(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        order = torch.sort(scores, dim=-1, descending=True, stable=True)
        return order.values, order.indices


class Suppress(nn.Module):
    """Greedy suppression of boxes that overlap a better one."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = torch.argsort(scores, descending=True, stable=True)
        boxes = boxes[order]
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        keep = torch.ones(boxes.shape[0], dtype=torch.bool)
        for i in range(boxes.shape[0]):
            if keep[i]:
                low = torch.maximum(boxes[i, :2], boxes[:, :2])
                high = torch.minimum(boxes[i, 2:], boxes[:, 2:])
                shared = (high - low).clamp(min=0).prod(-1)
                overlap = shared / (area[i] + area - shared)
                later = torch.arange(boxes.shape[0]) > i
                keep = keep & ~((overlap > 0.5) & later)
        return order[keep]


class Decode(nn.Module):
    """Offsets from anchors into corners, inside the picture."""

    def forward(self, anchors: Tensor, offsets: Tensor) -> Tensor:
        size = anchors[:, 2:] - anchors[:, :2]
        centre = anchors[:, :2] + 0.5 * size
        centre = centre + offsets[:, :2] * size
        half = 0.5 * size * offsets[:, 2:].clamp(max=4.135).exp()
        return torch.cat([centre - half, centre + half], 1).clamp(0, 640)


class Overlaps(nn.Module):
    """Each box of one list with each of another."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        low = torch.maximum(a[:, None, :2], b[None, :, :2])
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        area_a = (a[:, 2:] - a[:, :2]).prod(-1)
        area_b = (b[:, 2:] - b[:, :2]).prod(-1)
        return shared / (area_a[:, None] + area_b[None, :] - shared + 1e-6)


class Scaled(nn.Module):
    """Logits by temperature, and the two best classes."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 9)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        chances = (self.head(x) / 1.25).softmax(-1)
        best = chances.topk(2, -1)
        return chances, best.values[:, 0] - best.values[:, 1]


class Heat(nn.Module):
    """The place of the hottest pixel."""

    def forward(self, heat: Tensor) -> tuple[Tensor, Tensor]:
        flat = heat.flatten(1)
        best = flat.argmax(1)
        width = heat.shape[2]
        return torch.stack([best // width, best % width], 1), flat.amax(1)


def corners(count: int) -> Tensor:
    low = torch.rand(count, 2) * 100
    return torch.cat([low, low + 1 + torch.rand(count, 2) * 50], 1)


def apart(count: int) -> Tensor:
    """Boxes that do not touch."""
    low = torch.arange(count).float()[:, None] * 10 + torch.zeros(count, 2)
    return torch.cat([low, low + 5], 1)


def last_of_equals(op: Builder, value: Value) -> Value:
    """The order of equals turned round, by a grain too small for any other value."""
    places = op.Cast(op.Range(np.int64(0), op.size(value, -1), np.int64(1)), to=1)
    return op.Add(value, op.Mul(places, np.float32(1e-7)))


def argmax_of_square(edit: Edit) -> None:
    """Across and down are taken for each other where they are equally long."""
    votes = edit.model.graph.input[0].name

    def down(op: Builder, value: Value) -> Value:
        shape = op.Shape(votes)
        square = op.Equal(op.Gather(shape, np.int64(0)), op.Gather(shape, np.int64(1)))
        turned = op.Transpose(value, perm=[1, 0])
        kept = op.Reshape(turned, shape)
        return op.Where(square, kept, value)

    edit.before(edit.node("ArgMax"), down)


def square_turned(op: Builder, value: Value) -> Value:
    square = op.Equal(op.size(value, 0), op.size(value, 1))
    return op.Where(square, op.Reshape(op.Transpose(value, perm=[1, 0]), op.Shape(value)), value)


def one_size(edit: Edit) -> None:
    """Width for height."""
    first = next(at for at in edit.nodes("Sub"))
    edit.behind(
        first, lambda op, v: op.Expand(op.Slice(v, np.asarray([0]), np.asarray([1]), np.asarray([1])), op.Shape(v))
    )


def height_for_width(edit: Edit) -> None:
    """The other size, which is the same in a square picture."""
    heat = edit.model.graph.input[0].name
    for at in edit.nodes("Mod", "Div"):
        edit.before(at, lambda op, v: op.size(heat, 1), 1)


MODELS = [
    Model(
        "detection.classes",
        Classes,
        lambda: (torch.randn(3, 5),),
        ({0: "batch"},),
        [
            Mutant(
                kinds.ROWS,
                "above 100 rows",
                at_output(0, when(rows_above(100), zeroed)),
                lambda: (torch.randn(120, 5),),
            ),
            Mutant(kinds.BOUND, "never quite sure", at_output(1, at_most(0.999)), lambda: (torch.randn(3, 5) * 100,)),
            Mutant(
                kinds.SIZE,
                "16, 32, 64 ... rows",
                at_output(1, when(size_power_of_two(16), times(0.5))),
                lambda: (torch.randn(32, 5),),
            ),
        ],
    ),
    Model(
        "detection.votes",
        PlainArgMax,
        lambda: (torch.randn(3, 4),),
        ({0: "rows", 1: "classes"},),
        [
            Mutant(
                kinds.TIES,
                "the last of the best",
                attributes("ArgMax", select_last_index=1),
                lambda: (torch.tensor([[1.0, 3.0, 3.0, 0.0]]),),
            ),
            Mutant(
                kinds.TIES,
                "the last of the worst",
                attributes("ArgMin", select_last_index=1),
                lambda: (torch.tensor([[1.0, 0.0, 3.0, 0.0]]),),
            ),
            Mutant(
                kinds.BELOW,
                "none where all are below -1",
                before("ArgMax", 0, at_least(-1)),
                lambda: (torch.tensor([[-5.0, -3.0, -2.0]]),),
            ),
            Mutant(kinds.AXIS, "down instead of across where square", argmax_of_square, lambda: (torch.randn(5, 5),)),
            Mutant(
                kinds.ROWS,
                "classes from 900 on",
                before("ArgMin", 0, lambda op, v: op.Where(place_from(900, -1)(op, v), np.float32(1e9), v)),
                lambda: (torch.arange(1000.0, 0, -1)[None],),
            ),
        ],
    ),
    Model(
        "detection.best",
        Best,
        lambda: (torch.randn(2, 6), torch.randn(2, 6, 4)),
        ({0: "batch", 1: "boxes"}, {0: "batch", 1: "boxes"}),
        [
            Mutant(
                kinds.ROWS,
                "only the first 64 are looked at",
                before("TopK", 0, lambda op, v: op.Slice(v, np.asarray([0]), np.asarray([64]), np.asarray([1]))),
                lambda: (torch.arange(70.0)[None], torch.randn(1, 70, 4)),
            ),
            Mutant(
                kinds.BELOW,
                "scores below -10 are equal",
                before("TopK", 0, at_least(-10)),
                lambda: (torch.arange(-20.0, -14)[None], torch.randn(1, 6, 4)),
            ),
            Mutant(
                kinds.BATCH,
                "boxes of the first picture",
                at_input(
                    1,
                    lambda op, v: op.Expand(
                        op.Slice(v, np.asarray([0]), np.asarray([1]), np.asarray([0])), op.Shape(v)
                    ),
                ),
                lambda: (torch.randn(2, 6), torch.randn(2, 6, 4)),
            ),
        ],
    ),
    Model(
        "detection.sorted",
        Sorted,
        lambda: (torch.randn(2, 6),),
        ({0: "batch", 1: "boxes"},),
        [
            Mutant(
                kinds.TIES,
                "equals the other way round",
                at_input(0, last_of_equals),
                lambda: (torch.tensor([[1e-3, 2e-3, 1e-3, 2e-3]]),),
            ),
            Mutant(
                kinds.ORDER,
                "index of equals",
                at_output(
                    1,
                    lambda op, v: op.Where(
                        op.Equal(op.ReduceMax("scores", keepdims=0), op.ReduceMin("scores", keepdims=0)),
                        op.Sub(op.Sub(op.size(v, -1), np.int64(1)), v),
                        v,
                    ),
                ),
                lambda: (torch.ones(1, 4),),
            ),
            Mutant(
                kinds.ORDER,
                "from the 65th on the lowest",
                at_output(
                    0,
                    lambda op, v: op.Where(place_from(65, -1)(op, v), op.ReduceMin(v, np.asarray([-1]), keepdims=1), v),
                ),
                lambda: (torch.randn(1, 80),),
            ),
            Mutant(kinds.SIZE, "33 boxes", at_output(0, when(size_is(33, 1), plus(1))), lambda: (torch.randn(1, 33),)),
            Mutant(
                kinds.ELEMENTS,
                "above 2048 scores",
                at_output(1, when(elements_above(2048), plus(1))),
                lambda: (torch.randn(3, 700),),
            ),
        ],
    ),
    Model(
        "detection.suppress",
        Suppress,
        lambda: (corners(4), torch.rand(4)),
        ({0: "boxes"}, {0: "boxes"}),
        [
            Mutant(
                kinds.ROUNDS,
                "13 boxes are looked at",
                rounds(13),
                lambda: (apart(10).repeat(2, 1), torch.arange(20.0, 0, -1) % 10 + torch.arange(20.0, 0, -1) * 0.001),
            ),
            Mutant(
                kinds.ROUNDS,
                "17 boxes are looked at",
                rounds(17),
                lambda: (torch.cat([apart(20), apart(20)[-1:]]), torch.arange(21.0, 0, -1)),
            ),
            Mutant(
                kinds.THRESHOLD,
                "half is too much",
                retype("Greater", "GreaterOrEqual"),
                lambda: (torch.tensor([[0.0, 0, 2, 1], [0.0, 0, 1, 1]]), torch.tensor([2.0, 1.0])),
            ),
            Mutant(
                kinds.CONSTANT,
                "0.55",
                number(0.5, 0.55),
                lambda: (torch.tensor([[0.0, 0, 100, 1], [0.0, 0, 53, 1]]), torch.tensor([2.0, 1.0])),
            ),
            Mutant(
                kinds.TIES,
                "equal scores the other way",
                at_input(1, last_of_equals),
                lambda: (apart(4), torch.zeros(4)),
            ),
        ],
        others=(),
    ),
    Model(
        "detection.decode",
        Decode,
        lambda: (corners(3), torch.randn(3, 4) * 0.1),
        ({0: "boxes"}, {0: "boxes"}),
        [
            Mutant(
                kinds.BOUND,
                "no bound on the exponent",
                number(4.135, 88),
                lambda: (corners(3) * 0.01, torch.full((3, 4), 5.0)),
            ),
            Mutant(kinds.BOUND, "picture of 641", number(640, 641), lambda: (corners(3) + 600, torch.randn(3, 4))),
            Mutant(kinds.NEGATIVE, "not below 0", number(0, -1e9), lambda: (corners(3) - 90, torch.randn(3, 4))),
            Mutant(kinds.AXIS, "first size for both", one_size, lambda: (corners(3), torch.randn(3, 4))),
        ],
    ),
    Model(
        "detection.overlaps",
        Overlaps,
        lambda: (corners(3), corners(3)),
        ({0: "m"}, {0: "n"}),
        [
            Mutant(
                kinds.AXIS,
                "the table turned over where it is square",
                at_output(0, square_turned),
                lambda: (corners(4), corners(4)),
            ),
            Mutant(
                kinds.ROWS,
                "above 70 boxes",
                at_output(0, when(rows_above(70), times(1.01))),
                lambda: (corners(80), corners(3)),
            ),
            Mutant(kinds.EPSILON, "epsilon 1e-2", number(1e-6, 1e-2), lambda: (apart(2) * 0.01, apart(2) * 0.01)),
        ],
    ),
    Model(
        "detection.scaled",
        Scaled,
        lambda: (torch.randn(3, 6),),
        ({0: "batch"},),
        [
            Mutant(kinds.SCALE, "no temperature", skip("Div"), lambda: (torch.randn(3, 6),)),
            Mutant(kinds.SCALE, "temperature 1.2", number(1.25, 1.2), lambda: (torch.randn(3, 6),)),
            Mutant(
                kinds.OVERFLOW,
                "logits end at 80",
                before("Softmax", 0, at_most(80)),
                lambda: (torch.randn(3, 6) * 900,),
            ),
            Mutant(
                kinds.ORDER,
                "the wrong way round from 80 rows on",
                at_output(1, when(rows_above(79), negated)),
                lambda: (torch.randn(90, 6),),
            ),
        ],
    ),
    Model(
        "detection.heat",
        Heat,
        lambda: (torch.randn(2, 4, 4),),
        ({0: "batch", 1: "height", 2: "width"},),
        [
            Mutant(kinds.AXIS, "divided by the height", height_for_width, lambda: (torch.randn(2, 3, 7),)),
            Mutant(
                kinds.TIES,
                "the last of the hottest",
                attributes("ArgMax", select_last_index=1),
                lambda: (torch.ones(1, 3, 3),),
            ),
            Mutant(
                kinds.BELOW,
                "heat starts from -1",
                behind("ReduceMax", at_least(-1)),
                lambda: (torch.full((1, 3, 3), -4.0),),
            ),
            Mutant(
                kinds.ELEMENTS,
                "above 4096 pixels",
                before("ArgMax", 0, lambda op, v: op.Slice(v, np.asarray([0]), np.asarray([4096]), np.asarray([1]))),
                lambda: (torch.arange(4200.0).reshape(1, 60, 70),),
            ),
        ],
    ),
]
