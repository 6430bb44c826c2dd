import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, 4)
        self.prev = None
        self.age = 0

    def match(self, cur):
        cost = torch.cdist(cur, self.prev)
        pairs = {}
        for i in range(len(cost)):
            j = int(cost[i].argmin())
            if cost[i, j] < 0.5:
                pairs[i] = j
        return pairs

    def forward(self, boxes):
        cur = self.enc(boxes)
        self.age += 1
        if self.prev is None:
            self.prev = cur
            return cur, {}
        pairs = self.match(cur)
        self.prev = cur
        return cur, pairs
