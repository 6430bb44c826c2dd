"""Graphs to run passes on: written down in a few lines, or made at random; and what the reference evaluator gives."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx.reference import ReferenceEvaluator

from trueport.lower.weights import WeightTensor
from trueport.optimise.sequence import PASSES, optimise
from trueport.optimise.validate import Interface, validate

Dims = tuple[int | str, ...]
Array = np.ndarray[Any, Any]

FLOAT, INT64, BOOL, INT32 = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.INT32


class Making:
    """One graph under construction. `op.Add(x, y)` appends a node; its dtype and sizes are those of the first input,
    unless `dtype=` or `dims=` say otherwise."""

    def __init__(self, outer: Making | None = None) -> None:
        self.nodes: list[ir.Node] = []
        self.weights: list[ir.Value] = []
        self.count: list[int] = [0] if outer is None else outer.count

    def name(self, stem: str) -> str:
        self.count[0] += 1
        return f"{stem}_{self.count[0]}"

    def input(self, dtype: ir.DataType, dims: Dims, name: str | None = None) -> ir.Value:
        return ir.Value(name=name or self.name("in"), type=ir.TensorType(dtype), shape=ir.Shape(dims))

    def const(self, content: Any, dtype: Any = None) -> ir.Value:
        array = np.asarray(content, dtype=dtype)
        return self.node("Constant", [], {"value": ir.Tensor(array)}, ir.DataType.from_numpy(array.dtype), array.shape)

    def weight(self, content: Any, name: str | None = None) -> ir.Value:
        tensor = torch.as_tensor(content)
        held = WeightTensor(tensor, name or self.name("w"))
        value = ir.Value(name=held.name, type=ir.TensorType(held.dtype), shape=ir.Shape(tensor.shape), const_value=held)
        self.weights.append(value)
        return value

    def node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, Any],
        dtype: ir.DataType | None,
        dims: Dims | None,
    ) -> ir.Value:
        out = ir.Value(
            name=self.name(op_type),
            type=None if dtype is None else ir.TensorType(dtype),
            shape=None if dims is None else ir.Shape(dims),
        )
        given = [ir.convenience.convert_attribute(key, value) for key, value in attributes.items()]
        notes = {"trueport.source": f"model.py:{len(self.nodes) + 1}"}
        node = ir.Node("", op_type, inputs, given, outputs=[out], name=f"node_{out.name}", metadata_props=notes)
        self.nodes.append(node)
        return out

    def __getattr__(self, op_type: str) -> Any:
        def make(*inputs: ir.Value | None, dtype: Any = None, dims: Any = None, **attributes: Any) -> ir.Value:
            first = next((value for value in inputs if value is not None), None)
            if dims is None and first is not None:
                dims = dims_of(first)
            return self.node(op_type, inputs, attributes, dtype or (first.dtype if first is not None else None), dims)

        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return make

    def graph(self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> ir.Graph:
        return ir.Graph(
            inputs, outputs, nodes=self.nodes, initializers=self.weights, opset_imports={"": 20}, name=self.name("g")
        )

    def model(self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> ir.Model:
        return ir.Model(self.graph(inputs, outputs), ir_version=9)


def dims_of(value: ir.Value) -> Dims:
    assert value.shape is not None
    return tuple(dim if isinstance(dim, int) else str(dim.value) for dim in value.shape)


def run_pass(model: ir.Model, name: str) -> int:
    """One pass, once, validated. How many changes it made."""
    kind = next(each for each in PASSES if each.name == name)
    before = Interface.of(model)
    changes = kind().run(model)
    validate(model, before)
    return changes


def run_passes(model: ir.Model, *names: str) -> None:
    optimise(model, names or [each.name for each in PASSES], each=True)


def kinds(model: ir.Model) -> list[str]:
    """The operators of a model, in order, those of inner graphs behind their node."""
    return [node.op_type for node in model.graph.all_nodes()]


def answers(model: ir.Model, feeds: Mapping[str, Array]) -> list[Array]:
    """What the reference evaluator gives."""
    with np.errstate(all="ignore"):
        found = ReferenceEvaluator(ir.to_proto(model)).run(None, dict(feeds))
    return [np.asarray(each) for each in found]


def same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """To the last bit: dtypes, sizes, NaN where there is NaN, and the sign of zero."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and _bits(a) == _bits(b) for a, b in zip(one, other, strict=True)
    )


