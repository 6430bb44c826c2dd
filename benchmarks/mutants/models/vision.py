"""Convolutions, pools, padding, resizing."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Change, Model, Mutant
from benchmarks.mutants.edit import Builder, Edit, Value
from benchmarks.mutants.mutations import (
    at_input,
    at_least,
    at_most,
    at_output,
    attributes,
    before,
    elements_above,
    entry,
    place_from,
    relu,
    rows_above,
    size_divides,
    size_is,
    times,
    when,
    zeroed,
)


class Small(nn.Module):
    """Convolution, norm, ReLU, pool, a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)
        nn.init.uniform_(self.norm.running_mean, -0.2, 0.2)
        nn.init.uniform_(self.norm.running_var, 0.01, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.leaky_relu(self.norm(self.conv(x)), 0.1)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Pooled(nn.Module):
    """Two pools, with padding."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1)


class Ceiled(nn.Module):
    """A pool that keeps the rest."""

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, 2, 2, ceil_mode=True)


class Resized(nn.Module):
    """To twice the size, both ways."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        smooth = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return smooth, F.interpolate(x, scale_factor=2, mode="nearest")


class Fitted(nn.Module):
    """To a fixed size, whatever came."""

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(6, 6), mode="bilinear", align_corners=True)


class Reflected(nn.Module):
    """A blur with reflected borders."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (2, 2), mode="reflect"))


class UNet(nn.Module):
    """Down, up, and the skip cut to what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 2, 3, 2, 1), nn.ConvTranspose2d(2, 1, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(self.down(x).relu())
        return x + y[:, :, : x.shape[2], : x.shape[3]]


class Patches(nn.Module):
    """A vision transformer's first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        batch, height, width = x.shape
        x = x.reshape(batch, height // 4, 4, width // 4, 4).transpose(2, 3)
        return self.embed(x.reshape(batch, -1, 16))


class Shuffle(nn.Module):
    """Channels into pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(self.conv(x), 2).clamp(0, 1)


class Flip(nn.Module):
    """A picture turned, with its centre cut out."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        height, width = x.shape[1:]
        top, left = (height - 2) // 2, (width - 2) // 2
        return x.flip(2), x[:, top : top + 2, left : left + 2]


def pictures(batch: int, channels: int, height: int, width: int) -> tuple[Tensor]:
    return (torch.randn(batch, channels, height, width),)


def padded_with(amount: float, edit: Edit) -> None:
    """A MaxPool whose border is a number instead of nothing."""
    pool = edit.node("MaxPool")
    edit.set(pool, pads=[0, 0, 0, 0])
    edit.before(pool, lambda op, v: op.Pad(v, np.asarray([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(amount)))


def turned_where_square(edit: Edit) -> None:
    def turned(op: Builder, value: Value) -> Value:
        square = op.Equal(op.size(value, 2), op.size(value, 3))
        return op.Where(square, op.Reshape(op.Transpose(value, perm=[0, 1, 3, 2]), op.Shape(value)), value)

    edit.before(edit.node("ConvTranspose"), turned)


def clip_from(bound: float) -> Change:
    def change(edit: Edit) -> None:
        edit.before(edit.node("Clip"), lambda op, value: op.constant(np.float32(bound)), 1)

    return change


MODELS = [
    Model(
        "vision.small",
        Small,
        lambda: pictures(2, 3, 6, 6),
        ({0: "batch", 2: "height", 3: "width"},),
        [
            Mutant(
                kinds.NEGATIVE, "no negative slope", attributes("LeakyRelu", alpha=0.0), lambda: pictures(2, 3, 6, 6)
            ),
            Mutant(
                kinds.BATCH,
                "pictures from the third on",
                at_output(0, when(place_from(2, -2), times(1.01))),
                lambda: pictures(4, 3, 6, 6),
            ),
            Mutant(kinds.WEIGHT, "one tap", entry((4, 3, 3, 3), (3, 2, 2, 2)), lambda: pictures(2, 3, 6, 6)),
            Mutant(
                kinds.ELEMENTS,
                "above 4096 elements",
                at_input(0, when(elements_above(4096), times(0.9))),
                lambda: pictures(2, 3, 30, 30),
            ),
            Mutant(
                kinds.ROWS,
                "batches above 32",
                at_output(0, when(rows_above(32), zeroed)),
                lambda: pictures(40, 3, 2, 2),
            ),
        ],
        exporter="dynamo",
        others=("legacy",),
    ),
    Model(
        "vision.pooled",
        Pooled,
        lambda: pictures(1, 2, 6, 6),
        ({0: "batch", 2: "height", 3: "width"},),
        [
            Mutant(
                kinds.PADDING,
                "border is -0.1",
                lambda edit: padded_with(-0.1, edit),
                lambda: (torch.full((1, 2, 5, 5), -2.0),),
            ),
            Mutant(
                kinds.BELOW,
                "border is -1",
                lambda edit: padded_with(-1.0, edit),
                lambda: (torch.full((1, 2, 5, 5), -2.0),),
            ),
            Mutant(
                kinds.BELOW,
                "border is -65504",
                lambda edit: padded_with(-65504.0, edit),
                lambda: (torch.full((1, 2, 5, 5), -1e6),),
            ),
            Mutant(
                kinds.PADDING,
                "border is not counted",
                attributes("AveragePool", count_include_pad=0),
                lambda: pictures(1, 2, 6, 6),
            ),
        ],
    ),
    Model(
        "vision.ceiled",
        Ceiled,
        lambda: pictures(1, 1, 6, 6),
        ({2: "height", 3: "width"},),
        [
            Mutant(
                kinds.SIZE, "the rest is left out", attributes("MaxPool", ceil_mode=0), lambda: pictures(1, 1, 7, 6)
            ),
            Mutant(
                kinds.BELOW,
                "the rest is at least zero",
                at_output(0, lambda op, v: op.Where(size_divides(2, 1, 3)(op, "x"), op.Max(v, np.float32(0)), v)),
                lambda: (torch.full((1, 1, 4, 5), -3.0),),
            ),
            Mutant(
                kinds.SIZE, "33 pixels", at_output(0, when(size_is(17, 2), times(2))), lambda: pictures(1, 1, 33, 4)
            ),
        ],
    ),
    Model(
        "vision.resized",
        Resized,
        lambda: pictures(1, 2, 4, 4),
        ({2: "height", 3: "width"},),
        [
            Mutant(
                kinds.RESIZE,
                "corners aligned",
                attributes("Resize", coordinate_transformation_mode="align_corners"),
                lambda: pictures(1, 2, 4, 5),
            ),
            Mutant(
                kinds.RESIZE,
                "asymmetric",
                attributes("Resize", coordinate_transformation_mode="asymmetric"),
                lambda: pictures(1, 2, 4, 5),
            ),
            Mutant(
                kinds.ROWS,
                "columns from 129 on",
                at_output(0, when(place_from(129, -1), times(0.99))),
                lambda: pictures(1, 2, 2, 70),
            ),
        ],
    ),
    Model(
        "vision.fitted",
        Fitted,
        lambda: pictures(1, 1, 4, 4),
        ({2: "height", 3: "width"},),
        [
            Mutant(
                kinds.RESIZE,
                "half a pixel off",
                attributes("Resize", coordinate_transformation_mode="half_pixel"),
                lambda: pictures(1, 1, 4, 4),
            ),
            Mutant(
                kinds.SIZE,
                "one pixel",
                at_output(0, lambda op, v: op.Where(size_is(1, 2)(op, "x"), op.Mul(v, np.float32(2)), v)),
                lambda: pictures(1, 1, 1, 5),
            ),
            Mutant(
                kinds.SIZE,
                "from 100 pixels on smaller ones",
                at_output(0, lambda op, v: op.Where(rows_above(99, 3)(op, "x"), op.Mul(v, np.float32(2)), v)),
                lambda: pictures(1, 1, 3, 100),
            ),
        ],
    ),
    Model(
        "vision.reflected",
        Reflected,
        lambda: (torch.randn(2, 1, 8),),
        ({0: "batch", 2: "length"},),
        [
            Mutant(
                kinds.PADDING, "repeats the border", attributes("Pad", mode="edge"), lambda: (torch.randn(2, 1, 8),)
            ),
            Mutant(
                kinds.PADDING,
                "zeros at the border",
                attributes("Pad", mode="constant"),
                lambda: (torch.randn(2, 1, 8),),
            ),
            Mutant(
                kinds.ROWS,
                "border from 257 on",
                before("Conv", 0, when(place_from(257, -1), zeroed)),
                lambda: (torch.randn(1, 1, 300),),
            ),
        ],
    ),
    Model(
        "vision.unet",
        UNet,
        lambda: pictures(1, 1, 6, 6),
        ({2: "height", 3: "width"},),
        [
            Mutant(
                kinds.SIZE,
                "odd heights lose their last row",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.And(
                            size_divides(2, 1, 2)(op, v),
                            op.Equal(
                                op.Reshape(op.Range(np.int64(0), op.size(v, 2), np.int64(1)), np.asarray([-1, 1])),
                                op.Sub(op.size(v, 2), np.int64(1)),
                            ),
                        ),
                        "x",
                        v,
                    ),
                ),
                lambda: pictures(1, 1, 7, 4),
            ),
            Mutant(kinds.NEGATIVE, "no negative part", at_input(0, relu), lambda: pictures(1, 1, 4, 4)),
            Mutant(kinds.AXIS, "height for width", turned_where_square, lambda: pictures(1, 1, 5, 5)),
        ],
        exporter="dynamo",
        others=("legacy",),
    ),
    Model(
        "vision.patches",
        Patches,
        lambda: (torch.randn(2, 8, 8),),
        ({0: "batch", 1: "height", 2: "width"},),
        [
            Mutant(
                kinds.AXIS,
                "patches turned over",
                attributes("Transpose", perm=[0, 1, 3, 4, 2]),
                lambda: (torch.randn(1, 8, 12),),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "four patches",
                at_output(0, lambda op, v: op.Where(place_from(4, -2)(op, v), np.float32(0), v)),
                lambda: (torch.randn(1, 8, 12),),
            ),
            Mutant(
                kinds.ROWS,
                "patches from 65 on",
                at_output(0, when(place_from(65, -2), zeroed)),
                lambda: (torch.randn(1, 40, 40),),
            ),
        ],
    ),
    Model(
        "vision.shuffle",
        Shuffle,
        lambda: (torch.rand(1, 2, 3, 3),),
        ({0: "batch", 2: "height", 3: "width"},),
        [
            Mutant(kinds.BOUND, "no lower bound", clip_from(-1.0), lambda: (torch.rand(1, 2, 3, 3) * 9 - 9,)),
            Mutant(kinds.BOUND, "up to 0.99", at_output(0, at_most(0.99)), lambda: (torch.randn(1, 2, 3, 3) * 99,)),
            Mutant(kinds.BOUND, "from 0.001", at_output(0, at_least(0.001)), lambda: (torch.randn(1, 2, 3, 3) * 99,)),
        ],
    ),
    Model(
        "vision.flip",
        Flip,
        lambda: (torch.randn(1, 4, 4),),
        ({0: "batch", 1: "height", 2: "width"},),
        [
            Mutant(
                kinds.FROZEN_SIZE,
                "centre of a picture of four",
                at_output(1, lambda op, v: op.Slice("x", np.asarray([1, 1]), np.asarray([3, 3]), np.asarray([1, 2]))),
                lambda: (torch.randn(1, 6, 8),),
            ),
            Mutant(
                kinds.AXIS,
                "square pictures upside down",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.Equal(op.size(v, 1), op.size(v, 2)),
                        op.Slice("x", np.asarray([-1]), np.asarray([-(2**62)]), np.asarray([1]), np.asarray([-1])),
                        v,
                    ),
                ),
                lambda: (torch.randn(1, 5, 5),),
            ),
            Mutant(
                kinds.EDGE,
                "odd widths one to the right",
                at_output(1, lambda op, v: op.Where(size_divides(2, 1, 2)(op, "x"), op.Neg(v), v)),
                lambda: (torch.randn(1, 4, 7),),
            ),
        ],
        others=(),
    ),
]
