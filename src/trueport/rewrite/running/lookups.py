"""Lookups of rewritten code, whose key may be known only when the model runs, and changes of what is found."""

from __future__ import annotations

import operator
from typing import Any

from trueport.rewrite.running.asking import TRACE, Thunk


class Lookups:
    """The part of the runtime that looks something up."""

    @staticmethod
    def item(container: Any, key: Any) -> Any:
        trace = TRACE.trace
        if trace is not None and trace.decides_lookup(container, key):
            return trace.looked_up(container, key)
        return container[key]

    @staticmethod
    def part(container: Any, start: Any, stop: Any, step: Any) -> Any:
        """`items[:n]`, of which a traced number may be a bound."""
        trace = TRACE.trace
        if trace is not None and isinstance(container, (list, tuple)) and trace.holds_traced((start, stop, step)):
            container = trace.new_list(container) if type(container) in (list, tuple) else container
        return container[start:stop:step]

    @staticmethod
    def put_item(value: Any, container: Any, key: Any) -> None:
        trace = TRACE.trace
        if trace is not None and isinstance(container, dict) and trace.decides_lookup(container, key):
            trace.put_under(container, key, value)
        else:
            container[key] = value

    def update_item(self, container: Any, key: Any, word: str, value: Thunk) -> None:
        trace, change = TRACE.trace, getattr(operator, word)
        decides = trace is not None and trace.decides_lookup(container, key)
        if trace is not None and decides and trace.update_under(container, key, change, value):
            return
        item = self.item(container, key)
        self.put_item(change(item, value()), container, key)

    def change_item(self, container: Any, key: Any, method: str, given: Thunk) -> None:
        """`table[key].append(value)`: where a traced key tells which list, each is changed in an arm of its own."""
        trace = TRACE.trace

        def change(item: Any, values: Any) -> Any:
            getattr(item, method)(*values)
            return item

        decides = trace is not None and trace.decides_lookup(container, key)
        if trace is None or not decides or not trace.update_under(container, key, change, given):
            change(self.item(container, key), given())

    @staticmethod
    def get(container: Any, key: Any, *default: Any) -> Any:
        """`container.get(key)`, of whatever has such a method."""
        trace = TRACE.trace
        if trace is not None and isinstance(container, dict) and trace.decides_lookup(container, key):
            return trace.looked_up(container, key, *(default or (None,)))
        return container.get(key, *default)

    def setdefault(self, container: Any, key: Any, *default: Any) -> Any:
        """`container.setdefault(key, default)`, of whatever has such a method."""
        trace = TRACE.trace
        if trace is None or not isinstance(container, dict) or not trace.decides_lookup(container, key):
            return container.setdefault(key, *default)
        value = trace.looked_up(container, key, *(default or (None,)))
        trace.put_under(container, key, value)
        return value
