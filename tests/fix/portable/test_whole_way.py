"""The command: a file as users have it, the diff, the written file, and torch's own exporter on that."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import torch

MODEL = '''\
"""A gate, as somebody wrote it."""
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)   # small

    def forward(self, x):
        y = self.fc(x)
        # only where it is hot
        if y.mean() > 0: y = y * 0.5
        return y
'''
EXPECTED = """\
         y = self.fc(x)
         # only where it is hot
-        if y.mean() > 0: y = y * 0.5
+        def true_branch(y):
+            return y * 0.5
+
+        def false_branch(y):
+            return y.clone()
+
+        y = torch.cond(y.mean() > 0, true_branch, false_branch, (y,))
         return y
"""


def trueport(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueport", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_the_file_is_written_and_torch_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "gate.py"
    file.write_text(MODEL)
    shown = trueport(tmp_path, "fix", "--portable", "gate.py:Gate", "-i", "x:Bx4")
    assert shown.returncode == 1, shown.stderr
    assert EXPECTED in shown.stdout
    assert file.read_text() == MODEL
    assert "torch.onnx.export(dynamo=True) take it" in shown.stderr
    assert (
        subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=shown.stdout, text=True, check=False).returncode == 0
    )
    spec = importlib.util.spec_from_file_location("portable_gate", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    model = module.Gate().eval()
    exported = torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    assert any(node.target is torch.ops.higher_order.cond for node in exported.graph.nodes)


def test_what_cannot_be_is_told_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        for row in x:\n"
        "            if row.sum() > 0:\n                return row\n        return x[0]\n"
    )
    told = trueport(tmp_path, "fix", "--portable", "net.py:Net", "-i", "x:3x4")
    assert told.returncode == 1
    assert "error[TP108]" in told.stdout
    assert "net.py:6" in told.stdout or "net.py:7" in told.stdout
