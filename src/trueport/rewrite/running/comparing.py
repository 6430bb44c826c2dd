"""Comparisons of rewritten code: of tuples item by item, of what a trace may know only as a symbol, `is` and `in`."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from trueport.rewrite.running.asking import TRACE, Thunk

_STRICT = {"le": "lt", "ge": "gt"}


class Comparing(ABC):
    """The part of the runtime that compares."""

    @abstractmethod
    def and_(self, value: Any, *others: Thunk) -> Any: ...

    @abstractmethod
    def or_(self, value: Any, *others: Thunk) -> Any: ...

    @abstractmethod
    def not_(self, value: Any) -> Any: ...

    def chain(self, operators: Sequence[str], left: Any, right: Any, *later: Thunk) -> Any:
        """`a < b < c`: each operand is evaluated once, and later ones only while the comparisons hold."""
        first = getattr(self, operators[0])(left, right)
        if not later:
            return first
        return self.and_(first, lambda: self.chain(operators[1:], right, later[0](), *later[1:]))

    def eq(self, left: Any, right: Any) -> Any:
        if not _are_compared_by_item(left, right):
            return left == right
        if len(left) != len(right):
            return False
        pairs = [self.eq(a, b) for a, b in zip(left, right, strict=True)]
        if any(pair is False for pair in pairs):
            return False
        open_pairs = [pair for pair in pairs if pair is not True]
        if open_pairs and not any(hasattr(pair, "shape") for pair in open_pairs):  # sizes: one expression
            return functools.reduce(operator.and_, open_pairs)
        return self.and_(True, *[lambda pair=pair: pair for pair in open_pairs])

    def ne(self, left: Any, right: Any) -> Any:
        return self.not_(self.eq(left, right)) if _are_compared_by_item(left, right) else left != right

    def lt(self, left: Any, right: Any) -> Any:
        return self._ordered("lt", left, right)

    def le(self, left: Any, right: Any) -> Any:
        return self._ordered("le", left, right)

    def gt(self, left: Any, right: Any) -> Any:
        return self._ordered("gt", left, right)

    def ge(self, left: Any, right: Any) -> Any:
        return self._ordered("ge", left, right)

    def _ordered(self, word: str, left: Any, right: Any) -> Any:
        """The first items that differ decide; where none does, the lengths."""
        compare: Callable[[Any, Any], Any] = getattr(operator, word)
        if not _are_compared_by_item(left, right):
            return compare(left, right)
        if not left or not right:
            return compare(len(left), len(right))
        (one, *more_left), (other, *more_right) = left, right
        decided = self._ordered(_STRICT.get(word, word), one, other)
        return self.or_(
            decided,
            lambda: self.and_(self.eq(one, other), lambda: self._ordered(word, tuple(more_left), tuple(more_right))),
        )

    def is_(self, left: Any, right: Any) -> Any:
        trace = TRACE.trace
        return left is right if trace is None else trace.is_same(left, right)

    def is_not(self, left: Any, right: Any) -> Any:
        return self.not_(self.is_(left, right))

    def in_(self, item: Any, container: Any) -> Any:
        trace = TRACE.trace
        if trace is None:
            return item in container
        found = trace.holds(container, item)
        if found is not None:
            return found
        if not isinstance(container, tuple | list | set | frozenset | range):
            return item in container
        return self.or_(False, *[lambda other=other: self.eq(item, other) for other in container])

    def not_in(self, item: Any, container: Any) -> Any:
        return self.not_(self.in_(item, container))


def _are_compared_by_item(left: Any, right: Any) -> bool:
    """Two tuples or two lists in a trace, whose items may be traced; those of open length compare themselves."""
    if any(isinstance(side, list) and getattr(side, "is_open", False) for side in (left, right)):
        return False
    return TRACE.trace is not None and any(isinstance(left, kind) and isinstance(right, kind) for kind in (tuple, list))
