"""The Python side of an arm: what it sets on objects and puts into containers is seen, undone, and merged.

Names are read and set through the rewritten code; objects and containers are found by following what the arm reads,
and so are the names of functions around it that it (or a function that it calls) declares nonlocal: the cells of its
closure.
"""

from __future__ import annotations

import sys
from collections import ChainMap, UserDict, deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from trueport.capture import limits
from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.containers.sequences import is_plain_iterator
from trueport.capture.containers.sets import TracedSet, Unsure
from trueport.capture.values.disagreement import Disagreement
from trueport.load.values import OPEN_NAMESPACES, SYMBOLIC_NUMBERS, attributes_of
from trueport.rewrite.running.runtime import TRACE, UNBOUND
from trueport.torch_internals import memory_of

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer

_OF_THE_LIBRARY = (UserDict, ChainMap, ExitStack)
"""Objects of the standard library that hold what the user puts into them."""
_FOREIGN = ("torch", "builtins", "types", "trueport")


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """A container that an arm changed: itself, and its content before and after."""

    container: Any
    before: Any
    after: Any
    owner: Any = None
    """The object of which it is an attribute, if it is one."""
    are_attributes: bool = False
    """Whether the container is what an object keeps its attributes in."""

    @property
    def name(self) -> str:
        """What the user calls it, as far as that can be told."""
        if isinstance(self.owner, ExitStack):
            return "what an ExitStack does at its end"
        held = getattr(self.owner, "__dict__", {}).items()
        name = next((name for name, value in held if value is self.container), None)
        return f"a {type(self.container).__name__}" if name is None else f"`{name}`"

    def apart(self, tracer: Tracer) -> ContainerChange:
        """While the region is still open: items of a list that it wrote in place are taken as they are now."""
        written = tracer.writes.written_here() if isinstance(self.after, ListParts) else ()
        if not written:
            return self
        return replace(self, after=self.after.apart(lambda tensor: memory_of(tensor) in written))


