"""Cost is linear, and a repeated layer costs little: it asks torch nothing that the first one has not asked."""

from __future__ import annotations

import torch
from torch import nn

from tests.capture.helpers import FREE
from trueport.capture.recording.memory import ResultCache
from trueport.capture.trace import capture
from trueport.load.request import make_job
from trueport.lower.table import is_leaf


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, y):
        batch, time, width = y.shape
        q, k, v = self.qkv(self.norm(y)).view(batch, time, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2)).softmax(-1)
        return y + self.out((scores @ v).transpose(1, 2).reshape(batch, time, width))


def stack(layers: int) -> nn.Module:
    return nn.Sequential(*(Block(8) for _ in range(layers))).eval()


def decisions_and_questions(layers: int, monkeypatch) -> tuple[int, int, int]:
    """How many size decisions were noted, how often torch was asked for a result, and how many nodes there are."""
    asked = [0]
    results = ResultCache.results

    def counting(self, op, args, kwargs, ask):
        def count():
            asked[0] += 1
            return ask()

        return results(self, op, args, kwargs, count)

    with monkeypatch.context() as patch:
        patch.setattr(ResultCache, "results", counting)
        graph = capture(make_job(stack(layers), (torch.randn(2, 5, 8),), dynamic_shapes=({0: FREE, 1: FREE},)), is_leaf)
    return len(graph.assumptions), asked[0], len(graph.root.nodes)


def test_48_layers_ask_nothing_that_2_layers_have_not_asked(monkeypatch):
    few_decisions, few_questions, few_nodes = decisions_and_questions(2, monkeypatch)
    decisions, questions, nodes = decisions_and_questions(48, monkeypatch)
    assert decisions == few_decisions
    assert questions == few_questions
    assert nodes == 24 * few_nodes


def test_the_model_runs_once(monkeypatch):
    """One trace: a model without control flow and writes is called a single time while it is captured."""
    calls = [0]

    class Counting(nn.Module):
        def forward(self, y):
            calls[0] += 1
            return y * 2

    capture(make_job(Counting(), (torch.randn(2, 3),), dynamic_shapes=({0: FREE},)), is_leaf)
    assert calls == [1]


def test_a_write_in_place_costs_one_more_trace():
    calls = [0]

    def model(y):
        calls[0] += 1
        z = y * 2
        z[0] = 1.0
        return z

    capture(make_job(model, (torch.randn(2, 3),), dynamic_shapes=({0: FREE},)), is_leaf)
    assert calls == [2]
