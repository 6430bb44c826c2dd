"""How far a test is from going the other way, and how that is found when the test was made some lines before."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trueport.verify.decisions.distance import both, either, every, negated, of_comparison, of_truth, some
from trueport.verify.decisions.provenance import Provenance

WORDS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


@given(st.sampled_from(list(WORDS)), st.integers(-50, 50), st.integers(-50, 50))
def test_the_distance_is_zero_exactly_on_the_side_that_holds(word, a, b):
    to_true, to_false = of_comparison(word, a, b).plain()
    assert (to_true == 0, to_false == 0) == ((True, False) if WORDS[word](a, b) else (False, True))


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.integers(-9, 9))
def test_any_and_all_hold_where_the_tensors_do(items, bound):
    tensor = torch.tensor(items)
    tests = of_comparison("gt", tensor, bound)
    assert (some(tests).plain()[0] == 0) == bool((tensor > bound).any())
    assert (every(tests).plain()[0] == 0) == bool((tensor > bound).all())


def test_a_nearer_input_has_a_smaller_distance():
    assert [of_comparison("gt", x, 1000).plain()[0] for x in (0, 900, 999, 1001)] == [1000, 100, 1, 0]
    assert of_comparison("eq", torch.tensor([1, 5]), 7).to_true.tolist() == [6, 2]


def test_and_adds_up_and_or_takes_the_nearest():
    far, near = of_comparison("gt", 0, 10), of_comparison("gt", 0, 3)
    assert both([far, near]).plain()[0] == 13
    assert either([far, near]).plain()[0] == 3
    assert negated(far).plain() == (0, 10)


def test_sizes_that_are_compared_together_are_measured_one_by_one():
    assert of_comparison("ne", (35, 42), (32, 40)).plain() == (0, 5)
    assert of_comparison("eq", torch.Size([32, 40]), [32, 40]).plain() == (0, 1)
    assert of_comparison("eq", (1, "a"), (2, "a")) is None
    assert of_comparison("lt", (1, 2), (2, 1)) is None


def test_membership():
    assert of_comparison("in", 5, (1, 7, 20)).plain()[0] == 2
    assert of_comparison("not_in", 7, [1, 7]).plain() == (1.0, 0.0)


def test_truth_of_numbers_tensors_and_lists():
    assert of_truth(3.5).plain() == (0, 3.5)
    assert of_truth(torch.tensor(0.0)).plain()[0] > 0
    assert of_truth([]).plain()[0] > 0
    assert of_truth(object()) is None


@pytest.mark.parametrize(
    ("made", "distance"),
    [
        (lambda x: (x == 7).any(), 4),
        (lambda x: (x > 10).all(), 10 + 9 + 7),
        (lambda x: ~(x < 100).all(), 97),
        (lambda x: torch.logical_or(x.sum() > 20, x.min() > 2), 2),
        (lambda x: ((x > 1) & (x < 3)).any(dim=0), 0),
        (lambda x: x.sum() - 4, 1),
    ],
)
def test_a_tensor_is_measured_by_what_it_was_made_of(made, distance):
    x = torch.tensor([0, 1, 3])
    with Provenance() as provenance:
        flag = made(x)
        found = provenance.measured(flag)
    holds = bool(flag)
    assert float(found.to_true) == pytest.approx(0 if holds else distance, abs=1e-6)


def test_a_truth_that_was_asked_for_is_remembered():
    with Provenance() as provenance:
        assert not bool(torch.tensor(2.0) > 5)
    asked = provenance.asked()
    assert asked is not None
    assert asked.plain()[0] == 3
    assert provenance.questions == 1
