"""Sequences whose length is known only when the model runs."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.limits import Limit, told
from trueport.capture.values.texts import marked
from trueport.diagnostics.rules.tp104_open_length import OpenLength
from trueport.errors import refusal
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.torch_internals import outside_all_modes
from trueport.torch_internals.symbolic import is_symbolic


def refuse(what: str, fix: str, limit: Limit | None = None) -> Any:
    """Something is done to an open sequence that only rewritten code may do, or that nobody may."""
    if TRACE.trace is not None:
        TRACE.trace.rewrite_caller()
    raise refusal(OpenLength(message=what, fix=fix, **told(limit)))


@dataclass(frozen=True)
class OpenSequence:
    """`length` items, of which `at(i)` makes the one with a traced index: a range, the rows of a tensor, a zip.

    Where `most` is known, there are never more, and `at` is asked for plain numbers only: a zip with something plain.
    """

    length: Any
    at: Callable[[Any], Any]
    most: int | None = None
    is_open = True

    def sequence(self) -> OpenSequence:
        return self

    def collected(self) -> Any:
        """Its items, in a list of open length."""
        trace: Any = TRACE.trace
        return trace.collect(self, lambda item: item)

    def __iter__(self) -> Any:
        return refuse(
            "this code goes through something whose length is known only when the model runs",
            "go through it with a `for` loop in the model's own Python code",
        )

    def __len__(self) -> int:
        return int(
            refuse("the length of this is known only when the model runs", "use len(...) in the model's own code")
        )


class StandIn(torch.Tensor):
    """The only content of an open list, so that torch's functions, which look at the items, reach us with it.

    Whoever reads it as a tensor is told that it is none. In a text it is good to be shown, like a traced number.
    """

    stands_for: Any

    @classmethod
    def of(cls, items: Any) -> StandIn:
        with outside_all_modes():
            made = torch.empty(0).as_subclass(cls)
            made.stands_for = items
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.Tensor.__repr__, torch.Tensor.__format__):
            return marked(None, "…")
        return refuse(
            f"`{getattr(func, '__name__', func)}` is given a list whose length is known only when the model runs",
            "stack or concatenate the list first: torch.stack(items)",
        )


def is_plain_iterator(value: Any) -> bool:
    """One of Python's own iterators, or a generator."""
    return isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools")


HANDS_IT_ON = frozenset({torch.nn.utils.rnn.pad_sequence.__code__})
"""Python code of torch's that makes a tuple of the list which it is given, and hands that to an operator."""


def handed_on(items: Any) -> Any:
    """The list of open length that a function of torch's handed on as a tuple."""
    if isinstance(items, tuple) and len(items) == 1 and isinstance(items[0], StandIn):
        return items[0].stands_for
    return items


def turned(index: slice) -> slice | None:
    """The slice that takes the items of a backward one in their own order; None where its bounds are traced."""
    first, last = index.start, index.stop
    if is_symbolic(first) or is_symbolic(last):
        return None
    return slice(None if last is None else last + 1, None if first in (None, -1) else first + 1)


def opened(endless: Any) -> OpenSequence:
    """What `itertools.count` or `itertools.cycle` gives from here on, by its number."""
    if isinstance(endless, itertools.cycle):
        return _cycled(endless)
    first, second = itertools.islice(_copied(endless), 2)
    return OpenSequence(None, lambda i: first + i * (second - first))


def _copied(endless: Any, reduced: bool = False) -> Any:
    """Another that gives the same, or what it is made of: looking at an iterator must not move it. From Python 3.14 on
    these have no copies."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        try:
            copied = copy.copy(endless)
            return copied.__reduce__() if reduced else copied
        except TypeError:
            name = f"itertools.{type(endless).__name__}"
            refuse(f"this Python cannot say where `{name}` is", "count the rounds by a variable of your own")


def _cycled(items: Any) -> OpenSequence:
    """`itertools.cycle` of plain things, which are looked up by the number of the round."""
    _, (left,), (taken, *_) = _copied(items, reduced=True)
    if taken:
        refuse("a cycle that was begun goes on together with something of open length", "make it where it is used")
    plain = list(left)
    return OpenSequence(None, lambda i: RUNTIME_FUNCTIONS.item(plain, i % len(plain)))
