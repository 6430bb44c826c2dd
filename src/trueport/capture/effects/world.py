"""The Python side of an arm: what it sets on objects and puts into containers is seen, undone, and merged.

Names are read and set through the rewritten code; objects and containers are found by following what the arm reads,
and so are the names of functions around it that it (or a function that it calls) declares nonlocal: the cells of its
closure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.containers.sequences import is_plain_iterator
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import (
    ATTRIBUTES,
    CELL,
    CLASS,
    FOREIGN,
    ContainerChange,
    Store,
    TracedContainer,
    holds_state,
    is_users_object,
    store_of,
)
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals import memory_of

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, torch.Tensor, torch.nn.Parameter})
"""Most of what modules hold, an arm's worth of which is looked through at every branch."""


class World:
    """The containers within reach of an arm, as they were when it began."""

    def __init__(self, roots: Iterable[Any], blocks: Iterable[Any] = (), names: Collection[str] = ()) -> None:
        """`blocks` are the functions that make up the arm; `names` of theirs are looked after elsewhere."""
        self._kept: dict[int, tuple[Any, Store, Any]] = {}
        self._seen: set[int] = set()
        """Modules, functions, and the cells of those names."""
        self._owners: dict[int, Any] = {}
        self._others = {
            id(cell)
            for block in blocks
            for name, cell in zip(block.__code__.co_freevars, block.__closure__ or (), strict=True)
            if name in names
        }
        for root in (*roots, *blocks):
            if isinstance(root, type):
                self._note(root, CLASS, 1)
            else:
                self._keep(root, limits.DEPTH_OF_CHANGES)

    def _keep(self, value: Any, depth: int) -> None:
        if type(value) in _PLAIN:
            return
        match value:
            case torch.nn.Module():
                modules = [module for module in value.modules() if id(module) not in self._seen]
                self._seen.update(map(id, modules))
                for module in modules:
                    self._keep_attributes(module, limits.DEPTH_OF_CHANGES)
            case torch.Tensor() | type() | Disagreement():
                return
            case _ if depth == 0 or self.holds(value):
                return
            case _ if (store := store_of(value)) is not None:
                self._note(value, store, depth - 1)
            case _ if is_plain_iterator(value) and TRACE.trace is not None:
                self._keep_attributes(TRACE.trace.remembered(value).iterator, depth)
            case FunctionType():
                self._keep_cells(value, depth)
            case partial():
                self._keep((value.func, value.args, value.keywords), depth)
            case MethodType():
                self._keep(value.__func__, depth)
                self._keep(value.__self__, depth)
            case _ if is_users_object(value):
                self._keep_attributes(value, depth)

    def _note(self, container: Any, store: Store, depth: int) -> None:
        """A container and, so deep, what is in it."""
        content = store.content(container)
        if store.can_change:
            self._kept[id(container)] = (container, store, content)
        for part in store.parts(content):
            self._keep(part, depth)

    def _keep_cells(self, function: FunctionType, depth: int) -> None:
        self._seen.add(id(function))
        room = (function.__module__ or "").split(".")[0]
        cells = function.__closure__ or ()
        if room == "trueport":  # a wrapper around functions of the user's, or a list that it fills
            for cell in cells:
                content = CELL.content(cell)
                if isinstance(content, (FunctionType, TracedContainer, tuple)) or holds_state(content):
                    self._keep(content, depth)
        if room in FOREIGN:
            return
        self._keep((function.__defaults__, function.__kwdefaults__), depth)
        if vars(function):  # `count.calls += 1`
            self._keep_attributes(function, depth)
        for cell in cells:
            if id(cell) in self._others:
                self._seen.add(id(cell))
                self._keep(CELL.content(cell), depth - 1)
            elif not self.holds(cell):
                self._note(cell, CELL, depth - 1)

    def _keep_attributes(self, owner: Any, depth: int) -> None:
        attributes = vars(owner)
        if isinstance(owner, torch.jit.ScriptModule) or self.holds(attributes):
            return
        for held in attributes.values():
            self._owners.setdefault(id(held), owner)
        self._note(attributes, ATTRIBUTES, depth - 1)

    def holds(self, container: Any) -> bool:
        """Whether a container was there when the arm began."""
        return id(container) in self._kept or id(container) in self._seen

    def containers(self) -> list[Any]:
        """The lists, dicts and the like within reach."""
        return [container for container, store, _ in self._kept.values() if store.is_structure]

    def changes(self, written: Collection[int] = ()) -> list[ContainerChange]:
        """What the arm changed. Items of lists are taken as they are now where they are among the memories that it
        has `written` in place."""
        found = []
        for container, store, before in self._changed():
            after = store.content(container)
            if written:
                after = store.apart(after, lambda tensor: memory_of(tensor) in written)
            found.append(ContainerChange(container, store, before, after, self._owners.get(id(container))))
        return found

    def tensors(self) -> list[torch.Tensor]:
        """The tensors that the containers held when the arm began."""
        held = (store.parts(before) for _, store, before in self._kept.values())
        return [part for parts in held for part in parts if isinstance(part, torch.Tensor)]

    def restore(self) -> None:
        for container, store, before in self._changed():
            store.hold(container, before)

    def _changed(self) -> list[tuple[Any, Store, Any]]:
        return [kept for kept in self._kept.values() if not kept[1].same(kept[0], kept[2])]
