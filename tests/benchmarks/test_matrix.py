"""The matrix keeps what was measured, finds what differs, and survives a test that ends its process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.matrix import page, parts, venvs
from benchmarks.matrix.ledger import Ledger, Outcome, Row


def row(setting: str, **outcomes: str) -> Row:
    told = {name: Outcome(verdict, f"why {name}") for name, verdict in outcomes.items()}
    return Row(setting, "seeds", told, {"python": "3.11", "torch": "2.13.0"}, "abc")


HERE = page.REFERENCE.title


def test_rows_are_read_again(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger.json").keep(row(HERE, a="faithful"))
    again = Ledger(tmp_path / "ledger.json")
    assert again.get(HERE, "seeds") == row(HERE, a="faithful")
    assert again.get(HERE, "reports") is None


def test_each_difference_from_the_reference_is_named(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.keep(row(HERE, same="faithful", worse="faithful", gone="diagnosed TP401"))
    ledger.keep(row("torch 2.99, Python 3.11", same="faithful", worse="silent", new="faithful"))
    text = page.text(ledger)
    assert "- `worse`: silent; 2.13: faithful. why worse" in text
    assert "- `gone`: not there; 2.13: diagnosed TP401. why gone" in text
    assert "- `new`: faithful; 2.13: not there. why new" in text
    assert "`same`" not in text
    assert "2 faithful, 1 silent (3)" in text


def test_what_is_bad_in_the_reference_itself_is_named(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.keep(row(HERE, fine="faithful", bad="crashed"))
    assert "- `bad`: crashed. why bad" in page.text(ledger)


def test_a_test_that_ends_the_process_is_the_only_one_lost(tmp_path: Path) -> None:
    tests = tmp_path / "test_some.py"
    tests.write_text(
        "import os, pytest\n"
        "def test_first(): pass\n"
        "def test_ends(): os._exit(3)\n"
        "def test_fails(): assert 1 == 2\n"
        "@pytest.mark.skip(reason='no need')\n"
        "def test_skipped(): pass\n"
    )
    here = venvs.Venv(Path(sys.executable), tmp_path, {**os.environ, "PYTHONPATH": str(venvs.ROOT)})
    found = parts.run_tests((str(tests),), here)
    by_name = {name.partition("::")[2]: outcome for name, outcome in found.items()}
    assert {name: outcome.verdict for name, outcome in by_name.items()} == {
        "test_first": "passed",
        "test_ends": "crashed",
        "test_fails": "failed",
        "test_skipped": "skipped",
    }
    assert by_name["test_ends"].detail == "the process ended with 3"
    assert "1 == 2" in by_name["test_fails"].detail and "no need" in by_name["test_skipped"].detail


def test_the_lowest_version_is_the_one_in_pyproject() -> None:
    assert venvs.lowest_of(Requirement("onnx>=1.20,<3")) == "1.20"
    assert all(venvs.lowest_of(requirement) for requirement in venvs.dependencies())