class World:
    """The containers within reach of an arm, as they were when it began."""

    def __init__(self, roots: Iterable[Any], blocks: Iterable[Any] = (), names: Collection[str] = ()) -> None:
        """`blocks` are the functions that make up the arm; `names` of theirs are looked after elsewhere."""
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._others: set[int] = set()
        self._owners: dict[int, Any] = {}
        self._attributes: set[int] = set()
        for block in blocks:
            for name, cell in zip(block.__code__.co_freevars, block.__closure__ or (), strict=True):
                if name in names:
                    self._others.add(id(cell))
        for root in (*roots, *blocks):
            if isinstance(root, type):
                self._keep_class(root)
            else:
                self._keep(root, limits.DEPTH_OF_CHANGES)

    def _keep(self, value: Any, depth: int) -> None:
        if isinstance(value, torch.nn.Module):
            for module in value.modules():
                self._keep_attributes(module, depth)
        elif isinstance(value, (torch.Tensor, type, Disagreement)) or depth == 0 or id(value) in self._kept:
            return
        elif isinstance(value, (list, dict, set, deque)):
            self._kept[id(value)] = (value, _copy(value))
            for item in _items(value):
                self._keep(item, depth - 1)
        elif isinstance(value, tuple):
            for item in value:
                self._keep(item, depth - 1)
        elif is_plain_iterator(value) and TRACE.trace is not None:
            self._keep_attributes(TRACE.trace.remembered(value).iterator, depth)
        elif isinstance(value, FunctionType):
            self._keep_cells(value, depth)
        elif isinstance(value, partial):
            self._keep((value.func, value.args, value.keywords), depth)
        elif isinstance(value, MethodType):
            self._keep(value.__func__, depth)
            self._keep(value.__self__, depth)
        elif _is_users_object(value):
            self._keep_attributes(value, depth)
        elif _keeps_in_slots(value):
            self._kept[id(value)] = (value, _copy(value))
            self._attributes.add(id(value))
            self._keep(list(_slots(value).values()), depth)

    def _keep_cells(self, function: FunctionType, depth: int) -> None:
        if id(function) in self._kept:
            return
        self._kept[id(function)] = (None, None)
        room = (function.__module__ or "").split(".")[0]
        if room == "trueport":  # a wrapper around functions of the user's, or a list that it fills
            for cell in function.__closure__ or ():
                content = _content(cell)
                if isinstance(content, (FunctionType, TracedList, TracedDict, tuple)) or _holds_state(content):
                    self._keep(content, depth)
        if room in _FOREIGN:
            return
        self._keep((function.__defaults__, function.__kwdefaults__), depth)
        if vars(function):  # `count.calls += 1`
            self._keep_attributes(function, depth)
        for cell in function.__closure__ or ():
            if id(cell) in self._kept:
                continue
            content = _content(cell)
            if id(cell) not in self._others:
                self._kept[id(cell)] = (cell, content)
            else:
                self._kept[id(cell)] = (None, None)
            self._keep(content, depth - 1)

    def _keep_class(self, cls: type) -> None:
        """What a class of the user's keeps for all its objects: `Net.calls += 1`."""
        held = _data_of(cls)
        self._kept[id(cls)] = (cls, held)
        self._attributes.add(id(cls))
        self._keep(list(held.values()), 2)

    def _keep_attributes(self, owner: Any, depth: int) -> None:
        attributes = vars(owner)
        if isinstance(owner, torch.jit.ScriptModule) or id(attributes) in self._kept:
            return
        self._kept[id(attributes)] = (attributes, dict(attributes))
        self._attributes.add(id(attributes))
        for held in attributes.values():
            self._owners.setdefault(id(held), owner)
            if not isinstance(held, torch.nn.Module):
                self._keep(held, depth - 1)

    def holds(self, container: Any) -> bool:
        """Whether a container was there when the arm began."""
        return id(container) in self._kept

    def containers(self) -> list[Any]:
        """The lists, dicts and the like within reach."""
        return [now for now, _ in self._kept.values() if isinstance(now, (list, dict, set, deque))]

    def changes(self) -> list[ContainerChange]:
        return [
            ContainerChange(now, before, _copy(now), self._owners.get(id(now)), id(now) in self._attributes)
            for now, before in self._changed()
        ]

    def tensors(self) -> list[torch.Tensor]:
        """The tensors that the containers held when the arm began."""
        held = (_items(before) for now, before in self._kept.values() if isinstance(now, (list, dict, deque)))
        return [item for items in held for item in items if isinstance(item, torch.Tensor)]

    def restore(self) -> None:
        for now, before in self._changed():
            fill(now, before)

    def _changed(self) -> list[tuple[Any, Any]]:
        return [(now, before) for now, before in self._kept.values() if now is not None and not same_items(now, before)]


Contents: TypeAlias = Mapping[int, Any]
"""By id of a container: what an arm left in it. The containers are alive as long as the changes are."""


def contents_after(changes: Iterable[ContainerChange]) -> Contents:
    return {id(c.container): c.after for c in changes if isinstance(c.container, (list, dict, set, deque))}


def as_left(value: Any, contents: Contents) -> Any:
    """A value as an arm left it, although what it put into containers was undone: a copy where that differs.

    if c: out.append(a)         one arm has `out` itself, longer, and the other a list of its own
    else: out = [b]
    """
    if not contents or isinstance(value, Disagreement):
        return value
    held = contents.get(id(value))
    if isinstance(value, TracedList):
        return value if held is None else value.holding(held)
    if isinstance(value, (set, deque)):
        return value if held is None or isinstance(held, Unsure) else type(value)(held)
    if isinstance(value, TracedDict):
        now = value.entries if held is None else held
        left = {key: as_left(item, contents) for key, item in now.items()}
        same = held is None and all(left[key] is now[key] for key in now)
        return value if same else value.holding(left, value.why)
    if type(value) not in (list, tuple, dict):
        return value
    now = value if held is None else held
    if isinstance(now, dict):
        made: Any = {key: as_left(item, contents) for key, item in now.items()}
        same = held is None and all(made[key] is now[key] for key in now)
    else:
        made = type(value)([as_left(item, contents) for item in now])
        same = held is None and all(a is b for a, b in zip(made, now, strict=True))
    return value if same else made


