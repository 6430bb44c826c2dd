"""Which folders the source of a model lies in."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import torch

from trueport.load.unwrap import FunctionModule
from trueport.source import SourceRoots


def source_roots(model: torch.nn.Module, chosen: str | None = None) -> SourceRoots:
    """The roots of the model's own classes and functions. `chosen` is a folder that the user named."""
    return SourceRoots.of(dict.fromkeys(_files(model)), chosen)


def _files(model: torch.nn.Module) -> Iterator[str]:
    for module in model.modules():
        for kind in type(module).__mro__:
            file = getattr(sys.modules.get(kind.__module__), "__file__", None)
            if isinstance(file, str):
                yield file
        if isinstance(module, FunctionModule):
            code = getattr(inspect.unwrap(module.function), "__code__", None)
            yield from [code.co_filename] if code is not None else []
