"""Torch functions that must be seen before they reach the dispatcher.

Some would read a traced number as a plain one in C++ and freeze it (`decompositions/registry.py`); `.tolist()` would
read memory; and turning gradients on inside forward (forces as derivatives of an energy) needs autograd, which the
trace skips.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.pieces import Cutting, chunk, split, unbind
from trueport.capture.containers.sequences import handed_on
from trueport.capture.recording.tracer import Tracer
from trueport.capture.values.maybe import present, with_and_without
from trueport.decompositions.arrays import holds_array, with_tensors
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.creation import tensor_of
from trueport.decompositions.indexing import get_item, has_traced_number, is_within, set_item
from trueport.decompositions.registry import always, decomposes, decompositions_of, holds_symbol
from trueport.rewrite.running.asking import fails_unless
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.torch_internals import (
    PAD_SEQUENCE,
    SET_GRAD_ENABLED,
    BelowAutograd,
    FunctionalTensor,
    outside_all_modes,
    share_functional_value,
)
from trueport.torch_internals.symbolic import is_single, is_symbolic, traced_flag

_OF_WHAT_IS_THERE = frozenset(
    (torch.tensor, torch.as_tensor, torch.scalar_tensor, torch.stack, torch.cat, torch.concat, torch.hstack)
)
"""What takes no None in its first argument, nor in a list there: a name that may be None is something when given."""
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
_ABOUT_MEMORY = frozenset((torch.Tensor.contiguous, torch.Tensor.__getitem__, torch.Tensor.__setitem__))
"""What asks, before it is an operator, whether a copy or a slice is needed at all: `x[0:4]` of four items is `x`."""
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

    @contextlib.contextmanager
    def _again(self) -> Iterator[None]:
        """Torch sets a mode aside while it is asked; what is called meanwhile goes through it after all."""
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        if holds_array(args):
            args = with_tensors(args)
            if func is torch.tensor and isinstance(args[0], torch.Tensor):  # it warns, of a tensor
                return args[0].to(kwargs.get("dtype") or args[0].dtype, copy=True)
        if func in _OF_WHAT_IS_THERE and args:
            args = (present(args[0]), *args[1:])
        elif self._tracer.one_of_several and (ways := with_and_without(func, args, kwargs)) is not None:
            with self._again():
                return RUNTIME_FUNCTIONS.ternary(*ways)
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
        for found in decompositions_of(func):
            given, named = found.given(args, kwargs)
            if found.when((*given, *named.values())):
                with self._again() if found.calls_back else contextlib.nullcontext():
                    answer = found.function(*given, **named)
                if answer is not NotImplemented:
                    return answer
                args, kwargs = given, named
        if func in _FOR_THE_USER:
            return func(*args, **kwargs)
        if (
            getattr(func, "__module__", "") == torch.nn.functional.__name__
            and traced_flag((*args, *kwargs.values())) is not None
        ):
            trace: Any = TRACE.trace
            with self._again():
                return trace.either_way(func, args, kwargs)
        with self._tracer.places.torch_asking():
            if func in _ABOUT_MEMORY:
                return self._tracer.symbols.shapes.by_usual_strides(lambda: func(*args, **kwargs))
            return func(*args, **kwargs)


def _tracer() -> Tracer:
    trace: Any = TRACE.trace
    return trace.tracer  # type: ignore[no-any-return]


def _plain_number(function: Callable[..., Any]) -> None:
    @decomposes(function, when=always)
    def number(tensor: torch.Tensor) -> Any:
        """`int(t)`, `range(t)`: known where the tensor is a constant; otherwise a matter for the rewritten function."""
        tracer = _tracer()
        known = tracer.constants.evaluate(tracer.value(tracer.adopt_all(tensor)))
        if known is not None:
            with outside_all_modes():
                return function(known)
        tracer.demand.require(tracer.places.asking_frame(), tracer.places)
        return function(tensor)


for _function in (torch.Tensor.__int__, torch.Tensor.__index__, torch.Tensor.__float__):
    _plain_number(_function)


@decomposes(torch.Tensor.tolist, when=always)
def _to_list(tensor: torch.Tensor) -> Any:
    """`tensor.tolist()` as the items themselves: plain numbers where they are constants, symbols where not."""
    if tensor.dim() == 0:
        return tensor.item()
    first, *sizes = cast("tuple[Any, ...]", tensor.shape)
    if is_symbolic(first) and not holds_symbol(sizes):
        places = _tracer().places
        _tracer().demand.require(places.asking_frame(), places)
        return _left_open_here(TracedList.of_numbers(tensor))
    return [_to_list(part) for part in tensor.unbind(0)]


def _left_open_here(made: TracedList) -> TracedList:
    made.place = _tracer().places.here()
    return made


_COPIES = (torch.split_copy, torch.unbind_copy)
"""What writes go into these reaches nobody else."""


def _in_pieces(cutting: Callable[..., Cutting], *functions: Callable[..., Any]) -> None:
    for function in functions:
        decomposes(function, when=always)(functools.partial(_pieces, cutting, function))


def _pieces(cutting: Callable[..., Cutting], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The pieces of a tensor along a free axis: a list of open length, once the function that asks is rewritten."""
    given = cutting(*args, **kwargs)
    if is_single(given.by):
        given = replace(given, by=given.by.item())
    if not given.is_open:
        return NotImplemented
    if function not in _COPIES and (pieces := given.evenly()) is not None:
        return tuple(pieces)
    places = _tracer().places
    frame = places.asking_frame(through=getattr(function, "__code__", None))
    _tracer().demand.require(frame, places)
    if frame is None or function is torch.Tensor.__iter__:
        return NotImplemented
    return _left_open_here(given.cut())


