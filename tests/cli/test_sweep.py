"""`trueport sweep` on the command line. The models are files that are not there: each answers at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trueport.cli.main import main
from trueport.cli.outcome import Exit

TWO = '[[model]]\ntarget = "one.py:Net"\n[[model]]\ntarget = "two.py:Net"\n'


@pytest.mark.parametrize("words", [["sweep"], ["sweep", "run"]])
def test_rows_a_page_and_an_exit_code(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "zoo.toml").write_text(TWO)
    out = str(tmp_path / "out")
    done = CliRunner().invoke(main, [*words, str(tmp_path / "zoo.toml"), "-o", out, "-q"])
    assert done.exit_code == Exit.FINDINGS
    assert "usage one.py:Net" in done.stdout and "2 models: 2 usage" in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    same = CliRunner().invoke(main, ["sweep", "diff", out, out])
    assert (same.exit_code, same.stdout) == (Exit.FAITHFUL, "no differences\n")


def test_what_cannot_be_run_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "zoo.toml").write_text(TWO)
    for words in (
        ["nothing.toml"],
        [str(tmp_path / "zoo.toml"), "--shard", "9/3"],
        [str(tmp_path / "zoo.toml"), "--on", "slurm"],
    ):
        assert CliRunner().invoke(main, ["sweep", *words, "-o", str(tmp_path / "out")]).exit_code == Exit.USAGE
    assert CliRunner().invoke(main, ["sweep", "diff", str(tmp_path), str(tmp_path)]).exit_code == Exit.USAGE
