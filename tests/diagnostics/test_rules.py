"""Every file of `rules/` is one diagnostic with a stable code and a page that helps.

There is no list to compare with: the file name, the class name and the code have to tell the same story.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.diagnostics.pages import example, sections
from trueport.diagnostics import Diagnostic, Severity, rules
from trueport.diagnostics.registry import UnknownCode, all_rules, rule

RULES = list(all_rules().values())
SECTIONS = ("Why", "Example", "Mended", "Fix")


def test_every_file_holds_exactly_one_diagnostic() -> None:
    files = {file.stem for file in Path(rules.__path__[0]).glob("tp*.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in RULES} == files
    assert len(RULES) == len(files)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.code)
class TestEveryRule:
    def test_file_class_and_code_agree(self, kind: type[Diagnostic]) -> None:
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
        assert kind.__module__.rpartition(".")[2] == f"{kind.code.lower()}_{snake}"

    def test_title_is_one_plain_clause(self, kind: type[Diagnostic]) -> None:
        assert 10 <= len(kind.title) <= 90
        assert not kind.title.endswith(".")

    def test_page_says_what_why_and_how_to_mend(self, kind: type[Diagnostic]) -> None:
        found = sections(kind)
        assert tuple(found)[1:] == SECTIONS
        assert all(text.strip() for text in found.values())

    def test_both_examples_are_code_blocks_that_parse(self, kind: type[Diagnostic]) -> None:
        first, mended = example(kind, "Example"), example(kind, "Mended")
        for shown in (first, mended):
            if shown.language == "python":
                ast.parse(shown.code)
        assert first.code != mended.code

    def test_what_a_test_cannot_run_says_why(self, kind: type[Diagnostic]) -> None:
        assert (example(kind, "Example").language == "text") <= bool(kind.no_example)


def test_the_registry_finds_a_rule_however_its_code_is_written() -> None:
    assert rule("TP101") is rule("tp101") is rule("101") is all_rules()["TP101"]


def test_an_unknown_code_names_those_that_look_like_it() -> None:
    with pytest.raises(UnknownCode) as caught:
        rule("TP1O1")  # the letter
    assert "TP101" in caught.value.close


def test_what_is_told_and_what_stops_an_export() -> None:
    weights = {code: kind.default_severity for code, kind in all_rules().items()}
    assert weights["TP303"] is weights["TP502"] is Severity.NOTE
    assert weights["TP809"] is Severity.WARNING
    assert weights["TP302"] is weights["TP805"] is Severity.ERROR


def test_a_diagnostic_may_weigh_more_or_less_than_its_rule() -> None:
    kind = all_rules()["TP305"]
    assert not kind(message="assumed").is_error
    assert kind(message="assumed", severity=Severity.ERROR).is_error
