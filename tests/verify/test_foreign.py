"""Files that somebody else made: judged like our own, but for what their makers never promised."""

from __future__ import annotations

import pytest
import torch
from onnx import helper
from torch import nn
from torch.export import Dim

import trueport
from tests.verify.onnx_models import FLOAT, INT64, port, scaled, write
from trueport.load.request import make_job
from trueport.load.values import LeafKind
from trueport.source import Where
from trueport.verify.decisions.instrument import functions_run_by
from trueport.verify.runtime.matching import DoesNotFit, match_inputs, match_outputs, with_sizes_of
from trueport.verify.runtime.sandbox import Port


class Twice(nn.Module):
    def forward(self, x):
        return 2 * x


def test_inputs_by_name_then_by_order_then_without_the_numbers():
    def forward(x, n, y):
        return x

    given = make_job(forward, (torch.rand(2), 3, torch.rand(2))).leaves
    ports = [Port("y", "tensor(float)", (2,)), Port("x", "tensor(float)", (2,))]
    assert [at for _, at in match_inputs(ports, given).pairs] == [2, 0]
    ports = [Port("a", "tensor(float)", (2,)), Port("b", "tensor(int64)", ()), Port("c", "tensor(float)", (2,))]
    assert [at for _, at in match_inputs(ports, given).pairs] == [0, 1, 2]
    assert [at for _, at in match_inputs([ports[0], ports[2]], given).pairs] == [0, 2]
    with pytest.raises(DoesNotFit, match="the file takes"):
        match_inputs(ports[:1], given)


def test_outputs_by_name_or_order_and_what_is_no_output():
    ports = [Port("b", "tensor(float)", ()), Port("a", "tensor(float)", ())]
    values = [torch.rand(1), None, torch.rand(1)]
    assert match_outputs(ports, ["a", "none", "b"], values) == (("b", 2), ("a", 0))
    assert match_outputs(ports, ["x", "none", "y"], values) == (("b", 0), ("a", 2))
    with pytest.raises(DoesNotFit, match="the file has 1 outputs, eager returns 2"):
        match_outputs(ports[:1], ["a", "none", "b"], values)


def test_the_files_open_sizes_are_free_and_one_name_is_one_size():
    def forward(x, y):
        return x + y

    job = make_job(forward, (torch.rand(2, 3), torch.rand(2, 3)))
    ports = [Port("x", "tensor(float)", ("batch", 3)), Port("y", "tensor(float)", ("batch", "width"))]
    made = with_sizes_of(match_inputs(ports, job.leaves), job)
    assert [size.name for size in made.free_sizes] == ["batch", "width"]
    assert made.leaves[0].kind is LeafKind.TENSOR


class Tidied(nn.Module):
    def forward(self, x):
        return 2 * torch.nan_to_num(x, nan=0.0, posinf=5.0, neginf=-5.0)


def test_nan_and_infinities_are_tried_on_request_and_have_to_stay_in_their_places(tmp_path):
    doubled = scaled(tmp_path / "m.onnx", 2.0)
    assert trueport.verify(doubled, Tidied(), (torch.rand(2, 3),)).ok
    found = trueport.verify(doubled, Tidied(), (torch.rand(2, 3),), nonfinite=True).errors
    assert [error.code for error in found] == ["TP805"]
    assert "nan" in found[0].message
    checked = trueport.verify(doubled, Twice(), (torch.rand(2, 3),), nonfinite=True)
    assert checked.ok
    assert {"some of them NaN", "some of them infinite"} <= {check.family for check in checked.checks}


def test_a_file_that_agrees_on_no_input_is_followed_as_far_as_it_has_eagers_values(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "two"], ["double"]), helper.make_node("Sub", ["double", "one"], ["y"])]
    constants = {"two": (FLOAT, [], [2.0]), "one": (FLOAT, [], [1.0])}
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y")], constants)
    (found,) = trueport.verify(path, Layers(), (torch.rand(2, 3),)).errors
    assert found.where.line == Layers.forward.__code__.co_firstlineno + 3
    assert "begins at `add`, from which on the file has none of eager's values" in found.seen


def test_what_we_do_around_the_model_is_no_place_where_a_difference_begins(tmp_path):
    """The file's first value is the input itself, while that is positive, and so is the copy that eager is given."""
    nodes = [helper.make_node("Relu", ["x"], ["above"]), helper.make_node("Mul", ["above", "two"], ["y"])]
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y")], {"two": (FLOAT, [], [2.0])})
    (found,) = trueport.verify(path, Twice(), (torch.rand(2, 3),)).errors
    assert found.where == Where(__file__, Twice.forward.__code__.co_firstlineno + 1)
    assert any(fact.startswith("begins at `mul`") for fact in found.seen), found.seen


class Foremost(nn.Module):
    def forward(self, x):
        return (x > 0).float().topk(3).indices  # many are equal, and torch does not take the first of them


@pytest.mark.parametrize("largest", [1, 0])
def test_ties_that_arise_inside_the_model_are_no_difference_and_a_wrong_order_is(tmp_path, largest):
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("Cast", ["above"], ["flags"], to=FLOAT),
        helper.make_node("TopK", ["flags", "three"], ["values", "y"], axis=1, largest=largest),
    ]
    constants = {"zero": (FLOAT, [], [0.0]), "three": (INT64, [1], [3])}
    ports = [port("x", FLOAT, ["batch", 10])], [port("y", INT64, ["batch", 3])]
    report = trueport.verify(write(tmp_path / "m.onnx", nodes, *ports, constants), Foremost(), (torch.randn(2, 10),))
    assert report.ok == bool(largest)


def helper_function(x):
    return x if x.sum() > 0 else other_arm(x)


def other_arm(x):
    return -x


