"""What other programs read: SARIF against its schema, GitHub annotations, JUnit XML, one line per finding."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from trueport.diagnostics import Diagnostic, Label
from trueport.diagnostics.registry import all_rules
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.report import Report
from trueport.report.concise import report_concise
from trueport.report.formats import FORMATS
from trueport.report.github import report_github
from trueport.report.junit import report_junit
from trueport.report.markdown import report_markdown
from trueport.report.sarif import report_sarif
from trueport.source import Place, Where

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.4.json").read_text())
MODEL = "def forward(x):\n    return pick(x)\ndef pick(x):\n    if x.sum() > 0:\n        y = 1\n    return y\n"


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Findings with and without a line, in a file whose name needs escaping, with letters that formats stumble over."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my model.py"
    file.write_text(MODEL)
    calls = (Where(str(file), 2, "forward"), Where(str(file), 4, "pick"))
    found: tuple[Diagnostic, ...] = (
        SizesRelated(message="m = n"),
        ArmsDisagree(
            message="`y` is <int> & 100% \x00odd,\nor unbound: see",
            place=Place(calls),
            also=(Label(Where(str(file), 5), "an int"),),
            seen=("a fact",),
            fix="give it a value",
        ),
        WrongValues(message="differs", place=Place((Where("/elsewhere/lib.py", 3),))),
    )
    return Report(model="Net", diagnostics=found, versions={"trueport": "1.0"}, seconds={"capture": 0.5})


class TestSarif:
    def test_it_is_valid(self, report: Report) -> None:
        jsonschema.validate(json.loads(report_sarif(report)), SCHEMA)

    def test_it_is_valid_without_findings(self) -> None:
        jsonschema.validate(json.loads(report_sarif(Report(model="Net", verified=True))), SCHEMA)

    @pytest.mark.parametrize("kind", all_rules().values(), ids=all_rules())
    def test_every_rule_can_be_told(self, kind: type[Diagnostic]) -> None:
        jsonschema.validate(json.loads(report_sarif(Report(model="Net", diagnostics=(kind(message="m"),)))), SCHEMA)

    def test_the_schema_is_asked_in_earnest(self, report: Report) -> None:
        broken = json.loads(report_sarif(report))
        broken["runs"][0]["results"][0]["level"] = "fatal"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)

    def test_a_result_says_where_and_what_to_do(self, report: Report) -> None:
        run = json.loads(report_sarif(report))["runs"][0]
        result = next(one for one in run["results"] if one["ruleId"] == "TP103")
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "my%20model.py"
        assert physical["region"] == {
            "startLine": 4, "startColumn": 8, "endColumn": 19, "snippet": {"text": "    if x.sum() > 0:"},
        }  # fmt: skip
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "TP103"
        assert "fix: give it a value" in result["message"]["text"]
        lines = [r["physicalLocation"]["region"]["startLine"] for r in result["relatedLocations"]]
        assert lines == [5, 2]

    def test_a_file_outside_the_folder_has_an_absolute_address(self, report: Report) -> None:
        results = json.loads(report_sarif(report))["runs"][0]["results"]
        address = next(one for one in results if one["ruleId"] == "TP805")["locations"][0]["physicalLocation"]
        assert address["artifactLocation"]["uri"] == "file:///elsewhere/lib.py"


def test_github_annotations_point_at_the_line_and_escape_what_would_end_them(report: Report) -> None:
    lines = report_github(report).splitlines()
    branch = next(line for line in lines if "TP103" in line)
    head, said = branch.split("::")[1:]
    assert head.startswith("error file=my model.py,line=4,col=8,endColumn=18,title=TP103%3A the arms")
    assert said == "`y` is <int> & 100%25 \\x00odd,%0Aor unbound: see%0Aa fact%0Afix: give it a value"
    assert lines[-2] == "::notice title=TP303%3A free sizes depend on one another::m = n"
    assert lines[-1] == "refused Net: 2 errors"


def test_junit_has_a_failed_case_for_each_error(report: Report) -> None:
    suite = ElementTree.fromstring(report_junit(report)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    names = [case.get("name") for case in suite.iter("testcase")]
    assert names == ["TP805 /elsewhere/lib.py:3", "TP103 my model.py:4:8"]
    assert all(case.find("failure") is not None for case in suite.iter("testcase"))


@pytest.mark.parametrize(("verified", "skipped"), [(True, 0), (False, 1)])
def test_junit_passes_only_what_was_compared_with_eager(verified: bool, skipped: int) -> None:
    root = ElementTree.fromstring(report_junit(Report(model="Net", verified=verified)))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("1", "0", str(skipped))
    assert len(list(root.iter("skipped"))) == skipped


def test_markdown_is_a_table_and_the_whole_text(report: Report) -> None:
    lines = report_markdown(report).splitlines()
    assert lines[0] == "**refused Net: 2 errors**"
    assert lines[2:7] == [
        "| | where | what | way out |",
        "|---|---|---|---|",
        "| error TP805 | /elsewhere/lib.py:3 | differs |  |",
        r"| error TP103 | my model.py:4:8 | \`y\` is \<int\> \& 100% \\x00odd, or unbound: see | give it a value |",
        "| note TP303 |  | m = n |  |",
    ]
    assert "error[TP103]: `y` is <int> & 100% \\x00odd," in lines
    assert "```text" in lines
    assert lines[-1] == "</details>"


def test_no_text_of_a_report_ends_its_fence() -> None:
    said = WrongValues(message="```` </details>")
    lines = report_markdown(Report(model="Net", diagnostics=(said,))).splitlines()
    fences = [line for line in lines if line.startswith("`````")]
    assert fences == ["`````text", "`````"]
    assert not report_markdown(Report(model="Net", verified=True)).count("|")


def test_concise_is_one_line_per_finding(report: Report) -> None:
    assert report_concise(report).splitlines() == [
        "/elsewhere/lib.py:3: error[TP805] differs",
        "my model.py:4:8: error[TP103] `y` is <int> & 100% \\x00odd, or unbound: see",
        "note[TP303] m = n",
        "refused Net: 2 errors",
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_tell_that_all_is_well(name: str) -> None:
    assert "Net" in FORMATS[name](Report(model="Net", verified=True))
