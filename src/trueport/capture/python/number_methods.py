"""What Python's numbers can do and torch's traced ones cannot, given to them for the time of a trace.

1. A bool counts: `count += bool(t > 0)`, `(n > 3) * 2`. Torch would ask which it is.
2. `~n`, `n.bit_length()`, `^` of two bools, and whether two bools are equal.
3. A format such as `f"{loss:.3f}"`, in a message: the name of the number stands there, as of a tensor.
4. `str(n)` in the user's code keeps the number that it is the text of.
5. `n // 3 // -2`, of which torch makes `n // -6`, which is another number.
6. `not loss < 0.1` holds where the loss is no number; torch takes it for `loss >= 0.1`, which does not.
7. `x // y` and `x % y` of floats, which torch rounds before or takes for integers.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from trueport.capture.stops.demand import Demand
from trueport.capture.stops.places import Places, code_that_calls
from trueport.capture.values.texts import MARK, OpenText, forget_numbers, is_writing, marked
from trueport.rewrite.running.asking import fails_unless
from trueport.rewrite.running.runtime import TRACE
from trueport.source import Where
from trueport.torch_internals import FunctionalTensor, float_floor_division, floats_step_by_step, multiples_told
from trueport.torch_internals.symbolic import counted, expr_of, has_hint, is_integer, is_number, is_symbolic

Method = Callable[..., Any]


@contextlib.contextmanager
def numbers_like_pythons(places: Places, demand: Demand) -> Iterator[None]:
    added: dict[Any, dict[str, Any]] = {
        torch.SymBool: {**_COUNTING, **_texts(torch.SymBool, places, demand)},
        torch.SymInt: {
            **_with_bools(torch.SymInt),
            "__invert__": _invert,
            "__floordiv__": _floor_division(torch.SymInt.__floordiv__),
            "bit_length": _bit_length,
            "bit_count": _bit_count,
            "__mod__": _checked(torch.SymInt.__mod__),
            "__rmod__": _checked(vars(torch.SymInt)["__rmod__"], divisor=0),
            "__rfloordiv__": _checked(torch.SymInt.__rfloordiv__, divisor=0),
            "__pow__": _power(torch.SymInt.__pow__),
            "__rpow__": lambda exponent, number: _as_floats(number, exponent),
            **_PARTS,
            "__eq__": _with_plain_bools(torch.SymInt.__eq__),
            "__ne__": _with_plain_bools(torch.SymInt.__ne__),
            "__round__": _round,
            **_texts(torch.SymInt, places, demand),
        },
        torch.SymFloat: {
            **_with_bools(torch.SymFloat),
            **_ordering(),
            "__eq__": _equal_to_itself(torch.SymFloat.__eq__, operator.eq),
            "__ne__": _equal_to_itself(torch.SymFloat.__ne__, operator.ne),
            "__floordiv__": _checked(float_floor_division),
            "__rfloordiv__": _checked(lambda number, other: float_floor_division(other, number), divisor=0),
            "__mod__": _checked(vars(torch.SymFloat)["__mod__"]),
            "__rmod__": _checked(vars(torch.SymFloat)["__rmod__"], divisor=0),
            **_texts(torch.SymFloat, places, demand),
            **_PARTS,
        },
        FunctionalTensor: _texts(FunctionalTensor, places, demand),
    }
    before = [(kind, name, vars(kind).get(name)) for kind, methods in added.items() for name in methods]
    for kind, methods in added.items():
        for name, method in methods.items():
            setattr(kind, name, method)
    try:
        with floats_step_by_step(), multiples_told():
            yield
    finally:
        forget_numbers()
        for kind, name, method in before:
            if method is None:
                delattr(kind, name)
            else:
                setattr(kind, name, method)


def _texts(kind: Any, places: Places, demand: Demand) -> dict[str, Method]:
    """What the user's code gets as the text of a traced value. A function that makes such a text is rewritten: Python
    would go on with plain text, and compare it with other texts."""
    itself = vars(kind)["__repr__"]

    def represented(value: Any, as_it_is: bool = True, **options: Any) -> str:
        name = str(itself(value, **options))
        if TRACE.trace is None:
            return name
        if not is_writing():
            if places.is_foreign(code_that_calls(__file__)):
                return name
            demand.require(_writer(places), places)
        return marked(value, name, as_it_is)

    def text(value: Any) -> str:
        made = represented(value)
        return OpenText.of(("", ""), (value,)) if isinstance(value, torch.SymInt) and MARK in made else made

    def form(value: Any, specification: str) -> str:
        return represented(value, specification in ("", "d"))

    return {"__repr__": represented, "__str__": text, "__format__": form}


def _writer(places: Places) -> FrameType | None:
    """The frame that writes a text: no library of Python's, and no method that `dataclass` wrote."""
    written_down = (f for f in places.traced_frames() if not f.f_code.co_filename.startswith("<string"))
    return next((f for f in written_down if not Where.of(f.f_code).is_standard), None)


