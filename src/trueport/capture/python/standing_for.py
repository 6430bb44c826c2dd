"""Registering polyfills (see `polyfills/`), and when one is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from trueport.capture.containers.generators import Generated
from trueport.capture.containers.sequences import is_plain_iterator
from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.recording.flow import Flow
from trueport.rewrite.ahead import Function, rewritten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS

When = Callable[..., bool]
"""Takes the control flow of the trace, and the arguments of a call."""


def any_open(control: Flow, *args: Any, **_: Any) -> bool:
    """Whether how many items there are is open."""
    return any(is_open(control, arg) for arg in args)


def any_traced(control: Flow, *args: Any, **_: Any) -> bool:
    """Whether how many items there are is open, or one of those in a list or a tuple is traced."""
    return any_open(control, *args) or control.holds_traced(args)


def always(_control: Flow, *_args: Any, **_kwargs: Any) -> bool:
    return True


def is_open(control: Flow, items: Any) -> bool:
    return isinstance(items, (Generated, OfOpenLength)) or control.sequence(items) is not None


def stands_for(
    *functions: Callable[..., Any], when: When = any_open, collects: bool = False
) -> Callable[[Function], Function]:
    """Registers a polyfill: rewritten code calls it in place of these functions `when` the arguments need it.

    With `collects`, the items of an iterator are put into a list before `when` is asked.
    """

    def register(polyfill: Function) -> Function:
        made = rewritten(polyfill)
        for function in functions:
            traced_for(function)(functools.partial(_called, function, made, when, collects))
        return made

    return register


def _called(
    function: Callable[..., Any],
    polyfill: Callable[..., Any],
    when: When,
    collects: bool,
    control: Flow,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if collects:
        args = tuple(list(arg) if is_plain_iterator(arg) else arg for arg in args)
    if when(control, *args, **kwargs):
        return polyfill(*args, **kwargs)
    return function(*map(_to_be_called, args), **{name: _to_be_called(arg) for name, arg in kwargs.items()})


def _to_be_called(given: Any) -> Any:
    """The library calls what it is given, such as `max`, with items that may be traced all the same."""
    return RUNTIME_FUNCTIONS.traced(given) if callable(given) else given