def test_functions_that_only_another_arm_calls_are_found_too():
    found = {code.co_name for code in functions_run_by(lambda: helper_function(torch.ones(2)))}
    assert {"helper_function", "other_arm"} <= found
    assert "sum" not in found


class Rows(nn.Module):
    def forward(self, x):
        return x.var(0)


def test_below_two_a_dynamic_size_is_promised_by_nobody_and_a_difference_is_a_warning(tmp_path):
    """torch's unbiased variance of one row is nan; of ReduceMean and Div it is 0."""
    nodes = [
        helper.make_node("Shape", ["x"], ["count"], start=0, end=1),
        helper.make_node("Sub", ["count", "one"], ["less"]),
        helper.make_node("Max", ["less", "one"], ["at_least"]),
        helper.make_node("Cast", ["at_least"], ["divisor"], to=FLOAT),
        helper.make_node("ReduceMean", ["x", "axis"], ["mean"], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["gap"]),
        helper.make_node("ReduceSumSquare", ["gap", "axis"], ["sum"], keepdims=0),
        helper.make_node("Div", ["sum", "divisor"], ["y"]),
    ]
    constants = {"one": (INT64, [1], [1]), "axis": (INT64, [1], [0])}
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y", FLOAT, [3])], constants)
    report = trueport.verify(path, Rows(), (torch.rand(4, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert report.ok
    assert "TP805" in [found.code for found in report.warnings]
    promised = trueport.verify(path, Rows(), (torch.rand(4, 3),), dynamic_shapes=({0: Dim("n", min=1)},))
    assert [found.code for found in promised.errors] == ["TP805"]


class Flat(nn.Module):
    def forward(self, x):
        return 3 * x if x.max() - x.min() < 1e-3 and x.sum() > 5 else 2 * x


def test_a_branch_that_a_single_row_shows_is_lost_for_two_as_well(tmp_path):
    """What is found below two is tried again with the rows repeated: here the size has nothing to do with it."""
    path = scaled(tmp_path / "m.onnx", 2.0)
    check = trueport.verify(path, Flat(), (torch.rand(4, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    (found,) = check.errors
    assert found.code == "TP805"
    assert found.where.line == Flat.forward.__code__.co_firstlineno + 1


def test_what_eager_gives_with_autograd_on_is_right_as_well(tmp_path):
    class Either(nn.Module):
        def forward(self, x):
            return 2 * x if torch.is_grad_enabled() else 2 * x.floor()

    report = trueport.verify(scaled(tmp_path / "m.onnx"), Either(), (torch.rand(2, 3),))
    assert not report.errors
    assert any("autograd on" in found.message for found in report.diagnostics)


def test_state_is_nothing_that_a_file_can_keep(tmp_path):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return 2 * x + self.calls - 1

    report = trueport.verify(scaled(tmp_path / "m.onnx"), Counts(), (torch.rand(2, 3),))
    assert [found.code for found in report.errors] == ["TP203"]


def test_a_way_that_was_not_found_is_said(tmp_path):
    class Hidden(nn.Module):
        def forward(self, x):
            if x.abs().sum() < 0:
                return x
            return 2 * x

    report = trueport.verify(scaled(tmp_path / "m.onnx"), Hidden(), (torch.rand(2, 3),))
    assert report.ok
    assert [found.code for found in report.warnings] == ["TP810"]


class Layers(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y.clamp(max=10.0)  # <- the file has no upper bound
        return z + 1


@pytest.mark.parametrize("example", [torch.rand(2, 3), torch.full((2, 3), 9.0)], ids=["agrees", "fails itself"])
def test_a_difference_without_a_decision_is_followed_by_the_values_that_the_file_still_has(tmp_path, example):
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["double"]),
        helper.make_node("Identity", ["double"], ["bounded"]),
        helper.make_node("Add", ["bounded", "one"], ["y"]),
    ]
    constants = {"two": (FLOAT, [], [2.0]), "one": (FLOAT, [], [1.0])}
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y")], constants)
    (found,) = trueport.verify(path, Layers(), (example,)).errors
    assert found.code == "TP805"
    assert found.where.line == Layers.forward.__code__.co_firstlineno + 2
    assert "begins at `clamp`, whose value the file has on other inputs and not on this one" in found.seen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", ["nowhere.py", "<string>", "<stdin>"])
def test_branches_without_a_source_are_told(tmp_path, file):
    space: dict[str, object] = {}
    text = "def forward(x):\n    if x.sum() > 1.234e12:\n        return x * 3\n    return -x\n"
    exec(compile(text, file, "exec"), space)
    path = tmp_path / "net.onnx"
    write(path, [helper.make_node("Neg", ["x"], ["y"])], [port("x", shape=(2, 3))], [port("y", shape=(2, 3))], {})
    report = trueport.verify(path, space["forward"], (torch.rand(2, 3),))
    (found,) = report.diagnostics
    assert found.code == "TP810"
    assert "no source" in found.message
    assert found.place.where.line == 1


def test_a_difference_in_a_model_with_vmap_is_told(tmp_path):
    """What `vmap` has inside cannot be looked at afterwards; the search for where a difference begins leaves it out."""

    class Rows(torch.nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = torch.nn.Parameter(weight)

        def forward(self, x):
            first = x[0] * 2  # the file has a value as large as one inside of vmap
            return torch.vmap(lambda rows: (rows @ self.weight).relu() * 3)(x), first

    x = torch.arange(48.0).reshape(3, 4, 4)
    trueport.export(Rows(torch.eye(4)), (x,), tmp_path / "rows.onnx")
    report = trueport.verify(tmp_path / "rows.onnx", Rows(torch.full((4, 4), 0.5)), (x,))
    assert [found.code for found in report.diagnostics if found.is_error] == ["TP805"]
