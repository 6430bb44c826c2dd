"""Functions that decide are found several at a time, so that many of them do not cost as many traces."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.growth_run import functions, imported, layers
from tests.capture.helpers import FREE, assert_captured
from trueport.errors import ExportError

GIVEN = [(torch.full((3,), float(value)),) for value in (-9, -1, 0, 1, 4)]


@pytest.mark.parametrize("family", [functions, layers])
def test_traces_grow_with_the_logarithm_of_the_functions(family, tmp_path: Path) -> None:
    model = imported(family(24), tmp_path, "grown").Net()
    graph = assert_captured(model, GIVEN[0], GIVEN)
    assert len(graph.restarts) <= 7
    assert len(graph.rewritten) == 24
    assert " and 12 more decide by traced values" in graph.restarts[-1].why


def raises(x):
    if x.isnan().any():
        raise ValueError("not a number")
    return x + 1


def asserts(x):
    assert x.sum() > -100
    return x + 1


def asks_for_a_number(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


def ends_by_asking(x):
    while True:
        x = x * 2 + 1
        if x.sum() > 10:
            break
    return x


def decides_in_an_arm(x):
    if x.sum() > 0:
        x = asserts(x) if x.max() > 3 else x - 1
    return x


def plain(x, mode="up"):
    if mode == "up":
        return x + 1
    return x - 1


class OfAllKinds(nn.Module):
    def forward(self, x):
        for step in (decides_in_an_arm, plain, ends_by_asking, raises, plain, asks_for_a_number, asserts):
            x = step(x)
        return x.clamp(-1000, 1000)


def test_whatever_is_answered_meanwhile_leaves_nothing_behind() -> None:
    given = [(x[0].abs(),) for x in GIVEN]
    graph = assert_captured(OfAllKinds(), given[0], [*given, (torch.ones(2),)], dynamic_shapes={"x": {0: FREE}})
    deciding = {decides_in_an_arm, ends_by_asking, raises, asks_for_a_number, asserts}
    assert {f.__code__ for f in deciding} <= set(graph.rewritten)
    assert plain.__code__ not in graph.rewritten
    assert graph.assumptions == ()


class Refuses(nn.Module):
    def forward(self, x):
        for step in (decides_in_an_arm, raises, asserts, disagrees, ends_by_asking):
            x = step(x)  # <- the result of `disagrees` is used
        return x


def disagrees(x):
    if x.sum() > 0:
        y = x.double()
    else:
        y = x.long()  # of another dtype
    return y


def test_a_refusal_is_that_of_the_last_trace() -> None:
    with pytest.raises(ExportError) as refused:
        assert_captured(Refuses(), GIVEN[0])
    (found,) = [each for each in refused.value.diagnostics if each.is_error]
    assert found.code == "TP103" and "float64" in found.message and "int64" in found.message
    assert found.place is not None and found.place.where is not None
    lines = Path(__file__).read_text().splitlines()
    assert lines[found.place.where.line - 1].endswith("# <- the result of `disagrees` is used")
