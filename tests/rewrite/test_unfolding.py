"""A ternary that becomes a branch is evaluated when Python evaluates it, or is left as it is."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from trueport.rewrite.unfolding import unfolded

SAID = """
said = []

def say(word, value=1):
    said.append(word)
    return value

def call(*given, **named):
    said.append((given, named))
    return sum(given) + sum(named.values())

class Box:
    def __init__(self):
        self.items = [1, 2, 3]

    @property
    def total(self):
        return say("total", sum(self.items))

    @total.setter
    def total(self, value):
        self.items[0] = value

    def bump(self, holds):
        self.items[0] += 5
        return say("bump", holds)

    def added(self, *given):
        return say("added", sum(given))

box = Box()
"""


def ran(statements: list[ast.stmt]) -> dict[str, Any]:
    module = ast.Module(body=[*ast.parse(SAID).body, *statements], type_ignores=[])
    names: dict[str, Any] = {"flag": True, "n": 2}
    exec(compile(ast.fix_missing_locations(module), "unfolded", "exec"), names)
    return {"said": names["said"], "items": names["box"].items, "v": names.get("v"), "n": names["n"]}


@pytest.mark.parametrize("holds", ["True", "False"])
@pytest.mark.parametrize(
    "text",
    [
        "v = say('a') if box.bump({holds}) else say('b')",
        "v = say('left') + (say('a') if box.bump({holds}) else say('b')) + say('right')",
        "v = box.total + (1 if box.bump({holds}) else 2)",
        "v = n + (1 if (n := 7) and {holds} else 2)",
        "v = call(say('first'), *[say('more')], last=say('a', 2) if box.bump({holds}) else say('b', 3))",
        "v = Box().added(box.items[0], 1 if box.bump({holds}) else 2)",
        "v = {{say('key'): say('value'), say('other'): 1 if box.bump({holds}) else say('b')}}",
        "v = [box.items[say('at', 0)], 1 if box.bump({holds}) else 2]",
        "v = box.items[say('from', 0) : 1 if box.bump({holds}) else 2]",
        "box.items[say('at', 0)] += 1 if box.bump({holds}) else 2",
        "box.total += 1 if box.bump({holds}) else 2",
        "n += 1 if box.bump({holds}) else 2",
        "v = say('a') if (say('x') if box.bump({holds}) else say('y', 0)) else say('b')",
        "v = say('a') if say('outer', {holds}) else (say('b') if box.bump({holds}) else say('c'))",
    ],
)
def test_what_stands_before_it_is_evaluated_before_it(text: str, holds: str) -> None:
    plain = ast.parse(text.format(holds=holds)).body
    made = unfolded(ast.parse(text.format(holds=holds)).body[0], [1])
    assert made is not None
    assert isinstance(made[-1], ast.If)
    assert ran(made) == ran(plain)


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda a: a if a > 0 else -a",
        "v = [a if a > 0 else -a for a in items]",
        "v = flag and (1 if n > 0 else 2)",
        "v = 0 < n < (1 if flag else 2)",
        "v = sum(a if a > 0 else -a for a in items)",
    ],
)
def test_one_that_may_not_be_evaluated_now_is_left(text: str) -> None:
    assert unfolded(ast.parse(text).body[0], [1]) is None
