"""One of several things that no value of ONNX can be: a layer, a function, a text, None. A traced number tells which.

    mode = "up" if t > 0 else "down"        what the arms of a branch leave,
    self.layers[i](x)                       or what is looked up by a traced number

What is asked about it is asked about each candidate: `mode == "up"` is a test like any other. What is done with it is
done with each, in its own arm.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, TypeAlias

import torch

from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import ANOTHER, ONE, TEXTS
from trueport.capture.values.leaves import plain_leaves
from trueport.capture.values.texts import OpenText
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.source import Place
from trueport.torch_internals.releases import either
from trueport.torch_internals.symbolic import is_traced, statement_of, told_by

Tests: TypeAlias = Sequence[Callable[[], Any]]
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, type)


def later(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: function(*args)


class OneOfFew:
    """Something of ours that no value can be either; equal ones are the same object."""

    is_one_leaf = True


class Chosen(Disagreement):
    """`candidates`, of which the first whose test holds is meant; the last needs no test."""

    __slots__ = ("_candidates", "_number", "_tests")
    _candidates: tuple[Any, ...]
    _tests: Tests
    _number: Any

    def __init__(
        self, tests: Tests, candidates: Sequence[Any], like: Disagreement | None = None, number: Any = None
    ) -> None:
        """`like` is what two arms did not agree on; where it is given, the rest may be traced in both of them.

        `number` is the number of the candidate that is meant, where that is known.
        """
        said = ("what is looked up", ONE, ANOTHER, Place(()), None) if like is None else like._said
        super().__init__(*said)
        object.__setattr__(self, "_tests", tuple(tests))
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_candidates", tuple(candidates))

    @classmethod
    def by_number(cls, number: Any, candidates: Sequence[Any], like: Disagreement) -> Chosen:
        return cls([later(operator.eq, number, number_of(one)) for one in candidates], candidates, like, number)

    def each(self, function: Callable[[Any], Any]) -> Any:
        """What a function gives for the candidate that is meant: it runs in an arm for each."""
        self.settle()
        return pick(self._tests, tuple(later(function, candidate) for candidate in self._candidates))

    def made(self, function: Callable[[Any], Any]) -> Any:
        """What a function that records nothing gives for the candidate that is meant."""
        return chosen(self._tests, [function(candidate) for candidate in self._candidates], self)

    def only(self, test: Callable[[Any], bool]) -> Any:
        """What it is where it is one of the candidates for which something plain holds."""
        left = [i for i, candidate in enumerate(self._candidates) if test(candidate)]
        return chosen([self._tests[i] for i in left], [self._candidates[i] for i in left], self)

    def able(self, test: Callable[[Any], bool], error: type[Exception]) -> Any:
        """What it is where it is one of the candidates for which something plain holds: eager raises at the others."""
        held = self.where(test)
        if held is False:
            raise error(str(self))
        if held is not True and TRACE.trace is not None:
            TRACE.trace.check(held, error)
        return self.only(test)

    @property
    def number(self) -> Any:
        """The number of the candidate that is meant (see `number_of`)."""
        if self._number is not None:
            return self._number
        *others, number = map(number_of, self._candidates)
        for test, place in zip(reversed(self._tests[:-1]), reversed(others), strict=True):
            holds = test()
            taken = either(holds, 1, 0) if is_traced(holds) else int(holds)
            number = number + taken * (place - number)
        return number

    def where(self, test: Callable[[Any], Any]) -> Any:
        """Whether something plain holds for the candidate that is meant: a plain bool, or a symbol for one."""
        answers = [test(candidate) for candidate in self._candidates]
        if any(not isinstance(answer, bool) for answer in answers):
            return self.each(test)
        if len(set(answers)) == 1:
            return answers[0]
        if len(answers) == 2:
            first = self._tests[0]()
            return RUNTIME_FUNCTIONS.not_(first) if answers[1] else first
        number, meant = self.number, zip(self._candidates, answers, strict=True)
        return functools.reduce(operator.or_, [number == number_of(one) for one, answer in meant if answer])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return each_of(
            self.able(callable, TypeError), lambda candidate: RUNTIME_FUNCTIONS.traced(candidate)(*args, **kwargs)
        )

    def __getattr__(self, name: str) -> Any:
        having = self.able(lambda candidate: hasattr(candidate, name), AttributeError)
        return made_of(having, lambda candidate: getattr(candidate, name))

    def __getitem__(self, key: Any) -> Any:
        return self.made(lambda candidate: candidate[key])

    def __add__(self, other: Any) -> Any:
        return self.made(lambda candidate: candidate + other)

    def __radd__(self, other: Any) -> Any:
        return self.made(lambda candidate: other + candidate)

    def __eq__(self, other: object) -> Any:
        return self.where(lambda candidate: other == candidate)

    def __ne__(self, other: object) -> Any:
        return RUNTIME_FUNCTIONS.not_(self == other)

    def __bool__(self) -> bool:
        return bool(self.where(bool))

    def __str__(self) -> str:
        """In a message."""
        return " or ".join(str(candidate) for candidate in self._candidates)

    def __format__(self, _specification: str) -> str:
        return str(self)

    __hash__ = Disagreement.__hash__


def made_of(value: Any, function: Callable[[Any], Any]) -> Any:
    """What a function that records nothing gives for something plain, or for the candidate that is meant."""
    return value.made(function) if isinstance(value, Chosen) else function(value)


def each_of(value: Any, function: Callable[[Any], Any]) -> Any:
    """What a function gives for something plain, or for the candidate that is meant: it runs in an arm for each."""
    return value.each(function) if isinstance(value, Chosen) else function(value)


def holds_of(value: Any, test: Callable[[Any], Any]) -> Any:
    """Whether something plain holds of a value, or of the candidate that is meant."""
    return value.where(test) if isinstance(value, Chosen) else test(value)


def each_way(values: list[Any], function: Callable[[list[Any]], Any]) -> Any:
    """What a function that records nothing gives for several values, of which some may be one of a few things."""
    open_ones = [i for i, value in enumerate(values) if isinstance(value, Chosen)]
    if not open_ones:
        return function(values)
    first = open_ones[0]
    one = lambda candidate: each_way([*values[:first], candidate, *values[first + 1 :]], function)  # noqa: E731
    return values[first].made(one) if len(open_ones) == 1 else values[first].each(one)


def candidates_of(value: Any) -> tuple[Any, ...]:
    return value._candidates if isinstance(value, Chosen) else (value,)


def may_be_chosen(value: Any) -> bool:
    """Whether it is something of which a branch may leave one, and another one elsewhere."""
    plain = value is None or (isinstance(value, TEXTS) and not isinstance(value, OpenText))
    return plain or isinstance(value, (Chosen, OneOfFew, torch.nn.Module, *_FUNCTIONS))


def number_of(value: Any) -> Any:
    """Everything that was ever a candidate in a trace has a number: a plain one, or a symbol that tells which."""
    if isinstance(value, Chosen):
        return value.number
    trace = TRACE.trace
    assert trace is not None
    return trace.number_of_thing(value)


def narrowed(value: Chosen, test: Any, holds: bool) -> Any:
    """What it can be in the arm where a test holds, or does not, if the test is about it."""
    if statement_of(test) is None:
        return value
    for own, candidate in zip(value._tests, value._candidates, strict=False):
        meant = told_by(test, holds, own())
        if meant is not None:
            return candidate if meant else value.only(lambda other, gone=candidate: other is not gone)  # type: ignore[misc]
    return value


def chosen(tests: Tests, values: Sequence[Any], like: Disagreement | None = None) -> Any:
    """One of these values: merged by branches where that can be."""
    if all(value is values[0] for value in values):
        return values[0]
    if all(_is_value(value) for value in values if value is not None):  # None beside a tensor is a Maybe
        return pick(tuple(tests), tuple(later(itself, value) for value in values))
    return Chosen(tests, values, like)


def pick(tests: Tests, arms: tuple[Callable[[], Any], ...]) -> Any:
    """The arm whose test holds. (What arms may change is looked for in tuples, and not in lists of ours.)"""
    if len(arms) == 1:
        return arms[0]()
    return RUNTIME_FUNCTIONS.ternary(tests[0](), arms[0], lambda: pick(tests[1:], arms[1:]))


def itself(value: Any) -> Any:
    return value


def _is_value(value: Any) -> bool:
    """Whether branches can merge it."""
    if callable(value) or isinstance(value, (str, bytes)) or value is None:
        return False
    leaves = plain_leaves(value, "value")
    if leaves is None:  # lists of open length
        return True
    return bool(leaves) and all(isinstance(leaf.value, (torch.Tensor, bool, int, float, *Symbolic)) for leaf in leaves)
