"""A model that decides, and the command that exports it."""

from __future__ import annotations

import pytest

MODEL = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    return ["export", f"{tmp_path}/model.py:Net", "-i", "x:2x3", "-o", f"{tmp_path}/net.onnx", "--no-verify"]
