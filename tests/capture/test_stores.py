"""Every kind of container keeps one contract: what it held is read, put back, compared, and gone through."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest

from trueport.capture.containers.deques import TracedDeque
from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.ordered_dicts import TracedOrderedDict
from trueport.capture.containers.sets import TracedSet
from trueport.capture.containers.tables import MakingDict
from trueport.capture.effects.world import World
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import ContainerChange, as_left, contents_after, store_of, walk
from trueport.source import Place


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Shared:
    a = 1


def cell() -> Any:
    name = 1

    def inner() -> None:
        nonlocal name
        name = name + 1

    assert inner.__closure__ is not None
    return inner.__closure__[0]


def set_slot(c: Any) -> None:
    c.a, c.b = 5, 6


KINDS: dict[str, tuple[Any, Any]] = {
    "list": ([1, 2], lambda c: c.append(3)),
    "deque": (deque([1, 2]), lambda c: c.appendleft(3)),
    "set": ({1, 2}, lambda c: c.add(3)),
    "dict": ({"a": 1}, lambda c: c.update(b=2)),
    "ordered dict": (OrderedDict(a=1, b=2), lambda c: c.move_to_end("a")),
    "counter": (Counter(a=1), lambda c: c.update(a=1)),
    "slots": (Slotted(), set_slot),
    "class": (Shared, lambda c: setattr(c, "b", 2)),
    "cell": (cell(), lambda c: setattr(c, "cell_contents", 2)),
    "traced list": (TracedList([1, 2]), lambda c: c.append(3)),
    "traced deque": (TracedDeque([1, 2], 2), lambda c: c.append(3)),
    "traced set": (TracedSet([1, 2]), lambda c: c.add(3)),
    "traced dict": (TracedDict(a=1), lambda c: c.update(b=2)),
    "traced ordered dict": (TracedOrderedDict(a=1, b=2), lambda c: c.move_to_end("a", last=False) or c.pop("b")),
    "making dict": (MakingDict(list, defaultdict), lambda c: c["a"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_seen_and_undone(kind: str) -> None:
    container, change = KINDS[kind]
    store = store_of(container)
    assert store is not None
    before = store.content(container)
    assert store.same(container, before)
    change(container)
    after = store.content(container)
    assert not store.same(container, before)
    store.hold(container, before)
    assert store.same(container, before) and not store.same(container, after)
    store.hold(container, after)
    assert store.same(container, after)
    store.hold(container, before)


@pytest.mark.parametrize("kind", [name for name, (container, _) in KINDS.items() if store_of(container).is_structure])  # type: ignore[union-attr]
def test_what_was_undone_can_be_seen_in_a_copy(kind: str) -> None:
    container, change = KINDS[kind]
    store = store_of(container)
    assert store is not None
    world = World([container])
    change(container)
    changes = world.changes()
    world.restore()
    assert [each.container for each in changes] == [container]
    copy = as_left(container, contents_after(changes))
    if type(container) in (OrderedDict, Counter):
        return  # of other people's classes nobody knows how to make another
    assert type(copy) is type(container) and copy is not container
    assert store.same(copy, changes[0].after)
    assert as_left((container,), contents_after(changes))[0] is not container


def test_nothing_else_is_copied() -> None:
    value = {"a": [1, (2, deque([3]))]}
    assert as_left(value, {0: None}) is value


def test_whoever_looks_at_a_spoiled_one_is_told() -> None:
    why = Disagreement("x", "one", "another", Place(()))
    for kind in ("list", "dict", "traced dict", "traced list"):
        container, _ = KINDS[kind]
        store = store_of(container)
        assert store is not None
        before, spoiled = store.content(container), store.spoiled(container, why)
        store.hold(container, spoiled)
        change = ContainerChange(container, store, before, spoiled)
        assert any(part is why or part.why is why for part in change.parts)
        store.hold(container, before)


def test_a_walk_ends_where_containers_hold_each_other() -> None:
    one: list[Any] = [1]
    one.append({"back": one, "more": (2, deque([3]))})
    numbers = [each for each in walk(one) if isinstance(each, int)]
    assert numbers == [1, 2, 3]


def test_numbers_texts_and_objects_with_a_dict_are_no_containers() -> None:
    class Plain:
        pass

    assert all(
        store_of(each) is None for each in (1, "text", None, Plain(), print, Disagreement("x", "", "", Place(())))
    )
