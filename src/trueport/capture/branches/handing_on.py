"""Calls of rewritten code that hand on one of several things: `pick(x, mode)`, where a traced value chose the mode.

`mode is Mode.UP` and `state is None` ask nobody: Python compares two objects, of which one stands for several. So a
function that is given such a thing, or a method of an object that holds one, is rewritten before it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from trueport.capture.branches.questions import Questions
from trueport.capture.stops.places import Places
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import parts_of, store_of, walk
from trueport.source import Where


class HandingOn(Questions):
    """The part of a trace's control flow that looks at what rewritten code calls."""

    def checked(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """A function that looks first whether what it is given stands for several things; None where it need not."""
        if not self.tracer.one_of_several:
            return None
        code = code_called(function, self.tracer.places)
        if code is None or self.tracer.demand.covers(code):
            return None
        return partial(self._handing_on, function, code)

    def stands_for_several(self) -> None:
        self.tracer.one_of_several = True

    def _handing_on(self, function: Callable[..., Any], code: CodeType, *args: Any, **kwargs: Any) -> Any:
        if hands_on_a_choice(function, (*args, *kwargs.values())):
            self.tracer.demand.require_code(code, self.tracer.places.here(), (function,))
        return function(*args, **kwargs)


def code_called(function: Any, places: Places) -> CodeType | None:
    """The code of the user's, or of a library, that a call runs first."""
    match function:
        case partial():
            return code_called(function.func, places)
        case torch.nn.Module():
            function = type(function).forward
        case type():
            function = vars(function).get("__init__")
        case FunctionType() | MethodType():
            pass
        case _:
            function = inspect.getattr_static(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or places.is_foreign(code) or Where(code.co_filename, 1).is_standard:
        return None
    return code


def hands_on_a_choice(function: Any, given: Iterable[Any]) -> bool:
    """Whether one of several things is among the arguments of a call, or in the object whose method is called."""
    if isinstance(function, partial):
        return hands_on_a_choice(function.func, (*given, *function.args, *function.keywords.values()))
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    return any(isinstance(each, Disagreement) for value in (*given, owner) for each in walk(value, 2, _parts))


def _parts(value: Any) -> Iterable[Any]:
    """The parts of a structure, and those attributes of an object that are such things themselves."""
    if isinstance(value, (torch.Tensor, type, Disagreement)):
        return ()
    attributes = getattr(value, "__dict__", {}).values() if store_of(value) is None else ()
    return (*parts_of(value), *(held for held in attributes if isinstance(held, Disagreement)))
