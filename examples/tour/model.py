"""The models of the tour, written as people write them."""

import torch
from torch import nn


class Net(nn.Module):
    """A branch on a tensor: a plain trace would keep one arm of it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.mean() > 0:
            y = y.relu()
        return y


class Other(Net):
    """The same signature, another answer."""

    def forward(self, x):
        return super().forward(x) + 1


class Fixed(nn.Module):
    """A number where a size is meant."""

    def forward(self, x):
        return x.view(2, 4) * 2


class Leaves(nn.Module):
    """Leaves torch in the middle."""

    def forward(self, x):
        return x / float(x.numpy().std())


class Counter(nn.Module):
    """Remembers its calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Words(nn.Module):
    """A loop over a free length, and a result by name."""

    def forward(self, ids, mask):
        total = torch.zeros(())
        for row in ids * mask:
            if row.sum() > 3:
                total = total + row.max()
        return {"total": total, "length": ids.shape[1]}
