"""What becomes of an operator when it reaches the tracer: recorded, taken apart, or left to functionalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

import torch

from trueport.capture.stops.restarts import WritesInPlace
from trueport.decompositions.arguments import flat
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.registry import operator_decomposition
from trueport.torch_internals import OpOverload, decomposition_of, is_composite, is_custom
from trueport.torch_internals.schemas import aliases, writes_in_place

aten = torch.ops.aten

IsLeaf = Callable[[OpOverload, bool], bool]
"""Whether an operator is kept whole; the second question is whether complex numbers are among its operands."""

CHECKS_ONLY = {
    aten._assert_async.default,
    aten._assert_async.msg,
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
}
"""Operators that give nothing: they are asked, and not recorded."""
_LIFTS = {aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.lift.default}


def meets_complex(args: Sequence[Any]) -> bool:
    """Whether a complex tensor, number or dtype is among the arguments of a call."""
    return any(map(_is_complex, flat(args)))


def _is_complex(arg: Any) -> bool:
    dtype = getattr(arg, "dtype", arg)  # of a tensor; or it is one
    return bool(getattr(dtype, "is_complex", False)) or isinstance(arg, complex)


class Treatment(Enum):
    """What becomes of an operator."""

    RECORD = auto()
    DECOMPOSE = auto()
    FUNCTIONALISE = auto()
    LIFT = auto()


class Ways:
    """Decides once for each operator of a trace; a careful trace functionalises views and writes."""

    def __init__(self, is_leaf: IsLeaf, careful: bool) -> None:
        self._is_leaf, self._careful = is_leaf, careful
        self._known: dict[tuple[OpOverload, bool], Treatment] = {}

    def of(self, op: OpOverload, of_complex: bool = False) -> Treatment:
        return self._known.get((op, of_complex)) or self._decide(op, of_complex)

    def record(self, op: OpOverload, of_complex: bool = False) -> None:
        """From now on, record this operator: its definition turned out to be none."""
        self._known[op, of_complex] = Treatment.RECORD

    def _decide(self, op: OpOverload, of_complex: bool) -> Treatment:
        if op in _LIFTS:
            way = Treatment.LIFT
        elif writes_in_place(op) and not self._careful:
            raise WritesInPlace
        elif writes_in_place(op) and is_custom(op) and not is_composite(op):
            raise CannotBeCarried(
                f"`{op.name()}` writes into its arguments, which no ONNX operator does",
                "let it return the result (mutates_args=()), and write that where it is called",
            )
        elif operator_decomposition(op, self._careful) is not None:
            way = Treatment.DECOMPOSE
        elif self._careful and aliases(op):
            way = Treatment.FUNCTIONALISE
        elif is_composite(op) and aliases(op):
            way = Treatment.DECOMPOSE  # as functionalisation would: both ways give the same graph
        elif self._is_leaf(op, of_complex) or op in CHECKS_ONLY or decomposition_of(op) is None:
            way = Treatment.RECORD
        else:
            way = Treatment.DECOMPOSE
        self._known[op, of_complex] = way
        return way
