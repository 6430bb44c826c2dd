"""Kernels of ONNX Runtime that give a wrong answer, and what is written instead.

Measured, not read: each fault carries an example, which `tests/lower/test_faulty_kernels.py` runs in the installed
runtime; it says so when a release has mended one. A fault that concerns one node wherever it stands (`Max` of int64) is
gone round here, when the node is built. Others depend on what a translation knows (that counts are small, that a
divisor is positive), which is then named in `instead`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from trueport.lower.tensor import Emitter, Tensor

INT32, INT64 = ir.DataType.INT32, ir.DataType.INT64
FLOAT, DOUBLE, FLOAT16 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16
_NAN, _INF = float("nan"), float("inf")


@dataclass(frozen=True, slots=True)
class Fault:
    """What one kernel gets wrong."""

    operator: str
    dtypes: tuple[ir.DataType, ...]
    """Those in which it was seen; the first is the one of the example."""
    wrong: str
    instead: str
    seen: tuple[str, ...]
    """The releases of ONNX Runtime in which the example shows it."""
    operands: tuple[Any, ...]
    """The example: nested lists; of int64 where an operand is an index or a number of elements."""
    right: Any
    """What ONNX demands; None where the process ends, and any answer would be better."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    of_int64: tuple[int, ...] = ()
    """The operands that are int64 in every dtype: axes, k."""


_BOTH = ("1.30.0", "1.31.1")

FAULTS: tuple[Fault, ...] = (
    Fault(
        "Max",
        (INT64,),
        "compares the low halves first: wrong beyond 32 bits where there are two elements or more",
        "Where(Less(a, b), b, a)",
        _BOTH,
        ([-7, -7], [-(2**32), -(2**32)]),
        [-7, -7],
    ),
    Fault(
        "Min",
        (INT64,),
        "as Max",
        "Where(Less(b, a), b, a)",
        _BOTH,
        ([-7, -7], [-(2**32), -(2**32)]),
        [-(2**32), -(2**32)],
    ),
    Fault(
        "Clip",
        (INT64,),
        "as Max",
        "two Where",
        _BOTH,
        ([2**31, 2**31], 0, 2**40),
        [2**31, 2**31],
    ),
    Fault(
        "Sign",
        (INT64,),
        "as Max",
        "Sub(Greater(x, 0), Less(x, 0)), cast",
        _BOTH,
        ([2**31, 5],),
        [1, 1],
    ),
    Fault(
        "ReduceMax",
        (INT64,),
        "as Max, where more than three elements are reduced or axes are kept behind; ReduceMin, too",
        "TopK of one, axis by axis",
        _BOTH,
        ([[[-7] * 4, [-(2**32)] * 4]] * 2, [1]),
        [[-7] * 4] * 2,
        {"keepdims": 0},
        (1,),
    ),
    Fault(
        "ReduceSum",
        (INT64, INT32),
        "adds in double: wrong beyond 2^53, and no wrapping around",
        "a product with ones (ops/reduce.py), which is exact, and faster; counts keep ReduceSum",
        _BOTH,
        ([2**53, 1], [0]),
        2**53 + 1,
        {"keepdims": 0},
        (1,),
    ),
    Fault(
        "ReduceProd",
        (INT64, INT32),
        "multiplies in double",
        "ScatterElements that multiplies (ops/reduce.py)",
        _BOTH,
        ([2**31 + 1, 2**31 + 1], [0]),
        2**62 + 2**32 + 1,
        {"keepdims": 0},
        (1,),
    ),
    Fault(
        "Mod",
        (INT64,),
        "with fmod=1 divides in double",
        "the dividend less the product of quotient and divisor (division.py)",
        _BOTH,
        ([2**53 + 1], [2]),
        [1],
        {"fmod": 1},
    ),
    Fault(
        "Div",
        (INT64, INT32),
        "the lowest number by -1 ends the process (SIGFPE)",
        "a divisor of 1 there, and a negation (division.py)",
        _BOTH,
        ([-(2**63)], [-1]),
        None,
    ),
    Fault(
        "Mod",
        (INT64, INT32),
        "the lowest number by -1 ends the process (SIGFPE)",
        "a divisor of 1 there (division.py)",
        _BOTH,
        ([-(2**63)], [-1]),
        None,
    ),
    Fault(
        "Pow",
        (INT64, INT32),
        "raises in double",
        "products (ops/integers.py, arithmetic.py)",
        _BOTH,
        ([2**53 + 1, 3], [1, 1]),
        [2**53 + 1, 3],
    ),
    Fault(
        "Range",
        (INT64,),
        "counts its steps in double: empty or too long where start and end are beyond 2^53",
        "a range from 0, moved (ops/create.py)",
        _BOTH,
        (2**62, 2**62 + 5, 1),
        [2**62 + i for i in range(5)],
    ),
    Fault(
        "TopK",
        (FLOAT, DOUBLE, FLOAT16),
        "one NaN puts the other numbers out of order, too",
        "NaN as infinity, in double (ops/sorting.py)",
        _BOTH,
        ([1.0, _NAN, 2.0, 3.0], [2]),
        ([_NAN, 3.0], [1, 3]),
        of_int64=(1,),
    ),
    Fault(
        "Unique",
        (FLOAT, DOUBLE),
        "NaN swallows other numbers",
        "what is new in sorted order (ops/sorting.py)",
        _BOTH,
        ([_NAN, 1.0, 2.0, 3.0],),
        [1.0, 2.0, 3.0, _NAN],
    ),
    Fault(
        "ReduceMax",
        (FLOAT, DOUBLE, FLOAT16),
        "passes over NaN; so do ReduceMin, ArgMax, ArgMin",
        "nothing: by_design.py",
        _BOTH,
        ([1.0, _NAN, 2.0], [0]),
        _NAN,
        {"keepdims": 0},
        (1,),
    ),
    Fault(
        "MaxPool",
        (FLOAT, DOUBLE, FLOAT16),
        "passes over NaN",
        "nothing: by_design.py",
        _BOTH,
        ([[[1.0, _NAN, 2.0]]],),
        [[[_NAN, _NAN]]],
        {"kernel_shape": [2]},
    ),
    Fault(
        "MaxPool",
        (FLOAT, DOUBLE),
        "gives the lowest finite number for nothing but -inf",
        "nothing: by_design.py",
        _BOTH,
        ([[[-_INF, -_INF, -_INF]]],),
        [[[-_INF, -_INF]]],
        {"kernel_shape": [2]},
    ),
    Fault(
        "Sin",
        (DOUBLE,),
        "is 0 near a multiple of pi, where the sine has digits (to the last digits of 1 it is right)",
        "the angle less the multiple, where the sine is divided by (ops/special/gamma.py)",
        ("1.31.1",),
        ([-12.566370614359172] * 8,),
        [4.898587196589413e-16] * 8,
    ),
    Fault(
        "ScatterND",
        (FLOAT, DOUBLE, INT64),
        "with a reduction loses what several threads write to one place (seen with 200,000 elements and more)",
        "ScatterElements, which has one thread",
        _BOTH,
        ([[0.0] * 100] * 10, [[i % 10] for i in range(4000)], [[1.0] * 100] * 4000),
        [[400.0] * 100] * 10,
        {"reduction": "add"},
        (1,),
    ),
    Fault(
        "Sigmoid",
        (FLOAT,),
        "is 0 below about -16",
        "nothing: by_design.py",
        _BOTH,
        ([-20.0] * 8,),
        [2.0611536e-09] * 8,
    ),
)


