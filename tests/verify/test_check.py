"""A written model against eager: the example first, then inputs that eager accepts, and one finding per difference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from onnx import helper

import trueport
from tests.verify.onnx_models import (
    BATCH,
    BFLOAT16,
    BOOL,
    FLOAT,
    INT64,
    endless,
    greedy,
    job,
    leaf,
    port,
    scaled,
    write,
)
from trueport.load.job import AxisSize, FreeSize, Job
from trueport.verify.check import check_model
from trueport.verify.faults.findings import hardly_checked
from trueport.verify.inputs.values import draw_tensor
from trueport.verify.judging.reference import Reference
from trueport.verify.options import Budget, Insight, Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.sandbox import Limits

QUICK = Limits(load_seconds=30, run_seconds=0.5, memory_bytes=300 << 20)


def flat(outputs: object) -> list:
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def check(path: Path, work: Job, eager: Callable, outputs=("y",), **more) -> CheckResult:
    def run(values):
        with torch.no_grad():
            return eager(*values)

    return check_model(path, work, Reference(run, flat), outputs, **more)


def codes(result: CheckResult) -> list[str]:
    return [finding.code for finding in result.diagnostics]


def batch_of(rows: int = 2) -> Job:
    return job(leaf("x", torch.randn(rows, 3), {0: BATCH}))


def test_a_right_model_agrees_on_the_example_and_on_other_sizes_and_values(tmp_path):
    result = check(scaled(tmp_path / "m.onnx"), batch_of(), lambda x: 2 * x)
    assert result.agrees
    assert result.diagnostics == ()
    assert str(result.checked[0]) == "the example"
    assert len(result.checked) >= 5
    assert len(set(result.sizes_seen("batch"))) >= 3
    assert {0, 1} <= set(result.sizes_seen("batch"))
    assert {"zeros", "large"} <= {checked.family for checked in result.checked}


def test_floats_that_become_wide_integers_are_tried_beyond_32_bits(tmp_path):
    def cast(to):
        clip = helper.make_node("Clip", ["x", "low", "high"], ["c"])
        nodes = [clip, helper.make_node("Cast", ["c"], ["i"], to=to), helper.make_node("Cast", ["i"], ["y"], to=INT64)]
        ends = {"low": (FLOAT, [], [-(2.0**31)]), "high": (FLOAT, [], [2147483520.0])}
        return write(tmp_path / "m.onnx", nodes, [port("x")], [port("y", INT64)], ends)

    wrong = check(cast(onnx.TensorProto.INT32), batch_of(), lambda x: x.to(torch.int64))
    assert codes(wrong) == ["TP805"]
    assert not any(abs(each) > 2**31 for each in _largest(batch_of(), lambda x: x.floor(), tmp_path))


def _largest(work, eager, tmp_path):
    """How large what eager is given gets: a model without such a cast is left in peace."""
    seen = []

    def run(x):
        seen.append(float(x.abs().max()) if x.numel() else 0.0)
        return eager(x)

    node = helper.make_node("Floor", ["x"], ["y"])
    assert check(write(tmp_path / "f.onnx", [node], [port("x")], [port("y")], {}), work, run).agrees
    return seen


@pytest.mark.parametrize(("times", "agrees"), [(2.0, True), (3.0, False)])
def test_an_infinity_that_is_no_overflow_excuses_nothing_beside_it(tmp_path, times, agrees):
    """float16 overflows in eager and not in the runtime: but the logarithm of zero is no overflow."""
    half = onnx.TensorProto.FLOAT16
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Log", ["r"], ["y"]),
        helper.make_node("Mul", ["x", "two"], ["z"]),
    ]
    outputs = [port("y", half), port("z", half)]
    path = write(tmp_path / "m.onnx", nodes, [port("x", half)], outputs, {"two": (half, [], [2.0])})
    work = job(leaf("x", torch.rand(2, 3).half(), {0: BATCH}))
    result = check(path, work, lambda x: (x.relu().log(), x * (2.0 if len(x) == 2 else times)), ("y", "z"))
    assert result.agrees == agrees
    assert not result.undecided


def test_a_wrong_value_names_the_output_the_input_and_the_worst_element(tmp_path):
    result = check(scaled(tmp_path / "m.onnx", 2.001), batch_of(), lambda x: 2 * x)
    assert codes(result) == ["TP805"]
    assert not result.agrees
    finding = result.diagnostics[0]
    assert "`y` differs from eager by" in finding.message
    assert finding.seen[0] == "input: the example"
    assert "elements differ" in finding.seen[1]
    assert "with the runtime's optimisations off: the same" in finding.seen
    assert any("reference evaluator: differs from eager as well" in fact for fact in finding.seen)


def test_a_branch_on_a_size_that_the_example_did_not_take_is_found_by_another_size(tmp_path):
    """`if x.shape[0] > 6:` baked in: the peers' largest silent failure."""
    result = check(scaled(tmp_path / "m.onnx"), batch_of(), lambda x: 2 * x if x.shape[0] <= 6 else x)
    result_beyond = check(
        scaled(tmp_path / "m.onnx"),
        batch_of(),
        lambda x: 2 * x if x.shape[0] <= 40 else x,
        insight=Insight(extra_sizes=[{"batch": 41}]),
    )
    for found in (result, result_beyond):
        assert codes(found) == ["TP805"]
        assert "batch=" in found.diagnostics[0].seen[0]
    assert "batch=41" in result_beyond.diagnostics[0].seen[0]
    assert "1 other input agrees" in result_beyond.diagnostics[0].seen


