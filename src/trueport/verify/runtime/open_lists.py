"""Lists among eager's results that one output of a file holds whole: a sequence of tensors, or a tensor of numbers.

Nothing in eager's answer tells two results in a list from a list of any length. The outputs of the file do, by their
types and their number, so what eager returned is read in one way after the other until they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from trueport.load.structures import FoundLeaf, Structure, flatten
from trueport.load.trees import Branch, Repeated, Spot, Tree
from trueport.load.values import LeafKind
from trueport.verify.runtime.sandbox import Port

Reading = tuple[list[FoundLeaf], Structure]


def readings(returned: object) -> Iterator[Reading]:
    """Item by item; then lists of tensors and numbers as a whole; then lists of pairs of them, and so on outwards. A
    tuple is sooner a pair than a list of any length."""
    plain = flatten(returned, root_in_names=False)
    yield plain
    for kinds in ((list,), (list, tuple)):
        for height in range(1, _height(plain[1].tree) + 1):
            yield flatten(returned, root_in_names=False, open_list=partial(_whole, kinds, height))


def fits(port: Port, value: object) -> bool:
    """Whether an output can hold what eager gave there."""
    is_sequence = port.type.startswith("seq(")
    if isinstance(value, bool | int | float):
        return not is_sequence and not any(isinstance(size, str) for size in port.shape)
    if not isinstance(value, list):
        return not is_sequence
    if not value:
        return is_sequence or len(port.shape) == 1
    of_tensors = [isinstance(item, torch.Tensor) for item in value]
    return all(of_tensors) if is_sequence else not any(of_tensors) and len(port.shape) == 1


def _whole(kinds: tuple[type, ...], most: int, obj: Any) -> tuple[Repeated, list[object]] | None:
    """A list of any number of things of one structure, if there are no more than so many containers in each other."""
    if type(obj) not in kinds or _height(flatten(obj)[1].tree) > most:
        return None
    if not obj:
        return Repeated(type(obj), Spot(LeafKind.TENSOR), 1), [[]]
    items = [flatten(item) for item in obj]
    if not all(structure.same_as(items[0][1]) for _, structure in items):
        return None
    columns: list[object] = [[leaf.value for leaf in column] for column in zip(*(own for own, _ in items), strict=True)]
    return Repeated(type(obj), items[0][1].tree, len(columns)), columns


def _height(tree: Tree) -> int:
    return 1 + max(map(_height, tree.parts), default=0) if isinstance(tree, Branch) else 0
