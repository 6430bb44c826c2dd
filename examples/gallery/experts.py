import torch
import torch.nn as nn


@torch.library.custom_op("mycompany::fast_gate", mutates_args=())
def fast_gate(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


@fast_gate.register_fake
def _(x):
    return torch.empty_like(x)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.register_buffer("hits", torch.zeros(4))

    def forward(self, x):
        scores = fast_gate(self.gate(x))
        top, which = scores.max(-1)
        out = torch.zeros(16, 8)
        for n in range(x.shape[0]):
            e = which[n].item()
            self.hits[e] += 1
            out[n] = self.experts[e](x[n]) * top[n]
        return out
