"""`x[t : t + 1]` in a loop: as long as it is written where both bounds are known to be inside, else as x has it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, refused, rows

LENGTHS = rows(1, 2, 5, 8)


class Cell(nn.Module):
    """A cell takes as many rows as its state has, and torch wants to know that it does."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)


class OverARange(Cell):
    def forward(self, x):
        state = torch.zeros(1, 3)
        for t in range(x.size(0)):
            state = self.cell(x[t : t + 1], state)
        return state


class WhileThereAreRows(Cell):
    def forward(self, x):
        state, t = torch.zeros(1, 3), 0
        while t < x.size(0):
            state = self.cell(x.narrow(0, t, 1), state)
            t = t + 1 if state.sum() > 0 else t + 2
        return state


class TwoAtATime(Cell):
    def forward(self, x):
        state, t = torch.zeros(2, 3), 0
        while t + 1 < x.size(0):
            state = self.cell(x[t : t + 2], state)
            t += 1
        return state


class Written(nn.Module):
    def forward(self, x):
        made = torch.zeros_like(x)
        for t in range(x.size(0)):
            made[t : t + 1] = x[t : t + 1] * t
            made[t : t + 1, 1] += 1
        return made


class TheLastIsShorter(nn.Module):
    def forward(self, x):
        total, t = torch.zeros(3), 0
        while t < x.size(0):
            total = total + x[t : t + 2].sum(0) * x[t : t + 2].shape[0]
            t += 2
        return total


@pytest.mark.parametrize("kind", [OverARange, WhileThereAreRows, TwoAtATime, Written, TheLastIsShorter])
def test_rows_of_a_round(kind):
    assert_kept_alive(kind(), LENGTHS[2], LENGTHS, dynamic_shapes=ROWS, loops=1)


class ByANumber(nn.Module):
    def forward(self, x, number):
        t = abs(number.item())
        if t < x.size(0):
            y = x[t : t + 1]
        else:
            y = x[t : t + 1]  # none: what is known in the other arm is not known here
        return y * 2


def test_what_an_arm_knows_stays_there():
    others = [(x, torch.tensor(at)) for (x,) in LENGTHS for at in (0, 1, 7, -3)]
    assert_kept_alive(ByANumber(), (LENGTHS[2][0], torch.tensor(1)), others, dynamic_shapes=(*ROWS, None))


class Unchecked(Cell):
    def forward(self, x, number):
        t = number.item()
        return self.cell(x[t : t + 1], torch.zeros(1, 3))


class Checked(Cell):
    def forward(self, x, number):
        t = number.item()
        row = x[t : t + 1]
        torch._check(row.shape[0] == 1)
        return self.cell(row, torch.zeros(1, 3))


def test_a_length_that_nobody_knows_is_refused_with_a_way_out():
    args = (LENGTHS[2][0], torch.tensor(1))
    found = refused(Unchecked(), args, dynamic_shapes=(*ROWS, None))
    assert found.code == "TP304"
    assert "torch._check(y.shape[0] == 1)" in found.fix
    assert_kept_alive(Checked(), args, [(LENGTHS[3][0], torch.tensor(6))], dynamic_shapes=(*ROWS, None))
