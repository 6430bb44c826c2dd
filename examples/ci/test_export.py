"""With trueport installed, pytest has the fixture `trueport`. A failing test shows the report."""

import torch
from model import Net


def test_the_export_is_faithful(trueport):
    trueport.check(Net(), (torch.randn(2, 3),), free={"x": {0: "batch"}})
