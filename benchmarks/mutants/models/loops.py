"""Loops whose number of rounds the input decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.edit import Edit
from benchmarks.mutants.mutations import (
    FLOAT,
    INT32,
    at_input,
    at_output,
    exact_rounds,
    number,
    retype,
    rounds,
    rows_above,
    size_is,
    through,
    times,
    when,
    zeroed,
)


class Repeat(nn.Module):
    """As many steps as the caller asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x: Tensor, steps: int) -> Tensor:
        done = 0
        while done < steps:
            x = torch.tanh(self.step(x)) + 0.1 * done
            done = done + 1
        return x


class Halve(nn.Module):
    """Until it is small enough, at most 40 times."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        count = torch.tensor(0)
        while x.abs().max() > 1 and count < 40:
            x = x / 2
            count = count + 1
        return x, count


class OverTime(nn.Module):
    """A recurrence of one's own over the axis of time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], 3)
        outputs = []
        for t in range(x.shape[1]):
            state = torch.tanh(self.cell(torch.cat([x[:, t], state], -1)))
            outputs.append(state)
        return torch.stack(outputs, 1)


class Collatz(nn.Module):
    """How many steps until one."""

    def forward(self, n: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.tensor(0)
        largest = n
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            largest = torch.maximum(largest, n)
            steps = steps + 1
        return steps, largest


class Newton(nn.Module):
    """Square roots until they hold."""

    def forward(self, x: Tensor) -> Tensor:
        root = torch.ones_like(x)
        rounds_ = 0
        while (root * root - x).abs().max() > 1e-3 * x.max() and rounds_ < 30:
            root = 0.5 * (root + x / root)
            rounds_ = rounds_ + 1
        return root


class Greedy(nn.Module):
    """Decoding until the stop token, or 32 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, start: Tensor, bias: Tensor) -> Tensor:
        token = start
        tokens = torch.full((32,), -1)
        at = 0
        while at < 32 and token != 0:
            tokens[at] = token
            token = (self.out(self.table(token)) + bias * at).argmax()
            at = at + 1
        return tokens


class ByLengths(nn.Module):
    """Each row its own length: sums of what is there."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        total = torch.zeros(x.shape[0])
        for step in range(int(lengths.max())):
            going = (lengths > step).float()
            total = total * 0.5 + x[:, step] * going
        return total


def exact_at_least_one(edit: Edit) -> None:
    """The first round is made without asking."""
    loop = edit.node("Loop")
    edit.before(loop, lambda op, value: op.constant(np.asarray(True)), 1)


def skip_abs(edit: Edit) -> None:
    for at in edit.nodes("Abs"):
        edit.instead(at, lambda op, operands: operands[0])


def forget(edit: Edit, step: int) -> None:
    """The state is zero again at one step."""
    body = next(a.g for a in edit.node("Loop").node.attribute if a.name == "body")
    step_name = body.input[0].name
    concat = next(at for at in edit.nodes("Concat") if at.graph == body)
    edit.before(
        concat,
        lambda op, value: op.Where(op.Equal(step_name, np.int64(step)), op.Sub(value, value), value),
        1,
    )


def last_changed(table: Any) -> Any:
    table[-1] = -table[-1] - 1
    return table


def argmax_last(edit: Edit) -> None:
    edit.set(edit.node("ArgMax"), select_last_index=1)


MODELS = [
    Model(
        "loops.repeat",
        Repeat,
        lambda: (torch.randn(2, 3), 4),
        ({0: "rows"}, None),
        [
            Mutant(kinds.ROUNDS, "at most 12 rounds", rounds(12), lambda: (torch.randn(2, 3), 13)),
            Mutant(kinds.ROUNDS, "at most 16 rounds", rounds(16), lambda: (torch.randn(2, 3), 18)),
            Mutant(kinds.ROUNDS, "at most 20 rounds", rounds(20), lambda: (torch.randn(2, 3), 21)),
            Mutant(kinds.FROZEN_ROUNDS, "four rounds", exact_rounds(4), lambda: (torch.randn(2, 3), 6)),
            Mutant(kinds.FROZEN_ROUNDS, "at least one round", exact_at_least_one, lambda: (torch.randn(2, 3), 0)),
        ],
        others=(),
    ),
    Model(
        "loops.halve",
        Halve,
        lambda: (torch.randn(3, 2) * 9,),
        ({0: "rows"},),
        [
            Mutant(kinds.ROUNDS, "at most 13 rounds", rounds(13), lambda: (torch.full((1, 2), 2.0**17),)),
            Mutant(kinds.ROUNDS, "at most 39 rounds", rounds(39), lambda: (torch.full((1, 2), 1e30),)),
            Mutant(
                kinds.THRESHOLD, "until below one", retype("Greater", "GreaterOrEqual", 0), lambda: (torch.ones(1, 2),)
            ),
            Mutant(kinds.NEGATIVE, "only positive values count", skip_abs, lambda: (torch.tensor([[0.5, -9.0]]),)),
        ],
        others=(),
    ),
    Model(
        "loops.over_time",
        OverTime,
        lambda: (torch.randn(2, 4, 3),),
        ({0: "batch", 1: "time"},),
        [
            Mutant(
                kinds.ROUNDS,
                "state forgotten at step 17",
                lambda edit: forget(edit, 17),
                lambda: (torch.randn(2, 20, 3),),
            ),
            Mutant(
                kinds.ROUNDS,
                "state forgotten at step 13",
                lambda edit: forget(edit, 13),
                lambda: (torch.randn(1, 14, 3),),
            ),
            Mutant(
                kinds.SIZE,
                "wrong at 19 steps",
                at_output(0, when(size_is(19, 1), times(0.9))),
                lambda: (torch.randn(1, 19, 3),),
            ),
            Mutant(
                kinds.ROWS,
                "more than 40 rows",
                at_output(0, when(rows_above(40), zeroed)),
                lambda: (torch.randn(41, 2, 3),),
            ),
        ],
        others=(),
    ),
    Model(
        "loops.collatz",
        Collatz,
        lambda: (torch.tensor(6),),
        None,
        [
            Mutant(kinds.ROUNDS, "at most 16 steps", rounds(16), lambda: (torch.tensor(27),)),
            Mutant(kinds.ROUNDS, "at most 100 steps", rounds(100), lambda: (torch.tensor(27),)),
            Mutant(
                kinds.BEYOND_24, "largest in float32", at_output(1, through(FLOAT)), lambda: (torch.tensor(2**24 + 27),)
            ),
            Mutant(kinds.BEYOND_32, "number in int32", at_input(0, through(INT32)), lambda: (torch.tensor(2**32 + 6),)),
        ],
        others=(),
    ),
    Model(
        "loops.newton",
        Newton,
        lambda: (torch.rand(4) + 1,),
        ({0: "values"},),
        [
            Mutant(kinds.FROZEN_ROUNDS, "five rounds", rounds(5), lambda: (torch.tensor([1e4, 2.0]),)),
            Mutant(kinds.CONSTANT, "stops at a tenth", number(1e-3, 1e-1), lambda: (torch.tensor([9.0, 2.0]),)),
            Mutant(kinds.CONSTANT, "at most 10 rounds", number(30, 10), lambda: (torch.tensor([1e8, 2.0]),)),
        ],
        others=(),
    ),
    Model(
        "loops.greedy",
        Greedy,
        lambda: (torch.tensor(3), torch.randn(12) * 0.1),
        None,
        [
            Mutant(
                kinds.ROUNDS,
                "at most 17 tokens",
                rounds(17),
                lambda: (torch.tensor(3), torch.tensor([-9.0] + [0.0] * 11)),
            ),
            Mutant(
                kinds.TABLE,
                "last token",
                lambda edit: edit.change(lambda a: a.shape == (12, 6), last_changed, 0),
                lambda: (torch.tensor(11), torch.zeros(12)),
            ),
            Mutant(
                kinds.TIES,
                "the last of equals",
                argmax_last,
                lambda: (torch.tensor(3), torch.tensor([-1e9] + [1e9] * 11)),
            ),
        ],
        others=(),
    ),
    Model(
        "loops.by_lengths",
        ByLengths,
        lambda: (torch.randn(3, 6), torch.tensor([2, 5, 3])),
        ({0: "rows", 1: "time"}, {0: "rows"}),
        [
            Mutant(kinds.ROUNDS, "at most 13 rounds", rounds(13), lambda: (torch.randn(2, 20), torch.tensor([3, 20]))),
            Mutant(kinds.FROZEN_ROUNDS, "five rounds", rounds(5), lambda: (torch.randn(2, 9), torch.tensor([3, 9]))),
            Mutant(
                kinds.THRESHOLD,
                "one step too many",
                retype("Greater", "GreaterOrEqual"),
                lambda: (torch.randn(2, 9), torch.tensor([3, 9])),
            ),
            Mutant(
                kinds.EMPTY,
                "length 0 counts as 1",
                at_input(1, lambda op, v: op.Max(v, np.int64(1))),
                lambda: (torch.randn(2, 4), torch.tensor([0, 3])),
            ),
        ],
        others=(),
    ),
]
