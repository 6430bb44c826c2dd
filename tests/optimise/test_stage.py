"""A pass that does harm is found, left out and named; and which passes a user can ask for."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import trueport
from trueport.cli.export import export
from trueport.diagnostics.spelling import in_words
from trueport.optimise import sequence
from trueport.optimise.base import Rule
from trueport.optimise.identities import Identities
from trueport.optimise.names import NAMES, chosen
from trueport.optimise.stage import left_out, optimised


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.T * 2).relu() + 1


X = (torch.arange(6.0).reshape(2, 3),)


class Careless(Identities):
    """Takes a transposition for nothing."""

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {**super().rules, "Transpose": lambda node: node.inputs[0]}


class Failing(Identities):
    def run(self, model: ir.Model) -> int:
        raise RuntimeError("I am broken")


class Unruly(Identities):
    """Leaves a graph that is none: a value that nobody makes."""

    def run(self, model: ir.Model) -> int:
        last = model.graph.node(-1)
        last.replace_input_with(0, ir.Value(name="nowhere", type=ir.TensorType(ir.DataType.FLOAT)))
        return 1


def with_pass(monkeypatch: pytest.MonkeyPatch, kind: type[Identities]) -> None:
    others = [kind if each is Identities else each for each in sequence.PASSES]
    monkeypatch.setattr(sequence, "PASSES", tuple(others))


def left_out_in(program: trueport.Program) -> list[str]:
    return [found.message for found in program.report.diagnostics if found.code == "TP701"]


def test_a_pass_that_changes_the_answer_is_found_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with_pass(monkeypatch, Careless)
    program = trueport.export(Net(), X)
    assert left_out_in(program) == ["the pass 'identities' would have changed what the model gives, and was left out"]
    assert program.report.verified
    assert torch.equal(program(*X), Net()(*X))
    assert "identities" not in [each.name for each in program.report.passes]
    (found,) = [found for found in program.report.diagnostics if found.code == "TP701"]
    assert 'optimize="identities"' in found.fix and "--passes identities" in in_words(found.fix)
    assert any("TP80" in fact for fact in found.seen)


@pytest.mark.parametrize("matters", [False, True])
def test_a_guilty_pass_beside_a_library_that_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, matters: bool
) -> None:
    """Both are found, whether the two sides of the library are the same or not."""
    (tmp_path / "site-packages").mkdir()
    file = tmp_path / "site-packages" / "deciding.py"
    file.write_text(f"def pick(x):\n    if x.shape[0] > 3:\n        return x * 2\n    return x * 2 + {int(matters)}\n")
    spec = importlib.util.spec_from_file_location("deciding", file)
    assert spec is not None and spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    with_pass(monkeypatch, Careless)
    program = trueport.export(
        lambda x: library.pick(x).T.relu(), (torch.randn(4, 3),), dynamic_shapes=({0: "rows"},), counterexample=tmp_path
    )
    assert left_out_in(program) == ["the pass 'identities' would have changed what the model gives, and was left out"]
    for rows in (0, 1, 3, 4, 9):
        x = torch.randn(rows, 3)
        assert torch.equal(program(x), library.pick(x).T.relu())


def test_the_reproducer_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with_pass(monkeypatch, Careless)
    assert left_out_in(trueport.export(Net(), X, optimize="identities"))
    assert not left_out_in(trueport.export(Net(), X, optimize="-identities"))


def test_no_counterexample_is_left_of_a_pass_that_was_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_pass(monkeypatch, Careless)
    folder = tmp_path / "shown"
    trueport.export(Net(), X, counterexample=folder)
    assert not folder.exists()


@pytest.mark.parametrize("kind", [Failing, Unruly])
@pytest.mark.parametrize("verify", [True, False])
def test_a_pass_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch, kind: type[Identities], verify: bool) -> None:
    with_pass(monkeypatch, kind)
    program = trueport.export(Net(), X, verify=verify)
    (message,) = left_out_in(program)
    assert message.startswith("the pass 'identities' failed and was left out")
    assert torch.equal(program(*X), Net()(*X))


def test_without_a_check_the_report_says_that_passes_were_not_checked_either() -> None:
    program = trueport.export(nn.Linear(3, 3).eval(), (torch.randn(2, 4, 3),), verify=False)
    (found,) = [found for found in program.report.diagnostics if found.code == "TP809"]
    assert any("passes" in fact for fact in found.seen)
    plain = trueport.export(nn.Linear(3, 3).eval(), (torch.randn(2, 4, 3),), verify=False, optimize=False)
    assert not plain.report.passes
    assert all("passes" not in fact for found in plain.report.diagnostics for fact in found.seen)


def test_a_model_that_is_wrong_by_itself_stays_wrong() -> None:
    """The passes are not blamed for what they did not do, and the difference is told as ever."""

    def is_wrong(names: Sequence[str]) -> bool:
        return True

    assert left_out(NAMES, is_wrong) == ()


@pytest.mark.parametrize("guilty", [{"fold"}, {"dead_code"}, {"constants"}, {"moves", "common"}, set(NAMES)])
def test_the_guilty_are_found_by_halving(guilty: set[str]) -> None:
    asked: list[Sequence[str]] = []

    def is_wrong(names: Sequence[str]) -> bool:
        asked.append(names)
        return bool(guilty & set(names))

    assert set(left_out(NAMES, is_wrong)) == guilty
    assert len(asked) <= 2 + 6 * len(guilty)


def test_a_model_is_made_anew_for_each_pass_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with_pass(monkeypatch, Failing)
    program = trueport.export(Net(), X, optimize=False, verify=False)
    made = []

    def anew() -> ir.Model:
        made.append(trueport.export(Net(), X, optimize=False, verify=False).model)
        return made[-1]

    found = optimised(program.model, anew, NAMES)
    assert found.model is made[-1]
    assert "identities" not in found.names


def test_which_passes_are_asked_for() -> None:
    assert chosen(True) == NAMES
    assert chosen(False) == ()
    assert chosen("moves, fold") == ("fold", "moves")  # in the order in which they run
    assert chosen("-fold") == tuple(name for name in NAMES if name != "fold")
    assert chosen(["fold"]) == ("fold",)


@pytest.mark.parametrize("asked", ["fould", "-fould", "", 3, [1]])
def test_an_unknown_pass_is_a_usage_error_that_lists_the_names(asked: object) -> None:
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(Net(), X, optimize=asked)  # type: ignore[arg-type]
    (found,) = refused.value.diagnostics
    assert found.code == "TP001"
    assert "loop_invariants" in found.fix


def test_the_command_line_asks_for_the_same() -> None:
    """A usage error is told before anything heavy is imported, and before the model is looked for."""
    for words, told in (
        (["--passes", "fould"], "loop_invariants"),
        (["--passes=-fold", "--no-optimise"], "one of the"),
    ):
        ended = CliRunner().invoke(export, ["nowhere.py:Net", "-i", "x:2x3", "-o", "unwritten.onnx", *words])
        assert ended.exit_code == 2
        assert told in ended.output


def test_the_report_says_what_each_pass_did() -> None:
    report = trueport.export(nn.Linear(3, 3).eval(), (torch.randn(2, 4, 3),)).report
    removed = {each.name: each.nodes_removed for each in report.passes}
    assert list(removed) == list(NAMES)
    assert removed["fold"] == 1
    assert "optimise" in report.seconds
