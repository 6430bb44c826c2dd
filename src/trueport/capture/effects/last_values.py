"""What the tensors that leave a region held at its end.

A write inside a region is undone when the region ends. What the region returns or binds may be a tensor that it wrote,
or a view that functionalisation makes anew when it is next read: its value has to be taken before that, and here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.containers.rows import NoRows, Rows
from trueport.capture.graph import Value
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.maybe import Maybe, value_of
from trueport.load.containers import Attributes
from trueport.load.trees import container_of
from trueport.load.values import attributes_of
from trueport.torch_internals import FunctionalTensor

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer

LastValues: TypeAlias = Mapping[int, Value]
"""By id of the tensor, which whoever holds this holds too."""

_PLAIN = (bool, int, float, str, bytes, type(None), type, torch.nn.Module, torch.SymInt, torch.SymFloat, torch.SymBool)


def last_values(tracer: Tracer, *things: Any) -> LastValues:
    """The present values of all tensors in `things`, as the open region has them."""
    if not tracer.careful:
        return {}
    found: dict[int, Value] = {}
    for tensor in _tensors(things, []):
        # a tensor of the model's own may have been written too
        wrapper = tensor if isinstance(tensor, FunctionalTensor) else tracer.adoption.known(tensor)
        if wrapper is not None:
            found[id(tensor)] = tracer.value(wrapper)
    return found


def _tensors(value: Any, around: list[Any]) -> Iterator[torch.Tensor]:
    """`around` are the user's objects that hold it: they may hold each other."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, TracedList):
        yield from _tensors(value.held, around)
    elif isinstance(value, Maybe):
        yield from _tensors(value_of(value), around)
    elif isinstance(value, (Disagreement, NoRows)):
        return
    elif isinstance(value, ListParts):
        yield from _tensors(value.parts, around)
    elif isinstance(value, Rows):
        yield from value.tensors
    elif isinstance(value, (list, tuple, set, deque)):
        for item in value:
            yield from _tensors(item, around)
    elif isinstance(value, dict):
        yield from _tensors(list(dict.values(value)), around)
    elif not isinstance(value, _PLAIN) and not any(value is outer for outer in around):
        kept = container_of(value) or Attributes(type(value), tuple(attributes_of(value) or ()))
        for part in kept.open(value):
            yield from _tensors(part, [*around, value])
