"""What an operator gives for constants, exactly as every runtime must: a table of those of which that is known.

1. Operators that only move elements, in any dtype.
2. Integers and truth: sums, products, comparisons. A division refuses a divisor of zero and the lowest number by -1.
3. Floats: the operators that IEEE 754 defines to the last bit, in float16, float32 and float64. A result with a NaN in
   it is refused, since its bits are nobody's promise, and so is one that overflows.
4. `Cast` where every number is the same afterwards, or rounds from one float to a narrower one.

Products of matrices, functions like `Exp`, and sums over an axis of floats round as each kernel likes. They are not
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from trueport.optimise.edits import Array, number

Inputs = Sequence[Array | None]
_MOST = 1 << 22
"""Elements that one operator may make while it is evaluated."""
_IEEE = frozenset(("float16", "float32", "float64"))


class NotExact(Exception):
    """What is asked has no exact answer here."""


def evaluated(node: ir.Node, inputs: Inputs) -> Array | None:
    """The first output of a node for these inputs; None where the table does not say."""
    function = TABLE.get(node.op_type)
    if function is None or not inputs or inputs[0] is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return function(node, inputs)
    except (NotExact, ValueError, IndexError, TypeError, OverflowError):  # a node that no runtime would run either
        return None


def _need(array: Array | None) -> Array:
    if array is None:
        raise NotExact
    return array


def _ints(array: Array | None) -> list[int]:
    return [int(item) for item in _need(array).reshape(-1)]


def _optional(inputs: Inputs, index: int) -> Array | None:
    return inputs[index] if index < len(inputs) else None


# Case 1: moves


def _reshape(node: ir.Node, inputs: Inputs) -> Array:
    x, sizes = _need(inputs[0]), _ints(inputs[1])
    if not number(node, "allowzero", 0):
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return x.reshape(sizes)


def _transpose(node: ir.Node, inputs: Inputs) -> Array:
    perm = node.attributes.get("perm")
    return _need(inputs[0]).transpose(None if perm is None else list(perm.as_ints()))


def _squeeze(node: ir.Node, inputs: Inputs) -> Array:
    axes = _optional(inputs, 1)
    return np.squeeze(_need(inputs[0]), None if axes is None else tuple(_ints(axes)))


def _unsqueeze(node: ir.Node, inputs: Inputs) -> Array:
    return np.expand_dims(_need(inputs[0]), tuple(_ints(inputs[1])))


def _concat(node: ir.Node, inputs: Inputs) -> Array:
    return np.concatenate([_need(x) for x in inputs], axis=node.attributes["axis"].as_int())


def _gather(node: ir.Node, inputs: Inputs) -> Array:
    return np.take(_need(inputs[0]), _need(inputs[1]), axis=number(node, "axis", 0), mode="raise")


def _slice(node: ir.Node, inputs: Inputs) -> Array:
    x, starts, ends = _need(inputs[0]), _ints(inputs[1]), _ints(inputs[2])
    axes = list(range(len(starts))) if _optional(inputs, 3) is None else _ints(inputs[3])
    steps = [1] * len(starts) if _optional(inputs, 4) is None else _ints(inputs[4])
    cut: list[slice] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.shape[axis]
        if step < 0 and end < -size:
            cut[axis] = slice(start, None, step)  # up to and with the first
        else:
            cut[axis] = slice(start, end, step)
    return x[tuple(cut)]


def _expand(node: ir.Node, inputs: Inputs) -> Array:
    x, sizes = _need(inputs[0]), _ints(inputs[1])
    return np.broadcast_to(x, _within(np.broadcast_shapes(x.shape, tuple(sizes))))


def _tile(node: ir.Node, inputs: Inputs) -> Array:
    x, times = _need(inputs[0]), _ints(inputs[1])
    _within([size * by for size, by in zip(x.shape, times, strict=True)])
    return np.tile(x, times)


def _flatten(node: ir.Node, inputs: Inputs) -> Array:
    x, axis = _need(inputs[0]), number(node, "axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1) if x.size else _refuse()


def _filled(node: ir.Node, inputs: Inputs) -> Array:
    value = node.attributes.get("value")
    content = np.zeros(1, np.float32) if value is None else value.as_tensor().numpy()
    return np.broadcast_to(content.reshape(()), _within(_ints(inputs[0])))


def _identity(node: ir.Node, inputs: Inputs) -> Array:
    return _need(inputs[0])


def _shape(node: ir.Node, inputs: Inputs) -> Array:
    x = _need(inputs[0])
    end = node.attributes.get("end")
    return np.array(x.shape[number(node, "start", 0) : None if end is None else end.as_int()], dtype=np.int64)


def _size(node: ir.Node, inputs: Inputs) -> Array:
    return np.array(_need(inputs[0]).size, dtype=np.int64)


def _where(node: ir.Node, inputs: Inputs) -> Array:
    test, one, other = (_need(x) for x in inputs)
    if one.dtype != other.dtype:
        raise NotExact
    return np.where(test, one, other)


def _trilu(node: ir.Node, inputs: Inputs) -> Array:
    by = 0 if _optional(inputs, 1) is None else int(_need(inputs[1]))
    function = np.triu if number(node, "upper", 1) else np.tril
    found: Array = function(_need(inputs[0]), by)
    return found


def _range(node: ir.Node, inputs: Inputs) -> Array:
    start, limit, step = (_need(x).reshape(()) for x in inputs)
    if start.dtype.kind != "i" or not int(step) or max(abs(int(start)), abs(int(limit))) > 2**31:
        raise NotExact  # floats are counted by each runtime in its own way
    numbers = range(int(start), int(limit), int(step))
    _within([len(numbers)])
    return np.arange(int(start), int(limit), int(step), dtype=start.dtype)


def _within(sizes: Sequence[int]) -> tuple[int, ...]:
    if any(size < 0 for size in sizes) or int(np.prod(sizes, dtype=np.float64)) > _MOST:
        raise NotExact
    return tuple(sizes)


def _refuse() -> Any:
    raise NotExact


# Cases 2 and 3: numbers


def _both(function: Callable[[Array, Array], Array]) -> Callable[[ir.Node, Inputs], Array]:
    def apply(node: ir.Node, inputs: Inputs) -> Array:
        a, b = (_need(x) for x in inputs)
        if a.dtype != b.dtype:
            raise NotExact
        _within(np.broadcast_shapes(a.shape, b.shape))
        return _exact(np.asarray(function(a, b)), (a, b))

    return apply


def _one(function: Callable[[Array], Array]) -> Callable[[ir.Node, Inputs], Array]:
    def apply(node: ir.Node, inputs: Inputs) -> Array:
        x = _need(inputs[0])
        return _exact(np.asarray(function(x)), (x,))

    return apply


def _exact(result: Array, operands: Sequence[Array]) -> Array:
    """Case 3 asks for more than numpy does."""
    for array in (*operands, result):
        if array.dtype.kind in "biu":
            continue
        if array.dtype.name not in _IEEE:
            raise NotExact
    if result.dtype.kind == "f":
        finite = all(np.isfinite(array).all() for array in operands)
        if np.isnan(result).any() or (finite and not np.isfinite(result).all()):
            raise NotExact
    return result


def _divided(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    if a.dtype.kind not in "iu" or not b.all():
        raise NotExact
    if a.dtype.kind == "i" and ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        raise NotExact
    quotient = np.floor_divide(a, b)
    found: Array = quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)  # ONNX drops the fraction
    return found


def _mod(node: ir.Node, inputs: Inputs) -> Array:
    a, b = (_need(x) for x in inputs)
    if number(node, "fmod", 0) or a.dtype != b.dtype or a.dtype.kind not in "iu" or not b.all() or (b == -1).any():
        raise NotExact
    return np.mod(a, b)


def _of_integers(function: Callable[..., Any]) -> Callable[[ir.Node, Inputs], Array]:
    """Reductions, which are exact for integers. They are small, so that none of the runtime's faults is met."""

    def apply(node: ir.Node, inputs: Inputs) -> Array:
        x, axes = _need(inputs[0]), _optional(inputs, 1)
        keep = bool(number(node, "keepdims", 1))
        if x.dtype.kind not in "iu" or not x.size or "axes" in node.attributes:
            raise NotExact
        if axes is None and number(node, "noop_with_empty_axes", 0):
            return x
        along = None if axes is None or not axes.size else tuple(_ints(axes))
        if axes is not None and not axes.size:
            raise NotExact
        return np.asarray(function(x, axis=along, keepdims=keep)).astype(x.dtype)

    return apply


