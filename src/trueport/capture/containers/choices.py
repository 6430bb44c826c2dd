"""Looking something up by a traced number: `table[int(t)]`, `self.experts[i](x)`, `getattr(self, f"head{n}")`.

Every entry is a candidate, and which it is, a chain of branches decides. Tensors of one shape are stacked and selected.
What no value of ONNX can be, a layer or a function, is a `Chosen`. A key that is not there is an error in eager, so the
last candidate needs no test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.rows import held_together
from trueport.capture.containers.sequences import refuse
from trueport.capture.values.chosen import Chosen, chosen, itself, later, made_of, pick
from trueport.capture.values.disagreement import refuse_unsure
from trueport.capture.values.texts import OpenText
from trueport.decompositions.indexing import get_item, items_of, within
from trueport.rewrite.running.asking import fails_unless
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.torch_internals.symbolic import (
    expr_of,
    is_number,
    is_symbolic,
    number_kind,
    plain_number,
    same_number,
    shapes_of,
    statement_of,
)

_SEQUENCES = (list, tuple, torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)
_MAPPINGS = (Mapping, torch.nn.ModuleDict, torch.nn.ParameterDict)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_NOTHING = object()


class OpenKey:
    """A key that is made of free sizes, in a dict: `cache[x.shape[2], x.shape[3]] = grid`.

    Two are the same entry where they are the same expression. Free sizes are the same all through a run; of a number
    that another round of a loop would give another value, there is no such key.
    """

    may_be_missing = True
    """On one way: what is found under it is a disagreement then, harmless until it is asked for."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self._parts = tuple((OpenKey, expr_of(part)) if is_symbolic(part) else part for part in _parts_of(key))

    def __hash__(self) -> int:
        return hash(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenKey) and self._parts == other._parts


def is_of_sizes(key: Any) -> bool:
    """Whether a key is made of free sizes, and of plain numbers and texts beside them."""
    symbolic = [part for part in _parts_of(key) if is_symbolic(part)]
    return bool(symbolic) and all(number_kind(part) is int and _is_size(part) for part in symbolic)


def _parts_of(key: Any) -> tuple[Any, ...]:
    return (OpenText, *key.texts, *key.numbers) if isinstance(key, OpenText) else items_of(key)


def _is_size(number: torch.SymInt) -> bool:
    shapes, symbols = shapes_of(number), expr_of(number).free_symbols
    return not any(symbol.is_integer is not True or shapes.made_since(symbol, 0) for symbol in symbols)


def is_traced_key(key: Any) -> bool:
    if any(map(is_symbolic, items_of(key))):
        return True
    if isinstance(key, torch.Tensor):  # of one number, on however many axes: Python asks it for that
        return key.dtype in INTEGERS and all(same_number(size, 1) for size in key.shape)
    return isinstance(key, (OpenText, Chosen))


def looked_up(container: Any, key: Any, default: Any = _NOTHING) -> Any:
    """What is found under a traced key."""
    if default is _NOTHING:
        _refuse_making(container, key)
    if isinstance(key, Chosen):
        return _under_each(container, key, default)
    return _at(container, key) if isinstance(container, _SEQUENCES) else _under(container, key, default)


def _at(container: Any, key: Any) -> Any:
    """The item of a traced number."""
    values, number = list(container), plain_number(key)
    fails_unless(lambda: within(number, len(values)), IndexError)
    if not values:
        raise KeyError(str(key))
    alike = all(isinstance(v, torch.Tensor) for v in values) and len(set(map(_signature, values))) == 1
    if alike and number_kind(number) is not bool:  # a tensor takes a truth for a mask
        return get_item(held_together(torch.stack(values), values), number)
    return chosen([test for _, test in _positions(number, len(values))], values)


def _under(container: Any, key: Any, default: Any) -> Any:
    """The entry of a traced key."""
    if isinstance(key, torch.Tensor):
        raise KeyError(key)  # as in eager: a tensor is found by identity only
    if is_of_sizes(key) and _holds(container, OpenKey(key)):
        return container[OpenKey(key)]
    found = _candidates(container, key)
    values, tests = [container[k] for k, _ in found], [test for _, test in found]
    if default is _NOTHING:
        fails_unless(lambda: contains(container, key), KeyError)
    else:
        values, tests = [*values, default], [*tests, lambda: True]
    if not values:
        raise KeyError(str(key))
    return chosen(tests, values)


Found: TypeAlias = list[tuple[Any, Callable[[], Any]]]
"""Places or keys that a traced one may be, each with the test whether it is."""


def _positions(number: Any, count: int) -> Found:
    return [(i, later(_is_position, number, i, count)) for i in range(count)]


def _candidates(container: Any, key: Any) -> Found:
    return [(k, later(_is_key, key, k)) for k in container if _may_be(key, k) and _holds(container, k)]


def _under_each(container: Any, key: Chosen, default: Any) -> Any:
    """Looked up by a text that a traced value chose. Eager raises where it is none of the keys."""

    def is_there(candidate: Any) -> bool:
        return candidate in container

    if default is not _NOTHING:
        held = key.where(is_there)
        return RUNTIME_FUNCTIONS.ternary(held, lambda: _under_each(container, key, _NOTHING), lambda: default)
    return made_of(key.able(is_there, KeyError), container.__getitem__)


