"""The Python side of an arm: what it sets on objects and puts into containers is seen, undone, and merged.

Names are read and set through the rewritten code; objects and containers are found by following what the arm reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.merging import Disagreement
from trueport.capture.sequences import GrownList

_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Change:
    """A container that an arm changed: itself, and its content before and after."""

    container: Any
    before: Any
    after: Any


class World:
    """The containers within reach of an arm, as they were when it began."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}
        for root in roots:
            self._keep(root, _DEPTH)

    def _keep(self, value: Any, depth: int) -> None:
        if isinstance(value, torch.nn.Module):
            for module in value.modules():
                self._keep_attributes(module, depth)
        elif isinstance(value, (torch.Tensor, type, Disagreement)) or depth == 0 or id(value) in self._kept:
            return
        elif isinstance(value, (list, dict, set, deque)) and not isinstance(value, GrownList):
            self._kept[id(value)] = (value, _copy(value))
            for item in value.values() if isinstance(value, dict) else value:
                self._keep(item, depth - 1)
        elif isinstance(value, tuple):
            for item in value:
                self._keep(item, depth - 1)
        elif _is_users_object(value):
            self._keep_attributes(value, depth)

    def _keep_attributes(self, owner: Any, depth: int) -> None:
        attributes = vars(owner)
        if isinstance(owner, torch.jit.ScriptModule) or id(attributes) in self._kept:
            return
        self._kept[id(attributes)] = (attributes, dict(attributes))
        for held in attributes.values():
            if not isinstance(held, torch.nn.Module):
                self._keep(held, depth - 1)

    def changes(self) -> list[Change]:
        return [Change(now, before, _copy(now)) for now, before in self._kept.values() if not same_items(now, before)]

    def restore(self) -> None:
        for now, before in self._kept.values():
            if not same_items(now, before):
                fill(now, before)


def fill(container: Any, content: Any) -> None:
    """Make a container hold exactly this."""
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(content)
    else:
        container.update(content)


def same_items(now: Any, before: Any) -> bool:
    if isinstance(now, dict):
        return list(now) == list(before) and all(now[key] is before[key] for key in before)
    if isinstance(now, set):
        return bool(now == before)
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


def _copy(container: Any) -> Any:
    return dict(container) if isinstance(container, dict) else type(container)(container)


def _is_users_object(value: Any) -> bool:
    module = type(value).__module__
    return hasattr(value, "__dict__") and not callable(value) and module.split(".")[0] not in ("torch", "builtins", "types")
