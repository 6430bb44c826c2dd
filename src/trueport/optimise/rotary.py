"""Rotary embedding that users wrote by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import (
    dims_of,
    given,
    graph_of,
    ints_of,
    is_read,
    maker,
    new_constant,
    new_ints,
    new_node,
    number,
    number_in,
    rank_of,
    replaced,
    tensor_of,
)

_SINCE = 23
_TABLE = 1 << 22
"""Elements of a table of cosines that are looked at."""
_FAR = 8
"""Nodes between the angles and their use."""
_KEPT = frozenset(("Identity", "Cast", "Cos", "Sin", "Neg"))
"""Operators that give equal halves where they are given equal halves, element by element."""
Dims = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class _Rotation:
    """`x * cos + rotate_half(x) * sin`."""

    node: ir.Node
    x: ir.Value
    cos: ir.Value
    sin: ir.Value
    readers: frozenset[ir.Node]
    """Those of its nodes that read x."""

    @property
    def is_of_one_size(self) -> bool:
        """Whether the result is as large as x, and there is a sine for each of the width."""
        dims, sines = dims_of(self.x), dims_of(self.sin)
        if not dims or not sines or dims != dims_of(self.node.outputs[0]) or None in (self.x.dtype, self.sin.dtype):
            return False
        return dims[-1] == sines[-1]


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A rotation by the same angles of what stands behind x in the same `Split`."""

    rotation: _Rotation
    split: ir.Node
    axis: int
    sizes: Sequence[int]
    at: int
    """The place of x."""


