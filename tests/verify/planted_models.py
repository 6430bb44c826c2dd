"""Small models, each with one line, marked `# <-`, whose operator gets a wrong translation in `test_planted`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Sigmoid(nn.Module):
    def forward(self, x):
        y = x * 2
        y = y.sigmoid()  # <-
        return y + 1


class Relu(nn.Module):
    def forward(self, x):
        y = x - 1
        y = y.relu()  # <-
        return y * 3


class AddInArm(nn.Module):
    def forward(self, x):
        y = x * 2
        if x.sum() > 100:
            y = y - 1
            y = y + x  # <-
        return y * 3


class MulInLoop(nn.Module):
    def forward(self, x, n: int):
        for _ in range(n):
            x = x - 1
            x = x * 3  # <-
        return x + 1


class Softmax(nn.Module):
    def forward(self, x):
        y = x + 1
        y = y.softmax(-1)  # <-
        return y @ x.t()


class Mean(nn.Module):
    def forward(self, x):
        y = x * x
        y = y.mean(1)  # <-
        return y - 1


class Gelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return F.gelu(x) + 1  # <-


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        y = x.exp()
        y = self.norm(y)  # <-
        return y * 2


class LinearInElse(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0.25:
            y = x.tanh()
        else:
            y = x.abs()
            y = self.other(y)  # <-
        return y - x


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, padding=1)

    def forward(self, x):
        y = x.abs()
        y = self.conv(y)  # <-
        return y.relu()


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids):
        known = ids.clamp(0, 9)
        y = self.table(known)  # <-
        return y.sum(1)


class Cat(nn.Module):
    def forward(self, x):
        a, b = x + 1, x * 2
        y = torch.cat([a, b], 0)  # <-
        return y.exp()


class Where(nn.Module):
    def forward(self, x):
        y = x * 2
        y = torch.where(x > 0, y, x)  # <-
        return y - 1


class CumsumInLoop(nn.Module):
    def forward(self, x):
        while x.sum() < 50:
            x = x.abs() + 1
            x = x.cumsum(0)  # <-
        return x * 2


class FloorInNestedArm(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 5
            if x.max() > 20:
                x = x - 0.25
                x = x.floor()  # <-
        return x + 1


class ClampInLoopArm(nn.Module):
    def forward(self, x):
        for row in x:
            if row.sum() > 2:
                x = x + 0.5
                x = x.clamp(-1.0, 1.0)  # <-
        return x


class Argmax(nn.Module):
    def forward(self, x):
        y = x * -2
        y = y.argmax(1)  # <-
        return y + 1


class Gather(nn.Module):
    def forward(self, x, at):
        y = x * 2
        y = y.gather(1, at)  # <-
        return y + 1


class ExpInWhile(nn.Module):
    def forward(self, x):
        rounds = 0
        while rounds < 3 and x.max() < 4:
            x = x / 2
            x = x.exp()  # <-
            rounds = rounds + 1
        return x, rounds


class Permute(nn.Module):
    def forward(self, x):
        y = x + 1
        y = y.permute(1, 0)  # <-
        return y * 2


class Slice(nn.Module):
    def forward(self, x):
        y = x * 2
        y = y[1:]  # <-
        return y + 1


class TernarySqrt(nn.Module):
    def forward(self, x):
        y = x.abs() + 1
        return y.sqrt() if x.sum() < -10 else y  # <-
