"""An axis that is as long as a formula of free sizes says: declared, traced, written, drawn and checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import trueport
from trueport.cli.main import main

SOURCE = '''
import torch
from torch import nn

class Decoder(nn.Module):
    """One step of attention over what was there before and what is new."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.mix = nn.Linear(4, 4)

    def forward(self, x, mask, past):
        keys = torch.cat([past, self.mix(x)], 1)
        scores = (x @ keys.transpose(1, 2)).masked_fill(mask[:, None] == 0, -1e9)
        return scores.softmax(-1) @ keys, keys
'''


def decoder() -> nn.Module:
    space: dict[str, Any] = {}
    exec(compile(SOURCE, "net.py", "exec"), space)
    return space["Decoder"]().eval()


ARGS = (torch.randn(2, 3, 4), torch.ones(2, 8, dtype=torch.int64), torch.randn(2, 5, 4))
SHAPES = {"x": {0: "b", 1: "s"}, "mask": {0: "b", 1: "p+s"}, "past": {0: "b", 1: "p"}}


def declared(model) -> list[str]:
    return [str(value.shape) for value in model.graph.inputs]


def test_a_mask_as_long_as_past_and_present(tmp_path):
    program = trueport.export(decoder(), ARGS, tmp_path / "net.onnx", dynamic_shapes=SHAPES)
    assert declared(program.model) == ["[b,s,4]", "[b,p + s]", "[b,p,4]"]
    tried = {(check.sizes["p"], check.sizes["s"]) for check in program.report.checks}
    assert len(tried) > 3
    assert any(p == 0 for p, _ in tried)


def test_a_file_says_so_itself(tmp_path):
    """`verify` without declared sizes reads the formula out of the file: else eager refuses every other size."""
    model = decoder()
    trueport.export(model, ARGS, tmp_path / "net.onnx", dynamic_shapes=SHAPES)
    report = trueport.verify(tmp_path / "net.onnx", model, ARGS)
    assert report.ok
    assert len({(check.sizes["p"], check.sizes["s"]) for check in report.checks}) > 3


@pytest.mark.parametrize(
    "said",
    [
        ["-i", "x:BxSx4", "-i", "past:BxPx4", "-i", "mask:Bx(P+S):i64@0..1"],
        ["-i", "x:BxSx4", "-i", "past:BxPx4", "-i", "mask:BxT:i64@0..1", "--dim", "T=P+S", "--dim", "P=0..40"],
        ["-i", "x:BxSx4", "-i", "past:BxPx4", "-i", "mask:Bx(P+S):i64@0..1", "--dim", "P=5..5"],
    ],
)
def test_on_the_command_line(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SOURCE)
    done = CliRunner().invoke(main, ["export", "net.py:Decoder", "-o", "net.onnx", *said, "--output-format", "json"])
    assert done.exit_code == 0, done.stderr
    mask = next(port for port in json.loads(done.stdout)["inputs"] if port["name"] == "mask")
    assert mask["shape"] == (["B", "S + 5"] if said[-1] == "P=5..5" else ["B", "P + S"])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["-i", "mask:Bx(P/S)"], "is neither a shape nor a dtype"),
        (["-i", "x:BxSx4", "--dim", "S=2*"], "is neither a range nor a formula"),
    ],
)
def test_what_is_no_formula(said, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SOURCE)
    done = CliRunner().invoke(main, ["export", "net.py:Decoder", "-o", "net.onnx", *said])
    assert done.exit_code == 2
    assert why in done.stderr