def _invert(number: Any) -> Any:
    return -number - 1


def _floor_division(itself: Method) -> Method:
    """By a negative number as of the opposite by a positive one: only then torch may divide twice in one step."""

    def divide(number: Any, other: Any) -> Any:
        other = counted(other)
        _no_zero(other)
        return itself(-number, -other) if isinstance(other, int) and other < 0 else itself(number, other)

    return divide


def _checked(itself: Method, divisor: int = 1) -> Method:
    """A division, of which eager raises an error by zero, and somebody may catch it. `divisor` is which operand is."""

    def divide(*operands: Any) -> Any:
        _no_zero(operands[divisor])
        return itself(*operands)

    return divide


def _no_zero(number: Any) -> None:
    if isinstance(number, (torch.SymInt, torch.SymFloat)):
        fails_unless(lambda: number != 0, ZeroDivisionError)


def _power(itself: Method) -> Method:
    """`n ** k`: an integer where the exponent is known not to be negative, and otherwise computed as a float."""

    def raised(number: Any, exponent: Any, *modulus: Any) -> Any:
        if modulus:
            return NotImplemented
        if isinstance(exponent, int) and not isinstance(exponent, bool):
            return itself(number, exponent)
        return _as_floats(number, exponent)

    return raised


def _as_floats(number: Any, exponent: Any) -> Any:
    whole = is_integer(number) and isinstance(exponent, torch.SymInt)
    if whole and bool(TRACE.trace is not None and TRACE.trace.truth(exponent >= 0) is True):
        base, power = (torch.full((), each, dtype=torch.int64) for each in (number, exponent))
    else:
        base, power = (torch.full((), torch.sym_float(each), dtype=torch.float64) for each in (number, exponent))
    return torch.pow(base, power).item()


