"""A loop that amplifies what its functions round is noise in the end, and so is a count that goes with its numbers. A
count that does not is meant. A loop of nothing but plain arithmetic is no noise: each step has one right answer."""

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


def until_high(x):
    rounds = 0
    while rounds < 40 or (x.max() < 0.9999 and rounds < 300):
        x, rounds = torch.sin(3.1 * x).abs(), rounds + 1
    return [x, torch.tensor(rounds)]


def one_more_or_less(x):
    """A count of about 200 that the last bit moves by one."""
    last = int(sine(200)(x)[0][0] * 1e6) % 2
    return [x, torch.tensor(200 + last)]


def test_the_count_of_a_chaotic_loop_goes_with_its_numbers():
    _, count = until_high(X)
    assert "round otherwise" in excused(until_high, [torch.rand(5, generator=CHANCE), count + 3])


def test_a_count_that_chaos_beside_it_does_not_move_is_meant():
    assert excused(sine(200), [torch.rand(5, generator=CHANCE), torch.tensor(199)]) is None


def test_a_count_is_excused_as_far_as_rounding_moves_it():
    _, count = one_more_or_less(X)
    other = 401 - count
    assert "round otherwise" in excused(one_more_or_less, [X, other])
    assert excused(one_more_or_less, [X, torch.tensor(28)]) is None


def test_large_whole_numbers_are_told_apart():
    large = torch.tensor([2**60])
    assert excused(lambda x: [sine(200)(x)[0], large], [sine(200)(X)[0], large + 1]) is None


def test_chaos_of_plain_arithmetic_is_no_excuse():
    assert excused(logistic(80), [torch.rand(5, generator=CHANCE), torch.tensor(80)]) is None


def test_a_count_beside_numbers_that_stay_is_meant():
    numbers, _ = logistic(3)(X)
    assert excused(logistic(3), [numbers, torch.tensor(2)]) is None


def test_a_count_alone_is_meant():
    numbers, _ = logistic(80)(X)
    assert excused(logistic(80), [numbers, torch.tensor(28)]) is None