def _bits(array: Array) -> bytes:
    plain = np.ascontiguousarray(array)
    return np.where(np.isnan(plain), np.nan, plain).tobytes() if plain.dtype.kind == "f" else plain.tobytes()


# At random

_NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.5, float("nan"), float("inf"), -float("inf"), 1e-38, 3.0]
_FREE = "n"


class RandomGraph:
    """A graph of operators that only promise exact results, with constants that tempt passes to go wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.op = Making()
        self.inputs = [
            self.op.input(FLOAT, (_FREE, 2), "x"),
            self.op.input(FLOAT, (2, 3), "y"),
            self.op.input(INT64, (3,), "i"),
            self.op.input(BOOL, (), "b"),
        ]
        pool = [*self.inputs, self.op.weight(torch.tensor([[0.0, -0.0, 2.0], [1.0, 3.0, -1.0]]))]
        pool.append(self.op.const(np.float32(self.random.choice(_NUMBERS))))
        self._grow(self.op, pool, 14, depth=2)
        made = [value for value in pool if value.producer() is not None and value.producer().op_type != "Constant"]  # type: ignore[union-attr]
        outputs = self.random.sample(made, min(4, len(made)))
        self.model = self.op.model(self.inputs, [self.op.Identity(value) for value in outputs])

    def feeds(self, free: int) -> dict[str, Array]:
        draw = self.random
        return {
            "x": np.array([[draw.choice(_NUMBERS) for _ in range(2)] for _ in range(free)], np.float32).reshape(
                free, 2
            ),
            "y": np.array([[draw.choice(_NUMBERS) for _ in range(3)] for _ in range(2)], np.float32),
            "i": np.array([draw.choice([0, 1, -1, 7]) for _ in range(3)], np.int64),
            "b": np.array(draw.random() < 0.5),
        }

    def _grow(self, op: Making, pool: list[ir.Value], count: int, depth: int) -> None:
        for _ in range(count):
            value = self._one(op, self.random.choice(pool), pool, depth)
            if value is not None:
                pool.append(value)

    def _one(self, op: Making, x: ir.Value, pool: list[ir.Value], depth: int) -> ir.Value | None:
        dims, kind = dims_of(x), self.random.randrange(14)
        if kind == 0 and len(dims) > 1:
            perm = self.random.sample(range(len(dims)), len(dims))
            return op.Transpose(x, perm=perm, dims=tuple(dims[i] for i in perm))
        if kind == 1:
            axis = self.random.randrange(len(dims) + 1)
            return op.Unsqueeze(x, op.const([axis], np.int64), dims=(*dims[:axis], 1, *dims[axis:]))
        if kind == 2 and 1 in dims:
            axis = dims.index(1)
            return op.Squeeze(x, op.const([axis], np.int64), dims=dims[:axis] + dims[axis + 1 :])
        if kind == 3 and all(isinstance(dim, int) for dim in dims):
            return op.Reshape(x, op.const([-1], np.int64), dims=(int(np.prod([int(dim) for dim in dims])),))
        if kind == 3:
            return op.Reshape(x, op.const([0] * len(dims), np.int64))
        if kind == 4:
            return op.Concat(x, x, axis=0, dims=_twice(dims)) if dims else None
        if kind == 5 and dims:
            start, end = self.random.choice([(0, 2**31), (1, 2), (0, 2**62)])
            axis = len(dims) - 1
            return self._sliced(op, x, start, end, axis)
        if kind == 6:
            return self._arithmetic(op, x)
        if kind == 7:
            return self._cast(op, x)
        if kind == 8 and x.dtype == BOOL:
            return op.Not(x)
        if kind == 9:
            return self._size(op, x)
        if kind == 10 and depth:
            return self._if(op, x, pool, depth)
        if kind == 11 and depth:
            return self._loop(op, x, pool, depth)
        if kind == 12:
            same_kind = [y for y in pool if y.dtype == x.dtype and dims_of(y) == dims]
            return op.Equal(x, self.random.choice(same_kind), dtype=BOOL)
        if kind == 13:
            return op.Identity(x)
        return None

    def _sliced(self, op: Making, x: ir.Value, start: int, end: int, axis: int) -> ir.Value | None:
        dims = dims_of(x)
        if not isinstance(dims[axis], int):
            if start:
                return None
            size: int | str = dims[axis]
        else:
            size = len(range(int(dims[axis]))[start:end])
        bounds = (op.const([number], np.int64) for number in (start, end, axis, 1))
        return op.Slice(x, *bounds, dims=(*dims[:axis], size, *dims[axis + 1 :]))

    def _arithmetic(self, op: Making, x: ir.Value) -> ir.Value | None:
        if x.dtype == BOOL:
            return op.And(x, op.const(self.random.choice([True, False])))
        assert x.dtype is not None
        content = self.random.choice(_NUMBERS) if x.dtype == FLOAT else self.random.choice([0, 1, 3])
        constant = op.const(content, x.dtype.numpy())
        sides = [x, constant] if self.random.random() < 0.5 else [constant, x]
        name = self.random.choice(["Add", "Sub", "Mul"])
        return op.node(name, sides, {}, x.dtype, dims_of(x))

    def _cast(self, op: Making, x: ir.Value) -> ir.Value | None:
        """No float becomes an integer: what is out of range is nobody's promise."""
        wanted = [FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16]
        if x.dtype in (BOOL, INT32, INT64):
            wanted += [INT64, INT32]
        to = self.random.choice(wanted)
        return op.Cast(x, to=int(to), dtype=to)

    def _size(self, op: Making, x: ir.Value) -> ir.Value | None:
        dims = dims_of(x)
        if not dims:
            return None
        sizes = op.Shape(x, dtype=INT64, dims=(len(dims),))
        at = self.random.randrange(len(dims))
        return op.Gather(sizes, op.const([at], np.int64), axis=0, dims=(1,))

    def _if(self, op: Making, x: ir.Value, pool: list[ir.Value], depth: int) -> ir.Value:
        fixed = self.random.random() < 0.5
        test = op.const(self.random.random() < 0.5) if fixed else self.inputs[3]
        if self.random.random() < 0.3:
            test = op.Not(test)
        arms = [self._arm(op, x, pool, depth) for _ in range(2)]
        return op.If(test, then_branch=arms[0], else_branch=arms[1], dtype=x.dtype, dims=dims_of(x))

    def _arm(self, outer: Making, x: ir.Value, pool: list[ir.Value], depth: int) -> ir.Graph:
        op = Making(outer)
        self._grow(op, inner := list(pool), 4, depth - 1)
        fitting = [y for y in (*inner, x) if y.dtype == x.dtype and dims_of(y) == dims_of(x)]
        return op.graph([], [op.Identity(self.random.choice(fitting))])

    def _loop(self, outer: Making, x: ir.Value, pool: list[ir.Value], depth: int) -> ir.Value:
        op = Making(outer)
        turn, test = op.input(INT64, ()), op.input(BOOL, ())
        carried = op.input(x.dtype or FLOAT, dims_of(x))
        self._grow(op, inner := [*pool, carried, turn], 5, depth - 1)
        fitting = [y for y in inner if y.dtype == x.dtype and dims_of(y) == dims_of(x)]
        body = op.graph([turn, test, carried], [op.Identity(test), op.Identity(self.random.choice(fitting))])
        count = outer.const(self.random.choice([0, 1, 3]), np.int64)
        return outer.Loop(count, outer.const(True), x, body=body, dtype=x.dtype, dims=dims_of(x))