# Going round


def _larger(op: Emitter, a: Tensor, b: Tensor) -> Tensor:
    return op.Where(op.Less(a, b), b, a)


def _smaller(op: Emitter, a: Tensor, b: Tensor) -> Tensor:
    return op.Where(op.Less(b, a), b, a)


def _max(op: Emitter, values: Sequence[Tensor | None]) -> Tensor:
    return functools.reduce(functools.partial(_larger, op), (x for x in values if x is not None))


def _min(op: Emitter, values: Sequence[Tensor | None]) -> Tensor:
    return functools.reduce(functools.partial(_smaller, op), (x for x in values if x is not None))


def _clip(op: Emitter, values: Sequence[Tensor | None]) -> Tensor:
    x, low, high = (*values, None, None)[:3]
    assert x is not None
    if low is not None:
        x = _larger(op, x, low)
    return x if high is None else _smaller(op, x, high)


def _sign(op: Emitter, values: Sequence[Tensor | None]) -> Tensor:
    (x,) = values
    assert x is not None
    above, below = (op.cast(found, x.element) for found in (op.Greater(x, 0), op.Less(x, 0)))
    return op.Sub(above, below)


def _scattered(op: Emitter, data: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Element by element. A table of every element's place, read at the indices, gives the places: GatherND refuses an
    index that is out of range, as ScatterND does, and knows negative ones.
    """
    everything = op.Shape(data)
    table = op.Reshape(op.Range(op.const(0), op.Size(data), op.const(1)), everything, allowzero=1)
    flat = (op.Reshape(x, op.ints(-1)) for x in (data, op.GatherND(table, indices), updates))
    return op.Reshape(op.ScatterElements(*flat, axis=0, reduction=reduction), everything, allowzero=1)


_INSTEAD: dict[str, Callable[[Emitter, Sequence[Tensor | None]], Tensor]] = {
    "Max": _max,
    "Min": _min,
    "Clip": _clip,
    "Sign": _sign,
}


def written_otherwise(
    op: Emitter, name: str, values: Sequence[Tensor | None], attributes: Mapping[str, Any]
) -> Tensor | None:
    """The result of a node that would be wrong, by other nodes; None for one that is right.

    Sizes are one element each, for which the kernels are right.
    """
    if name == "ScatterND" and (reduction := attributes.get("reduction") or "none") != "none":
        data, indices, updates = (x for x in values if x is not None)
        return _scattered(op, data, indices, updates, reduction)
    if not values or values[0] is None or values[0].dtype != INT64:
        return None
    if name in ("ReduceMax", "ReduceMin"):
        return _reduced(op, values, name == "ReduceMax", attributes.get("keepdims", 1))
    instead = _INSTEAD.get(name)
    return None if instead is None or all(_is_one(x) for x in values) else instead(op, values)


def _reduced(op: Emitter, values: Sequence[Tensor | None], largest: bool, keepdims: int) -> Tensor | None:
    x, axes = (*values, None)[:2]
    if x is None or _is_one(x):
        return None
    if axes is None:
        whole = op.many("TopK", 2, op.Reshape(x, op.ints(-1)), op.ints(1), axis=0, largest=int(largest))[0]
        return op.Reshape(whole, op.ints(*[1] * x.rank)) if keepdims else op.Squeeze(whole, op.ints(0))
    if axes.const_value is None:
        return None
    reduced = [int(axis) for axis in axes.const_value.numpy().reshape(-1)]
    for axis in reduced:
        x = op.many("TopK", 2, x, op.ints(1), axis=axis, largest=int(largest))[0]
    return x if keepdims else op.Squeeze(x, op.ints(*reduced))


def _is_one(x: Tensor | None) -> bool:
    return x is None or (x.sizes is not None and all(size == 1 for size in x.sizes))
