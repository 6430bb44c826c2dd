"""Of which modules functions are to be made."""

from __future__ import annotations

from collections.abc import Collection

import torch

from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.spelling import option, told
from trueport.errors import UsageError
from trueport.load.faults import usage_error
from trueport.lower.opsets import ir_version_for

Wanted = bool | Collection[type[torch.nn.Module]]
"""Of all blocks, of none, or of the modules of some classes."""

_IR_VERSION = 8
"""The version of the file format that has functions."""


def functions_wanted(functions: Wanted, as_torch_calls_it: Wanted, opset: int) -> Wanted:
    """What is asked for under either name. Raises UsageError where it cannot be understood, or not be written."""
    wanted = functions or as_torch_calls_it
    if functions and as_torch_calls_it and functions != as_torch_calls_it:
        raise usage_error(
            f"functions={functions!r} and export_modules_as_functions={as_torch_calls_it!r} ask for different things",
            fix="give one of the two",
        )
    kinds = () if isinstance(wanted, bool) else tuple(wanted) if isinstance(wanted, Collection) else (wanted,)
    if not all(isinstance(kind, type) and issubclass(kind, torch.nn.Module) for kind in kinds):
        raise usage_error(
            f"functions={wanted!r} is neither a bool nor classes of modules", fix="give True, or {Block, Attention}"
        )
    if wanted and ir_version_for(opset) < _IR_VERSION:
        lowest = next(later for later in range(opset, 100) if ir_version_for(later) >= _IR_VERSION)
        raise UsageError(
            [
                OpsetUnsupported(
                    message=f"a file of opset {opset} has IR version {ir_version_for(opset)}, and functions came with "
                    f"IR version {_IR_VERSION}",
                    fix=told("pass ", option("opset_version", lowest), ", or leave functions out"),
                    facts={"opset": str(lowest)},
                )
            ]
        )
    return kinds or wanted