class RandomBlock:
    """A norm, a GELU, a rotary embedding, products or heads taken apart as people write it, in an order and with
    constants of chance: what passes make one operator of, and what only looks like it. Answers are close, and no more.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.op = random.Random(seed), Making()
        self.x = self.op.input(FLOAT, ("n", 3, 4), "x")
        blocks = [self._norm, self._norm, self._gelu, self._rotary, self._attention, self._products]
        made = self.random.choice(blocks)(self.op.Neg(self.x))
        outputs = [made, *self.read_twice]
        self.model = self.op.model([self.x], [self.op.Identity(value) for value in outputs])
        attends = any(node.op_type == "Attention" for node in self.op.nodes)
        self.model.graph.opset_imports[""] = 23 if attends else self.random.choice([20, 23])
        self.model.ir_version = 10

    def feeds(self, free: int) -> dict[str, Array]:
        return {"x": np.random.default_rng(free).normal(0.5, 2.0, (free, 3, 4)).astype(np.float32)}

    @property
    def read_twice(self) -> list[ir.Value]:
        made = [node.outputs[0] for node in self.op.nodes if node.op_type not in ("Constant", "Neg")]
        return [self.random.choice(made)] if self.random.random() < 0.2 else []

    def _number(self, content: float) -> ir.Value:
        """Mostly the right one."""
        return self.op.const(np.float32(content if self.random.random() < 0.95 else content * 1.001))

    def _in_any_order(self, op_type: str, *values: ir.Value) -> ir.Value:
        order = self.random.sample(values, len(values))
        wide = max(values, key=lambda value: len(dims_of(value)))
        while len(order) > 1:
            pair = [order.pop(), order.pop()]
            wider = max(pair, key=lambda value: len(dims_of(value)))
            order.append(self.op.node(op_type, pair, {}, FLOAT, dims_of(wider)))
            self.random.shuffle(order)
        return order[0] if dims_of(order[0]) else wide

    def _mean(self, x: ir.Value) -> ir.Value:
        op, choose = self.op, self.random.choice
        axes = choose([[-1], [-1], [2], [2], [1, 2], [1]])
        dims = tuple(1 if i in [axis % 3 for axis in axes] else dim for i, dim in enumerate(dims_of(x)))
        number = op.const(np.array(axes, np.int64))
        if self.random.random() < 0.7:
            return op.ReduceMean(x, number, keepdims=1, dims=dims)
        return op.Div(op.ReduceSum(x, number, keepdims=1, dims=dims), self._number(choose([4.0, 4.0, 12.0])), dims=dims)

    def _norm(self, x: ir.Value) -> ir.Value:
        op, choose = self.op, self.random.choice
        if self.random.random() < 0.6:
            x = op.Sub(x, self._mean(x))
        square = choose([lambda: op.Mul(x, x), lambda: op.Pow(x, self._number(2.0)), lambda: op.Mul(x, self.x)])()
        root = op.Sqrt(self._in_any_order("Add", self._mean(square), op.const(np.float32(1e-5))))
        inverse = choose([lambda: op.Reciprocal(root), lambda: op.Div(self._number(1.0), root, dims=dims_of(root))])
        scale, bias = (op.weight(torch.randn(size)) for size in choose([((4,), (4,)), ((3, 4), (4,)), ((1,), (1,))]))
        made = choose(
            [
                lambda: op.Div(x, root),
                lambda: op.Div(op.Mul(x, scale), root),
                lambda: self._in_any_order("Mul", x, scale, inverse()),
                lambda: self._in_any_order("Mul", op.Mul(x, inverse()), scale),
            ]
        )()
        return choose([lambda: self._in_any_order("Add", made, bias), lambda: made, lambda: op.Mul(made, scale)])()

    def _gelu(self, x: ir.Value) -> ir.Value:
        op, choose, product = self.op, self.random.choice, self._in_any_order
        if self.random.random() < 0.5:
            inner = op.Erf(choose([op.Div(x, self._number(2**0.5)), op.Mul(x, self._number(0.5**0.5))]))
        else:
            cube = choose([lambda: [op.Pow(x, self._number(3.0))], lambda: [x, x, x]])()
            bracket = self._in_any_order("Add", x, product("Mul", self._number(0.044715), *cube))
            inner = op.Tanh(product("Mul", self._number((2 / np.pi) ** 0.5), bracket))
        return product("Mul", x, self._number(0.5), self._in_any_order("Add", inner, self._number(1.0)))

    def _attention(self, x: ir.Value) -> ir.Value:
        op, choose = self.op, self.random.choice

        def apart() -> ir.Value:
            sizes, perm = choose([(2, 2), (2, 2), (2, 2), (1, 4)]), choose([[0, 2, 1, 3], [0, 2, 1, 3], [0, 1, 2, 3]])
            wide = op.Reshape(x, op.const([0, 0, *sizes], np.int64), dims=("n", 3, *sizes))
            return op.Transpose(wide, perm=perm, dims=tuple(("n", 3, *sizes)[axis] for axis in perm))

        query = apart()
        fitting = [each for each in (apart(), apart(), query) if dims_of(each) == dims_of(query)]
        mixed = op.Attention(query, choose(fitting), choose(fitting), is_causal=choose([0, 1]))
        perm = choose([[0, 2, 1, 3], [0, 2, 1, 3], [0, 1, 2, 3]])
        turned = op.Transpose(mixed, perm=perm, dims=tuple(dims_of(mixed)[axis] for axis in perm))
        one, two, three = (int(size) for size in dims_of(turned)[1:])
        return op.Reshape(turned, op.const([0, one, two * three], np.int64), dims=("n", one, two * three))

    def _products(self, x: ir.Value) -> ir.Value:
        """Queries, keys and values of one thing, two of them rotated."""
        op, choose = self.op, self.random.choice
        biased, lead, perm = (
            choose([True, False]),
            choose([[0, 0], [0, 3], [-1, 3]]),
            choose([[0, 2, 1, 3], [0, 1, 2, 3]]),
        )
        cos, sin = (op.const(np.random.default_rng(7).normal(size=(1, 2)).astype(np.float32)) for _ in range(2))
        made = []
        for part in range(3):
            heads = choose([1, 2, 3])
            weight, bias = op.weight(torch.randn(4, heads * 2)), op.weight(torch.randn(heads * 2))
            out = op.MatMul(x, weight, dims=("n", 3, heads * 2))
            if biased == (self.random.random() < 0.95):
                out = self._in_any_order("Add", out, bias)
            out = op.Reshape(out, op.const([*lead, heads, 2], np.int64), dims=("n", 3, heads, 2))
            if self.random.random() < 0.95:
                out = op.Transpose(out, perm=perm, dims=tuple(("n", 3, heads, 2)[axis] for axis in perm))
            made.append(self._turned(out, cos, sin) if part < 2 else out)
        flat = [op.Reshape(each, op.const([-1], np.int64), dims=(f"{i}n",)) for i, each in enumerate(made)]
        return op.Concat(*flat, axis=0, dims=("all",))

    def _turned(self, x: ir.Value, cos: ir.Value, sin: ir.Value) -> ir.Value:
        op, (*lead, _) = self.op, dims_of(x)
        bounds = [[op.const([number], np.int64) for number in (start, start + 1, 3)] for start in (0, 1)]
        first, second = (op.Slice(x, *each, dims=(*lead, 1)) for each in bounds)
        turned = op.Concat(op.Neg(second), first, axis=-1, dims=(*lead, 2))
        return self._in_any_order("Add", op.Mul(x, cos), op.Mul(turned, sin))

    def _rotary(self, x: ir.Value) -> ir.Value:
        op, choose, draw = self.op, self.random.choice, np.random.default_rng(self.random.randrange(9))
        x = op.Unsqueeze(x, op.const([0], np.int64), dims=(1, "n", 3, 4))
        width = choose([4, 4, 2])
        cut = choose([2, 2, 2, 1])

        def half(start: int, end: int) -> ir.Value:
            bounds = [op.const([number], np.int64) for number in (start, end, choose([3, -1]))]
            return op.Slice(x, *bounds, dims=(1, "n", 3, end - start))

        first, second = half(0, cut), half(cut, 4)
        tables = [draw.normal(size=(choose([3, 3, 1]), 2)).astype(np.float32) for _ in range(2)]
        if width == 2 and cut == 2:
            cos, sin = (op.const(table) for table in tables)
            (a, b), (c, d) = choose([((first, second), (second, first)), ((first, second), (first, second))])
            less = op.Sub(op.Mul(a, cos), op.Mul(b, sin))
            more = op.Add(op.Mul(c, cos), op.Mul(d, choose([sin, sin, cos])))
            return op.Concat(less, more, axis=choose([3, -1]), dims=(1, "n", 3, 4))
        same = self.random.random() < 0.8
        cos, sin = (op.const(np.concatenate([table, table if same else -table], -1)) for table in tables)
        pair = choose([(op.Neg(second), first), (op.Neg(second), first), (second, op.Neg(first))])
        turned = op.Concat(*pair, axis=3, dims=(1, "n", 3, 4))
        return self._in_any_order("Add", op.Mul(x, cos), self._in_any_order("Mul", turned, sin))


def close(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) for a, b in zip(one, other, strict=True))


def _twice(dims: Dims) -> Dims:
    first = dims[0]
    return (2 * first if isinstance(first, int) else f"2*{first}" if "*" not in first else f"2*({first})", *dims[1:])
