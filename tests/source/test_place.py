"""The calls that led to a line, as a user would tell them."""

from __future__ import annotations

from trueport.source import Place, Where


def place(*calls: tuple[int, str]) -> Place:
    return Place(tuple(Where("model.py", line, function) for line, function in calls))


def lines(found: Place) -> list[int]:
    return [call.line for call in found.callers]


def test_callers_are_told_from_outside_in() -> None:
    assert lines(place((3, "Net.forward"), (9, "Block.forward"), (20, "attend"))) == [3, 9]


def test_the_body_of_a_rewritten_loop_is_no_call() -> None:
    """It is a function of its own while the model is traced, and goes by the name of the one around it."""
    assert lines(place((3, "Net.forward"), (11, "pick"), (14, "pick"))) == [3]
    assert lines(place((11, "pick"), (14, "pick"), (30, "score"))) == [14]


def test_a_comprehension_is_no_call() -> None:
    assert lines(place((14, "pick"), (14, "pick.<locals>.<listcomp>"))) == []


def test_a_function_inside_a_function_is_one() -> None:
    assert lines(place((14, "pick"), (12, "pick.<locals>.inner"))) == [14]


def test_functions_of_one_name_in_two_files_are_two() -> None:
    calls = (Where("a.py", 1, "forward"), Where("b.py", 2, "forward"))
    assert Place(calls).callers == calls[:1]
