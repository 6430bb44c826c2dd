"""Sizes that went through a tensor: `torch.tensor(x.shape) // 2` holds what `x.shape[0] // 2` is.

Without this, `.item()` of such a tensor would be a new number that only the run tells, and torch would not know that a
tensor of that size fits another. Asked only where a trace needs the number; for integers, of which none is rounded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from trueport.capture import limits
from trueport.capture.recording.constants import Constants
from trueport.capture.recording.symbols import Symbols
from trueport.graph.regions import Number, Value, filled_in
from trueport.torch_internals import outside_all_modes
from trueport.torch_internals.symbolic import expr_of, is_integer, shapes_of

aten = torch.ops.aten
Elements = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])

_INTEGERS = (torch.int64, torch.int32)
_RULES: dict[Any, Callable[..., Any]] = {}


class _Unknown(Exception):
    """The tensor is not made of sizes alone, or by something that is not followed here."""


class SizeValues:
    """The elements of small integer tensors as numbers over the symbols of a trace."""

    def __init__(self, symbols: Symbols, constants: Constants) -> None:
        self._symbols, self._constants = symbols, constants

    def number(self, value: Value) -> Any | None:
        """The one element of a tensor, or None where it is not known as an expression of sizes."""
        try:
            return self._elements(value, limits.STEPS_TO_SIZES).item()
        except _Unknown:
            return None

    def _elements(self, value: Value, steps: int) -> Elements:
        if value.dtype not in _INTEGERS or not value.has_plain_sizes or not steps:
            raise _Unknown
        node = self._constants.producer(value)
        if node is None:
            return self._constant(value)
        rule = _RULES.get(node.op)
        if rule is None or not set(node.kwargs) <= _HARMLESS | {"rounding_mode"}:
            return self._constant(value)
        given = filled_in(node.args, lambda value: self._elements(value, steps - 1), self._size)
        returned = rule(*given, **{name: node.kwargs[name] for name in node.kwargs.keys() - _HARMLESS})
        results = returned if isinstance(returned, list) else [returned]
        found = np.asarray(results[[o is value for o in node.outputs].index(True)], dtype=object)
        if found.shape != value.shape or found.size > limits.ELEMENTS_OF_SIZES:
            raise _Unknown
        return found

    def _constant(self, value: Value) -> Elements:
        known = self._constants.evaluate(value)
        if known is None or known.numel() > limits.ELEMENTS_OF_SIZES:
            raise _Unknown
        with outside_all_modes():  # one of the model's own tensors, which no operator of the graph is to read here
            return np.asarray(known.tolist(), dtype=object)

    def _size(self, number: Number) -> Any:
        if number.kind is not int:
            raise _Unknown
        return self._symbols.shapes.of_expr(number.expr)


_HARMLESS = {"dtype", "device", "pin_memory", "layout", "memory_format", "non_blocking", "copy"}


def _rule(*ops: Any) -> Callable[[F], F]:
    def register(function: F) -> F:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return register


_rule(aten.add.Tensor)(lambda a, b: a + b)
_rule(aten.sub.Tensor)(lambda a, b: a - b)
_rule(aten.mul.Tensor)(lambda a, b: a * b)
_rule(aten.neg.default)(operator.neg)
_rule(aten.clone.default, aten._to_copy.default)(lambda a: a)
_rule(aten.scalar_tensor.default)(lambda number: np.asarray(number, dtype=object))
_rule(aten.sum.default)(lambda a: a.sum())
_rule(aten.prod.default)(lambda a: a.prod())
_rule(aten.stack.default)(lambda parts, dim=0: np.stack(parts, dim))
_rule(aten.cat.default)(lambda parts, dim=0: np.concatenate(parts, dim))
_rule(aten.unbind.int, aten.unbind_copy.int)(lambda a, dim=0: list(np.moveaxis(a, dim, 0)))
_rule(aten.unsqueeze.default, aten.unsqueeze_copy.default)(np.expand_dims)
_rule(aten.view.default, aten.view_copy.default, aten._unsafe_view.default, aten.reshape.default)(np.reshape)


@_rule(aten.select.int, aten.select_copy.int)
def _select(a: Elements, dim: int, index: Any) -> Elements:
    if not isinstance(index, int):  # which of them, only the run tells
        raise _Unknown
    return np.asarray(np.take(a, index, dim), dtype=object)


@_rule(aten.full.default)
def _full(size: tuple[int, ...], number: Any) -> Elements:
    made = np.empty(size, dtype=object)
    made.fill(number)
    return made


@_rule(aten.slice.Tensor, aten.slice_copy.Tensor)
def _slice(a: Elements, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Elements:
    return a[(slice(None),) * (dim % a.ndim) + (slice(start, end, step),)]


@_rule(aten.floor_divide.default)
def _floor_divide(a: Elements, b: Any) -> Elements:
    return _div(a, b, "floor")


@_rule(aten.div.Tensor_mode)
def _div(a: Elements, b: Any, rounding_mode: str) -> Elements:
    """Rounding down and towards zero are one for sizes, which are not negative."""
    _must_be_sizes(a, b)
    return np.asarray(a // b, dtype=object)


@_rule(aten.remainder.Scalar, aten.remainder.Tensor)
def _remainder(a: Elements, b: Any) -> Elements:
    _must_be_sizes(a, b)
    return np.asarray(a % b, dtype=object)


def _must_be_sizes(a: Elements, b: Any) -> None:
    divisors = [int(d) for d in np.asarray(b, dtype=object).flat if isinstance(d, int)]
    if len(divisors) != np.asarray(b, dtype=object).size or min(divisors, default=0) <= 0:
        raise _Unknown
    for element in a.flat:
        lowest = shapes_of(element).lowest(expr_of(element)) if isinstance(element, torch.SymInt) else element
        if not is_integer(element) or not bool(lowest >= 0):
            raise _Unknown
