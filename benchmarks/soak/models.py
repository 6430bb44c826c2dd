"""Models of many kinds: some are exported, some refused."""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 1600
"""Of the larger ones: two layers are 20 MB."""


class Large(nn.Module):
    def __init__(self, fill: float | None = None):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        for parameter in self.parameters() if fill is not None else ():
            nn.init.constant_(parameter, fill)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class LargeBranch(Large):
    def forward(self, x):
        y = self.first(x)
        if y.sum() > 0:
            y = y * 2
        return self.second(y)


class Loops(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.zeros_like(x[0])
        for row in x:
            y = torch.tanh(self.layer(row) + y)
        return y


class Writes(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0] = x.sum(1)
        return y.cumsum(0)


def images() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2))


class FixedSize(Large):
    def forward(self, x):
        return self.second(self.first(x)).reshape(2, WIDTH)


class LeavesTorch(Large):
    def forward(self, x):
        return self.second(self.first(x)).numpy().tolist()


class Fails(Large):
    def forward(self, x):
        return self.second(self.first(x)) @ x


class Draws(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(x) + torch.sort(x)[0]


def example(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0))


EXPORTED = {
    "20 MB": (Large, (2, WIDTH)),
    "20 MB with a branch": (LargeBranch, (2, WIDTH)),
    "a loop": (Loops, (3, 4)),
    "writes in place": (Writes, (3, 4)),
    "images": (images, (2, 3, 8, 8)),
    "a recurrent layer": (lambda: nn.LSTM(4, 3, batch_first=True), (2, 5, 4)),
}
REFUSED = {
    "a size baked in, 20 MB": (FixedSize, (2, WIDTH)),
    "leaves torch, 20 MB": (LeavesTorch, (2, WIDTH)),
    "eager fails, 20 MB": (Fails, (2, WIDTH)),
    "draws random numbers": (Draws, (2, 3)),
    "training mode": (lambda: Trains().train(), (2, 3)),
}
MUTATED = {
    "linear": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (2, 4)),
    "a loop": (Loops, (3, 4)),
    "writes in place": (Writes, (3, 4)),
    "images": (images, (2, 3, 8, 8)),
}


def made(entry, train: bool = False) -> nn.Module:
    """A model of the tables above, with the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = entry[0]()
    return model if train or entry in REFUSED.values() else model.eval()