class HandwrittenRotary(NodeByNode):
    """Makes one operator of a rotary embedding from opset 23 on, and fewer before.

    1. `x * cos + rotate_half(x) * sin`, where `rotate_half` is `cat(-x[..., h:], x[..., :h])` of slices or of a split,
       and both halves of cos and of sin are equal: joined of one thing twice (`cat(angles, angles)`), or a table that
       is a constant of the model.
    2. `cat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)` of the halves of x, with cosines for half of the width.

    3. Two embeddings of case 1 by the same angles, of neighbours that a `Split` took apart (queries and keys of joined
       products), are one, and are taken apart behind it.
    4. Where case 1 cannot be, as before opset 23: the sign in `rotate_half` is given to the sines, once in a model, and
       the halves change places: a `Split` and a `Concat` instead of two `Slice`, a `Neg` and a `Concat`. `(-x) * sin`
       is `x * (-sin)` to the last bit.

    Cases 1 and 2 are of `[batch, heads, length, width]` in single precision; cos and sin are the same for all heads.
    They are cut to half of the width and broadcast over the batch, which the operator does not do, once for all layers.
    The rotation takes 0.4 of the time on ONNX Runtime. Pairs of neighbours (interleaved) and complex products stay as
    they are.
    """

    name: ClassVar[str] = "rotary"

    @property
    def rules(self) -> Mapping[str, Rule]:
        self._tables: dict[object, ir.Value] = {}
        return {"Add": self._add, "Concat": self._concat} if self.opset >= _SINCE else {"Add": self._add}

    def _add(self, node: ir.Node) -> ir.Value | None:
        found = _rotation(node)
        if found is None:
            return None
        other = _neighbour(found)
        return self._rotated(found, found.x) if other is None else self._together(found, other)

    def _rotated(self, found: _Rotation, x: ir.Value) -> ir.Value | None:
        """Of x, which is what was found, or that and its neighbour."""
        made = self._one_operator(found.node, x, found.cos, found.sin, halves=False) if self.opset >= _SINCE else None
        return made or (self._with_signed_sines(found, x) if found.is_of_one_size else None)

    def _together(self, one: _Rotation, other: _Neighbour) -> ir.Value | None:
        """Case 3. The results are taken apart where the first of them stands."""
        split, axis, sizes, at = other.split, other.axis, other.sizes, other.at
        both, whole = [*sizes[:at], sum(sizes[at : at + 2]), *sizes[at + 2 :]], split.inputs[0]
        if len(both) > 1:
            parts = [self._part(split, axis, size) for size in both]
            new_node(split, "Split", [whole, self._ints(split, both)], parts, [ir.AttrInt64("axis", axis)])
            whole = parts.pop(at)
            for old, new in zip([*split.outputs[:at], *split.outputs[at + 2 :]], parts, strict=True):
                old.replace_all_uses_with(new)
        assert whole is not None
        rotated = self._rotated(one, whole)
        pair = sizes[at : at + 2]
        results = [self._part(one.node, axis, size) for size in pair]
        new_node(one.node, "Split", [rotated, self._ints(one.node, pair)], results, [ir.AttrInt64("axis", axis)])
        replaced(other.rotation.node, results[1])
        return results[0]

    def _part(self, node: ir.Node, axis: int, size: int) -> ir.Value:
        """Like what a node gives, of another size."""
        like = node.outputs[0]
        dims = list(dims_of(like) or ())
        dims[axis] = size
        return ir.Value(name=self.names.new(f"{like.name}_part"), type=like.type, shape=ir.Shape(dims))

    def _with_signed_sines(self, found: _Rotation, x: ir.Value) -> ir.Value:
        """Case 4."""
        node, dims, dtype = found.node, dims_of(x), x.dtype
        assert dims is not None and dtype is not None and isinstance(dims[-1], int)
        half, last = dims[-1] // 2, ir.AttrInt64("axis", len(dims) - 1)
        halves = [self._value(node, "half", (*dims[:-1], half), dtype) for _ in range(2)]
        new_node(node, "Split", [x, self._ints(node, [half, half])], halves, [last])
        swapped = self._new(node, "Concat", [halves[1], halves[0]], dims, [last], dtype)
        turned = self._new(node, "Mul", [swapped, self._signed(node, found.sin, half)], dims, (), dtype)
        return self._new(
            node, "Add", [self._new(node, "Mul", [x, found.cos], dims, (), dtype), turned], dims, (), dtype
        )

    def _signed(self, node: ir.Node, sin: ir.Value, half: int) -> ir.Value:
        """Sines of which the first half has the other sign, made before the first node that needs them."""
        key = (id(node.graph), id(sin))
        if key not in self._tables:
            dims = dims_of(sin)
            assert dims is not None and sin.dtype is not None
            name = self.names.new(f"{node.outputs[0].name}_signs")
            content = np.repeat(np.array([-1, 1], sin.dtype.numpy()), half)
            signs = new_constant(graph_of(node), name, ir.Tensor(content, dtype=sin.dtype, name=name))
            self._tables[key] = self._new(node, "Mul", [sin, signs], dims, (), sin.dtype)
        return self._tables[key]

    def _concat(self, node: ir.Node) -> ir.Value | None:
        """Case 2."""
        if len(node.inputs) != 2:
            return None
        less, more = maker(node.inputs[0], "Sub"), maker(node.inputs[1], "Add")
        if less is None or more is None or not _is_last(node, node.outputs[0]):
            return None
        products = [maker(value, "Mul") for value in (*less.inputs, *more.inputs)]
        found = [half for product in products if product is not None and (half := _half_times(product)) is not None]
        if len(found) != 4:
            return None
        (one, x, cos), (two, y, sin), *rest = found
        wanted = {(1, id(x), id(cos)), (0, id(x), id(sin))}
        if (one, two) != (0, 1) or x is not y or {(which, id(z), id(by)) for which, z, by in rest} != wanted:
            return None
        return self._one_operator(node, x, cos, sin, halves=True)

    def _one_operator(self, node: ir.Node, x: ir.Value, cos: ir.Value, sin: ir.Value, halves: bool) -> ir.Value | None:
        dims = dims_of(x)
        if dims is None or len(dims) != 4 or x.dtype != ir.DataType.FLOAT or not isinstance(dims[-1], int):
            return None
        if dims[-1] % 2 or not dims[-1] or not all(_is_for_all_heads(table, dims, halves) for table in (cos, sin)):
            return None
        if not halves and not (_has_equal_halves(cos) and _has_equal_halves(sin)):
            return None
        tables = [self._table(node, table, x, dims, halves) for table in (cos, sin)]
        return self._new(node, "RotaryEmbedding", [x, *tables], dims)

    def _table(self, node: ir.Node, table: ir.Value, x: ir.Value, dims: Dims, halves: bool) -> ir.Value:
        """Cosines as `[batch, length, width / 2]`, made before the first node that needs them."""
        key = (id(node.graph), id(table), dims[0])
        if key not in self._tables:
            self._tables[key] = self._new_table(node, table, x, dims, halves)
        return self._tables[key]

    def _new_table(self, node: ir.Node, table: ir.Value, x: ir.Value, dims: Dims, halves: bool) -> ir.Value:
        batch, _, length, width = dims
        own = dims_of(table)
        assert isinstance(width, int) and own is not None
        half = width // 2
        if not halves:
            axis = len(own) - 1
            bounds = [self._ints(node, [number]) for number in (0, half, axis)]
            table = self._new(node, "Slice", [table, *bounds], (*own[:-1], half))
        if len(own) == 4:
            table = self._new(node, "Squeeze", [table, self._ints(node, [1])], (own[0], length, half))
        elif len(own) == 2:
            table = self._new(node, "Unsqueeze", [table, self._ints(node, [0])], (1, length, half))
        if (own[0] if len(own) == 4 else 1) == batch:
            return table
        span = [ir.AttrInt64("start", 0), ir.AttrInt64("end", 1)]
        count = self._new(node, "Shape", [x], (1,), span, ir.DataType.INT64)
        axis_0 = [ir.AttrInt64("axis", 0)]
        sizes = self._new(node, "Concat", [count, self._ints(node, [1, 1])], (3,), axis_0, ir.DataType.INT64)
        return self._new(node, "Expand", [table, sizes], (batch, length, half))

    def _ints(self, node: ir.Node, numbers: Sequence[int]) -> ir.Value:
        return new_ints(graph_of(node), self.names.new(f"{node.outputs[0].name}_rotary"), numbers)

    def _new(
        self,
        before: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value],
        dims: Dims,
        attributes: Sequence[ir.Attr] = (),
        dtype: ir.DataType = ir.DataType.FLOAT,
    ) -> ir.Value:
        out = self._value(before, op_type.lower(), dims, dtype)
        new_node(before, op_type, inputs, [out], attributes)
        return out

    def _value(self, node: ir.Node, what: str, dims: Dims, dtype: ir.DataType) -> ir.Value:
        name = self.names.new(f"{node.outputs[0].name}_{what}")
        return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(dims))


