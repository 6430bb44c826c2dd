import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class VaeOut:
    recon: torch.Tensor
    kl: float
    prior: object


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 4), nn.Linear(2, 8)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (logvar / 2).exp()
        z = F.dropout(z, 0.2)
        if random.random() < 0.5:
            z = z.flip(0)
        kl = (mu ** 2 + logvar.exp() - logvar - 1).sum().item()
        return VaeOut(self.dec(z), kl, torch.distributions.Normal(0.0, 1.0))
