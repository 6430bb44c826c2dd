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


class Settings:
    most = 48


LOUDEST = 311.0


class Limited(nn.Module):
    """Its limits are written elsewhere than where they are compared with."""

    settings = Settings()

    def forward(self, ids, x):
        if ids.shape[1] > self.settings.most:
            raise ValueError("too long")
        if x.max() > LOUDEST:
            x = x / x.max()
        return ids.cumsum(1), x


class WrongAtItsLimits(Limited):
    def forward(self, ids, x):
        sums, x = super().forward(ids, x)
        return (sums - 1 if ids.shape[1] ** 2 == 2_304 else sums), x  # the file does not say 48 either


def test_numbers_behind_names_are_tried(tmp_path) -> None:
    file = tmp_path / "net.onnx"
    args = torch.ones(2, 3, dtype=torch.int64), torch.randn(5)
    free = ({0: "batch", 1: "length"}, None)
    trueport.export(WrongAtItsLimits(), args, file, dynamic_shapes=free, verify=False)
    seen = [line for found in trueport.verify(file, Limited(), args, dynamic_shapes=free).errors for line in found.seen]
    assert any("length=48" in line for line in seen), seen
    right = trueport.export(Limited(), args, dynamic_shapes=free).report
    assert right.ok and "TP810" not in [found.code for found in right.diagnostics]  # the way of LOUDEST was taken, too
