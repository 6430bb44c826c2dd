"""A difference is told once for its cause, and the cause in words that lead to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from click.testing import CliRunner

import trueport
from trueport.cli.main import main
from trueport.cli.outcome import Exit

MODEL = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 2)

    def forward(self, x):
        h = self.first(x)
        y = self.second(h)
        return h, y, y.sum(-1)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def net() -> torch.nn.Module:
    namespace: dict[str, Any] = {}
    exec(compile(MODEL, "model.py", "exec"), namespace)
    torch.manual_seed(0)
    made: torch.nn.Module = namespace["Net"]().eval()
    return made


class TestFreshWeights:
    """`trueport verify net.onnx model.py:Net` without `--weights`: the most common mistake with it."""

    @pytest.fixture(autouse=True)
    def files(self) -> None:
        Path("model.py").write_text(MODEL)
        torch.save(net().state_dict(), "weights.pt")
        torch.onnx.export(net(), (torch.rand(3, 4),), "net.onnx", verbose=False)

    def test_are_told_once_with_the_flag_that_is_missing(self) -> None:
        torch.manual_seed(7)
        shown = CliRunner().invoke(main, ["verify", "net.onnx", "model.py:Net", "-i", "x:3x4", "-q"])
        assert shown.exit_code == Exit.FINDINGS
        assert shown.stdout.count("error[") == 1, shown.stdout
        assert "none of the model's 4 weights is in the file" in shown.stdout
        assert "--weights FILE" in shown.stdout

    def test_the_flag_mends_it(self) -> None:
        arguments = ["verify", "net.onnx", "model.py:Net", "-i", "x:3x4", "-q", "--weights", "weights.pt"]
        shown = CliRunner().invoke(main, arguments)
        assert shown.exit_code == Exit.FAITHFUL, shown.output

    def test_one_weight_that_is_the_models_says_that_the_others_are_meant(self) -> None:
        model = net()
        with torch.no_grad():
            model.get_parameter("second.weight").mul_(2)
        (found,) = trueport.verify("net.onnx", model, (torch.rand(3, 4),)).errors
        assert not any("weights is in the file" in fact for fact in found.seen)
        assert "load_state_dict" not in found.fix


class AsksWhetherItIsExported(torch.nn.Module):
    def __init__(self, by_numpy: bool) -> None:
        super().__init__()
        self.by_numpy = by_numpy

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if torch.compiler.is_exporting():
            y = x * 2
        elif self.by_numpy:
            y = torch.from_numpy(numpy.unwrap(x.numpy())) * 3
        else:
            y = x * 3
        return y, y + 1


def test_a_model_that_computes_something_else_when_it_is_exported() -> None:
    """The file gives what eager gives, and the report says that the model asked."""
    x = torch.ones(3)
    program = trueport.export(AsksWhetherItIsExported(by_numpy=False), (x,))
    assert torch.equal(program(x)[0], x * 3)
    (note,) = [found for found in program.report.diagnostics if found.code == "TP009"]
    assert "is_exporting() is True" in note.message


def test_one_that_cannot_be_exported_as_eager_runs_it() -> None:
    errors = trueport.check(AsksWhetherItIsExported(by_numpy=True), (torch.ones(3),)).errors
    found = errors[0]
    assert found.code == "TP805"
    assert any("where torch.compiler.is_exporting() is True" in fact for fact in found.seen)
    assert any(fact.startswith("also: output `output_1` differs") for fact in found.seen)
    assert "look for is_exporting()" in found.fix
    assert "translation" not in found.fix


class SkipsItsMask(torch.nn.Module):
    """Causal where something is hidden, and where it is exported: a mask that was skipped, and told nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.key = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x, causal = self.words(ids), None
        if torch.compiler.is_exporting() or not bool(mask.all()):
            causal = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()[None] & mask[:, None].bool()
        return torch.nn.functional.scaled_dot_product_attention(x, self.key(x), x, attn_mask=causal)


def test_nothing_is_hidden_of_what_is_like_the_example() -> None:
    """The example hides something, and words that are all the same show nothing: one input has to be a usual one."""
    torch.manual_seed(0)
    model, ids = SkipsItsMask().eval(), torch.randint(0, 50, (2, 8))
    mask = torch.tensor([[1] * 8, [1] * 6 + [0] * 2])
    free = {name: {0: "batch", 1: "length"} for name in ("ids", "mask")}
    program = trueport.export(model, (ids, mask), dynamic_shapes=free)
    for hides in (mask, torch.ones_like(mask)):
        with torch.no_grad():
            torch.testing.assert_close(program(ids, hides), model(ids, hides))


class Selects(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x > 0], x[x > 0] * 2


def test_a_length_that_only_a_run_tells_is_named_after_its_output() -> None:
    report = trueport.check(Selects(), (torch.tensor([1.0, -1.0, 2.0]),), verify=False)
    assert [tensor.shape for tensor in report.outputs] == [("output_0_dim0",), ("output_1_dim0",)]
