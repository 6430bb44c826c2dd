"""A report for programs (JSON), for a browser (HTML), and as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.report import CheckedInput, DecisionSummary, Report, TensorSummary, Verdict, Way
from trueport.report.html import report_html
from trueport.source import Place, Where

REPORT = Report(
    model="<script>Net",
    diagnostics=(
        NotVerified(message="verify=False"),
        StateWritten(message="`calls` is written", place=Place((Where("model.py", 7, "Net.forward", 9, 14),))),
    ),
    inputs=(TensorSummary("x", "float32", ("batch",)),),
    checks=(CheckedInput({"batch": 0}, "empty", Verdict.DIFFERENT, float("nan")),),
    seconds={"capture": 0.25},
)


def test_findings_are_sorted_by_weight() -> None:
    assert not REPORT.ok
    assert [found.code for found in REPORT.errors] == ["TP203"]
    assert [found.code for found in REPORT.warnings] == ["TP809"]
    assert REPORT.notes == ()


def test_json_holds_everything_under_the_names_of_the_classes() -> None:
    content = json.loads(REPORT.to_json(), parse_constant=pytest.fail)  # NaN is no JSON
    assert content["ok"] is False
    assert content["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch"], "is_sequence": False}]
    assert content["checks"][0]["verdict"] == "different"
    assert content["checks"][0]["worst_error"] == "nan"
    written = content["diagnostics"][1]
    assert (written["code"], written["severity"]) == ("TP203", "error")
    assert written["place"]["calls"][0] == {
        "file": "model.py", "line": 7, "function": "Net.forward", "column": 9, "end_column": 14,
            "readable": True,
    }  # fmt: skip


def test_html_is_one_offline_file_and_escapes_what_the_user_wrote(tmp_path: Path) -> None:
    REPORT.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;Net" in page
    assert "error[TP203]: `calls` is written" in page
    for fetched in ("<script>Net", "<link", "src=", "http:", "https:", "@import", "url("):
        assert fetched not in page


@pytest.mark.parametrize(("suffix", "begins"), [(".txt", "refused"), (".json", "{"), (".HTML", "<!doctype html>")])
def test_the_suffix_says_how_a_report_is_saved(tmp_path: Path, suffix: str, begins: str) -> None:
    file = tmp_path / f"report{suffix}"
    REPORT.save(file)
    assert file.read_text().startswith(begins)


def test_an_unknown_suffix_is_refused_and_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.txt, \.json, \.html"):
        REPORT.save(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


DECIDED = Report(
    model="Net",
    verified=True,
    decisions=(
        DecisionSummary(Where("/home/me/net.py", 7), "if", "x.sum() > 0", (Way("holds", 3), Way("fails", 0))),
        DecisionSummary(Where("/home/me/net.py", 9), "for", "range(n)", (Way("no round", 1), Way("one round", 2))),
    ),
    tolerances={"y": "2e-05 of the value"},
    undecided=("values: ones: equal values",),
    seed=3,
    searched=40,
)


def test_every_form_tells_which_ways_were_taken_and_which_were_not() -> None:
    assert DECIDED.decisions[0].unreached == ("fails",)
    text = DECIDED.text()
    assert "net.py:7 `x.sum() > 0`: holds on 3, fails on none" in text
    assert "3, 40 inputs searched for other ways" in text
    content = json.loads(DECIDED.to_json())
    assert content["decisions"][1]["ways"][1] == {"name": "one round", "inputs": 2}
    page = report_html(DECIDED)
    assert "fails: none" in page
    assert "2e-05 of the value" in page
