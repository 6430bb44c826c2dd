"""What the tensors that leave a region held at its end.

A write inside a region is undone when the region ends. What the region returns or binds may be a tensor that it wrote,
or a view that functionalisation makes anew when it is next read: its value has to be taken before that, and here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import torch

from trueport.capture.containers.rows import NoRows, Rows
from trueport.capture.recording.tracer import Tracer
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.maybe import Maybe, value_of
from trueport.capture.values.stores import store_of, walk
from trueport.graph.regions import Value
from trueport.load.trees import container_of
from trueport.load.values import SYMBOLIC_NUMBERS, attributes_of
from trueport.torch_internals import FunctionalTensor

LastValues: TypeAlias = Mapping[int, Value]
"""By id of the tensor, which whoever holds this holds too."""

_PLAIN = (bool, int, float, str, bytes, type(None), type, torch.Tensor, torch.nn.Module, *SYMBOLIC_NUMBERS)


def last_values(tracer: Tracer, *things: Any) -> LastValues:
    """The present values of all tensors in `things`, as the open region has them."""
    if not tracer.careful:
        return {}
    found: dict[int, Value] = {}
    for tensor in (each for each in walk(things, parts=_parts) if isinstance(each, torch.Tensor)):
        # a tensor of the model's own may have been written too
        wrapper = tensor if isinstance(tensor, FunctionalTensor) else tracer.adoption.known(tensor)
        if wrapper is not None:
            found[id(tensor)] = tracer.value(wrapper)
    return found


def _parts(value: Any) -> Iterable[Any]:
    """What is in a value; in objects too, which may hold each other."""
    match value:
        case Maybe():
            return (value_of(value),)
        case Disagreement() | NoRows():
            return ()
        case Rows():
            return value.tensors
        case _ if isinstance(value, _PLAIN):
            return ()
    if (store := store_of(value)) is not None and store.is_structure:
        return store.parts(store.content(value))
    kept = container_of(value)
    return (attributes_of(value) or {}).values() if kept is None else kept.open(value)
