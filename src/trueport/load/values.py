"""What a single Python value is to an exported model: a tensor, a number, a constant, or something it cannot take."""

from __future__ import annotations

import argparse
import re
import sys
import types
from enum import Enum

import numpy as np
import torch

NUMBERS = (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
SYMBOLIC_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)
CONSTANTS = (str, bytes, Enum, torch.dtype, torch.device, torch.layout, torch.memory_format, range, types.EllipsisType)

# Opened although the standard library defines them: users keep their own data in these two.
OPEN_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
NOT_DATA = (torch.nn.Module, torch.Generator, type, types.FunctionType, types.MethodType, types.ModuleType)
NOT_THE_USERS = frozenset(sys.stdlib_module_names) | {"numpy"}


class LeafKind(Enum):
    """What becomes of a leaf of the arguments in the exported model."""

    TENSOR = "tensor"  # an input
    NUMBER = "number"  # a Python int, float or bool: a 0-d input
    CONSTANT = "constant"  # None, str, dtype, enum, or a number listed in `constants=`: part of the model


def kind_of(value: object) -> LeafKind | None:
    """The kind of a leaf, or None for a value that is not one that a model can be given."""
    if isinstance(value, torch.Tensor):
        return LeafKind.TENSOR
    if value is None or isinstance(value, CONSTANTS):  # before numbers: an IntEnum is an enum
        return LeafKind.CONSTANT
    if isinstance(value, (set, frozenset)):
        return LeafKind.CONSTANT if all(kind_of(item) is LeafKind.CONSTANT for item in value) else None
    if isinstance(value, NUMBERS) and not isinstance(value, np.generic):
        return LeafKind.NUMBER
    return None


def spelt(value: object) -> str:
    """As Python shows it, but for the addresses of objects, which are others each time."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def attributes_of(value: object) -> dict[str, object] | None:
    """The attributes that an object of the user's own class keeps, or None where there is nothing of the user's to see.

    Objects of the standard library (a logger, a lock, an open file) are not data, and an object with a C core cannot be
    made again from its attributes. What stands for other values in a trace says that it is one leaf.
    """
    cls = type(value)
    if isinstance(value, NOT_DATA) or getattr(cls, "is_one_leaf", False):
        return None
    if cls.__module__.partition(".")[0] in NOT_THE_USERS and not isinstance(value, OPEN_NAMESPACES):
        return None
    if isinstance(value, OPEN_NAMESPACES):
        return dict(vars(value))
    try:
        object.__new__(cls)
    except TypeError:
        return None
    found = dict(getattr(value, "__dict__", {}))
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__"):
                attribute = _unmangled(base, slot)
                if hasattr(value, attribute):
                    found.setdefault(attribute, getattr(value, attribute))
    return found


def _unmangled(owner: type, slot: str) -> str:
    """A slot `__x` of class `C` is kept as `_C__x`."""
    private = slot.startswith("__") and not slot.endswith("__")
    return f"_{owner.__name__.lstrip('_')}{slot}" if private else slot
