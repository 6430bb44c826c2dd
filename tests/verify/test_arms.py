"""Ways that no input takes: counted, named, and the arm run by itself against replay."""

from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim

import trueport
from trueport.capture.trace import capture
from trueport.diagnostics.base import Severity
from trueport.load.request import make_job
from trueport.lower.table import is_leaf
from trueport.verify.decisions.regions import RegionRecording, alone
from trueport.verify.replay import replay

ATEN = torch.ops.aten


class OutOfReach(nn.Module):
    def forward(self, x):
        y = x + 1
        if x.abs().sum() < 0:
            y = y.sigmoid() * x.shape[0]
        return y


class NeverEntered(nn.Module):
    def forward(self, x):
        while x.abs().sum() < 0:
            x = x.sigmoid()
        return x * 2


def test_an_arm_that_no_input_reaches_is_named_and_checked_by_itself():
    report = trueport.check(OutOfReach(), (torch.rand(3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert report.verified
    (found,) = [each for each in report.diagnostics if each.code == "TP810"]
    assert found.weight is Severity.NOTE
    assert "by itself it agrees on" in found.seen[0]
    assert report.decisions[0].unreached == ("holds",)


def test_a_fault_in_an_arm_that_no_input_reaches_is_an_error_at_its_line():
    wrong = {ATEN.sigmoid.default: lambda op, x: op.Tanh(x)}
    for model, line in ((OutOfReach, 3), (NeverEntered, 2)):
        report = trueport.check(model(), (torch.rand(3),), custom_translation_table=wrong)
        (found,) = report.errors
        assert found.code == "TP805"
        assert found.where.line == model.forward.__code__.co_firstlineno + line


class OnlyWhereItSaturates(nn.Module):
    def forward(self, x):
        if (x * 1e6).floor().sum() == 123456789:
            x = x.sigmoid()
        return x


def test_an_arm_that_few_inputs_reach_is_checked_by_itself_too():
    """There x is about 41 in every element, and the sigmoid of that is its hyperbolic tangent."""
    wrong = {ATEN.sigmoid.default: lambda op, x: op.Tanh(x)}
    model = OnlyWhereItSaturates()
    assert trueport.check(model, (torch.rand(3),)).verified
    (found,) = trueport.check(model, (torch.rand(3),), custom_translation_table=wrong).errors
    assert found.where.line == model.forward.__code__.co_firstlineno + 2


def test_a_place_that_is_not_kept_alive_is_not_counted():
    class Configured(nn.Module):
        def forward(self, x, scale=None):
            if scale is not None:
                x = x * scale
            for _ in range(3):
                x = x + 1
            return x if x.sum() > 0 else -x

    report = trueport.check(Configured(), (torch.randn(3),))
    assert [decision.text for decision in report.decisions] == ["x.sum() > 0"]


class Nested(nn.Module):
    def forward(self, x, n: int):
        for i in range(n):
            if x.sum() > i:
                x = x - i
            else:
                x = x + x.shape[0]
        return x


def test_a_region_alone_gives_what_it_gives_inside():
    """A round of the loop, with the values that it was given there, ends as it ended there."""
    job = make_job(Nested(), (torch.randn(4), 3), dynamic_shapes=({0: Dim.DYNAMIC}, None))
    graph = capture(job, is_leaf)
    loop = next(node for node in graph.root.nodes if node.regions)
    body = alone(graph, loop.regions[0])
    recording = RegionRecording(rounds={loop.regions[0]: body})
    x = torch.tensor([0.5, -2.0, 4.0])
    whole = recording.run(graph, {"x": x, "n": 3})
    rounds = recording.seen[body]
    assert len(rounds) == 3
    last = replay(body.graph, rounds[-1])
    result = next(iter(whole.values()))
    assert any(isinstance(value, torch.Tensor) and torch.equal(value, result) for value in last.values())


def test_an_arm_inside_a_loop_is_noted_whenever_its_branch_is_met():
    job = make_job(Nested(), (torch.randn(4), 3))
    graph = capture(job, is_leaf)
    branch = next(node for node in graph.root.walk() if len(node.regions) == 2)
    arm = alone(graph, branch.regions[1])
    recording = RegionRecording(arms={branch: [arm]})
    recording.run(graph, {"x": torch.ones(4), "n": 3})
    assert len(recording.seen[arm]) == 3
