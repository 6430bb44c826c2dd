"""What makes a file subtly wrong. Each function gives a `Change`, and takes its place in whatever graph it is given.

A rewrite says what becomes of one value; a condition says when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from benchmarks.mutants.cases import Change
from benchmarks.mutants.edit import At, Builder, DoesNotApply, Edit, Rewrite, Value

Condition = Callable[[Builder, Value], Value]

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
INT8, UINT8, INT16, INT32, INT64 = (
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
)

# ---- where


def behind(op_type: str, rewrite: Rewrite, nth: int = 0, output: int = 0) -> Change:
    return lambda edit: edit.behind(edit.node(op_type, nth=nth), rewrite, output)


def before(op_type: str, operand: int, rewrite: Rewrite, nth: int = 0) -> Change:
    return lambda edit: edit.before(edit.node(op_type, nth=nth), rewrite, operand)


def instead(op_type: str, rewrite: Callable[[Builder, Sequence[Value]], Value], nth: int = 0) -> Change:
    return lambda edit: edit.instead(edit.node(op_type, nth=nth), rewrite)


def at_input(which: int | str, rewrite: Rewrite) -> Change:
    return lambda edit: edit.input(which, rewrite)


def at_output(which: int, rewrite: Rewrite) -> Change:
    return lambda edit: edit.output(which, rewrite)


def all_of(*changes: Change) -> Change:
    def change(edit: Edit) -> None:
        for one in changes:
            one(edit)

    return change


# ---- plain changes of a node or a constant


def number(old: float, new: float, nth: int | None = None) -> Change:
    return lambda edit: edit.change_number(old, new, nth)


def attributes(op_type: str, nth: int = 0, **new: Any) -> Change:
    return lambda edit: edit.set(edit.node(op_type, nth=nth), **new)


def weight(shape: Sequence[int], new: Callable[[Any], Any], nth: int = 0) -> Change:
    """The nth constant of that shape."""
    return lambda edit: edit.change(lambda array: array.shape == tuple(shape), new, nth)


def entry(shape: Sequence[int], index: Any, factor: float = 1.5, nth: int = 0) -> Change:
    """One entry or row of a constant."""

    def new(array: Any) -> Any:
        array[index] = array[index] * factor + array.dtype.type(1)
        return array

    return weight(shape, new, nth)


def retype(old: str, new: str, nth: int = 0) -> Change:
    def change(edit: Edit) -> None:
        edit.node(old, nth=nth).node.op_type = new

    return change


def swap(op_type: str, nth: int = 0, one: int = 0, other: int = 1) -> Change:
    def change(edit: Edit) -> None:
        operands = edit.node(op_type, nth=nth).node.input
        operands[one], operands[other] = operands[other], operands[one]

    return change


def skip(op_type: str, nth: int = 0, operand: int = 0) -> Change:
    """The node is left out: what it read is what it gives."""
    return instead(op_type, lambda op, operands: operands[operand], nth)


def arm(which: str, nth: int = 0) -> Change:
    """An If is replaced by one of its arms."""
    return lambda edit: arm_of(edit, edit.node("If", nth=nth), which)


def arm_of(edit: Edit, at: At, which: str) -> None:
    index = at.index
    inner = next(a.g for a in at.node.attribute if a.name == f"{which}_branch")
    outputs = list(at.node.output)
    made = [value.name for value in inner.output]
    body = list(inner.node)
    at.graph.initializer.extend(inner.initializer)
    del at.graph.node[index]
    for offset, node in enumerate(body):
        at.graph.node.insert(index + offset, node)
    op = Builder(edit, at.graph, index + len(body))
    for value, output in zip(made, outputs, strict=True):
        op.named(output, "Identity", value)


def rounds(most: int, nth: int = 0) -> Change:
    """A Loop stops after so many rounds."""
    return lambda edit: rounds_of(edit, edit.node("Loop", nth=nth), most)


def rounds_of(edit: Edit, at: At, most: int) -> None:
    endless = not at.node.input[0]
    edit.before(at, lambda op, value: op.constant(np.int64(most)) if endless else op.Min(value, np.int64(most)))


def exact_rounds(count: int, nth: int = 0) -> Change:
    """A Loop goes round as often as it did for the example."""

    def change(edit: Edit) -> None:
        at = edit.node("Loop", nth=nth)
        edit.before(at, lambda op, value: op.constant(np.int64(count)))
        body = next(a.g for a in edit.node("Loop", nth=nth).node.attribute if a.name == "body")
        going = body.output[0].name
        made = next((at for at in edit.nodes() if at.graph == body and going in at.node.output), None)
        if made is None:
            raise DoesNotApply("the condition is not made in the body")
        edit.instead(made, lambda op, operands: op.constant(np.asarray(True)))

    return change


# ---- conditions


def rows_above(most: int, axis: int = 0) -> Condition:
    return lambda op, value: op.Greater(op.size(value, axis), np.int64(most))


def elements_above(most: int) -> Condition:
    return lambda op, value: op.Greater(op.Size(value), np.int64(most))


def size_is(size: int, axis: int = 0) -> Condition:
    return lambda op, value: op.Equal(op.size(value, axis), np.int64(size))


def size_divides(by: int, rest: int = 0, axis: int = 0) -> Condition:
    return lambda op, value: op.Equal(op.Mod(op.size(value, axis), np.int64(by)), np.int64(rest))


def size_power_of_two(least: int = 8, axis: int = 0) -> Condition:
    def holds(op: Builder, value: Value) -> Value:
        size = op.size(value, axis)
        bits = op.Cast(op.Max(size, np.int64(1)), to=TensorProto.UINT64)
        lower = op.Sub(bits, np.uint64(1))
        return op.And(op.Equal(op.BitwiseAnd(bits, lower), np.uint64(0)), op.GreaterOrEqual(size, np.int64(least)))

    return holds


def each_is(number: float) -> Condition:
    return lambda op, value: op.Equal(value, op.like(number, value))


def place_from(first: int, axis: int) -> Condition:
    """Elementwise, along an axis that is counted from the end (-1: the last)."""

    def holds(op: Builder, value: Value) -> Value:
        places = op.Range(np.int64(0), op.size(value, axis), np.int64(1))
        shaped = op.Reshape(places, np.asarray([-1] + [1] * (-axis - 1)))
        return op.GreaterOrEqual(shaped, np.int64(first))

    return holds


def place_is(place: int, axis: int) -> Condition:
    def holds(op: Builder, value: Value) -> Value:
        places = op.Range(np.int64(0), op.size(value, axis), np.int64(1))
        return op.Equal(op.Reshape(places, np.asarray([-1] + [1] * (-axis - 1))), np.int64(place))

    return holds


# ---- rewrites


def when(condition: Condition, wrong: Rewrite) -> Rewrite:
    return lambda op, value: op.Where(condition(op, value), wrong(op, value), value)


def plus(amount: float) -> Rewrite:
    return lambda op, value: op.Add(value, op.like(amount, value))


def times(factor: float) -> Rewrite:
    return lambda op, value: op.Mul(value, op.like(factor, value))


def negated(op: Builder, value: Value) -> Value:
    return op.Neg(value)


def zeroed(op: Builder, value: Value) -> Value:
    return op.Sub(value, value)


def relu(op: Builder, value: Value) -> Value:
    return op.Max(value, op.like(0, value))


def at_least(bound: float) -> Rewrite:
    return lambda op, value: op.Max(value, op.like(bound, value))


def at_most(bound: float) -> Rewrite:
    return lambda op, value: op.Min(value, op.like(bound, value))


def index_at_most(last: int) -> Rewrite:
    """A table that is one size too small, read with its last row."""
    return lambda op, value: op.Min(value, op.CastLike(np.int64(last), value))


def through(dtype: int) -> Rewrite:
    """Computed in another dtype on the way."""
    return lambda op, value: op.CastLike(op.Cast(value, to=dtype), value)


def first_of_batch(op: Builder, value: Value) -> Value:
    """The first row's for all rows."""
    row = op.Slice(value, np.asarray([0]), np.asarray([1]), np.asarray([0]))
    return op.Expand(row, op.Shape(value))


