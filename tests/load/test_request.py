"""make_job: which leaves the arguments have, what they are called, and what becomes of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from trueport.diagnostics import Severity
from trueport.errors import UsageError
from trueport.load.job import Job
from trueport.load.request import make_job
from trueport.load.values import LeafKind

X = torch.ones(2, 3)


class Net(torch.nn.Module):
    def forward(self, x: Any, batch: Any = None, *rest: Any, n: Any = 2, flag: bool = False, **more: Any) -> Any:
        return x


def inputs(job: Job) -> list[str]:
    return [leaf.name for leaf in job.inputs]


class TestArguments:
    def test_named_after_the_parameters_in_the_order_of_forward(self) -> None:
        job = make_job(Net(), (X,), {"extra": X, "flag": True, "n": 3, "batch": X})
        assert [leaf.path for leaf in job.leaves] == ["x", "batch", "n", "flag", "extra"]

    def test_what_is_left_at_its_default_is_absent(self) -> None:
        assert inputs(make_job(Net(), (X,))) == ["x"]

    def test_rest_arguments_are_numbered(self) -> None:
        job = make_job(Net(), (X, X, X, X))
        assert [leaf.path for leaf in job.leaves] == ["x", "batch", "rest[0]", "rest[1]"]
        assert inputs(job) == ["x", "batch", "rest_0", "rest_1"]

    def test_a_positional_dict_at_the_end_is_an_argument(self) -> None:
        job = make_job(Net(), (X, {"a": X}))
        assert [leaf.path for leaf in job.leaves] == ["x", 'batch["a"]']

    def test_unless_its_keys_are_parameters_that_wait_for_a_value(self) -> None:
        """So `torch.onnx.export` takes it, and the report says so."""
        job = make_job(Net(), (X, {"n": X}))
        assert [leaf.path for leaf in job.leaves] == ["x", "n"]
        assert [found.code for found in job.diagnostics] == ["TP009"]

    @pytest.mark.parametrize("alone", [X, [X, X], {"a": X}])
    def test_anything_but_a_tuple_is_the_one_argument(self, alone: object) -> None:
        job = make_job(Net(), alone)
        args, kwargs = job.call.build([leaf.value for leaf in job.leaves])
        assert type(args[0]) is type(alone)
        assert len(args) == 1
        assert kwargs == {}

    def test_the_call_is_built_as_it_was_given(self) -> None:
        job = make_job(Net(), (X, [X, 5]), {"n": 3})
        args, kwargs = job.call.build([leaf.value for leaf in job.leaves])
        assert args[1] == [X, 5]
        assert kwargs == {"n": 3}

    def test_what_does_not_fit_forward_is_refused_with_its_signature(self) -> None:
        with pytest.raises(UsageError, match=r"do not fit Linear\.forward: .*too many positional") as caught:
            make_job(torch.nn.Linear(3, 2), (X, X))
        assert "(input: " in caught.value.diagnostics[0].seen[0]

    def test_a_scripted_module_knows_its_parameters(self) -> None:
        assert inputs(make_job(torch.jit.script(torch.nn.Linear(3, 2)), (X,))) == ["input"]

    def test_a_builtin_function_has_numbered_inputs(self) -> None:
        assert inputs(make_job(torch.sin, (X,))) == ["input_0"]


class TestNumbersAndConstants:
    def test_numbers_are_inputs_wherever_they_are(self) -> None:
        @dataclass
        class Box:
            scale: float

        job = make_job(Net(), (X, {"k": 3, "box": Box(0.5), "name": "cat", "none": None}), {"flag": True})
        kinds = {leaf.path: leaf.kind for leaf in job.leaves}
        assert kinds == {
            "x": LeafKind.TENSOR,
            'batch["k"]': LeafKind.NUMBER,
            'batch["box"].scale': LeafKind.NUMBER,
            'batch["name"]': LeafKind.CONSTANT,
            'batch["none"]': LeafKind.CONSTANT,
            "flag": LeafKind.NUMBER,
        }

    @pytest.mark.parametrize("name", ["batch_k", 'batch["k"]', "batch"])
    def test_constants_by_name_by_path_or_by_parameter(self, name: str) -> None:
        job = make_job(Net(), (X, {"k": 3, "t": X}), constants=[name])
        assert inputs(job) == ["x", "batch_t"], "naming the parameter means its numbers"

    def test_one_name_need_not_be_a_list(self) -> None:
        assert inputs(make_job(Net(), (X, 3), constants="batch")) == ["x"]

    def test_an_unknown_constant_is_refused(self) -> None:
        with pytest.raises(UsageError, match="constants names 'axis', which is no argument"):
            make_job(Net(), (X,), constants=["axis"])


class TestNames:
    def test_input_names_rename_in_order_and_may_be_fewer(self) -> None:
        assert inputs(make_job(Net(), (X, None, X), input_names=["image"])) == ["image", "rest_0"]

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["a", "a"], "calls both x and batch 'a'"),
            (["batch"], "calls both x and batch 'batch'"),
            (["a", "b", "c"], "3 names for 2 inputs"),
            ([""], "an empty name"),
        ],
    )
    def test_names_that_cannot_be_meant(self, given: list[str], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            make_job(Net(), (X, X), input_names=given)

    def test_output_names(self) -> None:
        assert make_job(Net(), (X,), output_names=["y"]).output_names == ("y",)
        with pytest.raises(UsageError, match="'y' twice"):
            make_job(Net(), (X,), output_names=["y", "y"])
        with pytest.raises(UsageError, match="the name of an input"):
            make_job(Net(), (X,), output_names=["x"])


class TestValueRanges:
    def test_by_name(self) -> None:
        job = make_job(Net(), (X, X), value_ranges={"batch": (0.0, 9.0)})
        assert [leaf.value_range for leaf in job.leaves] == [None, (0.0, 9.0)]

    def test_unknown(self) -> None:
        with pytest.raises(UsageError, match="value_ranges names 'q'"):
            make_job(Net(), (X,), value_ranges={"q": (0, 1)})


class TestWhatCannotBeGiven:
    @pytest.mark.parametrize(
        ("value", "fix"),
        [
            (np.ones(3), "torch.from_numpy(batch)"),
            (np.int64(3), "batch.item()"),
            (2j, "torch.tensor(batch)"),
            (lambda: 0, 'constants=["batch"]'),
        ],
    )
    def test_is_reported_with_a_way_out(self, value: object, fix: str) -> None:
        [diagnostic] = make_job(Net(), (X, value)).diagnostics
        assert diagnostic.code == "TP201"
        assert fix in diagnostic.fix

    def test_unless_it_is_meant_to_stay(self) -> None:
        assert make_job(Net(), (X, print), constants=["batch"]).diagnostics == ()


class TestNumbersInsideObjects:
    class Scale:
        def __init__(self, **attributes: object) -> None:
            vars(self).update(attributes)

    def test_an_object_of_numbers_alone_is_refused_until_confirmed(self) -> None:
        [diagnostic] = make_job(Net(), (X, self.Scale(factor=2.0))).diagnostics
        assert (diagnostic.code, diagnostic.weight) == ("TP201", Severity.ERROR)
        assert "batch.factor = 2.0" in diagnostic.message
        assert make_job(Net(), (X, self.Scale(factor=2.0)), constants=["batch"]).diagnostics == ()

    def test_a_counter_beside_tensors_is_kept_with_a_warning_and_a_switch_with_a_note(self) -> None:
        counter, switch = make_job(Net(), (X, self.Scale(keys=X, seen=7, on=True))).diagnostics
        assert (counter.code, counter.weight) == ("TP205", Severity.WARNING)
        assert "batch.seen = 7" in counter.message
        assert switch.weight is Severity.NOTE
        assert "batch.on = True" in switch.message
