"""What counts as equal: as strict as the dtype allows, and no stricter."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trueport.verify.judging.compare import DifferenceKind, Tolerance, compare, judge, tolerance_for
from trueport.verify.runtime.tensors import TensorData, from_torch, to_torch

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
floats = st.floats(-1e4, 1e4, width=32)
vectors = st.lists(floats, min_size=1, max_size=12)


def kind_of(expected, got) -> DifferenceKind | None:
    difference = compare(expected, got if isinstance(got, tuple) else from_torch(got))
    return difference and difference.kind


@given(vectors, st.sampled_from(FLOATS))
def test_a_tensor_equals_itself(values, dtype):
    tensor = torch.tensor(values, dtype=dtype)
    assert compare(tensor, from_torch(tensor)) is None
    assert judge(tensor, from_torch(tensor)).worst == 0


@given(vectors, st.data())
def test_one_element_far_off_is_found_wherever_it_is(values, data):
    tensor = torch.tensor(values)
    at = data.draw(st.integers(0, len(values) - 1))
    other = tensor.clone()
    other[at] += 0.01 * float(tensor.abs().max()) + 0.01
    difference = compare(tensor, from_torch(other))
    assert difference is not None
    assert difference.index == (at,)
    assert difference.wrong == 1
    assert difference.error > difference.allowed


@given(vectors, st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_one_rounding_step_is_no_difference(values, dtype, seed):
    tensor = torch.tensor(values, dtype=dtype)
    sign = torch.randint(0, 2, tensor.shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1.0
    moved = (tensor.double() * (1 + torch.finfo(dtype).eps * sign.double())).to(dtype)
    assert compare(tensor, from_torch(moved)) is None


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8), st.data())
def test_integers_are_exact_also_where_a_float_could_not_tell(values, data):
    tensor = torch.tensor(values)
    at = data.draw(st.integers(0, len(values) - 1))
    other = tensor.clone()
    other[at] += 1
    difference = compare(tensor, from_torch(other))
    assert difference is not None
    assert (difference.index, difference.expected, difference.got) == ((at,), str(values[at]), str(values[at] + 1))


@given(st.lists(st.sampled_from([0.5, -2.0, math.inf, -math.inf, math.nan]), min_size=1, max_size=6), st.data())
def test_nan_and_infinities_must_be_in_the_same_places(values, data):
    tensor = torch.tensor(values)
    assert compare(tensor, from_torch(tensor)) is None
    at = data.draw(st.integers(0, len(values) - 1))
    other = tensor.clone()
    other[at] = 1.0 if not math.isfinite(values[at]) else data.draw(st.sampled_from([math.nan, math.inf]))
    assert compare(tensor, from_torch(other)) is not None


def test_minus_infinity_is_not_the_smallest_number():
    """A mask filled with finfo.min is another model: a row that is masked throughout tells the two apart."""
    assert kind_of(torch.tensor([-math.inf, 1.0]), torch.tensor([torch.finfo().min, 1.0])) is DifferenceKind.VALUES


def test_one_huge_element_does_not_excuse_the_others():
    masked = torch.tensor([torch.finfo().min, 0.5, 0.7, 0.9])
    wrong = torch.tensor([torch.finfo().min, 0.5, 0.8, 0.9])
    assert compare(masked, from_torch(wrong)).index == (2,)


def test_the_rest_of_a_cancellation_is_judged_by_what_was_cancelled():
    """The tensor is exact to about seven digits of 1000, so 6e-5 against 0 says nothing; 0.1 does."""
    exact = torch.tensor([1000.0, 500.0, 0.0])
    assert compare(exact, from_torch(exact + torch.tensor([0, 0, 6e-5]))) is None
    assert compare(exact, from_torch(exact + torch.tensor([0, 0, 0.1]))).index == (2,)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(1 / math.sqrt(2), 0.7070), (0.044715, 0.0447), (math.pi, 3.1413)],
)
def test_a_constant_that_was_rounded_by_hand_is_found(right, wrong):
    x = torch.linspace(-3, 3, 50)
    assert kind_of(x * right, x * wrong) is DifferenceKind.VALUES


def test_a_double_that_went_through_float_is_found():
    x = torch.tensor([0.1, 0.7, 1.3], dtype=torch.float64)
    assert kind_of(x, x.float().double()) is DifferenceKind.VALUES


def test_shape_before_dtype_before_values():
    assert kind_of(torch.ones(2, 3), torch.ones(3, 2)) is DifferenceKind.SHAPE
    assert kind_of(torch.ones(1), torch.tensor(1.0)) is DifferenceKind.SHAPE
    assert kind_of(torch.ones(0, 3), torch.ones(0, 4)) is DifferenceKind.SHAPE
    assert kind_of(torch.ones(2), torch.ones(2).double()) is DifferenceKind.DTYPE
    assert kind_of(torch.ones(0), torch.ones(0).int()) is DifferenceKind.DTYPE
    assert kind_of(torch.ones(0, 3), torch.ones(0, 3)) is None
    assert kind_of(torch.tensor([True, False]), torch.tensor([True, True])) is DifferenceKind.VALUES


def test_a_python_number_is_a_tensor_without_axes():
    assert kind_of(3, torch.tensor(3)) is None
    assert kind_of(3, torch.tensor(4)) is DifferenceKind.VALUES
    assert kind_of(3, torch.tensor([3])) is DifferenceKind.SHAPE
    assert kind_of(3, torch.tensor(3.0)) is DifferenceKind.DTYPE
    assert kind_of(True, torch.tensor(True)) is None
    assert kind_of(True, torch.tensor(1)) is DifferenceKind.DTYPE
    assert kind_of(0.1, torch.tensor(0.1)) is None
    assert kind_of(0.1, torch.tensor(0.1, dtype=torch.float64)) is None
    assert kind_of(0.1, torch.tensor(0.1001)) is DifferenceKind.VALUES


def test_lists_of_tensors_are_sequences():
    parts = [torch.ones(2), torch.zeros(3)]
    carried = tuple(from_torch(part) for part in parts)
    assert kind_of(parts, carried) is None
    assert kind_of(parts, carried[:1]) is DifferenceKind.STRUCTURE
    assert kind_of(parts, (carried[0], from_torch(torch.ones(3)))) is DifferenceKind.VALUES
    assert kind_of(torch.ones(2), carried) is DifferenceKind.STRUCTURE


def test_the_worst_element_of_a_matrix_is_named_with_both_values():
    ours = torch.zeros(3, 4, 5)
    theirs = ours.clone()
    theirs[1, 2, 3] = 7
    theirs[0, 0, 0] = 1
    difference = compare(ours, from_torch(theirs))
    assert (difference.index, difference.expected, difference.got) == ((1, 2, 3), "0", "7")
    assert (difference.wrong, difference.count, difference.error) == (2, 60, 7.0)


def test_complex_elements_are_compared_in_both_parts():
    ours = torch.tensor([[1 + 2j, 3 - 1j]])
    assert compare(ours, from_torch(ours)) is None
    assert compare(ours, from_torch(ours + torch.tensor([[0, 0.5j]]))).index == (0, 1)


def test_the_coarsest_dtype_that_a_model_computes_in_sets_the_tolerance():
    through_half = tolerance_for(torch.float32, working=[torch.float16, torch.float32])
    assert through_half == tolerance_for(torch.float16)
    assert tolerance_for(torch.int64, working=[torch.float16]) == Tolerance(0, 0, 0)


def test_the_users_own_tolerance_means_what_it_means_in_allclose():
    chosen = tolerance_for(torch.float32, rtol=0.1, atol=0.5)
    expected = torch.tensor([10.0, 1000.0], dtype=torch.float64)
    assert chosen.allowed(expected).tolist() == [1.5, 100.5]


@given(st.lists(st.integers(-8, 7), max_size=9))
def test_four_bit_integers_are_packed_two_in_a_byte_low_half_first(values):
    nibbles = [value & 15 for value in values] + [0] * (len(values) % 2)
    data = bytes(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2], strict=True))
    assert to_torch(TensorData("int4", (len(values),), data)).tolist() == values


def test_the_worst_error_comes_with_what_was_allowed_there():
    """A hundredth is alarming by itself, and nothing beside what was allowed of a thousand."""
    verdict = judge(torch.tensor([1.0, 1000.0]), from_torch(torch.tensor([1.0, 1000.01])))
    assert verdict.difference is None
    assert verdict.worst == pytest.approx(0.01, rel=0.01)
    assert verdict.allowed == pytest.approx(0.03, rel=0.01)
