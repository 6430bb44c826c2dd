"""Bounds are in one place, and a refusal names the one that it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from tests.control_flow.kept_alive import refused
from trueport.capture import limits
from trueport.capture.limits import Limit

CAPTURE = Path(limits.__file__).parent
BOUND = re.compile(r"^_?(?:MOST|MANY|FEW|DEPTH|MAX|LIMIT)(?:_[A-Z_]*)? *(?::.*)?= *[0-9(]", re.MULTILINE)


def test_a_bound_knows_its_name() -> None:
    named = {name: value for name, value in vars(limits).items() if isinstance(value, Limit)}
    assert named and all(limit.name == name for name, limit in named.items())


@pytest.mark.parametrize("file", sorted(CAPTURE.rglob("*.py")), ids=lambda file: str(file.relative_to(CAPTURE)))
def test_bounds_stand_in_one_file(file: Path) -> None:
    assert BOUND.findall(file.read_text()) == []


def test_what_counts_as_a_bound() -> None:
    assert BOUND.search("_MOST_TRACES = 200") and BOUND.search("_FEW: int = 4") and BOUND.search("_DEPTH = 5")


def disagreeing(x):
    if x.sum() > 0:
        pair = (x, x + 1)
    else:
        pair = x
    return x + (pair[0] if isinstance(pair, tuple) else pair)


def calling_itself(x):
    return calling_itself(x * 0.5) if x.sum() > 1 else x


def heap_of_traced(x):
    import heapq

    heap = []
    for number in range(5):
        heapq.heappush(heap, x[number].item())
    return x * heapq.heappop(heap)


def carrying(x):
    total = 0
    for row in x:
        total = total + row
    return total


@pytest.mark.parametrize(
    ("model", "name", "most", "code"),
    [
        (disagreeing, "TAILS", 0, "TP103"),
        (calling_itself, "CALLS", 3, "TP102"),
        (heap_of_traced, "ITEMS_IN_A_HEAP", 2, "TP104"),
        (carrying, "LOOP_ATTEMPTS", 1, "TP103"),
    ],
)
def test_a_refusal_names_the_bound_that_was_reached(
    model: object, name: str, most: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, name, Limit(name, most, getattr(limits, name).of))
    free = {"dynamic_shapes": {"x": {0: "n"}}} if model is carrying else {}
    told = refused(model, (torch.ones(5),), **free)
    assert told.code == code
    assert name in told.facts["limit"]
    assert any(f"limit of {most} " in seen and name in seen for seen in told.seen)


def test_a_refusal_that_has_nothing_to_do_with_a_bound_names_none() -> None:
    def other_texts(x):
        return x, "up" if x.sum() > 0 else "down"

    told = refused(other_texts, (torch.ones(3),))
    assert "limit" not in told.facts and not any("limit" in seen for seen in told.seen)
