"""Every pass, on graphs made at random, against the reference evaluator: the answers are the same to the last bit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.optimise.graphs import RandomBlock, RandomGraph, answers, close, run_passes, same
from trueport.optimise.names import NAMES
from trueport.optimise.sequence import optimise

_SIZES = (0, 1, 3)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10**6))
def test_the_answers_stay_the_same(seed: int) -> None:
    made = RandomGraph(seed)
    feeds = [made.feeds(size) for size in _SIZES]
    before = [answers(made.model, each) for each in feeds]
    run_passes(made.model)
    for each, expected in zip(feeds, before, strict=True):
        assert same(answers(made.model, each), expected)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_made_one_operator_stays_close(seed: int) -> None:
    made = RandomBlock(seed)
    feeds = [made.feeds(size) for size in _SIZES if size]  # the evaluator refuses an empty Attention
    before = [answers(made.model, each) for each in feeds]
    run_passes(made.model)
    for each, expected in zip(feeds, before, strict=True):
        assert close(answers(made.model, each), expected)


@pytest.mark.parametrize("name", NAMES)
def test_so_they_do_with_each_pass_alone(name: str) -> None:
    for seed in range(5):
        made = RandomGraph(seed)
        feeds = made.feeds(3)
        before = answers(made.model, feeds)
        run_passes(made.model, name)
        assert same(answers(made.model, feeds), before), seed


def test_a_second_time_finds_nothing_more() -> None:
    for seed in range(10):
        made = RandomGraph(seed)
        for _ in range(3):
            optimise(made.model, NAMES)
        assert not any(result.changes for result in optimise(made.model, NAMES)), seed


def test_random_graphs_have_what_passes_change() -> None:
    """Else the tests above would show nothing."""
    changed = {name: 0 for name in NAMES}
    for seed in range(40):
        for result in optimise(RandomGraph(seed).model, NAMES):
            changed[result.name] += result.changes
    for seed in range(60):
        for result in optimise(RandomBlock(seed).model, NAMES):
            changed[result.name] += result.changes
    unchanged = {name for name, changes in changed.items() if not changes}
    assert unchanged <= {"conv_batch_norm", "slow_fusions"}, changed
