"""A model of a project that checks its export in CI."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        if y.mean() > 0:  # kept alive: both arms are in the exported model
            y = y.relu()
        return y.softmax(-1)