def transposed(op: Builder, value: Value) -> Value:
    """The last two axes of a value with three."""
    return op.Transpose(value, perm=[0, 2, 1])


def rolled(axis: int) -> Rewrite:
    """One place further along an axis."""

    def rewrite(op: Builder, value: Value) -> Value:
        axes = np.asarray([axis])
        last = op.Slice(value, np.asarray([-1]), np.asarray([2**31]), axes)
        others = op.Slice(value, np.asarray([0]), np.asarray([-1]), axes)
        return op.Concat(last, others, axis=axis)

    return rewrite


# ---- computations in place of others


def half_up(op: Builder, operands: Sequence[Value]) -> Value:
    return op.Floor(op.Add(operands[0], op.like(0.5, operands[0])))


def half_away(op: Builder, operands: Sequence[Value]) -> Value:
    x = operands[0]
    return op.Mul(op.Sign(x), op.Floor(op.Add(op.Abs(x), op.like(0.5, x))))


def half_down(op: Builder, operands: Sequence[Value]) -> Value:
    return op.Ceil(op.Sub(operands[0], op.like(0.5, operands[0])))


def truncated(op: Builder, operands: Sequence[Value]) -> Value:
    """For a Floor."""
    x = operands[0]
    return op.Mul(op.Sign(x), op.Floor(op.Abs(x)))
