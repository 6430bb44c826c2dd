"""The leaves of a structure of Python's, where all lists in it have a plain length."""

from __future__ import annotations

from typing import Any

import torch

from trueport.capture.values.stores import TracedContainer
from trueport.load.structures import FoundLeaf, Structure, flatten


class _HoldsOpenList(Exception):
    pass


def plain_structure(value: Any, name: str) -> tuple[list[FoundLeaf], Structure] | None:
    """A structure, taken apart; None where a list in it has an open length, so that there is no saying how many."""

    def stop(part: object) -> None:
        if isinstance(part, list) and isinstance(part, TracedContainer) and part.is_open:
            raise _HoldsOpenList

    try:
        return flatten(value, name, open_list=stop)
    except _HoldsOpenList:
        return None


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [leaf.value for leaf in flatten(value, "item")[0] if isinstance(leaf.value, torch.Tensor)]


def plain_leaves(value: Any, name: str) -> list[FoundLeaf] | None:
    found = plain_structure(value, name)
    return None if found is None else found[0]