def _variadic(function: Callable[[Array, Array], Array]) -> Callable[[ir.Node, Inputs], Array]:
    def apply(node: ir.Node, inputs: Inputs) -> Array:
        arrays = [_need(x) for x in inputs]
        if any(x.dtype != arrays[0].dtype or x.dtype.kind not in "iu" for x in arrays):
            raise NotExact
        found = arrays[0]
        for x in arrays[1:]:
            found = function(found, x)
        return found

    return apply


def _floats_only(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x) if x.dtype.kind == "f" else _refuse()


def _numbers_only(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(a, b) if a.dtype.kind in "iuf" else _refuse()


def _truth_only(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(a, b) if a.dtype.kind == "b" else _refuse()


# Case 4


def _cast(node: ir.Node, inputs: Inputs) -> Array:
    x, wanted = _need(inputs[0]), ir.DataType(node.attributes["to"].as_int())
    if not (wanted.is_integer() or wanted.is_floating_point() or wanted == ir.DataType.BOOL) or wanted.itemsize < 1:
        raise NotExact
    target = wanted.numpy()
    if x.dtype == target:
        return x
    if x.dtype.name not in _IEEE and x.dtype.kind not in "biu":
        raise NotExact
    if target.kind != "b" and target.kind not in "iu" and target.name not in _IEEE:
        raise NotExact
    found = x.astype(target)
    if target.kind == "b":
        if np.isnan(x.astype(np.float64)).any():
            raise NotExact
        return found
    narrows = x.dtype.kind == "f" and target.kind == "f"
    if narrows and np.isfinite(x).all() and np.isfinite(found).all():
        return found
    if not np.array_equal(found.astype(x.dtype), x) or (x.dtype.kind == "f" and not np.isfinite(x).all()):
        raise NotExact
    if x.dtype.kind in "iu" and target.kind in "iu" and not np.array_equal(found.astype(object), x.astype(object)):
        raise NotExact  # uint64 and int64 have one form for two numbers
    if (
        x.dtype.kind in "iu"
        and target.kind == "f"
        and [int(n) for n in found.reshape(-1)] != [int(n) for n in x.reshape(-1)]
    ):
        raise NotExact
    return found


TABLE: Mapping[str, Callable[[ir.Node, Inputs], Array]] = {
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Gather": _gather,
    "Slice": _slice,
    "Expand": _expand,
    "Tile": _tile,
    "Flatten": _flatten,
    "ConstantOfShape": _filled,
    "Identity": _identity,
    "Shape": _shape,
    "Size": _size,
    "Where": _where,
    "Trilu": _trilu,
    "Range": _range,
    "Add": _both(_numbers_only(np.add)),
    "Sub": _both(_numbers_only(np.subtract)),
    "Mul": _both(_numbers_only(np.multiply)),
    "Div": _both(_divided),
    "Mod": _mod,
    "Neg": _one(np.negative),
    "Abs": _one(lambda x: np.abs(x) if x.dtype.kind == "f" else _refuse()),
    "Sqrt": _one(_floats_only(np.sqrt)),
    "Floor": _one(_floats_only(np.floor)),
    "Ceil": _one(_floats_only(np.ceil)),
    "Max": _variadic(np.maximum),
    "Min": _variadic(np.minimum),
    "ReduceProd": _of_integers(np.prod),
    "ReduceSum": _of_integers(np.sum),
    "ReduceMax": _of_integers(np.max),
    "ReduceMin": _of_integers(np.min),
    "Equal": _both(np.equal),
    "Less": _both(_numbers_only(np.less)),
    "LessOrEqual": _both(_numbers_only(np.less_equal)),
    "Greater": _both(_numbers_only(np.greater)),
    "GreaterOrEqual": _both(_numbers_only(np.greater_equal)),
    "Not": _one(lambda x: np.logical_not(x) if x.dtype.kind == "b" else _refuse()),
    "And": _both(_truth_only(np.logical_and)),
    "Or": _both(_truth_only(np.logical_or)),
    "Xor": _both(_truth_only(np.logical_xor)),
}
