"""Expressions over sizes as Python: what sympy says of each set of sizes, and sooner."""

from __future__ import annotations

import itertools

import pytest
import sympy

from trueport.torch_internals import size_functions
from trueport.torch_internals.expressions import as_python

A, B = sympy.symbols("s0 s1", integer=True, nonnegative=True)
of = size_functions()
EXPRESSIONS = (
    sympy.Eq(A * 2, B),
    sympy.Ne(of["FloorDiv"](A, 2) + 1, B),
    of["PythonMod"](A, 3) <= of["Max"](1, B - 2),
    sympy.And(sympy.Gt(A, 2), sympy.Or(sympy.Eq(B, 0), sympy.Lt(A, B))),
    sympy.Eq(of["Mod"](A + B, 4), 0),
)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_python_says_what_sympy_says(expr):
    test = as_python(expr, (A, B))
    for a, b in itertools.product(range(7), repeat=2):
        assert test(a, b) == (expr.xreplace({A: sympy.Integer(a), B: sympy.Integer(b)}) == sympy.true)


def test_what_depends_on_more_than_the_sizes_is_not_known():
    test = as_python(sympy.Or(sympy.Eq(A, 3), sympy.Eq(B, 3)), (A,))
    assert test(3) is True
    assert test(4) is None
