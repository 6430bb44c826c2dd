"""Integer arithmetic of every dtype."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.mutations import (
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    at_input,
    at_least,
    at_most,
    at_output,
    attributes,
    before,
    behind,
    each_is,
    elements_above,
    number,
    place_from,
    plus,
    rows_above,
    size_divides,
    size_is,
    through,
    when,
    zeroed,
)


class Clock(nn.Module):
    """Milliseconds since 1970 into days, hours and minutes; before 1970 they are negative."""

    def forward(self, stamp: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        days = stamp // 86_400_000
        rest = stamp % 86_400_000
        return days, rest // 3_600_000, rest % 3_600_000 // 60_000


class Mixed8(nn.Module):
    """int8 sums wrap; the mean is computed wider."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a + b, (a.int() * b.int()) // 3


class Blend(nn.Module):
    """Two 8-bit pictures, blended without leaving integers."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return ((a.int() * 3 + b.int() + 2) // 4).to(torch.uint8)


class Packed(nn.Module):
    """Colours packed into one number and taken apart again."""

    def forward(self, r: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        packed = (r << 16) | (g << 8) | b
        return packed, (packed >> 8) & 255


class Checksum(nn.Module):
    """Adler-like: two running sums."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = (x.cumsum(0) + 1) % 65521
        return a[-1], a.sum() % 65521


class Ranked(nn.Module):
    """Ids are kept by their largest and smallest, and how far they are apart."""

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return ids.amax(-1), ids.amin(-1), (ids == ids.amax(-1, keepdim=True)).sum(-1)


