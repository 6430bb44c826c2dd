"""Why a trace was begun anew is kept on the graph, and told to whoever listens."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.capture.helpers import assert_captured


class Decides(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # <- decides
            x = x * 2
        return x + 1


class Disagrees(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # <- disagrees
            pair = (x, x + 1)
        else:
            pair = x
        return x + (pair[0] if isinstance(pair, tuple) else pair)


class Writes(nn.Module):
    def forward(self, x):
        y = x * 2
        y.add_(1)  # <- writes
        return y


GIVEN = [(torch.ones(3),), (-torch.ones(3),)]


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# <- {mark}"))


def test_a_model_that_decides_nothing_is_traced_once() -> None:
    assert assert_captured(nn.Linear(3, 2), (torch.ones(3),)).restarts == ()


@pytest.mark.parametrize(
    ("model", "mark", "why"),
    [
        (Decides(), "decides", "`Decides.forward` decides by a traced value"),
        (Disagrees(), "disagrees", "two arms disagree"),
        (Writes(), "writes", "written in place"),
    ],
)
def test_each_start_says_what_asked_and_where(model: nn.Module, mark: str, why: str) -> None:
    graph = assert_captured(model, GIVEN[0], GIVEN)
    assert [restart.number for restart in graph.restarts] == list(range(1, len(graph.restarts) + 1))
    last = graph.restarts[-1]
    assert why in last.why
    assert last.where is not None and (last.where.file, last.where.line) == (__file__, line_of(mark))


def test_each_start_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "trueport.capture"):
        graph = assert_captured(Disagrees(), GIVEN[0], GIVEN)
    assert len(graph.restarts) == 2
    told = [record.getMessage() for record in caplog.records if record.name == "trueport.capture"]
    assert told == [str(restart) for restart in graph.restarts]


def test_nobody_is_told_who_does_not_ask(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert_captured(Disagrees(), GIVEN[0], GIVEN)
    assert not caplog.records
