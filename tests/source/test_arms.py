"""Which lines a finding about a branch shows besides the branch itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueport.source import Where, assignments, returned_name

MODEL = """\
def outer(x):
    def inner(x):
        if x.sum() > 0:
            y = x.long()
            y = y + 1
        elif x.min() < 0:
            (y, z) = x, x
        else:
            z = x
        return y
    return inner(x) + 1
"""


@pytest.fixture
def line(tmp_path: Path) -> object:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return lambda number: Where(str(file), number)


def lines_of(found: tuple[Where | None, Where | None]) -> tuple[int | None, ...]:
    return tuple(where.line if where else None for where in found)


def test_each_arm_shows_the_last_line_that_gives_the_name_its_value(line) -> None:
    assert lines_of(assignments(line(3), "y")) == (5, 7)


def test_an_arm_that_leaves_the_name_alone_shows_nothing(line) -> None:
    assert lines_of(assignments(line(6), "y")) == (7, None)


def test_a_line_that_is_no_branch_has_no_arms(line) -> None:
    assert lines_of(assignments(line(4), "y")) == (None, None)


def test_the_name_that_the_innermost_function_returns(line) -> None:
    assert returned_name(line(3)) == "y"
    assert returned_name(line(11)) == ""


def test_source_that_cannot_be_read_shows_nothing() -> None:
    assert lines_of(assignments(Where("<gone>", 3), "y")) == (None, None)