def test_a_branch_on_values_is_found_by_another_family(tmp_path):
    work = job(leaf("x", torch.rand(2, 3)))
    result = check(scaled(tmp_path / "m.onnx"), work, lambda x: 2 * x if x.sum() > 0 else -x)
    assert codes(result) == ["TP805"]


def test_wrong_shape_and_wrong_dtype(tmp_path):
    path = scaled(tmp_path / "m.onnx")
    assert codes(check(path, batch_of(), lambda x: (2 * x).reshape(-1))) == ["TP803"]
    result = check(path, batch_of(), lambda x: 2 * x.double())
    assert codes(result) == ["TP804"]
    assert "`y` is float32, eager gives float64" in result.diagnostics[0].message


def test_a_size_that_was_baked_in_is_an_input_that_the_runtime_refuses(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y", FLOAT, [3, 2])], {"shape": (INT64, [2], [3, 2])})
    result = check(path, batch_of(), lambda x: x.reshape(3, -1))
    assert codes(result) == ["TP802"]
    assert "batch=" in result.diagnostics[0].message
    assert [checked.family for checked in result.checked] == ["the example"]


def test_an_endless_loop_ends_with_its_limit_and_the_next_check_works(tmp_path):
    result = check(endless(tmp_path / "m.onnx"), batch_of(), lambda x: x, limits=QUICK)
    assert codes(result) == ["TP806"]
    assert "no answer within 0.5 s while running the example" in result.diagnostics[0].message
    assert check(scaled(tmp_path / "n.onnx"), batch_of(), lambda x: 2 * x).agrees


def test_memory_beyond_the_limit(tmp_path):
    work = job(leaf("n", torch.tensor([1 << 28])))
    result = check(greedy(tmp_path / "m.onnx"), work, lambda n: torch.tensor(0.0), limits=QUICK)
    assert codes(result) == ["TP808"]


def test_a_file_that_cannot_be_loaded(tmp_path):
    corrupt = tmp_path / "m.onnx"
    corrupt.write_bytes(b"\xff" * 100)
    result = check(corrupt, batch_of(), lambda x: x)
    assert codes(result) == ["TP801"]
    assert not result.agrees


def test_inputs_and_outputs_must_be_those_of_the_model(tmp_path):
    path = scaled(tmp_path / "m.onnx")
    other = job(leaf("pixels", torch.randn(2, 3)))
    result = check(path, other, lambda x: 2 * x)
    assert codes(result) == ["TP901"]
    assert "lacks `pixels` and it has `x` besides" in result.diagnostics[0].message
    assert "lacks `z`" in check(path, batch_of(), lambda x: (2 * x, x), ("y", "z")).diagnostics[0].message


def test_eager_that_returns_more_on_some_inputs_is_told(tmp_path):
    result = check(scaled(tmp_path / "m.onnx"), batch_of(), lambda x: 2 * x if len(x) == 2 else (2 * x, x))
    assert codes(result) == ["TP803"]


def test_what_eager_refuses_is_no_test(tmp_path):
    def only_even(x):
        if len(x) % 2:
            raise ValueError("an even batch, please")
        return 2 * x

    result = check(scaled(tmp_path / "m.onnx"), batch_of(4), only_even)
    assert result.agrees
    assert result.refused_by_eager > 0
    assert all(size % 2 == 0 for size in result.sizes_seen("batch"))
    assert len(result.sizes_seen("batch")) >= 3


def test_a_size_that_eager_never_moves_is_said(tmp_path):
    def only_two(x):
        if len(x) != 2:
            raise ValueError("two rows, please")
        return 2 * x

    result = check(scaled(tmp_path / "m.onnx"), batch_of(), only_two)
    assert codes(result) == ["TP809"]
    assert "`batch` is declared free" in result.diagnostics[0].message
    assert result.agrees


def test_a_model_that_only_takes_its_example_is_said_to_be_hardly_checked(tmp_path):
    example = torch.randn(2, 3)

    def only_this(x):
        if not torch.equal(x, example):
            raise ValueError("not mine")
        return 2 * x

    result = check(scaled(tmp_path / "m.onnx"), job(leaf("x", example, {0: BATCH})), only_this)
    assert codes(result) == ["TP809"]
    assert "on no other input" in result.diagnostics[0].message


def test_an_example_that_is_not_decided_is_not_said_to_agree():
    told = hardly_checked(0, ("the example: rounding",), 25, example_agrees=False)
    assert "agrees" not in told.message
    assert "not on the example" in told.message


def test_an_example_that_eager_refuses_is_the_callers_affair(tmp_path):
    def refuse(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        check(scaled(tmp_path / "m.onnx"), batch_of(), refuse)


def test_a_model_may_write_to_its_inputs(tmp_path):
    work = batch_of()
    before = work.leaves[0].value.clone()
    assert check(scaled(tmp_path / "m.onnx"), work, lambda x: x.mul_(2)).agrees
    assert torch.equal(work.leaves[0].value, before)


def test_python_numbers_are_fed_as_the_file_declares_them(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "rate"], ["scaled"]),
        helper.make_node("Cast", ["n"], ["steps"], to=FLOAT),
        helper.make_node("Add", ["scaled", "steps"], ["sum"]),
        helper.make_node("Where", ["flag", "sum", "x"], ["y"]),
    ]
    ports = [port("x"), port("rate", FLOAT, []), port("n", INT64, []), port("flag", BOOL, [])]
    path = write(tmp_path / "m.onnx", nodes, ports, [port("y")], {})
    work = job(leaf("x", torch.randn(2, 3), {0: BATCH}), leaf("rate", 0.5), leaf("n", 3), leaf("flag", True))
    assert check(path, work, lambda x, rate, n, flag: x * rate + n if flag else x).agrees
    # A number that the export baked in is found, because numbers are varied too.
    assert codes(check(path, work, lambda x, rate, n, flag: x * 0.5 + n if flag else x)) == ["TP805"]


