"""Each numbered case of each pass, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

from tests.optimise.graphs import BOOL, FLOAT, INT64, Array, Making, answers, kinds, run_pass, run_passes, same
from trueport.optimise.base import Pass
from trueport.optimise.fold import SMALL
from trueport.optimise.names import NAMES
from trueport.optimise.sequence import PASSES
from trueport.optimise.weights import ComputedWeight

X = np.array([[1.0, -0.0, float("nan")], [-2.5, 3.0, float("inf")]], np.float32)
Build = Callable[[Making, ir.Value], ir.Value]


def after(name: str, build: Build, x: Array = X, dims: Any = (2, 3), *, tidy: bool = True) -> list[str]:
    """The operators that are left of a graph with one input and one output, after one pass; the answer is the same."""
    op = Making()
    given = op.input(ir.DataType.from_numpy(x.dtype), dims, "x")
    made = build(op, given)
    model = op.model([given], [op.Flatten(made, axis=0, dims=(1, "m"))])  # which no pass looks at
    before = answers(model, {"x": x})
    run_pass(model, "constants")
    run_pass(model, name)
    if tidy:
        run_pass(model, "dead_code")
    assert same(answers(model, {"x": x}), before)
    return kinds(model)[:-1]


def ints(op: Making, *numbers: int) -> ir.Value:
    return op.const(list(numbers), np.int64)


def test_the_names_are_those_of_the_classes() -> None:
    assert tuple(kind.name for kind in PASSES) == NAMES


@pytest.mark.parametrize("kind", PASSES, ids=lambda kind: kind.name)
def test_a_pass_numbers_its_cases(kind: type[Pass]) -> None:
    assert kind.__doc__ is not None
    assert "\n    1. " in kind.__doc__


class TestConstants:
    def test_1_a_constant_is_an_initializer_of_the_same_name(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        constant = op.const(np.float32(2))
        name = constant.name
        model = op.model([x], [op.Add(x, constant)])
        assert run_pass(model, "constants") == 1
        assert kinds(model) == ["Add"]
        assert list(model.graph.initializers) == [name]

    def test_1_what_a_graph_puts_out_stays_a_node(self) -> None:
        op = Making()
        model = op.model([], [op.const(np.float32(2))])
        assert run_pass(model, "constants") == 0

    def test_2_an_arm_reads_that_of_the_graph_around_it(self) -> None:
        op, arm, other = Making(), None, None
        test, x = op.input(BOOL, (), "b"), op.input(FLOAT, (2,), "x")
        outside = op.Add(x, op.const(np.float32(2)))
        arms = []
        for _ in range(2):
            inner = Making(op)
            arms.append(inner.graph([], [inner.Mul(outside, inner.const(np.float32(2)))]))
        arm, other = arms
        out = op.If(test, then_branch=arm, else_branch=other, dtype=FLOAT, dims=(2,))
        model = op.model([test, x], [out])
        run_pass(model, "constants")
        assert len(model.graph.initializers) == 1
        assert not arm.initializers
        assert not other.initializers

    def test_2_zero_is_not_minus_zero(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2,), "x")
        model = op.model([x], [op.Div(x, op.const(np.float32(0.0))), op.Div(x, op.const(np.float32(-0.0)))])
        run_pass(model, "constants")
        assert len(model.graph.initializers) == 2

    @pytest.mark.parametrize(("size", "kept"), [(1 << 15, 1), (8, 2)])
    def test_3_large_equal_weights_are_one_and_small_ones_keep_their_names(self, size: int, kept: int) -> None:
        op = Making()
        x = op.input(FLOAT, (size,), "x")
        a, b = (op.weight(torch.arange(size).float(), name) for name in ("a.weight", "b.weight"))
        model = op.model([x], [op.Mul(op.Add(x, a), b)])
        run_pass(model, "constants")
        assert list(model.graph.initializers) == ["a.weight", "b.weight"][:kept]

    def test_3_one_bit_makes_another_weight(self) -> None:
        op, numbers = Making(), torch.arange(1 << 15).float()
        x = op.input(FLOAT, (1 << 15,), "x")
        other = numbers.clone()
        other[20_000] = -1.0
        model = op.model([x], [op.Mul(op.Add(x, op.weight(numbers)), op.weight(other))])
        run_pass(model, "constants")
        assert len(model.graph.initializers) == 2


class TestFold:
    def test_1_integers(self) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            sizes = op.Add(op.Mul(ints(op, 1, 2), ints(op, 3)), ints(op, -1, 0), dims=(2,))
            return op.Reshape(x, op.Add(sizes, ints(op, 0, -3)), dims=(2, 3))

        assert after("fold", build) == ["Reshape"]

    def test_1_floats_that_ieee_defines(self) -> None:
        build = lambda op, x: op.Add(x, op.Sqrt(op.Div(op.const(np.float32(1)), op.const(np.float32(3)))))  # noqa: E731
        assert after("fold", build) == ["Add"]

    def test_1_not_what_kernels_round_as_they_like(self) -> None:
        assert after("fold", lambda op, x: op.Add(x, op.Exp(op.const(np.float32(0.3))))) == ["Exp", "Add"]
        square = np.full((2, 3), 0.1, np.float32), np.full((3, 3), 0.1, np.float32)
        product = lambda op, x: op.Add(x, op.MatMul(*(op.const(a) for a in square), dims=(2, 3)))  # noqa: E731
        assert after("fold", product) == ["MatMul", "Add"]

    @pytest.mark.parametrize("divisor", [0, -1])
    def test_1_not_a_division_that_ends_a_runtime(self, divisor: int) -> None:
        op = Making()
        x = op.input(INT64, (), "x")
        quotient = op.Div(op.const(-(2**63), np.int64), op.const(divisor, np.int64))
        model = op.model([x], [op.Add(x, quotient)])
        run_passes(model)
        assert kinds(model) == ["Div", "Add"]

    def test_1_division_drops_the_fraction(self) -> None:
        build = lambda op, x: op.Add(x, op.Div(ints(op, -7, 7, 8), ints(op, 2, -2, 2)))  # noqa: E731
        assert after("fold", build, np.array([1, 2, 3]), (3,)) == ["Add"]

    def test_1_no_large_constant_of_a_small_one(self) -> None:
        rows = SMALL // 4
        filled = lambda op, x: op.Expand(x, ints(op, rows, 2, 3), dims=(rows, 2, 3))  # noqa: E731
        assert after("fold", filled) == ["Expand"]

        def constant(op: Making, x: ir.Value) -> ir.Value:
            wide = op.Expand(op.const(np.float32(1)), ints(op, rows + 1, 2, 3), dims=(rows + 1, 2, 3))
            return op.Add(x, op.Slice(wide, ints(op, 0), ints(op, 1), ints(op, 0), dims=(1, 2, 3)))

        assert after("fold", constant) == ["Expand", "Slice", "Add"]

    def test_2_fixed_sizes_and_no_free_ones(self) -> None:
        build = lambda op, x: op.Shape(x, dtype=INT64, dims=(2,))  # noqa: E731
        assert after("fold", build) == []
        assert after("fold", build, dims=("n", 3)) == ["Shape"]
        behind = lambda op, x: op.Shape(x, start=1, dtype=INT64, dims=(1,))  # noqa: E731
        assert after("fold", behind, dims=("n", 3)) == []

    def test_3_a_weight_is_written_as_it_is_used_and_not_held(self) -> None:
        op, numbers = Making(), torch.arange(300 * 400).float().reshape(400, 300)
        x = op.input(FLOAT, (2, 300), "x")
        turned = op.Transpose(op.weight(numbers, "a.weight"), perm=[1, 0], dims=(300, 400))
        model = op.model([x], [op.MatMul(x, turned, dims=(2, 400))])
        run_passes(model, "fold", "dead_code")
        assert kinds(model) == ["MatMul"]
        assert list(model.graph.initializers) == ["a.weight.transposed"]
        held = model.graph.initializers["a.weight.transposed"].const_value
        assert isinstance(held, ComputedWeight)
        assert held.raw.is_meta
        assert held.source.data_ptr() == numbers.data_ptr()
        assert np.array_equal(held.numpy(), numbers.numpy().T)

    def test_3_a_weight_that_others_read_is_not_written_twice(self) -> None:
        op, numbers = Making(), torch.arange(300 * 300).float().reshape(300, 300)
        x = op.input(FLOAT, (2, 300), "x")
        weight = op.weight(numbers, "tied.weight")
        turned = op.Transpose(weight, perm=[1, 0], dims=(300, 300))
        model = op.model([x], [op.MatMul(op.MatMul(x, turned, dims=(2, 300)), weight, dims=(2, 300))])
        run_passes(model)
        assert kinds(model) == ["Transpose", "MatMul", "MatMul"]
        assert list(model.graph.initializers) == ["tied.weight"]

    def test_3_rows_in_another_order_and_joined(self) -> None:
        op = Making()
        x = op.input(FLOAT, (1, 4, 100), "x")
        parts = []
        for number in range(2):
            weight = op.weight(torch.randn(400, 200, generator=torch.Generator().manual_seed(number)))
            rows = op.Gather(weight, op.const(list(reversed(range(400))), np.int64), axis=0, dims=(400, 200))
            parts.append(op.Unsqueeze(rows, ints(op, 0), dims=(1, 400, 200)))
        joined = op.Concat(*parts, axis=0, dims=(2, 400, 200))
        model = op.model([x], [op.Add(op.ReduceSum(joined, dims=(1, 1, 1)), x)])
        feeds = {"x": np.zeros((1, 4, 100), np.float32)}
        before = answers(model, feeds)
        run_passes(model)
        assert kinds(model) == ["ReduceSum", "Add"]
        assert same(answers(model, feeds), before)


class TestIdentities:
    def test_1_identity_and_concat_of_one(self) -> None:
        assert after("identities", lambda op, x: op.Identity(op.Concat(op.Neg(x), axis=0))) == ["Neg"]

    def test_1_the_sum_that_keeps_nodes_apart_stays(self) -> None:
        assert after("identities", lambda op, x: op.Sum(x)) == ["Sum"]

    def test_2_a_cast_to_what_it_is(self) -> None:
        assert after("identities", lambda op, x: op.Cast(x, to=1, dtype=FLOAT)) == []

    @pytest.mark.parametrize(
        ("first", "between", "last", "left"),
        [
            (np.int32, "DOUBLE", "FLOAT", 1),
            (np.int8, "FLOAT", "INT64", 1),
            (np.bool_, "INT64", "FLOAT", 1),
            (np.float32, "DOUBLE", "FLOAT16", 1),
            (np.float32, "DOUBLE", "INT32", 2),  # out of range it is nobody's promise
            (np.int64, "DOUBLE", "FLOAT", 2),  # rounds twice
            (np.float64, "FLOAT", "FLOAT16", 2),
            (np.int64, "INT32", "INT64", 2),  # wraps around
        ],
    )
    def test_3_casts_of_casts(self, first: Any, between: str, last: str, left: int) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            for name in (between, last):
                dtype = ir.DataType[name]
                x = op.Cast(x, to=int(dtype), dtype=dtype)
            return x

        numbers = np.array([0, 1, 3]).astype(first)
        assert after("identities", build, numbers, (3,)) == ["Cast"] * left

    @pytest.mark.parametrize(
        ("name", "number", "left"),
        [
            ("Add", -0.0, 0),
            ("Add", 0.0, 1),  # makes 0.0 of -0.0
            ("Sub", 0.0, 0),
            ("Sub", -0.0, 1),
            ("Mul", 1.0, 0),
            ("Div", 1.0, 0),
            ("Mul", 0.0, 1),  # NaN and infinity
        ],
    )
    def test_4_neutral_numbers(self, name: str, number: float, left: int) -> None:
        build = lambda op, x: op.node(name, [x, op.const(np.float32(number))], {}, FLOAT, (2, 3))  # noqa: E731
        assert after("identities", build) == [name] * left

    def test_4_not_where_the_number_adds_an_axis(self) -> None:
        build = lambda op, x: op.Mul(x, op.const([[[1.0]]], np.float32), dims=(1, 2, 3))  # noqa: E731
        assert after("identities", build) == ["Mul"]
        assert after("identities", lambda op, x: op.Mul(x, op.const([[1.0]], np.float32))) == []

    def test_4_not_from_the_other_side(self) -> None:
        assert after("identities", lambda op, x: op.Sub(op.const(np.float32(0)), x, dims=(2, 3))) == ["Sub"]
        assert after("identities", lambda op, x: op.Div(op.const(np.float32(1)), x, dims=(2, 3))) == ["Div"]

    def test_5_truth(self) -> None:
        x = np.array([True, False])
        assert after("identities", lambda op, x: op.Not(op.Not(x)), x, (2,)) == []
        assert after("identities", lambda op, x: op.And(x, op.const(True)), x, (2,)) == []
        assert after("identities", lambda op, x: op.Or(x, op.const(False)), x, (2,)) == []
        assert after("identities", lambda op, x: op.Or(x, op.const(True)), x, (2,)) == ["Or"]


class TestMoves:
    def test_1_transpositions_join(self) -> None:
        there = lambda op, x: op.Transpose(x, perm=[1, 0], dims=(3, 2))  # noqa: E731
        assert after("moves", lambda op, x: op.Transpose(there(op, x), perm=[1, 0], dims=(2, 3))) == []

        def three(op: Making, x: ir.Value) -> ir.Value:
            x = op.Transpose(x, perm=[1, 2, 0], dims=(3, 4, 2))
            return op.Transpose(x, perm=[0, 2, 1], dims=(3, 2, 4))

        assert after("moves", three, np.ones((2, 3, 4), np.float32), (2, 3, 4)) == ["Transpose"]

    def test_2_axes_in_place(self) -> None:
        assert after("moves", lambda op, x: op.Transpose(x, perm=[0, 1])) == []

    def test_3_the_last_reshape_counts(self) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            x = op.Unsqueeze(op.Reshape(x, ints(op, 6), dims=(6,)), ints(op, 0), dims=(1, 6))
            return op.Reshape(x, ints(op, 3, -1), dims=(3, 2))

        assert after("moves", build) == ["Reshape"]

    def test_3_not_where_zero_means_as_before(self) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            return op.Reshape(op.Reshape(x, ints(op, 3, 2), dims=(3, 2)), ints(op, 0, -1, 1), dims=(3, 2, 1))

        assert after("moves", build) == ["Reshape", "Reshape"]

    @pytest.mark.parametrize("dims", [(2, 3), ("n", 3)])
    def test_4_sizes_that_are_there(self, dims: Any) -> None:
        assert after("moves", lambda op, x: op.Reshape(x, ints(op, 2, 3)), dims=dims) == []
        assert after("moves", lambda op, x: op.Expand(x, ints(op, 2, 3)), dims=dims) == []

    def test_4_not_where_the_sizes_have_no_names(self) -> None:
        build = lambda op, x: op.Reshape(x, ints(op, 2, 3), dims=(None, 3))  # noqa: E731
        assert after("moves", build, dims=(None, 3)) == ["Reshape"]

    def test_5_two_unsqueezes(self) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            x = op.Unsqueeze(x, ints(op, 1), dims=(2, 1, 3))
            return op.Unsqueeze(x, ints(op, 0, -1), dims=(1, 2, 1, 3, 1))

        assert after("moves", build) == ["Unsqueeze"]

    def test_6_an_axis_of_a_reshape(self) -> None:
        def build(op: Making, x: ir.Value) -> ir.Value:
            return op.Unsqueeze(op.Reshape(x, ints(op, 3, -1), dims=(3, 2)), ints(op, 1), dims=(3, 1, 2))

        assert after("moves", build) == ["Reshape"]

    def test_7_slices(self) -> None:
        def cut(op: Making, x: ir.Value, start: int, end: int, axis: int, dims: Any) -> ir.Value:
            return op.Slice(x, *(ints(op, number) for number in (start, end, axis)), dims=dims)

        assert after("moves", lambda op, x: cut(op, x, 0, 2**62, 1, (2, 3))) == []
        both = lambda op, x: cut(op, cut(op, x, 0, 1, 0, (1, 3)), 1, 3, -1, (1, 2))  # noqa: E731
        assert after("moves", both) == ["Slice"]
        one_axis = lambda op, x: cut(op, cut(op, x, 1, 3, 1, (2, 2)), 1, 2, 1, (2, 1))  # noqa: E731
        assert after("moves", one_axis) == ["Slice", "Slice"]

    def test_8_concatenations(self) -> None:
        build = lambda op, x: op.Concat(op.Concat(x, x, axis=0, dims=(4, 3)), x, axis=0, dims=(6, 3))  # noqa: E731
        assert after("moves", build) == ["Concat"]
        other = lambda op, x: op.Concat(*[op.Concat(x, x, axis=1, dims=(2, 6))] * 2, axis=0, dims=(4, 6))  # noqa: E731
        assert after("moves", other) == ["Concat", "Concat"]

    @pytest.mark.parametrize(
        ("dims", "left"), [(("n", 3, 1), ["Reshape"]), (("n", "m"), None), ((3, "n"), None), (("n", 3, 0), None)]
    )
    def test_9_sizes_that_are_declared(self, dims: tuple[int | str, ...], left: list[str] | None) -> None:
        """What is computed may be declared in full, in part, or be nothing at all, which a 0 would not say."""
        for count in (0, 2):
            sizes = [count if size == "n" else 3 if size == "m" else size for size in dims]
            fits = np.prod(sizes, dtype=int) == count * 3
            x = np.ones((count, 3) if fits else (count, 0), np.float32)

            def build(op: Making, x: ir.Value, sizes: list[Any] = sizes) -> ir.Value:
                free = op.Shape(x, start=0, end=1, dtype=INT64, dims=(1,))
                parts = [free if size == "n" else ints(op, number) for size, number in zip(dims, sizes, strict=True)]
                return op.Reshape(x, op.Concat(*parts, axis=0, dims=(len(dims),)), allowzero=1, dims=dims)

            assert after("moves", build, x, ("n", x.shape[1])) == (left or ["Shape", "Concat", "Reshape"])


class TestShapes:
    def sizes(self, op: Making, x: ir.Value, **axes: int) -> ir.Value:
        return op.Shape(x, dtype=INT64, dims=(axes.get("end", 3) - axes.get("start", 0),), **axes)

    def test_1_fixed_sizes_beside_free_ones(self) -> None:
        x, dims = np.ones((2, 3, 4), np.float32), ("n", 3, 4)
        fixed = lambda op, x: op.Gather(self.sizes(op, x), op.const([-1, 1], np.int64), axis=0, dims=(2,))  # noqa: E731
        assert after("shapes", fixed, x, dims) == []
        free = lambda op, x: op.Gather(self.sizes(op, x), op.const(0, np.int64), axis=0, dims=())  # noqa: E731
        assert after("shapes", free, x, dims) == ["Shape", "Gather"]

    def test_2_neighbouring_axes(self) -> None:
        x, dims = np.ones((2, 3, 4), np.float32), ("n", "m", 4)
        near = lambda op, x: op.Gather(self.sizes(op, x), op.const([0, 1], np.int64), axis=0, dims=(2,))  # noqa: E731
        assert after("shapes", near, x, dims) == ["Shape"]
        apart = lambda op, x: op.Gather(self.sizes(op, x), op.const([1, 0], np.int64), axis=0, dims=(2,))  # noqa: E731
        assert after("shapes", apart, x, dims) == ["Shape", "Gather"]
        cut = lambda op, x: op.Slice(self.sizes(op, x), ints(op, 1), ints(op, 9), dims=(2,))  # noqa: E731
        assert after("shapes", cut, x, dims) == ["Shape"]

    def test_2_not_before_the_opset_that_knows_it(self) -> None:
        op = Making()
        x = op.input(FLOAT, ("n", "m", 4), "x")
        sizes = op.Gather(self.sizes(op, x), op.const([0, 1], np.int64), axis=0, dims=(2,))
        model = op.model([x], [op.Identity(sizes)])
        model.graph.opset_imports[""] = 14
        run_passes(model)
        assert kinds(model) == ["Shape", "Gather"]

    def test_3_of_what_has_the_same_sizes(self) -> None:
        x, dims = np.ones((2, 3, 4), np.float32), ("n", "m", 4)
        build = lambda op, x: self.sizes(op, op.Exp(op.Cast(x, to=11, dtype=ir.DataType.DOUBLE)))  # noqa: E731
        assert after("shapes", build, x, dims) == ["Cast", "Shape"]  # each node is looked at once
        other = lambda op, x: self.sizes(op, op.Transpose(x, perm=[1, 0, 2], dims=("m", "n", 4)))  # noqa: E731
        assert after("shapes", other, x, dims) == ["Transpose", "Shape"]

    def test_4_neighbours_join(self) -> None:
        x, dims = np.ones((2, 3, 4), np.float32), ("n", "m", "k")

        def build(op: Making, x: ir.Value) -> ir.Value:
            parts = [self.sizes(op, x, start=axis, end=axis + 1) for axis in (0, 1, 2)]
            return op.Concat(*parts, ints(op, 7), axis=0, dims=(4,))

        assert after("shapes", build, x, dims) == ["Shape", "Concat"]
        turned = lambda op, x: op.Concat(  # noqa: E731
            self.sizes(op, x, start=1, end=2), self.sizes(op, x, start=0, end=1), axis=0, dims=(2,)
        )
        assert after("shapes", turned, x, dims) == ["Shape", "Shape", "Concat"]


class TestCommon:
    def test_1_computed_once(self) -> None:
        build = lambda op, x: op.Add(op.Neg(x), op.Neg(x))  # noqa: E731
        assert after("common", build) == ["Neg", "Add"]

    def test_1_other_attributes_are_another_thing(self) -> None:
        build = lambda op, x: op.Add(op.LeakyRelu(x, alpha=0.1), op.LeakyRelu(x, alpha=0.2))  # noqa: E731
        assert after("common", build) == ["LeakyRelu", "LeakyRelu", "Add"]

    def test_1_chance_is_drawn_twice(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        model = op.model([x], [op.Add(op.RandomNormalLike(x), op.RandomNormalLike(x))])
        assert run_pass(model, "common") == 0

    def test_1_two_outputs_keep_their_names(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        model = op.model([x], [op.Neg(x), op.Neg(x)])
        assert run_pass(model, "common") == 0

    def test_2_in_an_arm_what_was_computed_before(self) -> None:
        op = Making()
        test, x = op.input(BOOL, (), "b"), op.input(FLOAT, (2, 3), "x")
        negative = op.Neg(x)
        arms = []
        for name in ("Abs", "Relu"):
            inner = Making(op)
            arms.append(inner.graph([], [inner.node(name, [inner.Neg(x)], {}, FLOAT, (2, 3))]))
        out = op.If(test, then_branch=arms[0], else_branch=arms[1], dtype=FLOAT, dims=(2, 3))
        model = op.model([test, x], [op.Add(out, negative)])
        assert run_pass(model, "common") == 2
        assert sorted(kinds(model)) == ["Abs", "Add", "If", "Neg", "Relu"]

    def test_2_not_what_only_the_other_arm_computes(self) -> None:
        op = Making()
        test, x = op.input(BOOL, (), "b"), op.input(FLOAT, (2, 3), "x")
        arms = []
        for name in ("Abs", "Relu"):
            inner = Making(op)
            arms.append(inner.graph([], [inner.node(name, [inner.Neg(x)], {}, FLOAT, (2, 3))]))
        model = op.model([test, x], [op.If(test, then_branch=arms[0], else_branch=arms[1], dtype=FLOAT, dims=(2, 3))])
        assert run_pass(model, "common") == 0


class TestBranches:
    @pytest.mark.parametrize("test", [True, False])
    def test_1_the_arm_that_is_taken(self, test: bool) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        arms = []
        for name in ("Abs", "Neg"):
            inner = Making(op)
            arms.append(inner.graph([], [inner.node(name, [x], {}, FLOAT, (2, 3))]))
        out = op.If(op.const(test), then_branch=arms[0], else_branch=arms[1], dtype=FLOAT, dims=(2, 3))
        out.name = "y"
        model = op.model([x], [out])
        before = answers(model, {"x": X})
        run_passes(model)
        assert kinds(model) == ["Abs" if test else "Neg"]
        assert [value.name for value in model.graph.outputs] == ["y"]
        assert same(answers(model, {"x": X}), before)

    def test_1_what_an_arm_only_hands_through(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        inner = Making(op)
        arm = inner.graph([], [inner.Identity(x)])
        other = Making(op)
        no = other.graph([], [other.Neg(x)])
        out = op.If(op.const(True), then_branch=arm, else_branch=no, dtype=FLOAT, dims=(2, 3))
        model = op.model([x], [out])
        run_passes(model)
        assert kinds(model) == ["Identity"]

    def test_2_names_stay_unique(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        arms = []
        for name in ("Abs", "Neg"):
            inner = Making(op)
            made = inner.node(name, [x], {}, FLOAT, (2, 3))
            made.name = "same"
            arms.append(inner.graph([], [made]))
        first = op.If(op.const(True), then_branch=arms[0], else_branch=arms[1], dtype=FLOAT, dims=(2, 3))
        arms = []
        for name in ("Relu", "Neg"):
            inner = Making(op)
            made = inner.node(name, [first], {}, FLOAT, (2, 3))
            made.name = "same"
            arms.append(inner.graph([], [made]))
        second = op.If(op.const(True), then_branch=arms[0], else_branch=arms[1], dtype=FLOAT, dims=(2, 3))
        model = op.model([x], [op.Add(first, second)])
        before = answers(model, {"x": X})
        run_passes(model)
        assert kinds(model) == ["Abs", "Relu", "Add"]
        assert same(answers(model, {"x": X}), before)


class TestLoopInvariants:
    def loop(self, inside: Callable[[Making, ir.Value, ir.Value], ir.Value]) -> ir.Model:
        op = Making()
        x, rounds = op.input(FLOAT, (2, 3), "x"), op.input(INT64, (), "rounds")
        body = Making(op)
        turn, test, carried = body.input(INT64, ()), body.input(BOOL, ()), body.input(FLOAT, (2, 3))
        graph = body.graph([turn, test, carried], [body.Identity(test), inside(body, x, carried)])
        out = op.Loop(rounds, op.const(True), x, body=graph, dtype=FLOAT, dims=(2, 3))
        return op.model([x, rounds], [out])

    def test_1_once_before_the_loop(self) -> None:
        model = self.loop(lambda op, x, carried: op.Add(carried, op.Exp(op.Neg(x))))
        feeds = [{"x": X, "rounds": np.array(rounds)} for rounds in (0, 1, 4)]
        before = [answers(model, each) for each in feeds]
        run_passes(model, "loop_invariants")
        assert kinds(model)[-4:] == ["Neg", "Exp", "Loop", "Identity"] or "Exp" in kinds(model)[:4]
        body = next(node for node in model.graph if node.op_type == "Loop").attributes["body"].as_graph()
        assert [node.op_type for node in body] == ["Identity", "Add"]
        assert all(same(answers(model, each), expected) for each, expected in zip(feeds, before, strict=True))

    def test_2_not_what_may_fail_where_no_round_is_made(self) -> None:
        def inside(op: Making, x: ir.Value, carried: ir.Value) -> ir.Value:
            return op.Add(carried, op.Gather(x, op.const([5], np.int64), axis=0, dims=(1, 3)))

        model = self.loop(inside)
        run_passes(model, "constants", "loop_invariants")
        assert [node.op_type for node in model.graph] == ["Loop"]

    def test_3_what_the_body_puts_out_stays(self) -> None:
        model = self.loop(lambda op, x, carried: op.Neg(x))
        assert run_pass(model, "loop_invariants") == 0


class TestConvBatchNorm:
    def conv(self, op_type: str = "Conv", scale: float = 1.5, variance: float = 0.5, **attributes: Any) -> ir.Model:
        op, draw = Making(), torch.Generator().manual_seed(3)
        x = op.input(FLOAT, ("n", 4, 5, 5), "x")
        sizes = (6, 4, 3, 3) if op_type == "Conv" else (4, 6, 3, 3)
        weight, bias = op.weight(torch.randn(*sizes, generator=draw)), op.weight(torch.randn(6, generator=draw))
        made = op.node(op_type, [x, weight, bias], attributes, FLOAT, None)
        numbers = [torch.full((6,), scale), torch.randn(6, generator=draw), torch.randn(6, generator=draw)]
        norm = [op.weight(each) for each in (*numbers, torch.full((6,), variance))]
        return op.model([x], [op.BatchNormalization(made, *norm, dtype=FLOAT, dims=("n", 6, "h", "w"), epsilon=1e-3)])

    @pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
    def test_1_2_one_convolution_to_the_rounding_of_float32(self, op_type: str) -> None:
        model = self.conv(op_type)
        x = np.random.default_rng(0).standard_normal((2, 4, 5, 5)).astype(np.float32)
        (before,) = answers(model, {"x": x})
        run_passes(model)
        assert kinds(model) == [op_type]
        (found,) = answers(model, {"x": x})
        assert np.abs(found - before).max() <= 2e-5 * np.abs(before).max()

    @pytest.mark.parametrize(("scale", "variance"), [(0.0, 0.5), (float("nan"), 0.5), (1.0, -1.0), (1.0, float("inf"))])
    def test_refuses_factors_that_are_none(self, scale: float, variance: float) -> None:
        model = self.conv(scale=scale, variance=variance)
        assert run_pass(model, "conv_batch_norm") == 0


class TestDeadCode:
    def test_1_2_what_nobody_reads(self) -> None:
        op = Making()
        x = op.input(FLOAT, (2, 3), "x")
        op.Exp(op.Mul(x, op.weight(torch.ones(3))))
        model = op.model([x], [op.Neg(x)])
        run_pass(model, "dead_code")
        assert kinds(model) == ["Neg"]
        assert not model.graph.initializers


def test_the_lines_of_source_stay_on_what_stays() -> None:
    op = Making()
    x = op.input(FLOAT, (2, 3), "x")
    turned = op.Transpose(op.Transpose(x, perm=[1, 0], dims=(3, 2)), perm=[1, 0], dims=(2, 3))
    model = op.model([x], [op.Relu(op.Add(turned, op.Neg(turned)))])
    run_passes(model)
    lines = {node.op_type: node.metadata_props["trueport.source"] for node in model.graph}
    assert lines == {"Neg": "model.py:3", "Add": "model.py:4", "Relu": "model.py:5"}