def fill(container: Any, content: Any) -> None:
    """Make a container hold exactly this."""
    if isinstance(container, CellType):
        if content is UNBOUND:
            del container.cell_contents
        else:
            container.cell_contents = content
        return
    if isinstance(container, (TracedDict, TracedSet)) or isinstance(content, ListParts):
        container.hold(content)
        return
    if isinstance(container, type) or _keeps_in_slots(container):
        held, put = (
            (_data_of(container), type.__setattr__) if isinstance(container, type) else (_slots(container), _put)
        )
        for name in held.keys() - content.keys():
            delattr(container, name)
        for name, value in content.items():
            if held.get(name, UNBOUND) is not value:
                put(container, name, value)
        return
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(content)
    else:
        container.update(content)


def same_items(now: Any, before: Any) -> bool:
    if isinstance(now, CellType):
        return _content(now) is before
    if isinstance(now, type):
        now = _data_of(now)
    if isinstance(now, TracedList):
        return now.held.same_as(before)
    if isinstance(now, TracedSet):
        now = now.held
        return now is before if isinstance(before, Unsure) or isinstance(now, Unsure) else bool(now == before)
    if isinstance(now, TracedDict):
        now = now.entries
    elif _keeps_in_slots(now):
        now = _slots(now)
    if isinstance(now, dict):
        return list(now) == list(before) and all(now[key] is before[key] for key in before)
    if isinstance(now, set):
        return bool(now == before)
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def _items(container: Any) -> Iterable[Any]:
    if isinstance(container, TracedList):
        container = container.held
    if isinstance(container, TracedSet):
        container = container.held
    if isinstance(container, Unsure):
        return ()
    if isinstance(container, ListParts):
        return container.items or ()
    return dict.values(container) if isinstance(container, dict) else container


def _copy(container: Any) -> Any:
    if isinstance(container, CellType):
        return _content(container)
    if isinstance(container, (TracedList, TracedSet)):
        return container.held
    if isinstance(container, TracedDict):
        return container.entries
    if isinstance(container, type):
        return _data_of(container)
    if _keeps_in_slots(container):
        return _slots(container)
    return dict(container) if isinstance(container, dict) else type(container)(container)


def _is_users_object(value: Any) -> bool:
    return hasattr(value, "__dict__") and not _is_foreign(value)


def _is_foreign(value: Any) -> bool:
    room = type(value).__module__.split(".")[0]
    foreign = room in _FOREIGN or room in sys.stdlib_module_names
    return foreign and not isinstance(value, (*OPEN_NAMESPACES, *_OF_THE_LIBRARY)) and not _holds_state(value)


def _holds_state(value: Any) -> bool:
    """Whether it is an object of ours that arms and rounds change."""
    return bool(getattr(type(value), "holds_state", False))


def _keeps_in_slots(value: Any) -> bool:
    """Whether it is an object of the user's without a dict of attributes."""
    slots = any("__slots__" in vars(cls) for cls in type(value).__mro__)
    return slots and not hasattr(value, "__dict__") and not _is_foreign(value)


def _slots(value: Any) -> dict[str, Any]:
    return attributes_of(value) or {}


_put = object.__setattr__
_DATA = (bool, int, float, str, type(None), torch.Tensor, list, dict, set, tuple, *SYMBOLIC_NUMBERS, Disagreement)


def _data_of(cls: type) -> dict[str, Any]:
    """The attributes of a class that are no methods, nor anything else that Python put there."""
    return {name: v for name, v in vars(cls).items() if isinstance(v, _DATA) and not name.startswith("__")}
