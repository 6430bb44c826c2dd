"""What the schema of an operator says: its arguments, what it writes, of what it gives a view."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload


@dataclass(frozen=True)
class SchemaArgument:
    name: str
    has_default: bool
    default: Any
    keyword_only: bool
    is_tensor: bool
    is_aliased: bool
    """Whether the operator writes it, or gives a view of it."""
    is_written: bool


@functools.cache
def arguments_of(op: OpOverload) -> tuple[SchemaArgument, ...]:
    return tuple(
        SchemaArgument(
            each.name,
            each.has_default_value(),
            each.default_value,
            each.kwarg_only,
            isinstance(each.type, torch.TensorType),
            each.alias_info is not None,
            each.alias_info is not None and each.alias_info.is_write,
        )
        for each in op._schema.arguments
    )


@functools.cache
def argument_names(op: OpOverload) -> tuple[str, ...]:
    """In the order of the schema; they tell a mask from an operand."""
    return tuple(argument.name for argument in arguments_of(op))


def writes_in_place(op: OpOverload) -> bool:
    return bool(op._schema.is_mutable)


def aliases(op: OpOverload) -> bool:
    """Whether it writes one of its arguments, or gives a view of one."""
    return any(argument.is_aliased for argument in arguments_of(op))


def only_gives_a_view(op: OpOverload) -> bool:
    """Whether what it gives is a view of what it was given, and nothing is written."""
    return any(each.alias_info is not None and not each.alias_info.is_write for each in op._schema.returns)


def result_types(op: OpOverload) -> list[str]:
    """As the schema spells them: `Tensor`, `int`."""
    return [str(each.type) for each in op._schema.returns]
