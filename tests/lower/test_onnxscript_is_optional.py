"""An export needs no onnxscript; only translations that are written with it do, and say so."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import trueport
import trueport.lower
from trueport.cli.portable import fix_portable
from trueport.errors import ExportError, UsageError

EXPORT = """
import sys, torch, trueport
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8))
    def forward(self, x):
        y = self.layers(x)
        return y * 2 if x.sum() > 0 else y

program = trueport.export(Net().eval(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: "batch"}})
assert program.report.verified
print([name for name in sys.modules if name.startswith("onnxscript")])
"""


def test_an_export_does_not_import_it(tmp_path):
    (tmp_path / "export.py").write_text(EXPORT)
    done = subprocess.run([sys.executable, tmp_path / "export.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.fixture
def without_onnxscript(monkeypatch):
    monkeypatch.delattr(trueport.lower, "onnxscript_functions", raising=False)
    monkeypatch.delitem(sys.modules, "trueport.lower.onnxscript_functions", raising=False)
    monkeypatch.setitem(sys.modules, "onnxscript", None)


def test_a_translation_that_needs_it_names_the_extra(without_onnxscript):
    table = {torch.ops.aten.relu.default: lambda x: x}
    with pytest.raises(ExportError) as refused:
        trueport.export(lambda x: x.relu(), (torch.randn(3),), custom_translation_table=table)
    (found,) = refused.value.diagnostics
    assert found.code == "TP402"
    assert found.message.endswith("it takes no builder, so it is called with onnxscript, which is not installed")
    assert found.fix.startswith("pip install 'trueport[onnxscript]'")


def test_the_portable_form_is_tried_with_torchs_exporter_which_needs_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="onnxscript, which is not installed"):
        fix_portable("model.py:Net", diff=True, quiet=True, timeout=None)