def _rotation(node: ir.Node) -> _Rotation | None:
    """The embedding that a sum is."""
    first, second = (maker(value, "Mul") for value in node.inputs)
    if first is None or second is None:
        return None
    for plain, turned in ((first, second), (second, first)):
        for x, cos in (plain.inputs, reversed(plain.inputs)):
            for rotated, sin in (turned.inputs, reversed(turned.inputs)):
                if x is None or cos is None or sin is None:
                    continue
                halves = _rotated_halves(rotated, x)
                if halves is not None:
                    return _Rotation(node, x, cos, sin, frozenset((plain, *halves)))
    return None


def _neighbour(one: _Rotation) -> _Neighbour | None:
    """Where nobody else reads x, nor what stands behind it."""
    split, dims = maker(one.x, "Split"), dims_of(one.x)
    if split is None or dims is None or split.graph is not one.node.graph or not one.is_of_one_size:
        return None
    at, axis, sizes = split.outputs.index(one.x), number(split, "axis", 0) % len(dims), ints_of(given(split, 1))
    if (
        sizes is None
        or at + 1 == len(sizes)
        or not all(_is_broadcast(table, axis, dims) for table in (one.cos, one.sin))
    ):
        return None
    if any(out.is_graph_output() for out in split.outputs) or not _is_read_by(one.x, one.readers):
        return None
    beside = split.outputs[at + 1]
    products = [reader for reader, _ in beside.uses() if reader.op_type == "Mul" and not reader.domain]
    sums = [reader for product in products for reader, _ in product.outputs[0].uses() if reader.op_type == "Add"]
    for other in map(_rotation, sums):
        if (
            other is not None and other.x is beside and (other.cos, other.sin) == (one.cos, one.sin)
            and other.is_of_one_size and other.node.graph is split.graph and _is_read_by(beside, other.readers)
        ):  # fmt: skip
            return _Neighbour(other, split, axis, sizes, at)
    return None


def _is_read_by(value: ir.Value, readers: Collection[ir.Node]) -> bool:
    """Whether nobody else reads it, beside what other passes left for dead."""
    return all(reader in readers or not is_read(reader) for reader, _ in value.uses())


def _is_broadcast(table: ir.Value, axis: int, dims: Dims) -> bool:
    """Whether all along an axis of what has these sizes meets the same of a table."""
    own = dims_of(table)
    return own is not None and (axis < len(dims) - len(own) or own[axis - len(dims)] == 1)


def _rotated_halves(value: ir.Value | None, x: ir.Value) -> tuple[ir.Node, ...] | None:
    """The nodes that take halves of x, where a value is `cat(-x2, x1)`."""
    joined = maker(value, "Concat")
    if joined is None or value is None or len(joined.inputs) != 2 or not _is_last(joined, value):
        return None
    negated = maker(joined.inputs[0], "Neg")
    second = None if negated is None else _half(negated.inputs[0])
    first = _half(joined.inputs[1])
    if first is None or second is None:
        return None
    if (first[0], second[0]) != (0, 1) or first[1] is not x or second[1] is not x:
        return None
    return first[2], second[2]


