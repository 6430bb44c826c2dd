"""The items of a list of open length, held in tensors.

Each leaf of an item is a column: tensors of one size are stacked, Python numbers are a tensor of one axis, and tensors
whose sizes differ from item to item are packed one after the other, with a table of their sizes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from trueport.capture.containers.sequences import refuse
from trueport.capture.values.disagreement import Disagreement
from trueport.decompositions.arguments import DTYPES
from trueport.decompositions.creation import tensor_of
from trueport.decompositions.indexing import get_item
from trueport.load.structures import Structure, flatten
from trueport.load.values import LeafKind, kind_of
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals.symbolic import counted, number_kind, same_number

IsInner: TypeAlias = Callable[[Any], bool]
"""Whether a size is known only inside the arm or the round in which it arose."""


class NotAlike(Exception):
    """Items that no one set of columns can hold."""


@dataclass(frozen=True)
class Column:
    """One leaf of every item.

    `sizes` holds None on the axes that differ from item to item; such a column is packed, with the axis `along` first.
    What is the same in every item (None, a text) is `fixed`; the tensor of such a column only counts the items.
    """

    dtype: torch.dtype
    sizes: tuple[Any, ...] = ()
    number: type | None = None
    fixed: tuple[Any, ...] = ()

    def is_kind_of(self, other: Column) -> bool:
        """Whether both differ in nothing but sizes."""
        mine, theirs = (
            (one.dtype, one.number, len(one.sizes), [*map(type, one.fixed)], one.fixed) for one in (self, other)
        )
        return mine == theirs

    @property
    def is_packed(self) -> bool:
        return any(size is None for size in self.sizes)

    @property
    def along(self) -> int:
        """The axis along which packed items can be joined without looking at each: the one that differs."""
        return next((axis for axis, size in enumerate(self.sizes) if size is None), 0)

    @property
    def width(self) -> int:
        """How many tensors hold the column."""
        return 2 if self.is_packed else 1

    def join(self, other: Column) -> Column:
        """The column that can hold the values of both."""
        if not self.is_kind_of(other):
            raise NotAlike
        pairs = zip(self.sizes, other.sizes, strict=True)
        sizes = (a if a is not None and b is not None and same_number(a, b) else None for a, b in pairs)
        return replace(self, sizes=tuple(sizes))

    def stacked(self, values: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """The tensors that hold these values."""
        if self.fixed:
            return (torch.zeros(len(values), dtype=self.dtype),)
        tensors = [self._tensor(value) for value in values]
        if not self.is_packed:
            if not tensors:
                return (torch.zeros((0, *self.sizes), dtype=self.dtype),)
            if len(tensors) == 1:
                return (tensors[0].unsqueeze(0),)
            return (held_together(torch.stack(tensors), tensors),)
        rank = len(self.sizes)
        if not tensors:
            return torch.zeros(0, dtype=self.dtype), torch.zeros((0, rank), dtype=torch.int64)
        flat = [t.movedim(self.along, 0).reshape(-1) for t in tensors]
        sizes = [torch.stack([torch.full((), s, dtype=torch.int64) for s in t.shape]) for t in tensors]
        return held_together(torch.cat(flat), tensors) if len(flat) > 1 else flat[0], torch.stack(sizes)

    def _tensor(self, value: Any) -> torch.Tensor:
        return value if isinstance(value, torch.Tensor) else tensor_of(value, dtype=self.dtype)

    def repacked(self, tensors: tuple[torch.Tensor, ...], onto: Column) -> tuple[torch.Tensor, ...]:
        """The tensors of this column as those of a column that allows more."""
        if self.is_packed == onto.is_packed and self.along == onto.along:
            return tensors
        if self.is_packed:
            raise NotAlike
        (stacked,) = tensors
        count = stacked.shape[0]
        rows = [torch.full((), s, dtype=torch.int64) for s in stacked.shape[1:]]
        return stacked.movedim(onto.along + 1, 1).reshape(-1), torch.stack(rows).expand(count, len(rows))

    def at(self, tensors: tuple[torch.Tensor, ...], index: Any) -> Any:
        if self.fixed:
            return self.fixed[0]
        if self.number is not None:
            return get_item(tensors[0], index).item()
        if not self.is_packed:
            return get_item(tensors[0], index)
        flat, table = tensors
        lengths = table.prod(1)
        sizes: list[Any] = [
            get_item(table, (index, axis)).item() if size is None else size for axis, size in enumerate(self.sizes)
        ]
        length = get_item(lengths, index).item()
        end = get_item(lengths.cumsum(0), index).item()
        first = [sizes.pop(self.along), *sizes]
        return flat[end - length : end].reshape(first).movedim(0, self.along)

    def part(self, tensors: tuple[torch.Tensor, ...], start: Any, stop: Any) -> tuple[torch.Tensor, ...]:
        """The tensors that hold some of the items, one after the other."""
        if not self.is_packed:
            return (tensors[0][start:stop],)
        flat, table = tensors
        lengths = table.prod(1)
        begin, end = (None if edge is None else lengths[:edge].sum().item() for edge in (start, stop))
        return flat[begin:end], table[start:stop]

    def lengths(self, tensors: tuple[torch.Tensor, ...], axis: int) -> torch.Tensor:
        """How long each item is along one of its axes."""
        if self.is_packed:
            return tensors[1][:, axis]
        return torch.full((tensors[0].shape[0],), tensors[0].shape[axis + 1], dtype=torch.int64)

    def joined(self, tensors: tuple[torch.Tensor, ...], axis: int) -> torch.Tensor:
        """All items along one of their own axes."""
        axis = axis % len(self.sizes)
        if not self.is_packed:
            return tensors[0].movedim(0, axis).flatten(axis, axis + 1)
        others = [size for i, size in enumerate(self.sizes) if i != axis]
        if axis != self.along or any(size is None for size in others):
            raise NotAlike
        return tensors[0].reshape(-1, *others).movedim(0, axis)

    def whole(self, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """All items along a new first axis; eager demands that they have one size."""
        if not self.is_packed:
            return tensors[0]
        flat, table = tensors
        sizes: list[Any] = [table[0, axis].item() for axis in range(len(self.sizes))]
        first = [sizes.pop(self.along), *sizes]
        return flat.reshape(table.shape[0], *first).movedim(1, self.along + 1)


def held_together(made: torch.Tensor, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """`made` holds the very items of a list, and no copies: who writes one of them in place writes the list."""
    if TRACE.trace is not None:
        TRACE.trace.may_be(made, parts)
    return made


def column_of(value: Any, is_inner: IsInner) -> Column:
    if isinstance(value, torch.Tensor):
        return Column(value.dtype, tuple(None if is_inner(size) else size for size in value.shape))
    if (kind := number_kind(value)) is not None:
        return Column(DTYPES[kind], (), kind)
    if kind_of(value) is LeafKind.CONSTANT:
        return Column(torch.int64, fixed=(value,))
    raise NotAlike


@dataclass(frozen=True)
class ItemShape:
    """What every item of a list is made of."""

    structure: Structure
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, items: Iterable[Any], is_inner: IsInner) -> ItemShape:
        return common_shape(cls._of_one(item, is_inner) for item in items)

    @classmethod
    def of_tensors(cls, like: torch.Tensor, sizes: Iterable[Any]) -> ItemShape:
        """Of items that are a tensor each, of one dtype."""
        return cls(flatten(like, "item")[1], (Column(like.dtype, tuple(sizes)),))

    @classmethod
    def _of_one(cls, item: Any, is_inner: IsInner) -> ItemShape:
        leaves, structure = flatten(item, "item", open_list=_refuse_nested)
        if not leaves or not all(leaf.known for leaf in leaves):
            raise NotAlike
        return cls(structure, tuple(column_of(leaf.value, is_inner) for leaf in leaves))

    def join(self, other: ItemShape) -> ItemShape:
        """The shape that items of both have."""
        if not other.structure.same_as(self.structure):
            raise NotAlike
        return replace(self, columns=tuple(map(Column.join, self.columns, other.columns)))

    def same_as(self, other: ItemShape) -> bool:
        return all(
            a.is_packed == b.is_packed and a.along == b.along for a, b in zip(self.columns, other.columns, strict=True)
        )

    def rows(self, items: Sequence[Any]) -> Rows:
        """These items, held in tensors."""
        leaves = [[leaf.value for leaf in flatten(item, "item")[0]] for item in items]
        made: list[torch.Tensor] = []
        for i, column in enumerate(self.columns):
            made += column.stacked([values[i] for values in leaves])
        return Rows(self, tuple(made))


def common_shape(shapes: Iterable[ItemShape | None]) -> ItemShape:
    """What items of all these shapes are made of, of which None has no items."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        raise NotAlike
    return functools.reduce(ItemShape.join, known)


