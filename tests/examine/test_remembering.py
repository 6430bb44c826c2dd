"""Calls in turn: does any answer depend on the calls before it?"""

from __future__ import annotations

import torch
from torch import nn

from trueport.examine import Snapshot, remembers
from trueport.load.request import make_job


def asked(model: nn.Module, *sizes: int) -> bool | None:
    return remembers(make_job(model, (torch.randn(*sizes),), dynamic_shapes=({0: "n"},)))


class Table(nn.Module):
    """Positions, made anew for a longer sequence than any before."""

    def __init__(self) -> None:
        super().__init__()
        self.made(4)

    def made(self, length: int) -> None:
        self.table = torch.arange(length).float().unsqueeze(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > self.table.shape[0]:
            self.made(x.shape[0])
        return x + self.table[: x.shape[0]]


class WholeTable(Table):
    """The same, but what it gives depends on how long the table has become."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) / self.table.shape[0]


class Largest(nn.Module):
    """A largest value so far, which only a larger one before shows."""

    def __init__(self) -> None:
        super().__init__()
        self.best = torch.tensor(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.best = torch.maximum(self.best, x.max())
        return x / (1 + self.best)


def test_a_table_that_grows_when_needed_is_forgotten() -> None:
    model = Table()
    before = Snapshot(model)
    assert asked(model, 3, 2) is False
    assert before.written() == (), "the model is left as it was"


def test_the_length_of_the_table_is_remembered() -> None:
    assert asked(WholeTable(), 3, 2) is True


def test_a_largest_value_so_far_is_remembered() -> None:
    assert asked(Largest(), 3, 2) is True


def test_too_few_calls_show_nothing() -> None:
    class Picky(Table):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() != 0:
                raise ValueError("zeros only")
            return super().forward(x)

    assert remembers(make_job(Picky(), (torch.zeros(3, 2),))) is None