class Pages(nn.Module):
    """How many pages of `size` rows there are, and the rest on the last one."""

    def forward(self, count: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        pages = (count + size - 1) // size
        return pages, count - (pages - 1) * size


class Steps16(nn.Module):
    """Differences of 16-bit samples."""

    def forward(self, samples: Tensor) -> Tensor:
        return (samples[:, 1:].int() - samples[:, :-1].int()).abs()


def eights(count: int) -> tuple[Tensor, Tensor]:
    return tuple(torch.randint(-60, 60, (count,), dtype=torch.int8) for _ in range(2))  # type: ignore[return-value]


def pictures(height: int, width: int, most: int = 256) -> tuple[Tensor, Tensor]:
    a, b = (torch.randint(0, most, (height, width), dtype=torch.uint8) for _ in range(2))
    return a, b


MODELS = [
    Model(
        "integers.clock",
        Clock,
        lambda: (torch.tensor([1_700_000_000_000, 90_000_000, 7]),),
        ({0: "stamps"},),
        [
            Mutant(
                kinds.BEYOND_32,
                "days towards zero, in int32",
                at_output(0, lambda op, v: op.Cast(op.Cast(op.Div("stamp", np.int64(86_400_000)), to=INT32), to=7)),
                lambda: (torch.tensor([-5, 3]),),
            ),
            Mutant(
                kinds.BEYOND_24,
                "rest through float32",
                behind("Mod", through(FLOAT), 0),
                lambda: (torch.tensor([86_399_999 + 86_400_000 * 20000]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "stamp wraps at 2^41",
                at_input(0, lambda op, v: op.Mod(v, np.int64(2**41))),
                lambda: (torch.tensor([2**41 + 5]),),
            ),
            Mutant(
                kinds.DIVISION,
                "days towards zero",
                at_output(0, lambda op, v: op.Div("stamp", np.int64(86_400_000))),
                lambda: (torch.tensor([-5]),),
            ),
            Mutant(
                kinds.DIVISION,
                "rest with the stamp's sign",
                attributes("Mod", nth=0, fmod=1),
                lambda: (torch.tensor([-5, -86_400_001]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "stamp through double",
                at_input(0, through(DOUBLE)),
                lambda: (torch.tensor([(2**56 // 60_000 + 1) * 60_000 - 1]),),
            ),
        ],
    ),
    Model(
        "integers.mixed8",
        Mixed8,
        lambda: eights(6),
        ({0: "values"}, {0: "values"}),
        [
            Mutant(
                kinds.WRAP,
                "sum stops at the ends",
                at_output(
                    0,
                    lambda op, v: op.Cast(
                        op.Min(
                            op.Max(op.Add(op.Cast("a", to=INT32), op.Cast("b", to=INT32)), np.int32(-128)),
                            np.int32(127),
                        ),
                        to=INT8,
                    ),
                ),
                lambda: (torch.tensor([100, -100], dtype=torch.int8), torch.tensor([100, -100], dtype=torch.int8)),
            ),
            Mutant(
                kinds.DIVISION,
                "product divided towards zero",
                at_output(1, lambda op, v: op.Div(op.Mul(op.Cast("a", to=INT32), op.Cast("b", to=INT32)), np.int32(3))),
                lambda: (torch.tensor([-1], dtype=torch.int8), torch.tensor([5], dtype=torch.int8)),
            ),
            Mutant(
                kinds.WRAP,
                "the minimum is taken for -127",
                at_input(0, at_least(-127)),
                lambda: (torch.tensor([-128], dtype=torch.int8), torch.tensor([3], dtype=torch.int8)),
            ),
            Mutant(
                kinds.ELEMENTS,
                "above 1000 values",
                at_output(0, when(elements_above(999), plus(1))),
                lambda: eights(1000),
            ),
        ],
    ),
    Model(
        "integers.blend",
        Blend,
        lambda: pictures(4, 4),
        ({0: "height", 1: "width"}, {0: "height", 1: "width"}),
        [
            Mutant(
                kinds.WRAP,
                "white is not reached",
                behind("Div", at_most(254)),
                lambda: (torch.full((2, 2), 255, dtype=torch.uint8),) * 2,
            ),
            Mutant(kinds.CONSTANT, "not rounded", number(2, 1), lambda: pictures(4, 4)),
            Mutant(
                kinds.ELEMENTS,
                "above 4096 pixels",
                at_output(0, when(elements_above(4096), zeroed)),
                lambda: pictures(65, 65),
            ),
            Mutant(
                kinds.AXIS,
                "columns from 128 on are the first picture's",
                at_input(1, lambda op, v: op.Where(place_from(128, -1)(op, v), "a", v)),
                lambda: pictures(2, 140),
            ),
        ],
    ),
    Model(
        "integers.packed",
        Packed,
        lambda: tuple(torch.randint(0, 256, (5,)) for _ in range(3)),
        ({0: "pixels"}, {0: "pixels"}, {0: "pixels"}),
        [
            Mutant(
                kinds.WRAP,
                "red above 127 is negative",
                at_input(0, through(INT8)),
                lambda: tuple(torch.tensor([200, 5]) for _ in range(3)),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "wrong where red is green",
                at_output(0, lambda op, v: op.Where(op.Equal("r", "g"), op.Add(v, np.int64(1)), v)),
                lambda: tuple(torch.tensor([9, 5]) for _ in range(3)),
            ),
            Mutant(
                kinds.BEYOND_24,
                "packed in float32",
                at_output(0, through(FLOAT)),
                lambda: (torch.tensor([300]), torch.tensor([1]), torch.tensor([1])),
            ),
            Mutant(
                kinds.BEYOND_32,
                "packed in int32",
                at_output(0, through(INT32)),
                lambda: (torch.tensor([2**17]), torch.tensor([1]), torch.tensor([1])),
            ),
        ],
    ),
    Model(
        "integers.checksum",
        Checksum,
        lambda: (torch.randint(0, 256, (20,)),),
        ({0: "bytes"},),
        [
            Mutant(
                kinds.ROWS,
                "above 257 bytes",
                behind("CumSum", when(rows_above(257), plus(1))),
                lambda: (torch.randint(0, 256, (300,)),),
            ),
            Mutant(
                kinds.BEYOND_24,
                "sum in float32",
                behind("CumSum", through(FLOAT)),
                lambda: (torch.tensor([2**24, 1, 1, 1]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "sum in int32",
                behind("CumSum", through(INT32)),
                lambda: (torch.tensor([2**31 - 1, 1, 70]),),
            ),
            Mutant(
                kinds.SCAN,
                "255 is left out from byte 16 on",
                before(
                    "CumSum",
                    0,
                    lambda op, v: op.Where(op.And(place_from(16, -1)(op, v), each_is(255)(op, v)), np.int64(0), v),
                ),
                lambda: (torch.full((40,), 255),),
            ),
        ],
    ),
    Model(
        "integers.ranked",
        Ranked,
        lambda: (torch.randint(0, 50, (3, 4)),),
        ({0: "rows", 1: "ids"},),
        [
            Mutant(
                kinds.BELOW,
                "largest starts from -1",
                at_output(0, at_least(-1)),
                lambda: (torch.tensor([[-9, -4, -30]]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "largest in int32",
                at_output(0, through(INT32)),
                lambda: (torch.tensor([[2**31 + 7, 3, 1, 0, 5]]),),
            ),
            Mutant(
                kinds.BEYOND_24,
                "smallest in float32",
                at_output(1, through(FLOAT)),
                lambda: (torch.tensor([[2**24 + 1, 2**25 + 7]]),),
            ),
            Mutant(kinds.TIES, "counted once", at_output(2, at_most(1)), lambda: (torch.tensor([[7, 3, 7, 7]]),)),
            Mutant(
                kinds.BOUND,
                "smallest starts from a million",
                at_output(1, at_most(10**6)),
                lambda: (torch.tensor([[2 * 10**6, 3 * 10**6]]),),
            ),
        ],
    ),
    Model(
        "integers.pages",
        Pages,
        lambda: (torch.tensor([10, 23, 40]), torch.tensor([5, 5, 7])),
        ({0: "books"}, {0: "books"}),
        [
            Mutant(
                kinds.THRESHOLD,
                "one more page where it fits exactly",
                at_output(0, lambda op, v: op.Add(op.Div("count", "size"), np.int64(1))),
                lambda: (torch.tensor([10]), torch.tensor([5])),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "wrong where count is size",
                at_output(1, lambda op, v: op.Where(op.Equal("count", "size"), np.int64(0), v)),
                lambda: (torch.tensor([9]), torch.tensor([9])),
            ),
            Mutant(
                kinds.DIVISION,
                "negative counts",
                at_output(0, lambda op, v: op.Div(op.Sub(op.Add("count", "size"), np.int64(1)), "size")),
                lambda: (torch.tensor([-9]), torch.tensor([4])),
            ),
        ],
    ),
    Model(
        "integers.steps16",
        Steps16,
        lambda: (torch.randint(-1000, 1000, (2, 9), dtype=torch.int16),),
        ({0: "channels", 1: "samples"},),
        [
            Mutant(
                kinds.WRAP,
                "difference in 16 bits",
                before("Abs", 0, through(INT16)),
                lambda: (torch.tensor([[-30000, 30000]], dtype=torch.int16),),
            ),
            Mutant(
                kinds.SIZE,
                "even numbers of samples from 10 on",
                at_output(
                    0,
                    lambda op, v: op.Where(
                        op.And(rows_above(9, 1)(op, v), size_divides(2, 1, 1)(op, v)), op.Add(v, np.int32(1)), v
                    ),
                ),
                lambda: (torch.zeros(1, 12, dtype=torch.int16),),
            ),
            Mutant(
                kinds.SIZE,
                "19 samples",
                at_output(0, when(size_is(18, 1), plus(1))),
                lambda: (torch.zeros(1, 19, dtype=torch.int16),),
            ),
        ],
    ),
]
