"""What the command line answers by itself: help, explanations and faults of the request. None of it waits for torch."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trueport.cli.main import main
from trueport.cli.outcome import Exit, told_plainly
from trueport.cli.request import parse_ranges
from trueport.diagnostics.registry import all_rules
from trueport.diagnostics.rules.tp101_branch_on_tensor import BranchOnTensor
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.errors import ExportError, UsageError


def trueport(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["explain", "TP101"], ["export", "--help"], ["generate", "export", "--help"]],
)
def test_answers_without_importing_torch(arguments: list[str]) -> None:
    program = (
        "import sys; from trueport.cli.main import main\n"
        f"try: main({arguments!r})\n"
        "finally: heavy = {'torch', 'onnx', 'onnxruntime', 'numpy'} & set(sys.modules); assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_explain_lists_every_code() -> None:
    shown = trueport("explain").output
    assert all(f"{code}  {kind.title}" in shown for code, kind in all_rules().items())


@pytest.mark.parametrize("beginning", ["TP3", "tp3xx", "3"])
def test_explain_lists_one_family(beginning: str) -> None:
    codes = [line.split()[0] for line in trueport("explain", beginning).stdout.splitlines()[1:]]
    assert codes == [code for code in all_rules() if code.startswith("TP3")]


def test_explain_says_what_does_not_stop_an_export() -> None:
    shown = trueport("explain").stdout
    assert "free sizes depend on one another (note)" in shown
    assert f"{all_rules()['TP301'].title}\n" in shown


def test_explain_prints_the_page_of_one() -> None:
    shown = trueport("explain", "tp301")
    assert shown.exit_code == Exit.FAITHFUL
    assert shown.stdout.startswith("# TP301: ")
    assert "## Mended" in shown.stdout


def test_explain_knows_what_was_probably_meant() -> None:
    shown = trueport("explain", "TP1O1")
    assert shown.exit_code == Exit.USAGE
    assert "TP101" in shown.stderr


def test_an_existing_output_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"precious")
    shown = trueport("export", "nowhere.py:Net", "-o", str(tmp_path / "net.onnx"))
    assert shown.exit_code == Exit.USAGE
    assert "error[TP001]" in shown.stderr
    assert "--overwrite" in shown.stderr
    assert (tmp_path / "net.onnx").read_bytes() == b"precious"


@pytest.mark.parametrize(
    "arguments",
    [["-o", "missing/net.onnx"], ["-o", "."], ["-o", "net.onnx", "--report", "r.pdf"], ["-o", "a.onnx", "--dim", "H"]],
    ids=["folder missing", "a folder", "unknown report format", "not a range"],
)
def test_what_cannot_be_carried_out_has_a_code(arguments: list[str]) -> None:
    shown = trueport("export", "nowhere.py:Net", *arguments)
    assert shown.exit_code == Exit.USAGE
    assert "error[TP001]" in shown.stderr
    assert shown.stdout == ""


def test_ranges_of_free_sizes() -> None:
    assert parse_ranges(["H=32..640", "B=1..", "S=..512"]) == {"H": (32, 640), "B": (1, None), "S": (None, 512)}


@pytest.mark.parametrize("dims", [["H"], ["H=4"], ["H=a..b"], ["H=9..3"], ["H=1..2", "H=1..3"], ["3=1..2"]])
def test_ranges_that_make_no_sense_are_refused(dims: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_ranges(dims)


class TestHowACommandEnds:
    """`told_plainly` is the one place where exceptions become exit codes."""

    @pytest.fixture(autouse=True)
    def bundles_go_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def test_findings_go_to_stdout_errors_first(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = [SizesRelated(message="m = n"), BranchOnTensor(message="a branch")]
        with pytest.raises(SystemExit) as ended, told_plainly(debug=False):
            raise ExportError(found)
        shown = capsys.readouterr()
        assert ended.value.code == Exit.FINDINGS
        assert shown.out.index("error[TP101]") < shown.out.index("note[TP303]")
        assert shown.err == ""

    def test_a_bug_of_ours_asks_for_a_report_instead_of_a_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended, told_plainly(debug=False):
            raise KeyError("s0")
        shown = capsys.readouterr()
        assert ended.value.code == Exit.OUR_FAULT
        assert "error[TP901]" in shown.err
        assert "KeyError: 's0'" in shown.err
        assert "Traceback" not in shown.err

    def test_an_interrupted_command_is_no_finding(self) -> None:
        with pytest.raises(SystemExit) as ended, told_plainly(debug=False):
            raise KeyboardInterrupt
        assert ended.value.code == Exit.OF_SIGNALS + signal.SIGINT

    def test_debug_shows_the_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit), told_plainly(debug=True):
            raise KeyError("s0")
        assert "Traceback" in capsys.readouterr().err
