import torch
from model import Leaves, Net


def test_net(trueport):
    trueport.check(Net(), (torch.randn(2, 3),), free={"x": {0: "batch"}})


def test_leaves(trueport):
    trueport.check(Leaves(), (torch.randn(2, 3),))