class Rows:
    """Any number of items of one shape. `was_read` tells whether somebody looked at them since they were made."""

    def __init__(self, shape: ItemShape, tensors: tuple[torch.Tensor, ...]) -> None:
        self.shape, self._tensors = shape, tensors
        self.was_read = False

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self._tensors

    def read(self) -> Rows:
        self.was_read = True
        return self

    # --- as a part of a list (see `parts.py`)

    plain = None
    """The items, where their number is plain."""

    @property
    def held(self) -> Iterable[Any]:
        """What a list holds of it: items, or all of them at once."""
        return (self,)

    @property
    def within(self) -> Sequence[Any]:
        """The items, or the tensors that hold them."""
        return self.tensors

    def mapped(self, _function: Callable[[Any], Any]) -> Rows:
        """With what a function makes of each plain item."""
        return self

    def same_as(self, other: Any) -> bool:
        """Whether it is the same part, unchanged."""
        return self is other

    def alike(self, other: Any) -> bool:
        """Whether both have as many plain items, or rows of one shape."""
        if other.plain is not None:
            return False
        return self.shape.structure.same_as(other.shape.structure) and self.shape.same_as(other.shape)

    def item_shape(self, _is_inner: IsInner) -> ItemShape | None:
        """What its items are made of; None where it has none for certain."""
        return self.shape

    def stacked(self) -> torch.Tensor:
        """Its items along a new first axis."""
        column, tensors = self.only
        return column.whole(tensors)

    def along(self, axis: int) -> Sequence[torch.Tensor]:
        """Tensors that, joined along one of their own axes, are its items joined."""
        column, tensors = self.only
        return (column.joined(tensors, axis),)

    # ---

    @property
    def length(self) -> Any:
        first = self.shape.columns[0]
        return self.read().tensors[1 if first.is_packed else 0].shape[0]

    def columns(self) -> Iterable[tuple[Column, tuple[torch.Tensor, ...]]]:
        at = 0
        for column in self.shape.columns:
            yield column, self.tensors[at : at + column.width]
            at += column.width

    def at(self, index: Any) -> Any:
        self.read()
        values = [column.at(tensors, index) for column, tensors in self.columns()]
        item = self.shape.structure.build(values)
        if TRACE.trace is not None:
            TRACE.trace.took_out(item, self.shape.structure, values)
        return item

    def onto(self, shape: ItemShape) -> Rows:
        """The same items in columns that allow more."""
        self.read()
        made: list[torch.Tensor] = []
        for (column, tensors), wider in zip(self.columns(), shape.columns, strict=True):
            made += column.repacked(tensors, wider)
        return Rows(shape, tuple(made))

    def followed_by(self, other: Rows) -> Rows:
        pairs = zip(self.read().tensors, other.read().tensors, strict=True)
        return Rows(self.shape, tuple(held_together(torch.cat([a, b]), (a, b)) for a, b in pairs))

    def part(self, start: Any, stop: Any) -> Rows:
        """Some of the items, one after the other."""
        self.read()
        made = [part for column, tensors in self.columns() for part in column.part(tensors, start, stop)]
        return Rows(self.shape, tuple(made))

    def with_item(self, index: Any, value: Any) -> Rows:
        """The items, of which one is another now."""
        if any(column.is_packed for column in self.shape.columns):
            raise NotAlike
        other = self.shape.join(ItemShape.of([value], lambda _: False))
        if not other.same_as(self.shape):
            raise NotAlike
        new = zip(self.read().tensors, self.shape.rows([value]).tensors, strict=True)
        number = torch.full((), counted(index))
        made = []
        for tensor, row in new:
            place = torch.where(number < 0, number + tensor.shape[0], number)
            here = (torch.arange(tensor.shape[0]) == place).reshape(-1, *[1] * (tensor.dim() - 1))
            made.append(held_together(torch.where(here, row, tensor), (tensor, row)))
        return Rows(self.shape, tuple(made))

    def backwards(self) -> Rows:
        """The items in the other order."""
        if any(column.is_packed for column in self.shape.columns):
            raise NotAlike
        return Rows(self.shape, tuple(held_together(tensor.flip(0), [tensor]) for tensor in self.read().tensors))

    def whole_and_lengths(self) -> tuple[torch.Tensor, int, torch.Tensor] | None:
        """Pieces of one tensor: all of it, the axis along which it is to be cut, and how long each is; None where that
        is not what the items are, or where they do not lie in their order in the tensor."""
        return None

    def exactly(self, count: int) -> list[Any]:
        """All items, where there are so many."""
        return [self.at(i) for i in range(count)]

    @property
    def is_table(self) -> bool:
        """Whether an item is more than one tensor or number."""
        return len(self.shape.columns) > 1 or self.shape.columns[0].is_packed

    def table(self) -> torch.Tensor:
        """The items, nested lists and tuples of numbers, as the rows of one tensor."""
        if any(column.is_packed or column.sizes or column.fixed for column in self.shape.columns):
            raise NotAlike
        places = np.array(self.shape.structure.build(range(len(self.shape.columns))))
        dtype = functools.reduce(torch.promote_types, (column.dtype for column in self.shape.columns))
        columns = [tensor.to(dtype) for tensor in self.read().tensors]
        return torch.stack([columns[i] for i in places.flatten().tolist()], 1).reshape(-1, *places.shape)

    @property
    def only(self) -> tuple[Column, tuple[torch.Tensor, ...]]:
        """The column of items that are a single tensor or number."""
        found = list(self.columns())
        if len(found) != 1 or found[0][0].fixed:
            raise NotAlike
        self.read()
        return found[0]


class NoRows(Rows):
    """The items of a list that is out of date: nobody may look at them, nor ask how many there are."""

    def __init__(self, why: Disagreement) -> None:
        self.why = why
        self.was_read = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.why.complain()

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        raise self.why.complain()

    def read(self) -> Rows:
        raise self.why.complain()


def _refuse_nested(value: object) -> None:
    if isinstance(value, list) and getattr(value, "is_open", False):
        refuse(
            "a list whose length is known only when the model runs holds lists of open length",
            "put one tensor for each into the list: torch.stack(items) or torch.cat(items)",
        )


def numbers_in(tensor: torch.Tensor) -> Rows:
    """The rows of a tensor as Python numbers, or as lists of them."""
    kind = bool if tensor.dtype is torch.bool else float if tensor.is_floating_point() else int
    item: Any = kind(0)
    for size in reversed(tensor.shape[1:]):
        item = [copy.deepcopy(item) for _ in range(int(size))]
    shape = ItemShape.of([item], lambda _: False)
    columns = tensor.flatten(1).unbind(1) if tensor.dim() > 1 else (tensor,)
    return Rows(shape, tuple(values.to(column.dtype) for values, column in zip(columns, shape.columns, strict=True)))
