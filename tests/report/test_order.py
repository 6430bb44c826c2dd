"""Many findings at once: what comes first, and what is said only once."""

from __future__ import annotations

import itertools
from pathlib import Path

from trueport.diagnostics import Diagnostic, Label
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.report.order import grouped, in_order
from trueport.report.text import diagnostic_lines, diagnostic_text, diagnostics_lines
from trueport.source import Place, Where


def unsupported(line: int, file: str = "model.py", op: str = "svd") -> Diagnostic:
    return UnsupportedOperator(message=f"`{op}` has no translation", place=Place((Where(file, line),)))


def text(lines: object) -> str:
    return "\n".join("".join(piece for piece, _ in line).rstrip() for line in lines)  # type: ignore[attr-defined]


def test_errors_come_first_then_files_then_lines_and_libraries_last() -> None:
    library = unsupported(1, "/venv/site-packages/lib.py")
    found = [SizesRelated(message="m = n"), library, unsupported(9), unsupported(4, "a.py"), unsupported(2)]
    assert in_order(found) == [found[3], found[4], found[2], library, found[0]]


def test_what_concerns_the_whole_model_stands_before_what_has_a_line() -> None:
    whole = UnsupportedOperator(message="the weights are of no use")
    assert in_order([unsupported(1), whole]) == [whole, unsupported(1)]


def test_the_same_words_at_several_lines_are_told_once() -> None:
    told = grouped([unsupported(9), unsupported(2), unsupported(5), unsupported(3, op="eig")])
    assert [(one.found.where.line, [w.line for w in one.again]) for one in told if one.found.where] == [
        (2, [5, 9]),
        (3, []),
    ]
    shown = text(diagnostics_lines([unsupported(9), unsupported(2), unsupported(5)]))
    assert shown.count("error[TP401]") == 1
    assert "  = also:  lines 5, 9" in shown


def test_the_same_words_without_a_line_are_told_once() -> None:
    assert len(grouped([NotVerified(message="no"), NotVerified(message="no")])) == 1


def test_other_lines_that_matter_stand_in_the_same_frame(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("if x.sum() > 0:\n    y = x.long()\nelse:\n    pass\n    y = x\n")
    here = str(file)
    found = ArmsDisagree(
        message="the arms disagree",
        place=Place((Where(here, 1),)),
        label="this branch",
        also=(Label(Where(here, 2), "an int64"), Label(Where(here, 5), "a float32")),
    )
    assert diagnostic_text(found).splitlines()[2:-1] == [
        "  |",
        "1 | if x.sum() > 0:",
        "  |    ^^^^^^^^^^^ this branch",
        "2 |     y = x.long()",
        "  |         -------- an int64",
        "...",
        "5 |     y = x",
        "  |         - a float32",
    ]


def test_a_line_of_another_file_has_its_own_head(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("y = f(x)\n")
    other.write_text("\n" * 11 + "z = 1\n")
    found = ArmsDisagree(
        message="disagree", place=Place((Where(str(one), 1),)), also=(Label(Where(str(other), 12), "made here"),)
    )
    shown = diagnostic_text(found).splitlines()
    assert f"  ::: {other}:12:5" in shown
    assert shown[-3:-1] == ["12 | z = 1", "   |     - made here"]


def test_a_narrow_terminal_breaks_words_and_cuts_code(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(f"{'a' * 60} = {'b' * 10}(c)\n")
    found = UnsupportedOperator(
        message="a message that is longer than the terminal is wide",
        place=Place((Where(str(file), 1),)),
        label="here",
        fix="a fix that is longer than the terminal is wide, too",
    )
    lines = text(diagnostic_lines(found, width=44)).splitlines()
    framed = [line for line in lines if "-->" not in line]
    assert max(map(len, framed)) <= 44
    code, carets = next((a, b) for a, b in itertools.pairwise(lines) if a.startswith("1 |"))
    assert code[carets.index("^") :].startswith("b" * 10)


def test_a_finding_stays_on_one_screen() -> None:
    found = UnsupportedOperator(
        message="long " * 400,
        place=Place(tuple(Where("<gone>", line) for line in range(1, 60))),
        seen=tuple(f"fact {number}" for number in range(40)),
    )
    lines = text(diagnostic_lines(found, width=80)).splitlines()
    assert len(lines) <= 40
    assert any("34 more: --output-format json" in line for line in lines)
