"""Indexing with a traced number: `x[i]`, `x[:, i - 1]`, `z[i] = v` inside a loop.

Torch's own indexing takes plain numbers only; a selection by a traced one is a view like any other, so a write through
it reaches the tensor.
"""

from __future__ import annotations

from typing import Any

import torch

from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.torch_internals.symbolic import counted, is_single, plain_number

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)
_MASKS = (torch.bool, torch.uint8)


def has_traced_number(index: Any) -> bool:
    """Whether something in it is traced that torch would read the value of."""
    return any(_is_number(i) or any(asks(i) for asks in _READ) for i in items_of(index))


def items_of(index: Any) -> tuple[Any, ...]:
    """The items of an index, or of a key: `x[a, b]` has two, `x[a]` has one."""
    return index if isinstance(index, tuple) else (index,)


def _is_number(item: Any) -> bool:
    return isinstance(item, torch.SymInt)


def _is_single(item: Any) -> bool:
    """A tensor of one integer selects like a number; torch reads its value to do so."""
    return is_single(item) and item.dtype in _INTEGERS


def _is_single_mask(item: Any) -> bool:
    """A mask of no axes, `y[total > 0] = 1`: it makes an axis, of one row or of none."""
    return is_single(item) and item.dtype in _MASKS


def bounds(item: Any) -> tuple[Any, ...]:
    """The numbers of a slice; none of anything else."""
    return (item.start, item.stop, item.step) if isinstance(item, slice) else ()


def _has_single(item: Any) -> bool:
    return any(isinstance(bound, torch.Tensor) for bound in bounds(item))


def _has_step(item: Any) -> bool:
    return any(map(_is_number, bounds(item)[2:]))


_READ = (_is_single, _is_single_mask, _has_single, _has_step)


def plain_slice(index: slice) -> slice:
    """With the numbers in it that tensors of one integer hold."""
    return slice(*map(plain_number, bounds(index)))


def _plain(index: Any) -> tuple[Any, ...]:
    """The items of an index, with such tensors as the numbers that they hold."""
    items = (plain_number(item) if _is_single(item) else item for item in items_of(index))
    return tuple(plain_slice(item) if _has_single(item) else item for item in items)


def get_item(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    view, rest = _selected(*_stepped(tensor, index))
    return view[rest] if rest else view


def _stepped(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """With the axes taken whose step is a traced number, which torch would read: `x[::n]`."""
    items = _plain(index)
    if not any(map(_has_step, items)):
        return tensor, index
    used = sum(_axes_taken(i) for i in items)
    made, axis = [], 0
    for item in items:
        if _has_step(item):
            tensor = cut(tensor, axis, item.start, item.stop)
            places = torch.arange((tensor.shape[axis] + item.step - 1) // item.step) * item.step
            tensor, item = tensor.index_select(axis, places), slice(None)
        made.append(item)
        axis += tensor.dim() - used if item is Ellipsis else _axes_taken(item)
    return tensor, tuple(made)


def cut(tensor: torch.Tensor, axis: int, start: Any, stop: Any) -> torch.Tensor:
    """What lies between two places along an axis."""
    return tensor[(*[slice(None)] * (axis % tensor.dim()), slice(start, stop))]


def set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    if any(map(_has_step, _plain(index))):
        raise CannotBeCarried(
            "what is written here is every n-th item, where n is known only when the model runs",
            "write with the positions: x[torch.arange(0, x.shape[0], n)] = value",
        )
    target, rest = _selected(tensor, index)
    if any(_is_advanced(i) for i in rest):
        target[rest] = value
        return
    target = target[rest] if rest else target
    if isinstance(value, torch.Tensor):
        while value.dim() > target.dim() and value.shape[0] == 1:
            value = value.squeeze(0)
        target.copy_(value)
    else:
        target.fill_(value)


def _selected(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """What the numbers among the indices select, and the index that remains. Eager, too, selects by them first, and
    where other indices are tensors they do not count among those."""
    tensor, items = _with_axes_of_masks(tensor, _plain(index))
    if not any(map(_is_number, items)):
        return tensor, items
    axes, rest = _split(items, tensor.dim())
    for axis, number in reversed(axes):
        tensor = tensor.select(axis, number)
    return tensor, tuple(rest)


def _with_axes_of_masks(tensor: torch.Tensor, items: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """The axis of one row that a mask of no axes is about, and the mask as one of that row."""
    axis, rank, used = 0, tensor.dim(), sum(_axes_taken(i) for i in items)
    made: list[Any] = []
    for item in items:
        if _is_single_mask(item):
            tensor, item = tensor.unsqueeze(axis), item.reshape(1)
            axis += 1
        else:
            axis += rank - used if item is Ellipsis else _axes_taken(item)
        made.append(item)
    return tensor, tuple(made)


def _is_advanced(item: Any) -> bool:
    return isinstance(item, (torch.Tensor, list, bool))


def _axes_taken(item: Any) -> int:
    """How many axes an item of an index goes through: a mask as many as it has itself, True and False none."""
    if item is None or item is Ellipsis or item is True or item is False:
        return 0
    return item.dim() if getattr(item, "dtype", None) in _MASKS else 1


def _split(items: tuple[Any, ...], rank: int) -> tuple[list[tuple[int, Any]], list[Any]]:
    """The axes that numbers select, and the index that remains for the others."""
    used = sum(_axes_taken(i) for i in items)
    axes: list[tuple[int, Any]] = []
    rest: list[Any] = []
    axis = 0
    for item in items:
        if _is_number(item):
            axes.append((axis, item))
        else:
            rest.append(item)
        axis += rank - used if item is Ellipsis else _axes_taken(item)
    return axes, rest


def within(number: Any, count: Any) -> Any:
    """Whether there is an item of this number; a negative one counts from the end."""
    number = counted(plain_number(number))
    return (number >= -count) & (number < count)


def is_within(tensor: torch.Tensor, index: Any) -> Any:
    """Whether the tensor has the items that the numbers of an index select, plain ones and traced ones."""
    items = _plain(index)
    used, axis, found = sum(_axes_taken(i) for i in items), 0, True
    for item in items:
        if isinstance(item, (int, torch.SymInt)) and not isinstance(item, bool) and axis < tensor.dim():
            found = found & within(item, tensor.shape[axis])
        axis += tensor.dim() - used if item is Ellipsis else _axes_taken(item)
    return found
