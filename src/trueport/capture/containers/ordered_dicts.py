"""`collections.OrderedDict` in rewritten code: a dict of which a key can be moved to either end."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from trueport.capture.containers.dicts import KeyOrder, TracedDict, key_order


class TracedOrderedDict(TracedDict):
    stands_for = OrderedDict

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance(d, OrderedDict)` holds in any code: `nn.Sequential` asks."""
        return OrderedDict

    def move_to_end(self, key: Any, last: bool = True) -> None:
        def moved(order: KeyOrder) -> KeyOrder:
            others = tuple(k for k in order.keys if k != key)
            return key_order((*others, key) if last else (key, *others))

        item, order, held = {key: self[key]}, self._order, self.held
        del held[key]
        self.hold({**held, **item} if last else {**item, **held})
        if order is not None:
            self._order = self._changed_order(moved)

    def popitem(self, last: bool = True) -> Any:
        if last or self.is_open:
            return super().popitem()
        key = next(iter(self))
        return key, self.pop(key)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (OrderedDict, (list(self.items()),))
