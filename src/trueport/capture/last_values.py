"""What the tensors that leave a region held at its end.

A write inside a region is undone when the region ends. What the region returns or binds may be a tensor that it wrote,
or a view that functionalisation makes anew when it is next read: its value has to be taken before that, and here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from trueport.capture.disagreement import Disagreement
from trueport.capture.graph import Value
from trueport.capture.lists import Parts, TracedList
from trueport.capture.maybe import Maybe, value_of
from trueport.capture.rows import NoRows, Rows
from trueport.load.structures import flatten
from trueport.torch_internals import FunctionalTensor

if TYPE_CHECKING:
    from trueport.capture.tracer import Tracer

LastValues: TypeAlias = Mapping[int, Value]
"""By id of the tensor, which whoever holds this holds too."""

_PLAIN = (bool, int, float, str, bytes, type(None), type, torch.nn.Module, torch.SymInt, torch.SymFloat, torch.SymBool)


def last_values(tracer: Tracer, *things: Any) -> LastValues:
    """The present values of all tensors in `things`, as the open region has them."""
    if not tracer.careful:
        return {}
    found: dict[int, Value] = {}
    for tensor in _tensors(things):
        # a tensor of the model's own may have been written too
        wrapper = tensor if isinstance(tensor, FunctionalTensor) else tracer.adoption.known(tensor)
        if wrapper is not None:
            found[id(tensor)] = tracer.value(wrapper)
    return found


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, TracedList):
        yield from _tensors(value.held)
    elif isinstance(value, Maybe):
        yield from _tensors(value_of(value))
    elif isinstance(value, (Disagreement, NoRows)):
        return
    elif isinstance(value, Parts):
        yield from _tensors(value.parts)
    elif isinstance(value, Rows):
        yield from value.tensors
    elif isinstance(value, (list, tuple, set, deque)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(dict.values(value)))
    elif not isinstance(value, _PLAIN):
        for leaf in flatten(value)[0]:
            if isinstance(leaf.value, torch.Tensor):
                yield leaf.value
