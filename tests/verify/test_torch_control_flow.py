"""torch.cond, while_loop, scan and map that the user wrote are counted and searched like Python's own."""

from __future__ import annotations

import linecache

import pytest
import torch
from torch import nn
from torch._higher_order_ops import map as torch_map
from torch._higher_order_ops import scan, while_loop

import trueport
from trueport.torch_internals.eager_modes import EagerMode
from trueport.verify.judging.equals import FirstOfEquals
from trueport.verify.judging.rounding import RoundedOtherwise


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(
            pred=(x == 7).any(),
            true_fn=lambda x: x * 2,
            false_fn=lambda x: x - 1,
            operands=(x,),
        )


class Filling(nn.Module):
    def forward(self, x):
        rounds, filled = while_loop(
            lambda n, y: y.sum() < 100, lambda n, y: (n + 1, y + y.abs() + 1), (torch.tensor(0), x)
        )
        return rounds, filled


class Running(nn.Module):
    def forward(self, x):
        return scan(lambda carry, row: (carry + row, carry * row), x[0], x)


class Each(nn.Module):
    def forward(self, x):
        return torch_map(lambda row: row * 2, x)


class Inside(nn.Module):
    """A choice in each round of a loop."""

    def forward(self, x):
        def body(i, y):
            return i + 1, torch.cond(y.sum() > 3, lambda y: y - 1, lambda y: y + 2, (y,))

        return while_loop(lambda i, y: i < x.shape[0], body, (torch.tensor(0), x))[1]


def decided(model: nn.Module) -> dict[str, dict[str, int]]:
    torch.manual_seed(0)
    report = trueport.check(model, (torch.rand(3, 4),), dynamic_shapes=({0: "batch"},))
    assert report.verified, report
    return {one.text: {way.name: way.inputs for way in one.ways} for one in report.decisions}


def test_both_arms_of_a_cond_are_looked_for_and_counted():
    found = decided(Choice())["(x == 7).any()"]
    assert found["holds"] >= 1
    assert found["fails"] >= 1


def test_no_round_one_round_and_more_of_a_while_loop():
    found = decided(Filling())["y.sum() < 100"]
    assert all(found[way] >= 1 for way in ("no round", "one round", "more rounds"))


@pytest.mark.parametrize("model", [Running(), Each()], ids=["scan", "map"])
def test_the_rounds_of_a_scan_and_of_a_map(model):
    (found,) = decided(model).values()
    assert found["one round"] >= 1
    assert found["more rounds"] >= 1


def test_a_choice_inside_the_rounds_of_a_loop_is_counted_too():
    found = decided(Inside())
    assert found["y.sum() > 3"]["holds"]
    assert found["y.sum() > 3"]["fails"]


def test_a_decision_has_the_line_of_its_call():
    report = trueport.check(Choice(), (torch.rand(3, 4),))
    assert report.decisions[0].kind == "torch.cond"
    assert report.decisions[0].where.line == Choice.forward.__code__.co_firstlineno + 1


@pytest.mark.filterwarnings("ignore")
def test_the_arm_that_another_exporters_file_has_lost_is_found_by_its_distance(tmp_path):
    path = tmp_path / "net.onnx"
    torch.onnx.export(only_the_else_arm(), (torch.rand(3, 4),), path, input_names=["x"], dynamo=False)
    found = trueport.verify(path, Choice(), (torch.rand(3, 4),)).errors
    assert [error.code for error in found] == ["TP805"]
    assert any("`(x == 7).any()` holds" in fact for fact in found[0].seen)


def only_the_else_arm() -> nn.Module:
    """What an exporter that froze the choice would have left of it."""

    class Frozen(nn.Module):
        def forward(self, x):
            return x - 1

    return Frozen()


@pytest.mark.parametrize("model", [Choice(), Filling(), Running(), Each(), Inside()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("mode", [EagerMode, FirstOfEquals, lambda: RoundedOtherwise(0)], ids=["", "equal", "rounded"])
def test_a_run_under_one_of_our_modes_leaves_the_compiler_as_it_was(model, mode):
    """A function that torch's compiler met under a mode would be given up: the user's own export would fail later."""
    x = torch.rand(3, 4) + 1
    with torch.no_grad():
        with mode():
            ours = model(x)
        torch.testing.assert_close(ours, model(x))
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), ours)


class DrawsInAnArm(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + torch.rand(4), lambda x: x - 1, (x,))


def test_random_numbers_of_an_arm_are_told_at_their_line():
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(DrawsInAnArm(), (torch.ones(3, 4),))
    (finding,) = refused.value.diagnostics
    assert finding.code == "TP004", finding
    assert finding.where is not None
    assert "torch.rand(4)" in linecache.getline(finding.where.file, finding.where.line)
