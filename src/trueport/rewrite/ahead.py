"""Functions of ours in plain Python that are rewritten like those of the user's, whatever the trace asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from trueport.rewrite.functions import rewritten_code

Function = TypeVar("Function", bound=Callable[..., Any])
_ROOM = "rewritten"
"""What such functions say that their module is: what their blocks change is looked after as in code of the user's."""


def rewritten(function: Function) -> Function:
    """A function or a method that is rewritten when it is called for the first time.

    `isinstance` in it says of a traced list that it is a list, as in code of the user's: what has to tell them apart is
    a function of its own, which is not rewritten.
    """
    assert isinstance(function, FunctionType)

    @functools.cache
    def made() -> FunctionType:
        names = {**function.__globals__, "__name__": _ROOM}
        same = FunctionType(
            rewritten_code(function.__code__), names, function.__name__, function.__defaults__, function.__closure__
        )
        same.__kwdefaults__ = function.__kwdefaults__
        return same

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return made()(*args, **kwargs)

    return call  # type: ignore[return-value]
