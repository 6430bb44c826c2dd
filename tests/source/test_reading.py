"""Which columns of a line get the carets: the expression that the line evaluates, and nothing where that is unclear."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueport.source import Where, columns_of, line_of


def pointed_at(folder: Path, source: str, line: int, **columns: int) -> str | None:
    """What the carets would underline on `line` of a file with this source."""
    file = folder / "model.py"
    file.write_text(source)
    found = columns_of(Where(str(file), line, **columns))
    text = line_of(Where(str(file), line))
    return text[found[0] - 1 : found[1] - 1] if found and text is not None else None


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("if x.sum() > 0:\n    pass", "x.sum() > 0"),
        ("while n < 3:\n    n += 1", "n < 3"),
        ("for i in range(n):\n    pass", "range(n)"),
        ("assert x.any()", "x.any()"),
        ("with torch.no_grad():\n    pass", "torch.no_grad()"),
        ("y = x.reshape(8, -1)", "x.reshape(8, -1)"),
        ("y: Tensor = x + 1", "x + 1"),
        ("y[1:] += x.sum()", "y[1:] += x.sum()"),
        ("x.add_(1)", "x.add_(1)"),
        ("größe = x.größe()", "x.größe()"),
    ],
)
def test_the_expression_that_a_statement_evaluates(tmp_path: Path, line: str, expression: str) -> None:
    assert pointed_at(tmp_path, line, 1) == expression


def test_elif_has_a_test_of_its_own(tmp_path: Path) -> None:
    source = "if a:\n    pass\nelif b > 1:\n    pass\n"
    assert pointed_at(tmp_path, source, 3) == "b > 1"


def test_a_call_over_several_lines_is_underlined_to_the_end_of_its_first_line(tmp_path: Path) -> None:
    source = "y = torch.cat(\n    (a, b),\n    dim=0,\n)\n"
    assert pointed_at(tmp_path, source, 1) == "torch.cat("
    assert pointed_at(tmp_path, source, 2) == "(a, b)"


def test_a_method_chain_is_found_on_its_inner_lines(tmp_path: Path) -> None:
    source = "y = (\n    x.view(8, -1)\n    .sum()\n)\n"
    assert pointed_at(tmp_path, source, 2) == "x.view(8, -1)"


def test_a_line_that_does_two_things_is_not_guessed_at(tmp_path: Path) -> None:
    assert pointed_at(tmp_path, "a = f(x); b = g(x)\n", 1) is None
    assert pointed_at(tmp_path, "if a: b = g(x)\n", 1) is None


def test_known_columns_win_over_the_syntax_tree(tmp_path: Path) -> None:
    assert pointed_at(tmp_path, "y = f(x) + g(x)\n", 1, column=12, end_column=16) == "g(x)"


@pytest.mark.parametrize("source", ["", "def broken(:\n"])
def test_source_that_cannot_be_parsed_has_no_columns(tmp_path: Path, source: str) -> None:
    assert pointed_at(tmp_path, source, 1) is None


def test_a_file_that_is_not_there_has_no_lines() -> None:
    assert line_of(Where("<string>", 3)) is None
    assert columns_of(Where("<string>", 3)) is None
