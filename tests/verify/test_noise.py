"""A loop that amplifies what its functions round is noise in the end, and its count of rounds too. One of nothing but
plain arithmetic is not: each of its steps has one right answer."""

from __future__ import annotations

import torch

from trueport.verify.judging.compare import tolerance_for
from trueport.verify.judging.sensitivity import excuse
from trueport.verify.runtime.tensors import from_torch

X = torch.linspace(0.1, 0.9, 5)
CHANCE = torch.Generator().manual_seed(0)


def excused(function, got):
    """Whether `got`, numbers and a count, is as good an answer for X as eager's own."""
    outputs = function(X)
    return excuse(
        lambda values: (function(values[0]), frozenset()),
        [X],
        outputs,
        [from_torch(value) for value in got],
        [tolerance_for(value.dtype) for value in outputs],
        torch.finfo(torch.float32).eps,
        seed=0,
    )


def logistic(rounds):
    def run(x):
        for _ in range(rounds):
            x = 3.99 * x * (1 - x)
        return [x, torch.tensor(rounds)]

    return run


def sine(rounds):
    def run(x):
        for _ in range(rounds):
            x = torch.sin(3.1 * x).abs()
        return [x, torch.tensor(rounds)]

    return run


def test_the_count_of_a_chaotic_loop_goes_with_its_numbers():
    assert "round otherwise" in excused(sine(200), [torch.rand(5, generator=CHANCE), torch.tensor(28)])


def test_chaos_of_plain_arithmetic_is_no_excuse():
    assert excused(logistic(80), [torch.rand(5, generator=CHANCE), torch.tensor(80)]) is None


def test_a_count_beside_numbers_that_stay_is_meant():
    numbers, _ = logistic(3)(X)
    assert excused(logistic(3), [numbers, torch.tensor(2)]) is None


def test_a_count_alone_is_meant():
    numbers, _ = logistic(80)(X)
    assert excused(logistic(80), [numbers, torch.tensor(28)]) is None
