"""Probes tell which way every decision went, and leave the user's function what it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from trueport.rewrite.probes import probed
from trueport.rewrite.running.probe_runtime import WATCH, DecisionKind, Site


class Notes:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def mark(self) -> int:
        return 0

    def leaf(self, mark: int, value: Any) -> None:
        pass

    def compared(self, mark: int, word: str, left: Any, right: Any) -> None:
        self.told.append((word, (left, right)))

    def joined(self, mark: int, word: str, count: int) -> None:
        self.told.append((word, None))

    def decided(self, site: Site, mark: int, value: Any) -> None:
        self.told.append((site.text, bool(value)))

    def took(self, site: Site, way: int) -> None:
        self.told.append((site.text, way))

    def began(self, site: Site) -> None:
        self.told.append((site.text, "begins"))

    def rounds(self, site: Site, over: Iterable[Any]) -> Iterable[Any]:
        items = list(over)
        self.told.append((site.text, len(items)))
        return items

    def decisions(self) -> list[tuple[str, Any]]:
        return [(text, way) for text, way in self.told if " " in text or "(" in text]


@contextlib.contextmanager
def watched(*functions: Callable[..., Any]) -> Iterator[Notes]:
    notes = Notes()
    with probed([function.__code__ for function in functions]):
        WATCH.watcher = notes
        try:
            yield notes
        finally:
            WATCH.watcher = None


def grade(n: int) -> str:
    if n > 10 and n != 13:
        return "big"
    elif not n:
        return "none"
    return "odd" if n % 2 == 1 else "even"


def test_every_test_says_which_way_it_went():
    with watched(grade) as notes:
        assert [grade(n) for n in (12, 13, 0, 3, 4)] == ["big", "odd", "none", "odd", "even"]
    assert ("n > 10 and n != 13", True) in notes.told
    assert ("not n", True) in notes.told
    assert notes.told[-4:] == [("not", None), ("not n", False), ("eq", (0, 1)), ("n % 2 == 1", False)]


def test_a_comparison_shows_both_sides_and_what_was_not_evaluated_is_not_told():
    with watched(grade) as notes:
        grade(5)
    assert notes.told[:2] == [("gt", (5, 10)), ("n > 10", False)]
    assert ("ne", (5, 13)) not in notes.told


def count(items: list[int], limit: int) -> tuple[int, int]:
    total = 0
    for item in items:
        if item < 0:
            break
        total += item
    else:
        total += 100
    while total < limit:
        total += 1
        if total == 7:
            break
    return total, len([i for i in items if i > 1])


def test_loops_break_and_comprehensions():
    with watched(count) as notes:
        assert count([1, 2], 0) == (103, 1)
        assert count([1, -2], 9) == (7, 0)
    assert ("items", 2) in notes.told
    assert notes.told.count(("total < limit", "begins")) == 2
    assert notes.told.count(("total < limit", True)) == 6
    assert ("i > 1", True) in notes.told


def pick(a: int, b: int, word: str) -> int:
    match word:
        case "max":
            return max(a, b)
        case _:
            return min(a, b)


def test_match_and_the_builtins_that_pick():
    with watched(pick) as notes:
        assert pick(500, 1000, "max") == 1000
        assert pick(500, 1000, "min") == 500
    assert notes.told == [("word", 0), ("max(a, b)", 1), ("word", 1), ("min(a, b)", 0)]


class Base:
    def hidden(self) -> str:
        return "base"


class Child(Base):
    def __init__(self, start: int) -> None:
        self.__secret = start

    def hidden(self) -> str:
        return super().hidden() if self.__secret > 0 else "child"


def outer(start: int) -> int:
    step = 2

    def inner(n: int) -> int:
        return n + step if n < 5 else n

    return inner(start)


def test_closures_private_names_and_super_are_as_they_were():
    with watched(Child.hidden, outer) as notes:
        assert [Child(1).hidden(), Child(0).hidden()] == ["base", "child"]
        assert [outer(1), outer(9)] == [3, 9]
    assert [way for _, way in notes.decisions()] == [True, False, True, False]


def test_a_function_inside_a_function_is_found_by_its_own_code():
    code = next(c for c in outer.__code__.co_consts if getattr(c, "co_name", "") == "inner")
    with probed([code]) as sites:
        assert [site.text for site in sites] == ["n < 5"]


def test_functions_get_their_own_code_back_also_after_an_exception():
    before = grade.__code__
    with pytest.raises(TypeError), probed([before]):
        grade("not a number")
    assert grade.__code__ is before
    with probed([before]):
        assert grade.__code__ is not before
    assert grade.__code__ is before


def test_unwatched_probes_hand_everything_through():
    with probed([grade.__code__, count.__code__, pick.__code__]):
        assert grade(12) == "big"
        assert count([1, 2], 0) == (103, 1)
        assert pick(1, 2, "max") == 2


def test_a_place_knows_its_line_its_kind_and_its_numbers():
    with probed([grade.__code__]) as sites:
        first = sites[0]
    assert (first.line, first.kind, first.function) == (grade.__code__.co_firstlineno + 1, DecisionKind.IF, "grade")
    assert {10, 13} <= set(first.constants)


def test_a_function_without_source_is_left_alone():
    made: dict[str, Any] = {}
    exec("def f(x):\n    return 1 if x else 2", made)  # as a prompt would make it
    with probed([made["f"].__code__]) as sites:
        assert sites == ()
        assert made["f"](0) == 2
