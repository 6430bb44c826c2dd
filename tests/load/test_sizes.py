"""Every way in which torch lets a user declare free sizes, and what is said when the declaration cannot be meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.export import AdditionalInputs, Dim, ShapesCollection

from trueport.errors import UsageError
from trueport.load.job import AxisSize, FreeSize, Job, sizes_in
from trueport.load.request import make_job


class Net(torch.nn.Module):
    def forward(self, x: Any, batch: Any = None, *rest: Any, n: int = 2, **more: Any) -> Any:
        return x


X = torch.ones(2, 9)


def free(job: Job) -> dict[str, dict[int, str]]:
    return {leaf.path: {i: a.formula for i, a in leaf.axes.items()} for leaf in job.leaves if leaf.axes}


def axis(declared: object) -> AxisSize | None:
    """What `declared` makes of axis 1 (of length 9)."""
    return make_job(Net(), (X,), dynamic_shapes={"x": {1: declared}}).leaves[0].axes.get(1)


class TestOneAxis:
    def test_a_dim_has_its_name_and_range(self) -> None:
        assert axis(Dim("b", min=2, max=64)) == AxisSize.of(FreeSize("b", 2, 64))

    def test_a_dim_without_bounds_may_be_empty(self) -> None:
        assert axis(Dim("b")) == AxisSize.of(FreeSize("b", 0, None))

    def test_a_derived_dim(self) -> None:
        assert axis(2 * Dim("half", max=50) + 1) == AxisSize("2*half + 1", (FreeSize("half", 0, 50),))

    def test_a_formula_of_one_name(self) -> None:
        assert axis("2*half + 1") == AxisSize("2*half + 1", (FreeSize("half"),))

    def test_a_name_with_a_dash_is_a_name(self) -> None:
        assert axis("batch-size") == AxisSize.of(FreeSize("batch-size"))

    def test_hints_are_named_after_the_axis(self) -> None:
        assert axis(Dim.DYNAMIC) == AxisSize.of(FreeSize("x_dim1"))
        assert axis(Dim.AUTO) == AxisSize.of(FreeSize("x_dim1", auto=True))
        assert axis(Dim.DYNAMIC(min=3, max=12)) == AxisSize.of(FreeSize("x_dim1", 3, 12))

    def test_a_name(self) -> None:
        assert axis("seq") == AxisSize.of(FreeSize("seq"))

    @pytest.mark.parametrize("fixed", [None, 9, Dim.STATIC])
    def test_fixed(self, fixed: object) -> None:
        assert axis(fixed) is None


class TestFormulas:
    """`x` has 2 rows and 9 columns, `batch` 11 and 4."""

    CALL = (X, torch.ones(11, 4))

    @pytest.mark.parametrize(
        ("columns", "text", "is_at"),
        [
            ("s", "p + s", {"p": 5, "s": 7, "long": 12}),
            (Dim("s", min=3), "s+p", {"p": 5, "s": 7, "long": 12}),
            ("s", "p*s//2 + 2", {"p": 5, "s": 7, "long": 19}),
            ("s", "s//2 + 7", {"p": 2, "s": 7, "long": 10}),
        ],
    )
    def test_an_axis_is_as_long_as_it_says(self, columns: object, text: str, is_at: dict[str, int]) -> None:
        job = make_job(Net(), self.CALL, dynamic_shapes=({0: "p", 1: columns}, {0: text}))
        assert {size.name for size in job.free_sizes} == {"p", "s"}
        assert sizes_in(job.leaves, self.CALL) == {"p": 2, "s": 9}
        assert job.leaves[1].axes[0].length(is_at) == is_at["long"]

    def test_the_range_of_a_size_is_that_of_its_dim(self) -> None:
        job = make_job(Net(), self.CALL, dynamic_shapes=({0: "p", 1: Dim("s", max=20)}, {0: "p + s"}))
        assert FreeSize("s", 0, 20) in job.free_sizes

    def test_a_size_that_only_a_formula_has(self) -> None:
        job = make_job(Net(), self.CALL, dynamic_shapes=({0: "p"}, {0: "p + new"}))
        assert sizes_in(job.leaves, self.CALL) == {"p": 2, "new": 9}

    def test_a_name_that_looks_like_a_formula_of_nothing(self) -> None:
        job = make_job(Net(), self.CALL, dynamic_shapes=({0: "past + new"}, None))
        assert job.free_sizes == (FreeSize("past + new"),)

    def test_a_minimum_that_is_enough_is_proposed(self) -> None:
        with pytest.raises(UsageError) as caught:
            make_job(Net(), self.CALL, dynamic_shapes=({1: "s"}, {1: "2*s - 14"}))
        assert "min=7" in str(caught.value.diagnostics[0].fix)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("p + s + 1", "axis 0 of batch is declared to be p [+] s [+] 1, which is 12 for p = 2, s = 9, but is 11"),
            ("p + q//4", "axis 0 of batch is declared to be p [+] q//4, and nothing tells q"),
            ("s - p", "axis 0 of batch: 's - p' is no formula of sizes"),
            ("s//p", "axis 0 of batch: 's//p' is no formula of sizes"),
            ("s//0", "axis 0 of batch: 's//0' is no formula of sizes"),
            ("max(p, s)", "is no formula of sizes"),
            ("s - 3", "axis 0 of batch is declared to be s - 3, which is -3 where s is 0"),
        ],
    )
    def test_what_the_example_contradicts(self, text: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            make_job(Net(), self.CALL, dynamic_shapes=({0: "p", 1: "s"}, {0: text}))


class TestNesting:
    def test_by_name_and_by_position(self) -> None:
        for declared in ({"x": {0: "b"}, "batch": (None, "s")}, ({0: "b"}, (None, "s")), [{0: "b"}, [None, "s"]]):
            assert free(make_job(Net(), (X, X), dynamic_shapes=declared)) == {"x": {0: "b"}, "batch": {1: "s"}}

    def test_nested_like_the_argument(self) -> None:
        batch = {"ids": X, "more": [X, (X,)]}
        job = make_job(Net(), (X, batch), dynamic_shapes={"batch": {"ids": {0: "b"}, "more": [None, ({1: "s"},)]}})
        assert free(job) == {'batch["ids"]': {0: "b"}, 'batch["more"][1][0]': {1: "s"}}

    def test_a_dataclass_by_field_or_by_another_of_its_kind(self) -> None:
        @dataclass
        class Batch:
            ids: Any
            mask: Any

        for declared in ({"ids": {0: "b"}}, Batch({0: "b"}, None), [{0: "b"}, None]):
            job = make_job(Net(), (X, Batch(X, X)), dynamic_shapes={"batch": declared})
            assert free(job) == {"batch.ids": {0: "b"}}

    def test_a_cache_by_a_flat_list_over_its_tensors_as_torch_counts_them(self) -> None:
        class Cache:
            def __init__(self) -> None:
                self.layers = [(X, X), (X, X)]
                self.seen = 2

        job = make_job(Net(), (X,), {"past": Cache()}, dynamic_shapes={"past": [{1: "t"}] * 4})
        assert len(free(job)) == 4
        assert {size.name for size in job.free_sizes} == {"t"}

    def test_star_arguments(self) -> None:
        declared = {"rest": ({0: "b"}, None), "kwargs": {"extra": {0: "b"}}}
        job = make_job(Net(), (X, X, X, X), {"extra": X}, dynamic_shapes=declared)
        assert free(job) == {"rest[0]": {0: "b"}, "extra": {0: "b"}}

    def test_by_the_name_of_an_input(self) -> None:
        job = make_job(Net(), (X, {"ids": X}), dynamic_shapes={"tokens": {0: "b"}}, input_names=["x", "tokens"])
        assert free(job) == {'batch["ids"]': {0: "b"}}

    def test_nothing_declared_for_a_parameter_that_was_not_given(self) -> None:
        for declared in (({0: "b"}, None, {}), {"x": {0: "b"}, "batch": None, "n": None}):
            assert free(make_job(Net(), (X,), dynamic_shapes=declared)) == {"x": {0: "b"}}

    def test_numbers_are_inputs_whatever_is_declared(self) -> None:
        for declared in (Dim.DYNAMIC, None, {}):
            assert make_job(Net(), (X, 3), dynamic_shapes=({0: "b"}, declared)).inputs[1].value == 3

    def test_torchs_own_collections(self) -> None:
        collected = ShapesCollection()
        collected[X] = {0: Dim("b")}
        assert free(make_job(Net(), (X,), dynamic_shapes=collected)) == {"x": {0: "b"}}
        more = AdditionalInputs()
        more.add((torch.ones(5, 9),))  # type: ignore[no-untyped-call]
        assert free(make_job(Net(), (X,), dynamic_shapes=more)) == {"x": {0: "x_dim0"}}


class TestSharing:
    def test_the_same_dim_or_name_is_one_size(self) -> None:
        b = Dim("b")
        job = make_job(Net(), (X, X), dynamic_shapes=({0: b}, {0: "b"}))
        assert job.free_sizes == (FreeSize("b"),)

    def test_hints_are_a_size_each(self) -> None:
        job = make_job(Net(), (X, X), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}))
        assert [size.name for size in job.free_sizes] == ["x_dim0", "batch_dim0"]

    def test_a_hint_does_not_run_into_a_name_of_the_users(self) -> None:
        job = make_job(Net(), (X,), dynamic_shapes=({0: "x_dim1", 1: Dim.DYNAMIC},))
        assert [size.name for size in job.free_sizes] == ["x_dim1", "x_dim1_2"]

    def test_a_size_and_one_derived_from_it(self) -> None:
        half = Dim("half")
        job = make_job(Net(), (X, torch.ones(4)), dynamic_shapes=({1: 2 * half + 1}, {0: half}))
        assert job.free_sizes == (FreeSize("half"),)


class TestDynamicAxes:
    def test_names_and_lists(self) -> None:
        job = make_job(Net(), (X, X), dynamic_axes={"x": {0: "b", -1: "s"}, "batch": [1]})
        assert free(job) == {"x": {0: "b", 1: "s"}, "batch": {1: "batch_dim1"}}

    def test_outputs_are_left_out(self) -> None:
        job = make_job(Net(), (X,), dynamic_axes={"x": {0: "b"}, "y": {0: "b"}}, output_names=["y"])
        assert free(job) == {"x": {0: "b"}}

    def test_by_the_given_input_names(self) -> None:
        assert free(make_job(Net(), (X,), dynamic_axes={"in": [0]}, input_names=["in"])) == {"x": {0: "in_dim0"}}


class TestRefused:
    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            ({"y": {0: "b"}}, "'y', which is not among the arguments"),
            ({"x": {2: "b"}}, r"x has no axis 2: its shape is \[2, 9\]"),
            ({"x": {"0": "b"}}, "'0' is not an axis"),
            ({"x": {0: Dim("b", min=4)}}, r"axis 0 of x: the example has b = 2, outside its declared range 4\.\."),
            ({"x": {0: Dim("b", max=1)}}, r"outside its declared range 0\.\.1"),
            ({"x": {0: 3}}, "axis 0 of x is declared to be 3, but is 2 in the example"),
            ({"x": {0: 2 * Dim("h") + 1}}, r"axis 0 of x is declared to be 2\*h \+ 1, which 2 "),
            ({"x": {0: "b", 1: "b"}}, "axis 0 of x and for axis 1 of x, but the example has 2 there and 9 here"),
            ({"x": {0: Dim("b"), 1: Dim("b", max=20)}}, "two sizes are both called 'b'"),
            ({"x": {0: 1.5}}, "gives 1.5 for axis 0 of x"),
            ({"x": ("b",)}, "has 1 entries for a tensor of 2 axes"),
            ({"x": Dim.DYNAMIC}, "a tensor needs its axes named"),
            ({"batch": {0: "b"}}, "batch is a list of several values"),
            ({"batch": [{0: "b"}]}, "has 1 entries, but there are 2 parts"),
            (({}, None, {0: "b"}), "has 3 entries, but 2 arguments were given"),
            ("b", "must be a dict by parameter name or a tuple by position"),
        ],
    )
    def test_with_the_argument_and_the_axis(self, declared: object, said: str) -> None:
        call = (X, [X, X])
        with pytest.raises(UsageError, match=said) as caught:
            make_job(Net(), call, dynamic_shapes=declared)
        assert caught.value.diagnostics[0].code == "TP001"

    def test_a_typing_mistake_is_guessed(self) -> None:
        with pytest.raises(UsageError) as caught:
            make_job(Net(), (X, X), dynamic_shapes={"bacth": {0: "b"}})
        assert caught.value.diagnostics[0].fix == "did you mean 'batch'?"

    def test_a_size_for_a_number(self) -> None:
        with pytest.raises(UsageError, match="batch, which is a Python number"):
            make_job(Net(), (X, 3), dynamic_shapes={"batch": {0: "b"}})

    def test_both_ways_at_once(self) -> None:
        with pytest.raises(UsageError, match="both dynamic_shapes and dynamic_axes"):
            make_job(Net(), (X,), dynamic_shapes={"x": {0: "b"}}, dynamic_axes={"x": [0]})

    def test_an_unknown_name_in_dynamic_axes(self) -> None:
        with pytest.raises(UsageError, match="'logits', which is no input"):
            make_job(Net(), (X,), dynamic_axes={"logits": [0]})
