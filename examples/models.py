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


class Reader(nn.Module):
    """A branch and two loops: a trace sees one of the arms, and as many rounds as the example had."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 3)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, int]:
        state = words.new_zeros(3)
        for word in words:
            if word.sum() > 0:
                state = self.cell(word, state)
        halvings = 0
        while state.abs().max() > 0.25:
            state = state / 2
            halvings += 1
        return state, halvings


class Scaler(nn.Module):
    """A scale computed in numpy: what leaves torch, no graph can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        spread = y.detach().numpy().std()
        return y / float(spread)


def detector() -> nn.Module:
    """The detector with fixed weights, so that two processes mean the same model."""
    torch.manual_seed(1)
    return Detector().eval()


def reader() -> nn.Module:
    torch.manual_seed(0)
    return Reader().eval()


def scaler() -> nn.Module:
    torch.manual_seed(0)
    return Scaler().eval()
