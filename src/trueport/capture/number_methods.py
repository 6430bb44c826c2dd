"""What Python's numbers can do and torch's traced ones cannot, given to them for the time of a trace.

1. A bool counts: `count += bool(t > 0)`, `(n > 3) * 2`. Torch would ask which it is.
2. `~n`, `n.bit_length()`, `^` of two bools, and whether two bools are equal.
3. A format such as `f"{loss:.3f}"`, in a message: the name of the number stands there.
4. `str(n)` in the user's code keeps the number that it is the text of.
5. `n // 3 // -2`, of which torch makes `n // -6`, which is another number.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from trueport.capture.places import Places
from trueport.capture.texts import Message, OpenText
from trueport.rewrite.runtime import TRACE

Method = Callable[..., Any]


@contextlib.contextmanager
def numbers_like_pythons(places: Places) -> Iterator[None]:
    def text(number: Any) -> str:
        if TRACE.trace is None or not isinstance(number, torch.SymInt) or places.is_foreign(sys._getframe(1).f_code):
            return repr(number)
        return OpenText.of("", number, "")

    added: dict[Any, dict[str, Method]] = {
        torch.SymBool: {**_COUNTING, "__format__": _format},
        torch.SymInt: {
            **_with_bools(torch.SymInt),
            "__invert__": _invert,
            "__floordiv__": _floor_division(torch.SymInt.__floordiv__),
            "bit_length": _bit_length,
            "__format__": _format,
            "__str__": text,
        },
        torch.SymFloat: {**_with_bools(torch.SymFloat), "__format__": _format},
    }
    before = [(kind, name, vars(kind).get(name)) for kind, methods in added.items() for name in methods]
    for kind, methods in added.items():
        for name, method in methods.items():
            setattr(kind, name, method)
    try:
        yield
    finally:
        for kind, name, method in before:
            if method is None:
                delattr(kind, name)
            else:
                setattr(kind, name, method)


def _format(number: Any, _specification: str) -> str:
    return Message(repr(number))


def _counted(flag: Any) -> Any:
    return torch.sym_ite(flag, 1, 0) if isinstance(flag, torch.SymBool) else flag


def _invert(number: Any) -> Any:
    return -number - 1


def _floor_division(itself: Method) -> Method:
    """By a negative number as of the opposite by a positive one: only then torch may divide twice in one step."""

    def divide(number: Any, other: Any) -> Any:
        other = _counted(other)
        return itself(-number, -other) if isinstance(other, int) and other < 0 else itself(number, other)

    return divide


def _bit_length(number: Any) -> Any:
    powers = torch.tensor([2**bit for bit in range(63)])
    return (torch.full((), number, dtype=torch.int64).abs() >= powers).sum().item()


def _equal(flag: Any, other: Any) -> Any:
    """Torch would compare the numbers behind two truths, which have none."""
    if isinstance(other, bool):
        return flag if other else torch.sym_not(flag)
    if isinstance(other, torch.SymBool):
        return torch.sym_not(_xor(flag, other))
    return _counted(flag) == other


def _unequal(flag: Any, other: Any) -> Any:
    equal = _equal(flag, other)
    return not equal if isinstance(equal, bool) else torch.sym_not(equal)


def _with_bools(kind: type) -> dict[str, Method]:
    """The arithmetic of a traced number, where the other one may be a traced bool."""

    def counting(operation: Method) -> Method:
        return lambda number, other: operation(number, _counted(other))

    return {name: counting(getattr(kind, name)) for name in ("__add__", "__sub__", "__mul__", "__truediv__")}


def _counting(operation: Method) -> Method:
    return lambda flag, other: operation(_counted(flag), _counted(other))


def _counting_from_the_right(operation: Method) -> Method:
    return lambda flag, other: operation(_counted(other), _counted(flag))


def _xor(flag: Any, other: Any) -> Any:
    return (flag | other) & torch.sym_not(flag & other)


_COUNTING: dict[str, Method] = {
    **{f"__{name}__": _counting(getattr(operator, name)) for name in ("add", "sub", "mul", "truediv")},
    **{f"__r{name}__": _counting_from_the_right(getattr(operator, name)) for name in ("add", "sub", "mul")},
    "__neg__": lambda flag: -_counted(flag),
    "__eq__": _equal,
    "__ne__": _unequal,
    "__xor__": _xor,
    "__rxor__": _xor,
}
