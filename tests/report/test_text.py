"""The look of a diagnostic, letter by letter: it is what users see of trueport on a bad day."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from trueport.diagnostics import Diagnostic
from trueport.diagnostics.rules.tp101_branch_on_tensor import BranchOnTensor
from trueport.diagnostics.rules.tp301_size_frozen import SizeFrozen
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.report import CheckedInput, Report, SizeSummary, TensorSummary, Verdict
from trueport.report.text import diagnostic_lines, diagnostic_text, print_to, tally
from trueport.source import Place, Where

MODEL = """\
class Net(nn.Module):
    def forward(self, x):
        return self.flat(x)

    def flat(self, x):
        x = x.reshape(8, -1)
        return x
""".replace("    ", "\t")


@pytest.fixture
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diagnostic:
    """A finding in a helper that forward calls, in a file that is indented with tabs."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return SizeFrozen(
        message="this size was declared free, but line 6 only holds for 8",
        place=Place((Where(str(file), 3, "Net.forward"), Where(str(file), 6, "Net.flat")), "encoder.0"),
        label="makes `batch` (axis 0 of x) equal 8",
        seen=("traced with batch=8", "eager also accepts 1, 2, 3, 5"),
        fix="x.reshape(x.shape[0], -1)",
    )


def test_a_finding_shows_place_cause_and_way_out(frozen: Diagnostic) -> None:
    expected = """\
error[TP301]: this size was declared free, but line 6 only holds for 8
 --> model.py:6:7 in Net.flat
  |
6 |         x = x.reshape(8, -1)
  |             ^^^^^^^^^^^^^^^^ makes `batch` (axis 0 of x) equal 8
  = in:    encoder.0
  = called from:
      model.py:3  return self.flat(x)
  = seen:  traced with batch=8
           eager also accepts 1, 2, 3, 5
  = fix:   x.reshape(x.shape[0], -1)
  = more:  trueport explain TP301"""
    assert diagnostic_text(frozen) == expected


def test_a_finding_without_a_place_has_no_frame() -> None:
    expected = """\
note[TP303]: m and n must be equal
  = more:  trueport explain TP303"""
    assert diagnostic_text(SizesRelated(message="m and n must be equal")) == expected


def test_a_place_whose_source_is_gone_still_names_file_and_line() -> None:
    found = BranchOnTensor(message="a branch", place=Place((Where("<ipython-3>", 12, "f"),)))
    assert diagnostic_text(found).splitlines()[1] == "  --> <ipython-3>:12 in f"


def test_the_middle_of_a_long_call_path_is_left_out() -> None:
    calls = tuple(Where("<gone>", line) for line in range(1, 12))
    shown = diagnostic_text(BranchOnTensor(message="deep", place=Place(calls)))
    assert [line.strip() for line in shown.splitlines() if line.startswith("       ")] == [
        "<gone>:1", "<gone>:2", "<gone>:3", "… 4 more", "<gone>:8", "<gone>:9", "<gone>:10",
    ]  # fmt: skip


def printed(found: Diagnostic, terminal: bool) -> str:
    out = io.StringIO()
    print_to(Console(file=out, force_terminal=terminal, width=40), diagnostic_lines(found))
    return out.getvalue()


def test_colour_only_on_a_terminal_that_wants_it(frozen: Diagnostic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in printed(frozen, terminal=True)
    assert "\x1b[" not in printed(frozen, terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in printed(frozen, terminal=True)


def test_long_lines_are_never_wrapped(frozen: Diagnostic) -> None:
    assert printed(frozen, terminal=False) == diagnostic_text(frozen) + "\n"


REPORT = Report(
    model="Net",
    path="net.onnx",
    opset=20,
    inputs=(TensorSummary("x", "float32", ("batch", "4")), TensorSummary("scale", "float64", ())),
    outputs=(TensorSummary("y", "float32", ("batch", "4")),),
    free_sizes=(SizeSummary("batch", 1, 64),),
    constants={"mode": "'fast'"},
    checks=(
        CheckedInput({"batch": 2}, "the example", Verdict.EQUAL, 0.0, 1e-5),
        CheckedInput({"batch": 7}, "normal", Verdict.EQUAL, 2.4e-7, 1.3e-5),
    ),
    verified=True,
    nodes=12,
)


def test_a_faithful_export_says_on_what_it_was_checked() -> None:
    expected = """\
faithful Net → net.onnx  equal to eager on 2 of 2 inputs, worst difference 2.4e-07 (allowed 1.3e-05)
  inputs      x: float32[batch, 4]
              scale: float64[]
  outputs     y: float32[batch, 4]
  free sizes  batch = 1..64
  constants   mode = 'fast'
  checked     batch = 2, 7
              values: the example, normal
  graph       12 nodes, opset 20"""
    assert REPORT.text() == expected


def test_of_many_checks_only_those_that_failed_are_listed_one_by_one() -> None:
    checks = [CheckedInput({"n": size}, "normal", Verdict.EQUAL, 0.0) for size in (3, 1, 2)]
    checks.append(CheckedInput({"n": 2}, "zeros", Verdict.DIFFERENT, 0.5))
    lines = Report(model="Net", checks=tuple(checks)).text().splitlines()
    assert lines[1:] == [
        "  checked  n = 1, 2, 3",
        "           values: normal, zeros",
        "           n=2; zeros: different, difference 0.5",
    ]


def test_an_unchecked_export_is_never_called_faithful() -> None:
    assert Report(model="Net", path="net.onnx").text() == "not checked Net → net.onnx"


def test_a_refused_export_shows_the_errors_first(frozen: Diagnostic) -> None:
    note = SizesRelated(message="m and n must be equal")
    lines = Report(model="Net", diagnostics=(note, frozen), nodes=3).text().splitlines()
    assert lines[:3] == ["refused Net: 1 error", "", diagnostic_text(frozen).splitlines()[0]]
    assert lines[-3:] == ["  = more:  trueport explain TP303", "", "  graph  3 nodes"]


def test_the_tally_counts_what_differed() -> None:
    checks = [CheckedInput({}, "normal", Verdict.EQUAL), CheckedInput({}, "zero", Verdict.FAILED)]
    assert tally(checks) == "equal to eager on 1 of 2 inputs"
