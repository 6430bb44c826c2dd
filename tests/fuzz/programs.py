"""Whole random programs: a module with a helper function, a method, and a forward."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.fuzz.containers import Containers
from tests.fuzz.expressions import Kind, Names
from tests.fuzz.functions import Functions
from tests.fuzz.idioms import FIRST, HEAD, METHODS, Idioms
from tests.fuzz.statements import Lines

_HEAD = """\
import contextlib
import functools
import typing

import torch
from torch import nn


def plain(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


def above(rows, least):
    for row in rows:
        if row.sum() > least:
            yield row
        elif row[0] == 3:
            return
        yield row.clamp(-1, 1)


"""

_CLASS = """\


class Net(Base):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.layers = nn.ModuleList([Layer(1), Layer(-2)])
        self.last = None
        self.count = 0

    @property
    def level(self):
        return self.count % 3 if self.last.sum() > 0 else -1

    @staticmethod
    def larger(a, b):
        return a if a.sum() > b.sum() else b

"""

_FIRST = {
    "h": (Kind.VECTOR, "y * 1"),
    "z": (Kind.ROWS, "x * 1"),
    "g": (Kind.VECTOR, "-y"),
    "w": (Kind.MATRIX, "x[1:] + 1"),
    "s": (Kind.SCALAR, "y.sum()"),
    "i": (Kind.INT, "1"),
    "f": (Kind.FLOAT, "0.5"),
    "b": (Kind.BOOL, "False"),
    "p": (Kind.PAIR, "(y, 2)"),
    "total": (Kind.TOTAL, "0"),
    "out": (Kind.LIST, "[]"),
    "d": (Kind.DICT, '{"a": y, "b": y * 2, "k": 1}'),
    "best": (Kind.MAYBE, "None"),
    **FIRST,
}
"""The names that forward may begin with."""

_RESULTS = (Kind.VECTOR, Kind.MATRIX, Kind.ROWS, Kind.SCALAR, Kind.INT, Kind.FLOAT, Kind.BOOL)


def write_program(random: Random) -> str:
    """The source of a module whose forward takes x [free, 3], y [3], c (an int tensor), n (an int) and q (a float)."""
    helper = _function(random, "helper(a, j)", (Kind.VECTOR, Kind.INT))
    if random.random() < 0.3:
        helper = ["@plain", *helper]
    part = _function(random, "part(self, a, j)", (Kind.VECTOR,))
    return _HEAD + HEAD + "\n".join(helper) + "\n" + _CLASS + METHODS + _text(part) + "\n" + _text(_forward(random))


def programs() -> st.SearchStrategy[str]:
    """The sources of random programs, each from a seed: of the choices themselves, hypothesis would vary a few only."""
    return st.integers(0, 2**64).map(lambda seed: write_program(Random(seed)))


class _Grammar(Idioms, Functions, Containers):
    """All of the little language."""


def _function(random: Random, signature: str, returned: tuple[Kind, ...]) -> Lines:
    made = _Grammar(random)
    made.names = Names({"a": Kind.VECTOR, "j": Kind.INT})
    made.inputs = frozenset(["a"])
    made.returned = returned
    made.budget = random.choice([1, 2, 4])
    lines: Lines = []
    while made.budget > 0:
        made.budget -= 1
        lines += made.statement(1, in_loop=False)
    return [f"def {signature}:", *("    " + line for line in (*lines, *made.leave()))]


def _forward(random: Random) -> Lines:
    made = _Grammar(random)
    made.in_method = True
    made.helpers = random.random() < 0.5
    made.names = Names({"x": Kind.ROWS, "y": Kind.VECTOR, "n": Kind.INT, "q": Kind.FLOAT})
    made.inputs = frozenset(["x", "y", "n", "q"])
    made.returned = tuple(random.choice(_RESULTS) for _ in range(random.randint(0, 2)))
    made.budget = random.choice([4, 6, 9, 12])
    lines = ["self.last = y", "self.count = 0"]
    for name, (kind, value) in _FIRST.items():
        if name in ("h", "z") or random.random() < 0.3:
            lines.append(f"{name} = {value}")
            made.names.kinds[name] = kind
    while made.budget > 0:
        made.budget -= 1
        lines += made.statement(3, in_loop=False)
    return ["def forward(self, x, y, c, n, q):", *("    " + line for line in (*lines, *made.leave()))]


def _text(lines: Lines) -> str:
    return "".join(f"    {line}\n" for line in lines)
