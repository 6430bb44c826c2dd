"""What counts as eager's answer, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trueport.verify.calls.edges import Level
from trueport.verify.calls.judging import Again, differing
from trueport.verify.calls.kinds import Exactness
from trueport.verify.calls.run import CallOutcome, _failed
from trueport.verify.calls.trials import Trial
from trueport.verify.runtime.sandbox import FailureKind, WorkerFailure


def again_of(function: Callable[[torch.Tensor], torch.Tensor], operand: torch.Tensor) -> Again:
    return lambda change: [function(change(operand))]


@pytest.mark.parametrize("exactness", list(Exactness), ids=lambda each: each.name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_short_way_says_what_the_long_one_says(
    monkeypatch: pytest.MonkeyPatch, exactness: Exactness, dtype: torch.dtype
) -> None:
    """What is near everywhere is looked at once; one element that is not, the last of many too, is found as before."""
    right = torch.linspace(-3, 3, 40_000).reshape(4, -1).to(dtype)
    eps, most = torch.finfo(dtype).eps, torch.finfo(dtype).max
    strange = (1 + eps, 1 + 3 * eps, 1 + 6 * eps, 2.0, torch.nan, torch.inf, -torch.inf, 0.0, most)
    cases = [(right, right.clone()), (right, right * (1 + eps)), (right.mT, right.mT.contiguous())]
    for value in strange:
        other, both = right.clone(), right.clone()
        other[-1, -1], both[0, 0] = right[-1, -1] * value, value
        cases += [(right, other), (other, right), (both, both.clone()), (both, other)]
    for expected, got in cases:
        found = differing(expected, got, exactness, 0, lambda change: None)
        with monkeypatch.context() as patched:
            patched.setattr("trueport.verify.calls.judging._is_near", lambda *given: False)
            long = differing(expected, got, exactness, 0, lambda change: None)
        assert (found is None) == (long is None)
        assert found is None or long is None or torch.equal(found, long)


def test_a_better_answer_than_eagers_own_is_right_of_integers_too() -> None:
    """Eager's cosh of 89 is infinite in float32, where 2.24e38 is a number."""
    for x in (torch.full((16,), 89.0), torch.full((16,), 89, dtype=torch.int8)):
        eager, truth = torch.cosh(x), torch.cosh(x.double()).float()
        again = again_of(torch.cosh, x)
        overflows = torch.full_like(eager, torch.inf)
        assert differing(overflows, truth, Exactness.SMOOTH, 0, again) is None
        assert differing(overflows, truth * 0.9, Exactness.SMOOTH, 0, again) is not None
        assert differing(eager, truth * 0.9, Exactness.SMOOTH, 0, again) is not None


def test_no_number_is_no_better_than_infinity() -> None:
    """What is beyond the dtype may be on its way there, but not lost."""
    x = torch.full((4,), 200.0)
    largest = torch.full((4,), torch.finfo(torch.float32).max)
    assert differing(torch.exp(x), largest, Exactness.SMOOTH, 0, again_of(torch.exp, x)) is None
    assert differing(torch.exp(x), largest * torch.nan, Exactness.SMOOTH, 0, again_of(torch.exp, x)) is not None


def test_a_part_of_a_complex_number_is_as_exact_as_the_number() -> None:
    """A product of complex numbers is a difference of products: what is left of it has the error of what was there."""
    x = torch.tensor([1000 + 1000j, 3 - 4j], dtype=torch.complex64)

    def by_itself(z: torch.Tensor) -> torch.Tensor:
        return z * z.conj()

    right, again = by_itself(x), again_of(by_itself, x)
    rounded = right + torch.tensor([0.5j, 0j], dtype=torch.complex64)
    assert differing(right, rounded, Exactness.SMOOTH, 0, again) is None
    for wrong in (right.conj() + 1j * right.abs() / 100, -right, right.real + 100j):
        found = differing(right, wrong.to(torch.complex64), Exactness.SMOOTH, 0, again)
        assert found is not None
        assert found.shape == right.shape
    assert differing(x, rounded, Exactness.EXACT, 0, again) is not None


def test_an_infinite_number_is_one_whatever_its_other_part() -> None:
    infinite = torch.tensor([complex(torch.inf, torch.nan)] * 3, dtype=torch.complex64)
    finite, none = torch.ones_like(infinite), torch.full_like(infinite, torch.nan)
    again = again_of(torch.clone, infinite)
    other = torch.tensor([complex(1.0, -torch.inf)] * 3, dtype=torch.complex64)
    assert differing(infinite, other, Exactness.SMOOTH, 0, again) is None
    assert differing(infinite, finite, Exactness.SMOOTH, 0, again) is not None
    assert differing(infinite, none, Exactness.SMOOTH, 0, again) is None  # by how a product is written
    assert differing(finite, none, Exactness.SMOOTH, 0, again_of(torch.clone, finite)) is not None
    assert differing(finite, infinite, Exactness.SMOOTH, 0, again_of(torch.clone, finite)) is not None


@pytest.mark.parametrize(
    ("rows", "kind", "level"),
    [
        (0, FailureKind.REFUSES_INPUT, None),
        (0, FailureKind.CRASH, Level.EXTREME),
        (0, FailureKind.HANG, Level.ORDINARY),
        (3, FailureKind.CRASH, Level.ORDINARY),
    ],
)
def test_an_end_on_nothing_weighs_less(rows: int, kind: FailureKind, level: Level | None) -> None:
    outcome = CallOutcome()
    _failed(Trial({}, (torch.ones(rows),), Level.ORDINARY, "normal"), WorkerFailure(kind, "SIGSEGV"), outcome)
    assert list(outcome.shown) == ([] if level is None else [level])
