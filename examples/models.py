"""Three small models of the kind that exporters get wrong."""

from __future__ import annotations

import torch
from torch import nn


class Detector(nn.Module):
    """How many boxes come out depends on the numbers that go in; an in-place write turns widths into corners."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(8, 1)
        self.box = nn.Linear(8, 4)

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        boxes = self.box(features)
        boxes[:, 2:] += boxes[:, :2]
        scores = self.score(features).squeeze(1).sigmoid()
        keep = scores > 0.5
        return {"boxes": boxes[keep], "scores": scores[keep], "which": torch.nonzero(keep).squeeze(1)}


class Gate(nn.Module):
    """Which code runs depends on the numbers: a trace sees one of the two arms."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        if x.sum() > 0:
            return x * 2
        return -x


class Router(nn.Module):
    """A tensor picks an entry of a Python list: nothing that a graph could hold."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best = self.router(x).argmax()
        return self.experts[int(best)](x)


def detector() -> nn.Module:
    """The detector with fixed weights, so that two processes mean the same model."""
    torch.manual_seed(1)
    return Detector().eval()


def gate() -> nn.Module:
    torch.manual_seed(0)
    return Gate().eval()


def router() -> nn.Module:
    torch.manual_seed(0)
    return Router().eval()
