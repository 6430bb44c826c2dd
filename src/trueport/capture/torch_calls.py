"""Torch functions that must be seen before they reach the dispatcher.

Some would read a traced number as a plain one in C++ and freeze it (see `stand_ins.py`); `.tolist()` would read memory;
and turning gradients on inside forward (forces as derivatives of an energy) needs autograd, which the trace skips.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.pieces import Cutting, chunk, split, unbind
from trueport.capture.containers.sequences import handed_on
from trueport.capture.decompositions import convolution_stand_ins, number_stand_ins, pool_stand_ins  # noqa: F401  (they register themselves)
from trueport.capture.decompositions.comparisons import COMPARISONS
from trueport.capture.decompositions.indexing import get_item, has_traced_number, set_item
from trueport.capture.decompositions.stand_ins import holds_symbol, stand_in_for, tensor_of, with_numbers
from trueport.capture.python.arrays import holds_array, with_tensors
from trueport.capture.recording.tracer import Tracer
from trueport.capture.stops.cannot_be_carried import CannotBeCarried
from trueport.capture.values.maybe import present
from trueport.torch_internals import (
    PAD_SEQUENCE,
    SET_GRAD_ENABLED,
    BelowAutograd,
    FunctionalTensor,
    outside_all_modes,
    share_functional_value,
)

_PLAIN_NUMBERS = (torch.Tensor.__int__, torch.Tensor.__index__, torch.Tensor.__float__)
_OF_WHAT_IS_THERE = frozenset(
    (torch.tensor, torch.as_tensor, torch.scalar_tensor, torch.stack, torch.cat, torch.concat, torch.hstack)
)
"""What takes no None in its first argument, nor in a list there: a name that may be None is something when given."""
_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_CUTTING: dict[Any, Callable[..., Cutting]] = {
    **dict.fromkeys((torch.Tensor.unbind, torch.unbind, torch.unbind_copy, torch.Tensor.__iter__), unbind),
    **dict.fromkeys((torch.Tensor.split, torch.split, torch.split_copy), split),
    **dict.fromkeys((torch.Tensor.unsafe_split, torch.unsafe_split), split),
    **dict.fromkeys((torch.Tensor.chunk, torch.chunk, torch.Tensor.unsafe_chunk, torch.unsafe_chunk), chunk),
}


_FOR_THE_USER = frozenset(
    {
        torch.Tensor.__bool__,
        torch.Tensor.__int__,
        torch.Tensor.__float__,
        torch.Tensor.__index__,
        torch.Tensor.__len__,
        torch.Tensor.__contains__,
        torch.Tensor.__iter__,
    }
)
"""Functions that ask for a plain bool or number on behalf of the code that calls them; the others ask for torch."""
_GET_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]
_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]


class TorchCalls(TorchFunctionMode):
    """`needs_autograd` is called once when the user's code turns gradients on."""

    def __init__(self, tracer: Tracer, needs_autograd: Callable[[], None]) -> None:
        super().__init__()
        self._tracer = tracer
        self._needs_autograd = needs_autograd
        self._below: Any = None

    def __enter__(self) -> TorchCalls:
        self._below = BelowAutograd()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)  # type: ignore[no-untyped-call]
        self._below = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return self._called(func, args, kwargs or {})
        except BaseException as failure:
            self._tracer.swallowed.note(failure)
            raise

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        if holds_array(args):
            args = with_tensors(args)
            if func is torch.tensor and isinstance(args[0], torch.Tensor):  # it warns, of a tensor
                return args[0].to(kwargs.get("dtype") or args[0].dtype, copy=True)
        if func in _OF_WHAT_IS_THERE and args:
            args = (present(args[0]), *args[1:])
        if func is SET_GRAD_ENABLED:
            if args[0]:
                self._needs_autograd()
                self._below = None
            elif self._below is None:
                self._below = BelowAutograd()
        elif func == _SET_DATA:
            return _set_data(*args)
        elif func == _GET_DATA and isinstance(args[0], torch.nn.Parameter):
            return args[0].detach()  # the same memory; torch's own way dispatches under the class of the parameter
        elif func is torch.Tensor.__deepcopy__ and isinstance(args[0], FunctionalTensor):
            return args[1].setdefault(id(args[0]), args[0].clone())
        elif func in _PLAIN_NUMBERS:
            return self._plain_number(func, args[0])
        elif func in COMPARISONS:
            return COMPARISONS[func](*args, **kwargs)
        elif func is torch.Tensor.tolist:
            return self._to_list(args[0])
        elif func in _INDEXING and (index := _with_tensors(args[1])) is not args[1]:
            return func(args[0], index, *args[2:])
        elif func is torch.Tensor.__getitem__ and has_traced_number(args[1]):
            return get_item(*args)
        elif func is torch.Tensor.__setitem__ and has_traced_number(args[1]):
            return set_item(*args)
        elif func in _CUTTING and (pieces := self._pieces(func, args, kwargs)) is not None:
            return pieces
        elif func in _TAKING_LISTS and args and is_open(items := handed_on(args[0])):
            return _TAKING_LISTS[func](items, *args[1:], **kwargs)
        elif (stand_in := stand_in_for(func, *(given := with_numbers(func, args, kwargs)))) is not None:
            args, kwargs = given
            answer = stand_in(*args, **kwargs)
            if answer is not NotImplemented:
                return answer
        elif func in _FOR_THE_USER:
            return func(*args, **kwargs)
        with self._tracer.places.torch_asking():
            return func(*args, **kwargs)

    def _plain_number(self, func: Any, tensor: torch.Tensor) -> Any:
        """`int(t)`, `range(t)`: known where the tensor is a constant; otherwise a matter for the rewritten function."""
        known = self._tracer.constants.evaluate(self._tracer.value(self._tracer.adopt_all(tensor)))
        if known is not None:
            with outside_all_modes():
                return func(known)
        self._tracer.demand.require(self._tracer.places.asking_frame(), self._tracer.places)
        return func(tensor)

    def _to_list(self, tensor: torch.Tensor) -> Any:
        """`tensor.tolist()` as the items themselves: plain numbers where they are constants, symbols where not."""
        if tensor.dim() == 0:
            return tensor.item()
        first, *sizes = cast("tuple[Any, ...]", tensor.shape)
        if isinstance(first, torch.SymInt) and all(isinstance(size, int) for size in sizes):
            self._tracer.demand.require(self._tracer.places.asking_frame(), self._tracer.places)
            return self._left_open_here(TracedList.of_numbers(tensor))
        return [self._to_list(part) for part in tensor.unbind(0)]

    def _pieces(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedList | None:
        """The pieces of a tensor along a free axis: a list of open length, once the function that asks is rewritten."""
        given = _CUTTING[func](*args, **kwargs)
        if isinstance(given.by, torch.Tensor) and given.by.dim() == 0:
            given = replace(given, by=given.by.item())
        if not given.is_open:
            return None
        frame = self._tracer.places.asking_frame(through=getattr(func, "__code__", None))
        self._tracer.demand.require(frame, self._tracer.places)
        if frame is None or func is torch.Tensor.__iter__:
            return None
        return self._left_open_here(given.cut())

    def _left_open_here(self, made: TracedList) -> TracedList:
        made.place = self._tracer.places.here()
        return made


def _with_tensors(index: Any) -> Any:
    """An index in which lists of open length, and of traced numbers, are the tensors that eager makes of them."""
    if isinstance(index, tuple):
        made = tuple(_with_tensors(i) for i in index)
        return index if all(a is b for a, b in zip(made, index, strict=True)) else made
    if is_open(index):
        return _tensor(index)
    return tensor_of(index) if isinstance(index, list) and holds_symbol(index) else index


def _stack(tensors: TracedList, dim: int = 0) -> torch.Tensor:
    whole = tensors.whole()
    return whole.movedim(0, dim) if dim else whole


def _join(tensors: TracedList, dim: int = 0, axis: int | None = None) -> torch.Tensor:
    return tensors.joined(dim if axis is None else axis)


def _vertically(tensors: TracedList) -> torch.Tensor:
    """`vstack`: rows become the rows of a matrix."""
    return tensors.whole() if tensors.rank < 2 else tensors.joined(0)


def _horizontally(tensors: TracedList) -> torch.Tensor:
    return tensors.joined(0 if tensors.rank < 2 else 1)


def _padded(
    sequences: TracedList, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> torch.Tensor:
    """`pad_sequence`: each item in a row of its own, which is as long as the longest."""
    lengths, items = sequences.lengths(0), sequences.joined(0)
    places = torch.arange(torch.sym_max(lengths.amax().item(), 0))
    taken = (
        places < lengths.unsqueeze(1) if padding_side == "right" else places >= places.shape[0] - lengths.unsqueeze(1)
    )
    padding = items.new_full((*taken.shape, *items.shape[1:]), padding_value)
    rows = padding.masked_scatter(taken.reshape(*taken.shape, *[1] * (items.dim() - 1)), items)
    return rows if batch_first else rows.transpose(0, 1)


def _tensor(data: TracedList, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """A list of numbers as a tensor: floats get the default dtype, as in eager."""
    whole = data.as_numbers()
    default = torch.get_default_dtype() if whole.dtype is torch.float64 else whole.dtype
    return whole.to(dtype or default)


_TAKING_LISTS: dict[Any, Callable[..., torch.Tensor]] = {
    torch.stack: _stack,
    torch.vstack: _vertically,
    torch.hstack: _horizontally,
    PAD_SEQUENCE: _padded,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), _join),
    **dict.fromkeys((torch.tensor, torch.as_tensor), _tensor),
}
"""What can be done with a list of open length."""


def _set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """`tensor.data = value`: from here on both are the same memory."""
    if not isinstance(tensor, FunctionalTensor):
        raise CannotBeCarried(
            "`.data` of a tensor of the model is set here, and an ONNX model keeps nothing between calls",
            "write it in place, tensor.copy_(value), and choose with state= what becomes of it",
        )
    if tensor.dtype != value.dtype or tensor.shape != value.shape:
        raise CannotBeCarried(
            "`.data` is set here to a tensor of another shape or dtype, which changes the tensor under its other names",
            "give the new tensor a name of its own",
        )
    share_functional_value(tensor, value.detach())