def put_under(container: dict[Any, Any], key: Any, value: Any) -> None:
    """Give a dict a value under a traced key: one of those that are there, which is assumed where it is not known; or a
    new one, if free sizes are all that it is made of."""
    if isinstance(key, Chosen):
        key.each(lambda candidate: container.__setitem__(candidate, value))
        return
    if is_of_sizes(key):
        container[OpenKey(key)] = value
    else:
        held = contains(container, key)
        if TRACE.trace is not None and TRACE.trace.truth(held) is not True:
            TRACE.trace.want_table(container)
            refuse(
                "a dict is given a value under a key that is known only when the model runs, and that may be a new one",
                "make the dict in the model's own code, with numbers as keys; or keep the values in a tensor",
            )
    for candidate, before in [(k, v) for k, v in container.items() if _may_be(key, k)]:
        container[candidate] = RUNTIME_FUNCTIONS.ternary(_is_key(key, candidate), lambda: value, later(itself, before))


def update_under(container: Any, key: Any, change: Callable[[Any, Any], Any], value: Callable[[], Any]) -> bool:
    """`table[key] += value`: in the arm of each candidate, that very tensor is written, or that list changed.

    False where neither is among them: numbers are looked up and put back. Eager evaluates the item before the value.
    """
    if isinstance(container, list):
        found = _positions(plain_number(key), len(container))
    elif isinstance(container, dict) and not isinstance(key, torch.Tensor):
        found = _candidates(container, key)
    else:
        return False
    items = {k: container[k] for k, _ in found}
    if not any(isinstance(item, (torch.Tensor, TracedList)) for item in items.values()):
        return False
    if isinstance(container, dict):
        _refuse_making(container, key)
        _check_held(container, key)
    given = value()
    arms = tuple(later(_update, container, k, item, change, given) for k, item in items.items())
    pick(tuple(test for _, test in found), arms)
    return True


def _update(container: Any, key: Any, item: Any, change: Callable[[Any, Any], Any], given: Any) -> None:
    changed = change(item, given)
    if changed is not item:
        container[key] = changed


def makes_missing(container: Any) -> bool:
    """Whether it answers for keys that it does not have: a `defaultdict`, a `Counter`."""
    if hasattr(container, "missing") and hasattr(container, "site"):
        return True
    return isinstance(container, Mapping) and hasattr(type(container), "__missing__")


def _refuse_making(container: Any, key: Any) -> None:
    """What such a one makes for a key that nobody knows yet would be there afterwards."""
    if makes_missing(container) and TRACE.trace is not None and TRACE.trace.truth(contains(container, key)) is not True:
        TRACE.trace.want_table(container)
        raise TypeError(
            f"a {type(container).__name__} makes entries for keys that it has not, and is asked for one that is known"
            f" only when the model runs: {type(key).__name__}"
        )


def _check_held(container: dict[Any, Any], key: Any) -> None:
    """That a traced key is one of those of a dict is assumed: eager raises where it is not."""
    held = contains(container, key)
    if held is False:
        raise KeyError(str(key))
    if TRACE.trace is not None and TRACE.trace.truth(held) is not True:
        TRACE.trace.check(held, KeyError)


def contains(container: Any, key: Any) -> Any:
    """Whether a mapping holds a traced key."""
    if is_of_sizes(key) and _holds(container, OpenKey(key)):
        return True
    return RUNTIME_FUNCTIONS.or_(False, *[test for _, test in _candidates(container, key)])


def _holds(container: Any, key: Any) -> bool:
    """Whether a key is there; one that an arm may have put there has to be known by now."""
    held = key in container
    if held and isinstance(key, OpenKey):
        refuse_unsure(container[key])
    return held


def attribute(owner: Any, name: OpenText) -> Any:
    """`getattr` with a name that a traced number is a part of."""
    names = [n for n in dir(owner) if name.numbers_in(n) is not None]
    if not names:
        raise AttributeError(f"{type(owner).__name__} has no attribute of the form {name.form!r}")
    return chosen([later(_is_key, name, n) for n in names], [getattr(owner, n) for n in names])


@functools.singledispatch
def _may_be(key: Any, candidate: Any) -> bool:
    """Whether a traced key may be this one of a dict."""
    return is_number(_written(candidate))


@_may_be.register
def _(key: Chosen, candidate: Any) -> bool:
    return (key == candidate) is not False


@_may_be.register
def _(key: OpenText, candidate: Any) -> bool:
    return isinstance(candidate, str) and key.numbers_in(candidate) is not None


@_may_be.register
def _(key: tuple, candidate: Any) -> bool:  # type: ignore[type-arg]
    parts = _written(candidate)
    return isinstance(parts, tuple) and len(key) == len(parts) and all(map(_may_be_part, key, parts))


def _written(key: Any) -> Any:
    """A key of a dict as the user wrote it."""
    return key.key if isinstance(key, OpenKey) else key


def _may_be_part(part: Any, candidate: Any) -> bool:
    if is_number(part) and is_number(candidate) and (is_symbolic(part) or is_symbolic(candidate)):
        return True
    return bool(part == candidate)


def _is_key(key: Any, candidate: Any) -> Any:
    candidate = _written(candidate)
    if isinstance(key, tuple):
        pairs = zip(key, candidate, strict=True)
        return RUNTIME_FUNCTIONS.and_(True, *[later(_is_key, *pair) for pair in pairs])
    return key == candidate if statement_of(key) is None else _is_truth(key, candidate)


def _is_truth(key: torch.SymBool, candidate: Any) -> Any:
    """A truth is found under True and 1, or False and 0; torch does not compare one with a number."""
    if candidate not in (0, 1):
        return False
    return key if candidate else torch.sym_not(key)


def _is_position(number: Any, position: int, count: int) -> Any:
    """A negative number counts from the end."""
    if statement_of(number) is not None:
        return _is_truth(number, position)
    return (number == position) | (number == position - count)


def is_container(value: Any) -> bool:
    return isinstance(value, (*_SEQUENCES, *_MAPPINGS))


def _signature(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(str(size) for size in tensor.shape)
