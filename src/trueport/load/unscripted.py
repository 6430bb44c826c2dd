"""A scripted module as the Python that it was scripted from, with the same tensors.

TorchScript decides its branches and loops in an interpreter that no trace can follow; its author's Python, which the
rewriter can, is still known in the process that scripted it. Eager stays the scripted module: what Python computes is
compared with that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from trueport.torch_internals.scripting import attributes_before_script, class_before_script

_SETTINGS = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")


def in_python(module: torch.nn.Module) -> torch.nn.Module | None:
    """The module in Python; None where it is no scripted module, or nobody knows what it was."""
    if not isinstance(module, torch.jit.ScriptModule):
        return None
    cls = class_before_script(module)
    if cls is None:
        return None
    known = attributes_before_script(module)
    twin = _recurrent(cls, known) if issubclass(cls, torch.nn.RNNBase) else cls.__new__(cls)
    if not isinstance(twin, torch.nn.RNNBase):
        torch.nn.Module.__init__(twin)
    held = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
    for name, value in known.items():
        if name not in held and not isinstance(twin, torch.nn.RNNBase):
            setattr(twin, name, value)
    for name, parameter in module.named_parameters(recurse=False):
        setattr(twin, name, parameter)
    for name, buffer in module.named_buffers(recurse=False):
        twin.register_buffer(name, buffer)
    for name, child in module.named_children():
        twin.add_module(name, in_python(child) or child)
    twin.training = module.training
    return twin


def _recurrent(cls: type[torch.nn.RNNBase], known: Mapping[str, Any]) -> torch.nn.RNNBase:
    """Made anew, without weights yet: LSTM, GRU and RNN also keep them in lists of their own."""
    options = {name: known[name] for name in _SETTINGS}
    if cls is torch.nn.LSTM:
        options["proj_size"] = known["proj_size"]
    if cls is torch.nn.RNN:
        options["nonlinearity"] = known["mode"].removeprefix("RNN_").lower()
    with torch.device("meta"):
        return cls(**options)


@contextlib.contextmanager
def unscripted(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """For its duration, scripted parts of the model are Python; what is given is the model itself, or its twin."""
    whole = in_python(model)
    if whole is not None:
        yield whole
        return
    before = []
    for module in list(model.modules()):
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for name, child in list(module.named_children()):
            twin = in_python(child)
            if twin is not None:
                before.append((module, name, child))
                setattr(module, name, twin)
    try:
        yield model
    finally:
        for module, name, child in before:
            setattr(module, name, child)
