"""The leaves of a structure of Python's, where all lists in it have a plain length."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from trueport.load.structures import FoundLeaf, flatten


class MayBeOpen:
    """A list that branches and loops may leave with an open number of items (containers/lists.py)."""

    @property
    @abstractmethod
    def is_open(self) -> bool: ...


class _HoldsOpenList(Exception):
    pass


def plain_leaves(value: Any, name: str) -> list[FoundLeaf] | None:
    """The leaves of a structure; None where a list in it has an open length, so that there is no saying how many."""

    def stop(part: object) -> None:
        if isinstance(part, MayBeOpen) and part.is_open:
            raise _HoldsOpenList

    try:
        return flatten(value, name, open_list=stop)[0]
    except _HoldsOpenList:
        return None
