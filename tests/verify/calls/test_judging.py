"""What counts as eager's answer, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import torch

from trueport.verify.calls.judging import Again, differing
from trueport.verify.calls.kinds import Exactness


def again_of(function: Callable[[torch.Tensor], torch.Tensor], operand: torch.Tensor) -> Again:
    return lambda change: [function(change(operand))]


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
