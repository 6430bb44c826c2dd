"""Dicts that two arms leave with different keys, or with the same in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueport.capture.containers.dicts import (
    OPEN_ORDER,
    Entries,
    Presence,
    TracedDict,
    common_order,
    order_in,
    presence_in,
    values_in,
)
from trueport.capture.values.disagreement import Disagreement
from trueport.rewrite.running.runtime import UNBOUND

if TYPE_CHECKING:
    from trueport.capture.joins.merging import Merging


def merged_dict(merging: Merging, then: TracedDict, orelse: TracedDict) -> TracedDict:
    return TracedDict.of(merged_entries(merging, then.entries, orelse.entries), keys_differ(merging))


def merged_entries(merging: Merging, then: Entries, orelse: Entries) -> Entries:
    """Key by key; where a key is there in one arm only, a flag tells whether it is there after the branch."""
    one, other = values_in(then), values_in(orelse)
    orders = order_in(then), order_in(orelse)
    order = common_order(*orders)
    keys = order.keys if order is not None else (*one, *(k for k in other if k not in one))
    merged: Entries = {k: merging.merge(one.get(k, UNBOUND), other.get(k, UNBOUND), str(k)) for k in keys}
    for key in keys:
        flags = presence_in(then, key), presence_in(orelse, key)
        if any(flag is not True for flag in flags):
            merged[Presence(key)] = merging.merge(*flags, f"whether {key!r} is there")
    if order is None:
        merged[OPEN_ORDER] = merging.merge(*orders, repr(OPEN_ORDER))
    return merged


def keys_differ(merging: Merging, what: str = "key") -> Disagreement:
    return merging.disagreement(f"which {what}s are there, or their order", "one thing", "another")
