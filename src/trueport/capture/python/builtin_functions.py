"""Python's builtins for traced numbers and tensors, where the real ones would ask for a plain number."""

from __future__ import annotations

import builtins
import functools
import operator
import warnings
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, GeneratorType
from typing import Any

import numpy as np
import torch

from trueport.capture.containers.choices import attribute
from trueport.capture.containers.lists import is_open
from trueport.capture.containers.sequences import OpenSequence, refuse
from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import Chosen, each_way, itself, later, made_of, pick
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.maybe import asked, kind_asked, refusing_none
from trueport.capture.values.stores import TracedContainer
from trueport.capture.values.texts import OpenText, method_of_text, written
from trueport.decompositions.number_math import traced_math
from trueport.load.containers import kind_of_container
from trueport.rewrite.ahead import rewritten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals import FakeTensor, FunctionalTensor
from trueport.torch_internals.symbolic import counted, is_symbolic, is_traced, number_kind, plain_number

Builtin = Callable[..., Any]
_TRACED: dict[Builtin, Callable[..., Any]] = {}


def traced_builtin(control: Flow, function: Builtin) -> Builtin | None:
    """What to call instead of a builtin; None where the builtin itself does."""
    if isinstance(function, Disagreement):
        return None  # what is done with one of a few things is done with each of them
    if isinstance(function, functools.partial):
        inner = traced_builtin(control, function.func)
        return None if inner is None else functools.partial(inner, *function.args, **function.keywords)
    if not isinstance(function, (type, BuiltinFunctionType, FunctionType, np.ufunc)):
        return traced_math(function)
    _refuse_sending(control, function)
    replacement = _TRACED.get(function) or _of_a_method(function)
    if replacement is not None:
        if function in _GOING_THROUGH:
            return functools.partial(_with_generators, control, function, replacement)
        return functools.partial(_unless_of_none, function, functools.partial(replacement, control))
    return traced_math(function)


def _unless_of_none(function: Builtin, replacement: Builtin, *args: Any, **kwargs: Any) -> Any:
    """`len(None)`: as Python answers it, or refuses it."""
    if len(args) == 1 and args[0] is None and not kwargs:
        return refusing_none(function, None)
    return replacement(*args, **kwargs)


def _refuse_sending(control: Flow, function: Any) -> None:
    """`averages.send(value)` in an arm or a round: what a plain generator does then cannot be undone, nor repeated."""
    if isinstance(getattr(function, "__self__", None), GeneratorType) and len(control.tracer.regions) > 1:
        refuse(
            f"a generator is advanced by `{function.__name__}` in an arm of a branch, or in a round of a loop",
            "keep what the generator remembers in an object or in names, and call a function",
        )


def _of_a_method(function: Any) -> Builtin | None:
    """A method of a plain list, tuple or text, of which an argument may be traced."""
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, (list, tuple, str)) or is_open(owner):
        return None
    method = _METHODS.get((str if isinstance(owner, str) else list, function.__name__))
    if method is None and isinstance(owner, str):
        method = _of_a_text
    return None if method is None else functools.partial(method, function)


_METHODS: dict[tuple[type, str], Builtin] = {}


def _method(owner: type, name: str) -> Callable[[Builtin], Builtin]:
    def register(replacement: Builtin) -> Builtin:
        _METHODS[owner, name] = replacement
        return replacement

    return register


@_method(list, "count")
def _count(function: Any, control: Flow, item: Any) -> Any:
    items = function.__self__
    return _counted(items, item) if control.holds_traced((item, *items)) else function(item)


@rewritten
def _counted(items: list[Any], item: Any) -> Any:
    return sum([int(each == item) for each in items])


@_method(list, "index")
def _index(function: Any, control: Flow, item: Any, *bounds: Any) -> Any:
    items = function.__self__
    if bounds or not control.holds_traced((item, *items)):
        return function(item, *bounds)
    there = [as_bool(control, RUNTIME_FUNCTIONS.eq(each, item)) for each in items]
    control.check_if_caught(lambda: RUNTIME_FUNCTIONS.or_(False, *[later(itself, each) for each in there]), ValueError)
    return pick([later(itself, each) for each in there], tuple(later(itself, i) for i in range(len(items))))