def _half(value: ir.Value | None) -> tuple[int, ir.Value, ir.Node] | None:
    """Which half of the last axis of what it is, and the node that takes it."""
    made = maker(value, "Slice", "Split")
    x = None if made is None else made.inputs[0]
    dims = dims_of(x)
    if made is None or x is None or not dims or not isinstance(dims[-1], int) or dims[-1] % 2:
        return None
    half, last = dims[-1] // 2, len(dims) - 1
    if made.op_type == "Split":
        lengths = given(made, 1)
        even = len(made.outputs) == 2 and (lengths is None or ints_of(lengths) == [half, half])
        which = next(i for i, out in enumerate(made.outputs) if out is value)
        return (which, x, made) if even and number(made, "axis", 0) % len(dims) == last else None
    starts, ends, axes = (ints_of(given(made, i)) for i in (1, 2, 3))
    steps = [1] if given(made, 4) is None else ints_of(given(made, 4))
    if starts is None or ends is None or axes is None or steps != [1] or len(starts) != 1:
        return None
    covered = range(dims[-1])[starts[0] : ends[0]]
    if axes[0] % len(dims) != last or len(covered) != half or covered[0] not in (0, half):
        return None
    return (0 if covered[0] == 0 else 1), x, made


def _half_times(product: ir.Node) -> tuple[int, ir.Value, ir.Value] | None:
    """Which half of what, times what."""
    for value, factor in (product.inputs, reversed(product.inputs)):
        half = _half(value)
        if half is not None and factor is not None:
            return *half[:2], factor
    return None


def _is_last(joined: ir.Node, out: ir.Value) -> bool:
    axis, rank = number(joined, "axis", 0), rank_of(out)
    return axis == -1 or (rank is not None and axis == rank - 1)


def _is_for_all_heads(table: ir.Value, dims: Dims, halves: bool) -> bool:
    """Whether cosines have an angle for each place, the same for all heads, and perhaps for all of the batch."""
    own, (batch, _, length, width) = dims_of(table), dims
    if own is None or table.dtype != ir.DataType.FLOAT or not 2 <= len(own) <= 4 or not isinstance(width, int):
        return False
    if own[-2:] != (length, width // 2 if halves else width):
        return False
    return all(size == 1 for size in own[1 if len(own) == 4 else 0 : -2]) and (len(own) < 4 or own[0] in (1, batch))


def _has_equal_halves(value: ir.Value | None) -> bool:
    """Whether the second half of the last axis repeats the first, in every run."""
    for _ in range(_FAR):
        tensor, made = tensor_of(value), None if value is None else value.producer()
        if tensor is not None:
            return _repeats(tensor)
        if made is None or made.domain or value is None:
            return False
        if made.op_type == "Concat" and len(made.inputs) == 2:
            return made.inputs[0] is made.inputs[1] and _is_last(made, value)
        value = made.inputs[0] if _keeps_halves(made) else None
        if made.op_type == "Mul":
            value = next((x for x, y in (made.inputs, reversed(made.inputs)) if number_in(y) is not None), None)
    return False


def _keeps_halves(made: ir.Node) -> bool:
    rank, axes = rank_of(made.inputs[0]), ints_of(given(made, 1))
    if made.op_type in _KEPT:
        return True
    if rank is None:
        return False
    if made.op_type == "Expand":
        before, after = dims_of(made.inputs[0]), dims_of(made.outputs[0])
        return before is not None and after is not None and before[-1:] == after[-1:] != ()
    if made.op_type == "Unsqueeze" and axes is not None:
        return (rank + len(axes) - 1) not in [axis % (rank + len(axes)) for axis in axes]
    if made.op_type == "Slice":
        axes = ints_of(given(made, 3))
        return axes is not None and rank - 1 not in [axis % rank for axis in axes]
    return made.op_type == "Gather" and number(made, "axis", 0) % rank != rank - 1


def _repeats(tensor: ir.TensorProtocol) -> bool:
    if tensor.size > _TABLE or tensor.dtype == ir.DataType.STRING or len(tensor.shape) < 2:
        return False
    content = tensor.numpy()
    half = content.shape[-1] // 2
    return content.shape[-1] % 2 == 0 and bool(np.array_equal(content[..., :half], content[..., half:]))
