"""A comparison that capture has lost is not in the plan that the captured graph gives; its number is drawn all the
same, since it stands in the source."""

from __future__ import annotations

import torch
from torch import nn

import trueport
from trueport.verify.inputs.written import numbers_written


def beyond(x):
    return x.clamp(max=6.5)


class Marks(nn.Module):
    """`is_exporting()` stands for a fault of capture: the trace does not see the comparison, and eager does."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(64, 4_096), nn.Linear(4_096, 64)

    def marked(self, x):
        return (x == 417.25) & (x % 9_973 != -5)

    def forward(self, x):
        if x.shape[1] > 4_000:
            raise ValueError
        y = beyond(self.narrow(self.wide(x).relu()))
        if torch.compiler.is_exporting():
            return y
        return torch.where(self.marked(x), y + 1, y)


def test_numbers_are_read_from_what_forward_calls() -> None:
    assert set(numbers_written(Marks())) == {417.25, 9_973, -5, 6.5}


def test_a_comparison_that_capture_lost_is_found() -> None:
    """It is told by the trace being made once more, as eager."""
    torch.manual_seed(0)
    program = trueport.export(Marks().eval(), (torch.randn(256, 64),), dynamic_shapes=({0: "rows"},))
    assert "TP009" in [found.code for found in program.report.diagnostics]