@_method(str, "join")
def _join(function: Any, _: Flow, items: Any) -> Any:
    return each_way(list(items), functools.partial(written, function))


@_method(str, "format")
def _format(function: Any, _: Flow, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and function.__self__.count("{}") == 1 == function.__self__.count("{"):
        before, _between, after = function.__self__.partition("{}")
        return RUNTIME_FUNCTIONS.text(before, args[0], after)
    make = lambda given: written(function, *given[: len(args)], **_named(kwargs, given))  # noqa: E731
    return each_way([*args, *kwargs.values()], make)


def _of_a_text(function: Any, _: Flow, *args: Any, **kwargs: Any) -> Any:
    return method_of_text(function)(*args, **kwargs)


def _named(kwargs: dict[str, Any], given: list[Any]) -> dict[str, Any]:
    return dict(zip(kwargs, given[len(given) - len(kwargs) :], strict=True))


_TAKING_ALL = frozenset(
    {sum, max, min, sorted, list, tuple, functools.reduce, set, frozenset, dict, Counter, OrderedDict, deque}
)
_GOING_THROUGH = _TAKING_ALL | {any, all, enumerate, zip, map, filter}


def _with_generators(control: Flow, function: Builtin, replacement: Builtin, *args: Any, **kwargs: Any) -> Any:
    """An object of the user's whose `__iter__` decides is gone through like the generator that it is."""

    def behind(arg: Any) -> Any:
        if isinstance(arg, OfOpenLength):
            return arg.all_of_it() if function in _TAKING_ALL else arg
        return control.remembered_already(arg) or control.generator_behind(arg) or arg

    return replacement(control, *map(behind, args), **kwargs)


def traced_for(*functions: Any) -> Callable[[Builtin], Builtin]:
    def register(replacement: Builtin) -> Builtin:
        _TRACED.update(dict.fromkeys(functions, replacement))
        return replacement

    return register


def _own_number(control: Flow, args: tuple[Any, ...], name: str) -> Callable[..., Any] | None:
    """What an object of the user's says that it is as a number, which Python would want as a plain one."""
    return control.own_method(args[0], name) if len(args) == 1 else None


@traced_for(int)
def _int(control: Flow, *args: Any, **kwargs: Any) -> Any:
    own = _own_number(control, args, "__int__") or _own_number(control, args, "__index__")
    if own is not None:
        return _int(control, own())
    if len(args) == 1 and isinstance(args[0], OpenText) and args[0].texts == ("", ""):
        return args[0].numbers[0]
    if len(args) != 1 or kwargs or not is_traced(args[0]):
        return int(*args, **kwargs)
    number = counted(plain_number(args[0]))
    return torch.sym_int(number) if is_symbolic(number) else int(number)


@traced_for(float)
def _float(control: Flow, *args: Any) -> Any:
    own = _own_number(control, args, "__float__")
    if own is not None:
        return _float(control, own())
    if len(args) != 1 or not is_traced(args[0]):
        return float(*args)
    number = counted(plain_number(args[0]))
    return torch.sym_float(number) if is_symbolic(number) else float(number)


@traced_for(bool)
def _bool(control: Flow, *args: Any) -> Any:
    if len(args) != 1:
        return bool(*args)
    return as_bool(control, args[0])


def as_bool(control: Flow, value: Any) -> Any:
    """The truth of something as Python's bool, or as a symbol for one."""
    return plain_number(control.truth(value))


@traced_for(len)
def _len(control: Flow, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0:
        return value.shape[0]
    if isinstance(value, (OpenSequence, TracedContainer)):
        return value.length
    own = control.own_method(value, "__len__")
    return len(value) if own is None else own()


@traced_for(abs)
def _abs(_: Flow, value: Any) -> Any:
    if not is_symbolic(value):
        return abs(value)
    if isinstance(value, torch.SymBool):
        return counted(value)
    number: Any = value
    size = torch.sym_max(number, -number)
    return torch.sym_max(size, 0) if isinstance(value, torch.SymInt) else size  # so that it is known not to be negative


@traced_for(divmod)
def _divmod(_: Flow, one: Any, other: Any) -> Any:
    return (one // other, one % other) if is_symbolic(one) or is_symbolic(other) else divmod(one, other)


@traced_for(type)
def _type(_: Flow, *args: Any, **kwargs: Any) -> Any:
    return kind_asked(args[0], type_of) if len(args) == 1 else type(*args, **kwargs)


@traced_for(round)
def _round(_: Flow, number: Any, ndigits: Any = None) -> Any:
    return round(number) if ndigits is None else round(number, ndigits)


@traced_for(operator.index)
def _index_of(control: Flow, value: Any) -> Any:
    return _int(control, value) if isinstance(value, (torch.SymInt, torch.Tensor)) else operator.index(value)


def _comparing(word: str) -> Builtin:
    """Of tuples, item by item: `left < right` in rewritten code does so only where a tuple is written down."""
    return lambda _control, left, right: getattr(RUNTIME_FUNCTIONS, word)(left, right)


_TRACED |= {
    operator.truth: as_bool,
    operator.not_: lambda control, value: as_bool(control, control.negate(value)),
    **{getattr(operator, word): _comparing(word) for word in ("lt", "le", "gt", "ge")},
    operator.contains: lambda _control, container, item: RUNTIME_FUNCTIONS.in_(item, container),
    operator.countOf: lambda control, items, item: _count(list(items).count, control, item),
    operator.indexOf: lambda control, items, item: _index(list(items).index, control, item),
}


@traced_for(isinstance)
def _isinstance(_: Flow, value: Any, kinds: Any) -> Any:
    return asked(value, lambda candidate: is_instance(candidate, kinds))


@traced_for(torch.is_tensor)
def _is_tensor(control: Flow, value: Any) -> Any:
    return _isinstance(control, value, torch.Tensor)


def type_of(value: Any) -> type:
    """The type that a traced tensor, number or container has in eager."""
    if type(value) in (FunctionalTensor, FakeTensor):
        return torch.Tensor
    return (number_kind(value) if is_symbolic(value) else None) or kind_of_container(value)


def is_instance(value: Any, kinds: Any) -> bool:
    """Whether a traced number or container is an instance of what the plain one would be. A traced size is no SymInt:
    code that asks for that goes another way than eager does."""
    plain = type_of(value)
    if plain is type(value) or isinstance(value, torch.Tensor):
        return builtins.isinstance(value, kinds)
    return issubclass(plain, kinds)


@traced_for(str)
def _str(_: Flow, *args: Any, **kwargs: Any) -> Any:
    """Text of a traced integer keeps the number (a SymBool or a float is only good for a message)."""
    if args and isinstance(args[0], torch.SymInt):
        return OpenText.of(("", ""), (args[0],))
    return made_of(args[0], lambda value: written(str, value, *args[1:], **kwargs)) if args else str(**kwargs)


@traced_for(repr)
def _repr(_: Flow, value: Any) -> Any:
    return made_of(value, lambda one: written(repr, one))


@traced_for(format)
def _formatted(_: Flow, value: Any, form: Any = "") -> Any:
    return made_of(value, lambda one: written(format, one, form))


@traced_for(warnings.warn)
def _warn(_: Flow, *_args: Any, **_kwargs: Any) -> None:
    """Eager has warned where it came by; a graph cannot, and the trace comes to places where eager did not."""


@traced_for(hasattr)
def _hasattr(control: Flow, owner: Any, name: Any) -> Any:
    if isinstance(name, Chosen):
        return name.where(lambda candidate: hasattr(owner, candidate))
    _refuse_one_sided(control, owner, name)
    return hasattr(owner, name)


def _refuse_one_sided(control: Flow, owner: Any, name: Any) -> None:
    """An attribute that was set on one way only is there in the trace; whether it is when the model runs is open."""
    attributes = getattr(owner, "__dict__", None)
    why = control.tracer.one_sided.get((id(attributes), name)) if isinstance(name, str) else None
    if why is not None and attributes is not None and name in attributes:
        why.complain()


@traced_for(getattr)
def _getattr(control: Flow, owner: Any, name: Any, *default: Any) -> Any:
    if default:
        _refuse_one_sided(control, owner, name)
    if isinstance(name, Chosen):
        return made_of(name.only(lambda c: bool(default) or hasattr(owner, c)), lambda c: getattr(owner, c, *default))
    return attribute(owner, name) if isinstance(name, OpenText) else getattr(owner, name, *default)
