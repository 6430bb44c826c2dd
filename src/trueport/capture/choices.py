"""Looking something up by a traced number: `table[int(t)]`, `self.experts[i](x)`, `getattr(self, f"head{n}")`.

Every entry is a candidate, and which it is, a chain of branches decides. Tensors of one shape are stacked and selected.
What no value of ONNX can be, a layer or a function, is a `Chosen`: what is done with it is done with each candidate, in
its own arm. A key that is not there is an error in eager, so the last candidate needs no test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.indexing import get_item
from trueport.capture.merging import Symbolic
from trueport.capture.texts import OpenText
from trueport.load.structures import flatten
from trueport.rewrite.runtime import RUNTIME_FUNCTIONS

_SEQUENCES = (list, tuple, torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)
_MAPPINGS = (Mapping, torch.nn.ModuleDict, torch.nn.ParameterDict)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_NOTHING = object()


def is_traced_key(key: Any) -> bool:
    if isinstance(key, torch.Tensor):
        return key.dim() == 0 and key.dtype in _INTEGERS
    return isinstance(key, (*Symbolic, OpenText))


def looked_up(container: Any, key: Any, default: Any = _NOTHING) -> Any:
    """What is found under a traced key."""
    if isinstance(key, torch.Tensor) and not isinstance(container, _SEQUENCES):
        raise KeyError(key)  # as in eager: a tensor is found by identity only
    number = key.item() if isinstance(key, torch.Tensor) else key
    if isinstance(container, _SEQUENCES):
        values = list(container)
        alike = values and all(isinstance(v, torch.Tensor) for v in values) and len(set(map(_signature, values))) == 1
        if alike and not isinstance(number, torch.SymBool):  # a tensor takes a truth for a mask
            return get_item(torch.stack(values), number)
        count = len(values)
        tests: list[Callable[[], Any]] = [_later(_is_position, number, i, count) for i in range(count)]
    else:
        keys = [k for k in container if _may_be(number, k)]
        values = [container[k] for k in keys]
        tests = [_later(_is_key, number, k) for k in keys]
    if default is not _NOTHING:
        values, tests = [*values, default], [*tests, lambda: True]
    if not values:
        raise KeyError(str(key))
    return _made(tests, values)


def contains(container: Any, key: Any) -> Any:
    """Whether a mapping holds a traced key."""
    found = [k for k in container if _may_be(key, k)]
    return RUNTIME_FUNCTIONS.or_(False, *[_later(_is_key, key, k) for k in found])


def attribute(owner: Any, name: OpenText) -> Any:
    """`getattr` with a name that a traced number is a part of."""
    names = [n for n in dir(owner) if name.number_in(n) is not None]
    if not names:
        raise AttributeError(f"{type(owner).__name__} has no attribute of the form {name.form!r}")
    return _made([_later(_is_key, name, n) for n in names], [getattr(owner, n) for n in names])


def _may_be(key: Any, candidate: Any) -> bool:
    if isinstance(key, OpenText):
        return isinstance(candidate, str) and key.number_in(candidate) is not None
    return isinstance(candidate, (bool, int, float))


def _is_key(key: Any, candidate: Any) -> Any:
    if isinstance(key, OpenText):
        return key.number == key.number_in(candidate)
    return _is_truth(key, candidate) if isinstance(key, torch.SymBool) else key == candidate


def _is_truth(key: torch.SymBool, candidate: Any) -> Any:
    """A truth is found under True and 1, or False and 0; torch does not compare one with a number."""
    if candidate not in (0, 1):
        return False
    return key if candidate else torch.sym_not(key)


def _is_position(number: Any, position: int, count: int) -> Any:
    """A negative number counts from the end."""
    if isinstance(number, torch.SymBool):
        return _is_truth(number, position)
    return (number == position) | (number == position - count)


def _itself(value: Any) -> Any:
    return value


def _later(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: function(*args)


def is_container(value: Any) -> bool:
    return isinstance(value, (*_SEQUENCES, *_MAPPINGS))


Tests = Sequence[Callable[[], Any]]


def _made(tests: Tests, values: Sequence[Any]) -> Any:
    if all(value is values[0] for value in values):
        return values[0]
    if all(_is_value(value) for value in values):
        return _pick(tests, [_later(_itself, value) for value in values])
    return Chosen(tuple(tests), tuple(values))


def _pick(tests: Tests, arms: Sequence[Callable[[], Any]]) -> Any:
    if len(arms) == 1:
        return arms[0]()
    return RUNTIME_FUNCTIONS.ternary(tests[0](), arms[0], lambda: _pick(tests[1:], arms[1:]))


def _is_value(value: Any) -> bool:
    """Whether branches can merge it."""
    if callable(value) or isinstance(value, (str, bytes)) or value is None:
        return False
    leaves, _ = flatten(value, "value")
    return bool(leaves) and all(isinstance(leaf.value, (torch.Tensor, bool, int, float, *Symbolic)) for leaf in leaves)


def _signature(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(str(size) for size in tensor.shape)


@dataclass(frozen=True, eq=False)
class Chosen:
    """One of several things that no value can be; which of them, a traced number tells."""

    tests: tuple[Callable[[], Any], ...]
    candidates: tuple[Any, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_each(lambda candidate: candidate(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return _made(self.tests, [getattr(candidate, name) for candidate in self.candidates])

    def __getitem__(self, key: Any) -> Any:
        return _made(self.tests, [candidate[key] for candidate in self.candidates])

    def __eq__(self, other: object) -> Any:
        return self._with_each(lambda candidate: candidate == other)

    def __ne__(self, other: object) -> Any:
        return self._with_each(lambda candidate: candidate != other)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return bool(self._with_each(bool))

    def _with_each(self, function: Callable[[Any], Any]) -> Any:
        return _pick(self.tests, [_later(function, candidate) for candidate in self.candidates])
