"""A name that is None in one arm of a branch, or before the first round of a loop, and something else otherwise.

    best = None
    for row in x:
        if best is None or row.sum() > best.sum():
            best = row

It is held as a flag and a value (blank where the flag is off). `is None` asks the flag; whatever Python would not do
with None is done with the value. Where None would be as good as a tensor (an argument of a function), it cannot stand
for both, and is a disagreement like any other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from trueport.capture.values.chosen import Chosen, narrowed
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import InWords, Nothing
from trueport.rewrite.running.runtime import TRACE
from trueport.source import Place
from trueport.torch_internals.symbolic import expr_of

_SOMETHING = InWords("something")


class Maybe(Disagreement):
    __slots__ = ("_flag", "_value")
    _flag: Any
    _value: Any

    def __init__(self, flag: Any, value: Any, name: str, place: Place, again: Callable[[], None] | None) -> None:
        super().__init__(name, Nothing(), _SOMETHING, place, again)
        object.__setattr__(self, "_flag", flag)
        object.__setattr__(self, "_value", value)

    def use(self) -> Any:
        """The value, for code that would fail on None; only rewritten code is known to have asked before."""
        if TRACE.trace is None or not TRACE.trace.asked_by_rewritten():
            self.complain()
        return self._value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in _OPERATORS:
            return super().__torch_function__(func, types, args, kwargs)
        return func(*(arg.use() if isinstance(arg, Maybe) else arg for arg in args), **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.use(), name)


def present(value: Any) -> Any:
    """A value, or a list of them, for a function that takes no None."""
    if isinstance(value, Maybe):
        return value.use()
    if type(value) in (list, tuple) and any(isinstance(item, Maybe | list | tuple) for item in value):
        return type(value)(present(item) for item in value)
    return value


def unless_empty(value: Any, assume: Callable[[Any, Place], bool]) -> Any:
    """A result of the model, with what is None only for some sizes as something: `assume` takes note of that, or not.

    state = None
    for t in range(x.shape[1]):     # None where there is nothing to go through, which eager may refuse
        y, state = self.lstm(x[:, t:t + 1], state)
    return torch.cat(outs), state
    """
    if isinstance(value, Maybe):
        return unless_empty(value._value, assume) if assume(value._flag, value.parted_at) else value
    if type(value) in (list, tuple):
        return type(value)(unless_empty(item, assume) for item in value)
    return {k: unless_empty(v, assume) for k, v in value.items()} if type(value) is dict else value


def flag_of(value: Any) -> Any:
    """Whether there is something: True, False, or a symbol."""
    return value._flag if isinstance(value, Maybe) else value is not None


def value_of(value: Any) -> Any:
    return value._value if isinstance(value, Maybe) else value


def known(value: Any, test: Any, holds: bool) -> Any:
    """What a Maybe is in the arm where a test holds, or does not, if the test is about it."""
    if isinstance(value, Chosen):
        return narrowed(value, test, holds)
    if not isinstance(value, Maybe) or not all(isinstance(b, torch.SymBool) for b in (test, value._flag)):
        return value
    flag, asked = expr_of(value._flag), expr_of(test)
    if asked == flag:
        return value._value if holds else None
    if asked == expr_of(torch.sym_not(value._flag)):
        return None if holds else value._value
    return value


_OPERATORS = frozenset(
    f"__{stem}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split()
    for stem in (name, f"r{name}", f"i{name}")
) | frozenset("__lt__ __le__ __gt__ __ge__ __eq__ __ne__ __neg__ __abs__ __invert__ __getitem__".split())
"""What tensors do and None does not."""


def _delegate(name: str) -> Callable[..., Any]:
    function = getattr(operator, name, None)

    def forward(self: Maybe, *others: Any) -> Any:
        plain = [other.use() if isinstance(other, Maybe) else other for other in others]
        if function is not None:
            return function(self.use(), *plain)
        return getattr(operator, name.replace("__r", "__", 1))(*plain, self.use())

    return forward


for _name in _OPERATORS:
    setattr(Maybe, _name, _delegate(_name))