def _bit_count(number: Any) -> Any:
    return (torch.full((), number, dtype=torch.int64).abs() // _powers() % 2).sum().item()


def _bit_length(number: Any) -> Any:
    return (torch.full((), number, dtype=torch.int64).abs() >= _powers()).sum().item()


def _powers() -> torch.Tensor:
    return torch.tensor([2**bit for bit in range(63)])


_PARTS: dict[str, Any] = {
    "conjugate": lambda number: number,
    "real": property(lambda number: number),
    "imag": property(lambda number: number * 0),
}


def _equal(flag: Any, other: Any) -> Any:
    """Torch would compare the numbers behind two truths, which have none."""
    if isinstance(other, bool):
        return flag if other else torch.sym_not(flag)
    if isinstance(other, torch.SymBool):
        return torch.sym_not(_xor(flag, other))
    return counted(flag) == other


def _unequal(flag: Any, other: Any) -> Any:
    return torch.sym_not(_equal(flag, other))


def _with_bools(kind: type) -> dict[str, Method]:
    """The arithmetic of a traced number, where the other one may be a traced bool."""

    def counting(operation: Method) -> Method:
        return lambda number, other: operation(number, counted(other))

    made = {name: counting(getattr(kind, name)) for name in ("__add__", "__sub__", "__mul__")}
    into, by = (getattr(kind, name) for name in ("__truediv__", "__rtruediv__"))
    return {**made, "__truediv__": _checked(counting(into)), "__rtruediv__": _checked(by, divisor=0)}


def _with_plain_bools(itself: Method) -> Method:
    """`n in (1, True)`: sympy takes no truth for a number."""
    return lambda number, other: itself(number, int(other) if isinstance(other, bool) else other)


def _round(number: Any, digits: int | None = None) -> Any:
    """`round(n, -1)`: to the even one of two neighbours that are equally near."""
    if digits is None or digits >= 0:
        return number
    step = 10**-digits
    low, twice = number // step, number % step * 2
    return (low + counted((twice > step) | ((twice == step) & (low % 2 == 1)))) * step


def _equal_to_itself(itself: Method, compare: Method) -> Method:
    """`v != v` asks whether a float is NaN. Sympy knows none, and would say no."""

    def equal(number: Any, other: Any) -> Any:
        same = isinstance(other, torch.SymFloat) and expr_of(number) == expr_of(other)
        if TRACE.trace is None or not same or has_hint(number):
            return itself(number, other)
        value = torch.full((), number, dtype=torch.float64)
        return compare(value, value).item()

    return equal


def _ordering() -> dict[str, Method]:
    """Which of two floats is less, where that may be neither: compared by the model, so that no one turns it around."""

    def ordering(name: str) -> Method:
        itself, compare = getattr(torch.SymFloat, name), getattr(operator, name)

        def ordered(number: Any, other: Any) -> Any:
            known = all(has_hint(each) for each in (number, other) if is_symbolic(each))
            if TRACE.trace is None or known or not is_number(other):
                return itself(number, other)
            both = (torch.full((), torch.sym_float(counted(each)), dtype=torch.float64) for each in (number, other))
            return compare(*both).item()

        return ordered

    return {name: ordering(name) for name in ("__lt__", "__le__", "__gt__", "__ge__")}


def _counting(operation: Method) -> Method:
    return lambda flag, other: operation(counted(flag), counted(other))


def _counting_from_the_right(operation: Method) -> Method:
    return lambda flag, other: operation(counted(other), counted(flag))


def _xor(flag: Any, other: Any) -> Any:
    return (flag | other) & torch.sym_not(flag & other)


def _of_bits(operation: Method, of_bools: Method | None = None) -> Method:
    """`flag & 1` is a number, `flag & other` a bool again."""
    truth = of_bools or getattr(torch.SymBool, f"__{operation.__name__.strip('_')}__")

    def method(flag: Any, other: Any) -> Any:
        if type(other) in (int, torch.SymInt):
            return operation(counted(flag), other)
        return truth(flag, other)

    return method


_WITH_NUMBERS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")
_COUNTING: dict[str, Method] = {
    **{f"__{name}__": _counting(getattr(operator, name)) for name in _WITH_NUMBERS},
    **{f"__r{name}__": _counting_from_the_right(getattr(operator, name)) for name in _WITH_NUMBERS},
    **{f"__{name}__": _counting(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
    "__neg__": lambda flag: -counted(flag),
    "__abs__": counted,
    "__round__": lambda flag, *_: counted(flag),
    "__eq__": _equal,
    "__ne__": _unequal,
    "__and__": _of_bits(operator.and_),
    "__or__": _of_bits(operator.or_),
    "__xor__": _of_bits(operator.xor, _xor),
    "__rand__": _of_bits(operator.and_),
    "__ror__": _of_bits(operator.or_),
    "__rxor__": _of_bits(operator.xor, _xor),
}
