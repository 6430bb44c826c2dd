"""What is taken and what is not: a proposal counts only for what its trial shows. Trials are made up here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueport.diagnostics import Diagnostic
from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.rules.tp004_not_deterministic import NotDeterministic
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.diagnostics.rules.tp204_left_the_graph import LeftTheGraph
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.fix.command import Command
from trueport.fix.edit import Edit, SourceFile
from trueport.fix.outcome import AnswersKept, Files, TrialOutcome
from trueport.fix.search import SearchState, Sought, find_fixes, moved
from trueport.fix.telling import held_against_before, in_vain
from trueport.report import Report
from trueport.source import Place, Where

MODEL = """\
import numpy as np
import torch
import torch.nn.functional as F

class Net(torch.nn.Module):
    def forward(self, x):
        x = x * torch.from_numpy(np.tanh(x.numpy()))
        x = F.dropout(x)
        for _ in [None] * int(x.sum()):
            x = x + 1
        return x
"""
STEP, DROPOUT, LOOP = 7, 8, 9

Judge = Callable[[str], tuple[list[Diagnostic], AnswersKept]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path.resolve()


def at(path: Path, line: int) -> Place:
    return Place((Where(str(path), line, "Net.forward"),))


def search(path: Path, judge: Judge) -> Sought:
    """Search with trials whose findings depend on the text of the file alone."""

    def trial(files: Files, _command: Command) -> TrialOutcome:
        text = files[path].text if path in files else path.read_text()
        found, kept = judge(text)
        return TrialOutcome(Report(model="Net", diagnostics=tuple(found), verified=True), kept=kept)

    return find_fixes(Command("model.py:Net"), trial)


def findings(path: Path, text: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if "np.tanh(x" in text:
        found.append(LeftTheGraph(message="leaves torch", place=at(path, STEP)))
    if "[None] *" in text:
        found.append(LoopOnTensor(message="loops by a value", place=at(path, LOOP)))
    return found


def test_all_findings_are_fixed_together(model: Path) -> None:
    sought = search(model, lambda text: (findings(model, text), AnswersKept(3)))
    assert sought.found_a_way
    assert len(sought.state.taken) == 2
    (change,) = sought.changes
    assert "x * torch.tanh(x)" in change.after.text
    assert "in range(int(x.sum())):" in change.after.text
    assert model.read_text() == MODEL


def test_what_shows_up_later_is_fixed_in_a_later_round(model: Path) -> None:
    """Nothing is traced before two eager runs agree."""

    def judge(text: str) -> tuple[list[Diagnostic], AnswersKept]:
        random = NotDeterministic(message="two runs differ", place=at(model, DROPOUT))
        return (findings(model, text) if "self.training" in text else [random]), AnswersKept()

    sought = search(model, judge)
    assert [found.code for found, _ in sought.state.taken] == ["TP004", "TP204", "TP102"]
    assert sought.found_a_way


def test_an_edit_after_which_eager_gives_something_else_is_not_taken(model: Path) -> None:
    def judge(text: str) -> tuple[list[Diagnostic], AnswersKept]:
        changed = "torch.tanh" in text
        return findings(model, text), AnswersKept(0, "values 2 instead of 3" if changed else "")

    sought = search(model, judge)
    assert not sought.found_a_way
    assert [proposal.says for _, proposal in sought.state.taken] == ["loop over range(int(x.sum()))"]
    assert any("another answer than before" in why for _, _, why in sought.rejected)


def test_an_edit_after_which_the_model_does_not_run_is_not_taken(model: Path) -> None:
    def judge(text: str) -> tuple[list[Diagnostic], AnswersKept]:
        if "torch.tanh" in text:
            return [EagerRefuses(message="TypeError: tanh()", place=at(model, STEP))], AnswersKept()
        return findings(model, text)[:1], AnswersKept()

    sought = search(model, judge)
    assert not sought.state.taken
    assert [why for _, _, why in sought.rejected] == ["the edited model does not run: TypeError: tanh()"]


def test_an_edit_that_does_not_remove_its_finding_is_not_taken(model: Path) -> None:
    stays = LeftTheGraph(message="leaves torch", place=at(model, STEP))
    sought = search(model, lambda _: ([stays], AnswersKept()))
    assert not sought.state.taken
    assert [why for _, _, why in sought.rejected] == ["TP204 stays"]


def test_nothing_is_offered_while_another_finding_has_no_fix(model: Path) -> None:
    """An edit that could not be verified is not offered, and that is said."""

    def judge(text: str) -> tuple[list[Diagnostic], AnswersKept]:
        unsupported = UnsupportedOperator(message="no translation", place=at(model, DROPOUT), fix="write it otherwise")
        return [*findings(model, text), unsupported], AnswersKept()

    sought = search(model, judge)
    assert len(sought.state.taken) == 2
    assert not sought.found_a_way
    said = list(in_vain(sought))
    assert said[0] == "TP401 model.py:8: no known edit fits this line; write it otherwise"
    assert "2 other findings would be gone" in said[1] and "not offered" in said[1]


def test_a_change_that_is_meant_may_change_the_answers(model: Path) -> None:
    def judge(text: str) -> tuple[list[Diagnostic], AnswersKept]:
        random = NotDeterministic(message="two runs differ", place=at(model, DROPOUT))
        return ([] if "self.training" in text else [random]), AnswersKept(0, "values 2 instead of 3")

    assert search(model, judge).found_a_way


def test_a_line_is_known_by_where_it_has_moved_to(model: Path) -> None:
    source = SourceFile.read(model)
    state = SearchState(Command("model.py:Net"), {model: source})
    above = [Edit(model, source.line_start(2), source.line_start(2), "import numpy\nimport os\n")]
    assert moved(Where(str(model), LOOP), state, above) == LOOP + 2
    below = [Edit(model, source.line_start(LOOP), source.line_start(LOOP), "\n")]
    assert moved(Where(str(model), STEP), state, below) == STEP


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (AnswersKept(3), "eager gives what it gave before on 3 inputs"),
        (AnswersKept(), "there is no answer to be kept"),
        (AnswersKept(1, "values 2 instead of 3"), "on 1 input, and otherwise: values 2 instead of 3"),
        (
            AnswersKept(2, "shape [1]", only_at_one=True),
            "on 2 inputs, and at a size of 1, which was spread before: shape [1]",
        ),
    ],
)
def test_it_is_said_whether_answers_stay(kept: AnswersKept, said: str) -> None:
    assert held_against_before(TrialOutcome(Report(model="Net"), kept=kept)).endswith(said)
