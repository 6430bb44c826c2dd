"""Rewritten functions as they are shown: the user's own code, blocks by name, and what decides."""

from __future__ import annotations

import ast

import torch

import trueport
from trueport.rewrite.readable import readable


def branching(x):
    y = x + 1
    if x.sum() > 0:
        y = y * 2
    return y


def looping(x, n):
    for i in range(n):
        x = x + i
    return x


def test_a_branch():
    text = readable(branching.__code__)
    assert text.startswith(f"# {__file__}:{branching.__code__.co_firstlineno}  branching\n")
    assert "trueport.if_(x.sum() > 0, tp_then_1, tp_else_2, names=('y',))" in text
    assert "y = y * 2" in text


def test_without_the_plumbing():
    text = readable(branching.__code__)
    assert not any(word in text for word in ("tp_set", "nonlocal", "if False", "lambda", "\0"))


def test_builtins_are_called_by_their_names():
    assert "trueport.for_(trueport.range(n), tp_body_1" in readable(looping.__code__)


def test_it_is_python():
    for function in (branching, looping):
        ast.parse(readable(function.__code__))


def test_a_program_tells_what_was_rewritten():
    program = trueport.export(branching, (torch.ones(3),), verify=False)
    assert program.rewritten == (readable(branching.__code__),)
    assert trueport.export(torch.relu, (torch.ones(3),), verify=False).rewritten == ()
