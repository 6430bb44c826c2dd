"""LSTM, GRU and running sums."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Edit
from benchmarks.mutants.mutations import (
    at_input,
    at_least,
    at_output,
    attributes,
    behind,
    place_from,
    plus,
    rolled,
    size_divides,
    size_is,
    times,
    when,
    zeroed,
)


class Tagger(nn.Module):
    """An LSTM over words, both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.lstm(x)[0])


class Encoder(nn.Module):
    """A GRU whose first state the caller gives."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 5)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        out, last = self.gru(x, state)
        return out, last


class Levels(nn.Module):
    """The highest and the sum so far, per row."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cummax(x, 1).values, x.cumsum(1)


class Smooth(nn.Module):
    """Differences of a running mean over a window of five."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.nn.functional.pad(x.cumsum(-1), (1, 0))
        return (total[:, 5:] - total[:, :-5]) / 5


class LastValid(nn.Module):
    """The output at each row's last valid step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        out = self.rnn(x)[0]
        return out[torch.arange(x.shape[0]), lengths - 1]


def forget_direction(edit: Edit) -> None:
    """The second direction's weights are the first's."""
    lstm = edit.node("LSTM")
    for operand in (1, 2, 3):
        edit.before(
            lstm,
            lambda op, value: op.Concat(
                op.Slice(value, np.asarray([0]), np.asarray([1]), np.asarray([0])),
                op.Slice(value, np.asarray([0]), np.asarray([1]), np.asarray([0])),
                axis=0,
            ),
            operand,
        )


MODELS = [
    Model(
        "recurrent.tagger",
        Tagger,
        lambda: (torch.randn(2, 5, 4),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(kinds.WEIGHT, "one direction's weights for both", forget_direction, lambda: (torch.randn(2, 5, 4),)),
            Mutant(
                kinds.ROWS,
                "input from step 64 on is zero",
                at_input(0, when(place_from(64, -2), zeroed)),
                lambda: (torch.randn(1, 66, 4),),
            ),
            Mutant(
                kinds.ROWS,
                "input from step 200 on is zero",
                at_input(0, when(place_from(200, -2), zeroed)),
                lambda: (torch.randn(1, 210, 4),),
            ),
            Mutant(
                kinds.BATCH,
                "rows from the eighth on",
                at_output(0, when(place_from(8, -3), times(1.01))),
                lambda: (torch.randn(10, 3, 4),),
            ),
            Mutant(kinds.BOUND, "cell is clipped", attributes("LSTM", clip=3.0), lambda: (torch.randn(2, 5, 4) * 40,)),
        ],
    ),
    Model(
        "recurrent.encoder",
        Encoder,
        lambda: (torch.randn(5, 2, 4), torch.zeros(1, 2, 5)),
        ({0: "length", 1: "batch"}, {1: "batch"}),
        [
            Mutant(
                kinds.FROZEN_VALUE,
                "first state is zero",
                at_input(1, zeroed),
                lambda: (torch.randn(5, 2, 4), torch.randn(1, 2, 5)),
            ),
            Mutant(
                kinds.SWAP,
                "reset before the product",
                attributes("GRU", linear_before_reset=0),
                lambda: (torch.randn(5, 2, 4), torch.randn(1, 2, 5)),
            ),
            Mutant(
                kinds.BATCH,
                "first state of row 0",
                at_input(
                    1,
                    lambda op, v: op.Expand(
                        op.Slice(v, np.asarray([0]), np.asarray([1]), np.asarray([1])), op.Shape(v)
                    ),
                ),
                lambda: (torch.randn(5, 3, 4), torch.randn(1, 3, 5)),
            ),
            Mutant(
                kinds.EMPTY,
                "one step",
                at_output(0, when(size_is(1), times(0.5))),
                lambda: (torch.randn(1, 3, 4), torch.randn(1, 3, 5)),
            ),
        ],
    ),
    Model(
        "recurrent.levels",
        Levels,
        lambda: (torch.randn(2, 6),),
        ({0: "rows", 1: "time"},),
        [
            Mutant(
                kinds.BELOW, "highest starts from -1", at_output(0, at_least(-1)), lambda: (torch.full((1, 4), -3.0),)
            ),
            Mutant(
                kinds.BELOW,
                "highest starts from -100",
                at_output(0, at_least(-100)),
                lambda: (torch.full((1, 4), -300.0),),
            ),
            Mutant(
                kinds.SCAN,
                "sum without the value itself",
                attributes("CumSum", exclusive=1),
                lambda: (torch.randn(2, 6),),
            ),
            Mutant(
                kinds.SCAN,
                "sum starts anew after 48 steps",
                behind(
                    "CumSum",
                    lambda op, v: op.Where(
                        place_from(48, -1)(op, v),
                        op.Sub(v, op.Slice(v, np.asarray([0]), np.asarray([1]), np.asarray([1]))),
                        v,
                    ),
                ),
                lambda: (torch.randn(1, 60),),
            ),
        ],
        others=(),
    ),
    Model(
        "recurrent.smooth",
        Smooth,
        lambda: (torch.randn(2, 9),),
        ({0: "rows", 1: "time"},),
        [
            Mutant(kinds.EDGE, "window one place later", at_output(0, rolled(1)), lambda: (torch.randn(2, 9),)),
            Mutant(
                kinds.SIZE,
                "multiples of eight",
                at_output(0, when(size_divides(8, 4, 1), plus(0.1))),
                lambda: (torch.randn(2, 16),),
            ),
            Mutant(
                kinds.OVERFLOW,
                "in half precision",
                behind("CumSum", lambda op, v: op.CastLike(op.Cast(v, to=10), v)),
                lambda: (torch.randn(2, 20) * 1000,),
            ),
        ],
    ),
    Model(
        "recurrent.last_valid",
        LastValid,
        lambda: (torch.randn(2, 5, 3), torch.tensor([3, 5])),
        ({0: "batch", 1: "length"}, {0: "batch"}),
        [
            Mutant(
                kinds.EDGE,
                "one step late where it is the last",
                at_input(1, lambda op, v: op.Min(v, op.Sub(op.size("x", 1), np.int64(1)))),
                lambda: (torch.randn(2, 4, 3), torch.tensor([4, 2])),
            ),
            Mutant(
                kinds.FROZEN_SIZE,
                "at most five steps",
                at_input(1, lambda op, v: op.Min(v, np.int64(5))),
                lambda: (torch.randn(2, 9, 3), torch.tensor([8, 2])),
            ),
            Mutant(
                kinds.INDEX,
                "length 0 is the first step, not the last",
                at_input(1, lambda op, v: op.Max(v, np.int64(1))),
                lambda: (torch.randn(2, 4, 3), torch.tensor([0, 2])),
            ),
        ],
    ),
]