_in_pieces(unbind, torch.Tensor.unbind, torch.unbind, torch.unbind_copy, torch.Tensor.__iter__)
_in_pieces(split, torch.Tensor.split, torch.split, torch.split_copy, torch.Tensor.unsafe_split, torch.unsafe_split)
_in_pieces(chunk, torch.Tensor.chunk, torch.chunk, torch.Tensor.unsafe_chunk, torch.unsafe_chunk)


@decomposes(torch.Tensor.__getitem__, when=always)
def _get_item(tensor: torch.Tensor, index: Any) -> Any:
    if (made := _with_tensors(index)) is not index:
        return torch.Tensor.__getitem__(tensor, made)
    _there(tensor, index)
    return get_item(tensor, index) if has_traced_number(index) else NotImplemented


@decomposes(torch.Tensor.__setitem__, when=always)
def _set_item(tensor: torch.Tensor, index: Any, value: Any) -> Any:
    if (made := _with_tensors(index)) is not index:
        return torch.Tensor.__setitem__(tensor, made, value)
    _there(tensor, index)
    return set_item(tensor, index, value) if has_traced_number(index) else NotImplemented


def _there(tensor: torch.Tensor, index: Any) -> None:
    """`try: x[5]` of an open axis: eager raises where there are fewer items, and somebody may go on with that."""
    if holds_symbol(tensor.shape) or has_traced_number(index):
        fails_unless(lambda: is_within(tensor, index), IndexError)


def _with_tensors(index: Any) -> Any:
    """An index in which lists of open length, and of traced numbers, are the tensors that eager makes of them."""
    if isinstance(index, tuple):
        made = tuple(_with_tensors(i) for i in index)
        return index if all(a is b for a, b in zip(made, index, strict=True)) else made
    if is_open(index):
        return _tensor(index)
    return tensor_of(index) if isinstance(index, list) and holds_symbol(index) else index


def open_list(given: Sequence[Any]) -> bool:
    """A list of open length is the first of them."""
    return bool(given) and is_open(handed_on(given[0]))


def _items(given: Any) -> TracedList:
    return cast("TracedList", handed_on(given))


@decomposes(torch.stack, when=open_list)
def _stack(tensors: Any, dim: int = 0) -> torch.Tensor:
    whole = _items(tensors).whole()
    return whole.movedim(0, dim) if dim else whole


@decomposes(torch.cat, torch.concat, torch.concatenate, when=open_list)
def _join(tensors: Any, dim: int = 0, axis: int | None = None) -> torch.Tensor:
    return _items(tensors).joined(dim if axis is None else axis)


@decomposes(torch.vstack, when=open_list)
def _vertically(tensors: Any) -> torch.Tensor:
    """`vstack`: rows become the rows of a matrix."""
    items = _items(tensors)
    return items.whole() if items.rank < 2 else items.joined(0)


@decomposes(torch.hstack, when=open_list)
def _horizontally(tensors: Any) -> torch.Tensor:
    items = _items(tensors)
    return items.joined(0 if items.rank < 2 else 1)


@decomposes(PAD_SEQUENCE, when=open_list)
def _padded(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> torch.Tensor:
    """`pad_sequence`: each item in a row of its own, which is as long as the longest."""
    lengths, items = _items(sequences).lengths(0), _items(sequences).joined(0)
    places = torch.arange(torch.sym_max(lengths.amax().item(), 0))
    taken = (
        places < lengths.unsqueeze(1) if padding_side == "right" else places >= places.shape[0] - lengths.unsqueeze(1)
    )
    padding = items.new_full((*taken.shape, *items.shape[1:]), padding_value)
    rows = padding.masked_scatter(taken.reshape(*taken.shape, *[1] * (items.dim() - 1)), items)
    return rows if batch_first else rows.transpose(0, 1)


@decomposes(torch.tensor, torch.as_tensor, when=open_list)
def _tensor(data: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """A list of numbers as a tensor: floats get the default dtype, as in eager."""
    whole = _items(data).as_numbers()
    default = torch.get_default_dtype() if whole.dtype is torch.float64 else whole.dtype
    return whole.to(dtype or default)


def _set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """`tensor.data = value`: from here on both are the same memory."""
    if not isinstance(tensor, FunctionalTensor):
        tracer = _tracer()
        if tracer.value_read(tensor) is tracer.value_read(value):
            return  # `module.to(dtype)` sets each weight, where it has the dtype already to itself
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