def test_lifted_state_is_fed_as_it_was(tmp_path):
    node = helper.make_node("Add", ["x", "count"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x"), port("count", FLOAT, [])], [port("y")], {})
    result = check(path, batch_of(), lambda x: x + 7, fixed_feeds={"count": torch.tensor(7.0)})
    assert result.agrees


def test_bfloat16_is_compared_in_its_own_precision(tmp_path):
    node = helper.make_node("Identity", ["x"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x", BFLOAT16)], [port("y", BFLOAT16)], {})
    work = job(leaf("x", torch.randn(2, 3).bfloat16(), {0: BATCH}))
    result = check(path, work, lambda x: x.clone())
    assert result.agrees
    assert result.tolerances["y"].relative == 4e-2
    assert codes(check(path, work, lambda x: x * 1.2)) == ["TP805"]


def test_sizes_that_the_file_gives_one_name_move_together(tmp_path):
    """Capture found that both must be equal and said so; eager would also broadcast a single row."""
    node = helper.make_node("Add", ["x", "z"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x"), port("z")], [port("y")], {})
    work = job(
        leaf("x", torch.randn(2, 3), {0: BATCH}), leaf("z", torch.randn(2, 3), {0: AxisSize.of(FreeSize("other"))})
    )
    result = check(path, work, lambda x, z: x + z)
    assert result.agrees
    assert all(checked.sizes["batch"] == checked.sizes["other"] for checked in result.checked)


def test_an_automatic_size_may_be_fixed_by_the_file_and_a_declared_one_may_not(tmp_path):
    node = helper.make_node("Neg", ["x"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x", FLOAT, [2, 3])], [port("y", FLOAT, [2, 3])], {})
    automatic = AxisSize.of(FreeSize("batch", auto=True))
    assert check(path, job(leaf("x", torch.randn(2, 3), {0: automatic})), lambda x: -x).agrees
    assert codes(check(path, batch_of(), lambda x: -x)) == ["TP802"]


def test_the_search_ends_with_its_budget(tmp_path):
    runs = []

    def only_the_example_size(x):
        runs.append(len(x))
        if len(runs) > 1:
            raise ValueError("enough")
        return 2 * x

    check(
        scaled(tmp_path / "m.onnx"),
        batch_of(),
        only_the_example_size,
        options=Options(budget=Budget(needed=7, units=0)),
    )
    assert len(runs) == 1 + 2 + 7  # the example, twice to count its work, and what was drawn
    result = check(scaled(tmp_path / "m.onnx"), batch_of(), lambda x: 2 * x, options=Options(budget=Budget(inputs=0)))
    assert len(result.checked) == 5


def test_what_the_order_of_a_sum_decides_is_not_decided_and_said(tmp_path):
    """Where the parts of a sum cancel, what is left is a matter of the order in which they were added."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["z"], keepdims=1),
        helper.make_node("Mul", ["z", "much"], ["w"]),
        helper.make_node("Sin", ["w"], ["y"]),
    ]
    constants = {"much": (FLOAT, [], [1e6]), "axis": (INT64, [1], [1])}
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y", FLOAT, ["batch", 1])], constants)

    result = check(path, batch_of(), lambda x: torch.sin(x.sum(1, keepdim=True) * 1e6))
    assert not result.diagnostics
    result = check(path, batch_of(), lambda x: torch.sin(x[:, [1, 2, 0]].cumsum(1)[:, 2:] * 1e6))
    assert not any(finding.code == "TP805" for finding in result.diagnostics)
    assert any("round otherwise" in reason for reason in result.undecided)
    assert codes(check(path, batch_of(), lambda x: torch.sin(x.sum(1, keepdim=True) * 1e6) + 0.1)) == ["TP805"]


def test_plain_arithmetic_has_one_right_answer_to_the_last_bit(tmp_path):
    """x * 1e3 * 1e3 is not x * 1e6, and the sine of it is something else; both sides are given the same x."""
    nodes = [helper.make_node("Mul", ["x", "much"], ["z"]), helper.make_node("Sin", ["z"], ["y"])]
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y")], {"much": (FLOAT, [], [1e6])})
    result = check(path, batch_of(), lambda x: torch.sin(x * 1e3 * (1e3 + 1e-4)))
    assert codes(result) == ["TP805"]


def test_the_first_of_equal_values_is_the_right_one(tmp_path):
    """So it is documented for argmax, and a file that gives the last is wrong."""
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    path = write(tmp_path / "m.onnx", [node], [port("x")], [port("y", INT64, ["batch"])], {})
    assert check(path, batch_of(), lambda x: x.argmax(1)).agrees
    assert codes(check(path, batch_of(), lambda x: 2 - x.flip(1).argmax(1))) == ["TP805"]
    assert codes(check(path, batch_of(), lambda x: x.argmin(1))) == ["TP805"]


def test_a_decision_at_zero_is_never_excused(tmp_path):
    nodes = [helper.make_node("GreaterOrEqual", ["x", "zero"], ["y"])]
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y", BOOL)], {"zero": (FLOAT, [], [0.0])})
    result = check(path, batch_of(), lambda x: x > 0)
    assert codes(result) == ["TP805"]
    assert "zeros" in result.diagnostics[0].seen[0]


def test_a_model_that_throws_dice_is_no_witness(tmp_path):
    result = check(scaled(tmp_path / "m.onnx"), batch_of(), lambda x: 2 * x + torch.rand(()) * 0.1)
    assert codes(result) == ["TP809"]
    assert any("another answer each time" in reason for reason in result.undecided)


def test_nothing_is_left_of_the_files_in_the_worker(tmp_path):
    path = scaled(tmp_path / "m.onnx")
    assert check(path, batch_of(), lambda x: 2 * x).agrees
    onnx.save(onnx.load(scaled(tmp_path / "n.onnx", 3.0)), path)
    assert codes(check(path, batch_of(), lambda x: 2 * x)) == ["TP805"]


def test_the_shape_of_nothing_is_a_warning():
    """Eager gives an empty picture back as it is, and has another shape for all others."""
    program = trueport.export(torch.nn.PixelUnshuffle(2), (torch.randn(2, 3, 4, 6),), dynamic_shapes=({0: "batch"},))
    (told,) = [found for found in program.report.diagnostics if found.code == "TP803"]
    assert not told.is_error
    assert 'Dim("batch", min=1)' in told.fix
    assert program(torch.randn(5, 3, 4, 6)).shape == (5, 12, 2, 3)


def test_nothing_instead_of_something_is_an_error(tmp_path):
    nodes = [helper.make_node("Expand", ["x", "shape"], ["y"])]
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [port("y")], {"shape": (INT64, [2], [1, 1])})
    result = check(path, batch_of(), lambda x: x if len(x) else torch.ones(1, x.shape[1]))
    assert codes(result) == ["TP803"]
    assert result.diagnostics[0].is_error


SIZED = {
    "item": lambda x, n: x.sum() + torch.zeros(int(n.max().clamp(min=0))).sum(),
    "repeats": lambda x, n: x.repeat_interleave(n.clamp(min=0)),
    "a view": lambda x, n: x.expand(int(n.max().clamp(min=1)), -1).shape[0] + x * (n > 200_000_000),
}


@pytest.mark.parametrize("way", SIZED)
def test_no_integer_that_may_be_a_size_is_huge(way, monkeypatch):
    """Eager would take all memory of the machine, or the runtime would where eager makes a view."""
    given = []

    def noted(leaf, *rest):
        value = draw_tensor(leaf, *rest)
        given.append(int(value.max()) if leaf.name == "n" and value.numel() else 0)
        return value

    monkeypatch.setattr("trueport.verify.inputs.draw.draw_tensor", noted)
    with contextlib.suppress(trueport.ExportError):
        trueport.export(SIZED[way], (torch.randn(3), torch.tensor([2, 1, 3])))
    assert 100 < max(given) < 10_000
