"""A name that is None in one arm of a branch, or before the first round of a loop, and something else otherwise.

    best = None
    for row in x:
        if best is None or row.sum() > best.sum():
            best = row

It is held as a flag and a value (blank where the flag is off). `is None`, `==`, `isinstance` and `type` ask the flag,
since None has an answer to them, too; whatever Python would not do with None is done with the value. Where None would
be as good as a tensor (an argument of a function), it cannot stand for both, and is a disagreement like any other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from trueport.capture.values.chosen import Chosen, chosen, holds_of, itself, later, made_of, narrowed
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import InWords, Nothing
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.source import Place
from trueport.torch_internals.messages import names_none
from trueport.torch_internals.symbolic import told_by

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
        name = getattr(func, "__name__", "")
        if name in ("__eq__", "__ne__") and isinstance(args[1], Maybe):
            return getattr(args[1], name)(args[0])
        if name not in _OPERATORS:
            return super().__torch_function__(func, types, args, kwargs)
        return func(*map(used, args), **(kwargs or {}))

    def __eq__(self, other: object) -> Any:
        return self._compared(RUNTIME_FUNCTIONS.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(RUNTIME_FUNCTIONS.ne, other)

    __hash__ = Disagreement.__hash__

    def _compared(self, compare: Callable[[Any, Any], Any], other: object) -> Any:
        """`limit == 3`, which is False of None."""
        value = self.use()
        return RUNTIME_FUNCTIONS.ternary(self._flag, later(compare, value, other), later(compare, None, other))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.use(), name)


def used(value: Any) -> Any:
    """A value for code that takes no None."""
    return value.use() if isinstance(value, Maybe) else value


def present(value: Any) -> Any:
    """The same of a value, or of a list of them."""
    if type(value) not in (list, tuple):
        return used(value)
    made = type(value)(map(present, value))
    return value if all(map(operator.is_, made, value)) else made


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


def asked(value: Any, test: Callable[[Any], bool]) -> Any:
    """Whether something plain, that None answers as well, holds of a value, or of what it is on each way."""
    if isinstance(value, Maybe):
        there, nothing = holds_of(value._value, test), test(None)
        return RUNTIME_FUNCTIONS.ternary(value._flag, later(itself, there), later(itself, nothing))
    _settled(value)
    return holds_of(value, test)


def with_and_without(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Callable[[], Any], Callable[[], Any]] | None:
    """`scaled_dot_product_attention(..., attn_mask=mask)`: a flag, the call of torch's where there is something, and
    the call with None. Operators take no None; None where no argument may be None.

    Code of torch's own has asked `is None` before, and heard that there is something: nothing is known of the call.
    """
    if getattr(function, "__name__", "") in _METHODS:
        return None
    one = next((each for each in (*args, *kwargs.values()) if isinstance(each, Maybe)), None)
    if one is None:
        return None
    value = one.use()

    def call(given: Any) -> Any:
        plain = [given if each is one else each for each in args]
        return refusing_none(function, *plain, **{k: given if each is one else each for k, each in kwargs.items()})

    return one._flag, later(call, value), later(call, None)


def refusing_none(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that is written in C. Where it refuses None, it does so in eager."""
    try:
        return function(*args, **kwargs)
    except TypeError as failure:
        told_by_itself = failure.__traceback__ is not None and failure.__traceback__.tb_next is None
        failure.tp_as_python = told_by_itself and names_none(str(failure))  # type: ignore[attr-defined]
        raise


def kind_asked(value: Any, kind: Callable[[Any], type]) -> Any:
    """Its type, or that on each way."""
    if isinstance(value, Maybe):
        there = made_of(value._value, kind)
        return chosen([later(itself, value._flag), later(itself, True)], [there, type(None)], value)
    _settled(value)
    return made_of(value, kind)


def _settled(value: Any) -> None:
    """What two arms left as different things is asked in each of them."""
    if isinstance(value, Disagreement) and not isinstance(value, Chosen):
        value.complain()


def flag_of(value: Any) -> Any:
    """Whether there is something: True, False, or a symbol."""
    return value._flag if isinstance(value, Maybe) else value is not None


def value_of(value: Any) -> Any:
    return value._value if isinstance(value, Maybe) else value


def known(value: Any, test: Any, holds: bool) -> Any:
    """What a Maybe is in the arm where a test holds, or does not, if the test is about it."""
    if isinstance(value, Chosen):
        return narrowed(value, test, holds)
    there = told_by(test, holds, flag_of(value))
    return value if there is None else value_of(value) if there else None


_OPERATORS = frozenset(
    f"__{stem}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split()
    for stem in (name, f"r{name}", f"i{name}")
) | frozenset("__lt__ __le__ __gt__ __ge__ __neg__ __abs__ __invert__ __getitem__".split())
"""What tensors do and None does not."""
_METHODS = _OPERATORS | {"__eq__", "__ne__", "__get__"}


def _delegate(name: str) -> Callable[..., Any]:
    function = getattr(operator, name, None)

    def forward(self: Maybe, *others: Any) -> Any:
        plain = [used(other) for other in others]
        if function is not None:
            return function(self.use(), *plain)
        return getattr(operator, name.replace("__r", "__", 1))(*plain, self.use())

    return forward


for _name in _OPERATORS:
    setattr(Maybe, _name, _delegate(_name))
