"""Two files with the same text: each keeps its own name in what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import trueport
from trueport.load.targets import load_target

MODEL = """\
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x.double()
        return -x
"""


@pytest.mark.parametrize("name", ["one", "other"])
def test_a_copy_of_a_model_is_told_by_its_own_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"{name}.py"
    file.write_text(MODEL)
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(load_target(f"{name}.py:Net").model.eval(), (torch.zeros(3),))
    assert {found.where.file for found in caught.value.diagnostics if found.where} == {str(file)}
