"""`while`: on a tensor, on a traced number, `while True` with `break`."""

from __future__ import annotations

import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, numbers, rows

X = torch.tensor([0.5, -1.0, 2.0])


def split(inputs):
    return inputs[0], inputs[1:]


def counts(*trips):
    """A trip count as a tensor, and something to work on."""
    return (torch.tensor(trips[0]), X), [(torch.tensor(n), X) for n in trips[1:]]


def test_on_a_tensor():
    def model(n, x):
        while n > 0:
            x = x * 1.5 + n
            n = n - 1
        return x

    assert_kept_alive(model, *counts(3, 0, 1, 9), loops=1, verify=True)


def test_until_small_enough():
    def model(x):
        while x.abs().max() > 1:
            x = x * 0.7
        return x

    assert_kept_alive(model, (X,), [(X / 4,), (X * 0.6,), (X * 100,)], loops=1)


def test_a_python_counter_against_a_tensor():
    def model(n, x):
        i = 0
        while i < n:
            x = x * 1.5 + i
            i += 1
        return x, i

    assert_kept_alive(model, *counts(3, 0, 1, 9), loops=1)


def test_a_symbolic_number():
    def model(n, x):
        left = int(n)
        while left > 0:
            x = x + left
            left -= 2
        return x, left

    assert_kept_alive(model, *counts(3, 0, 1, 9), loops=1)


def test_a_free_size():
    def model(x):
        n = x.shape[0]
        steps = 0
        while n > 1:
            n = n // 2
            steps += 1
        return x * steps

    assert_kept_alive(model, *split(rows(4, 1, 7, 0, 16)), dynamic_shapes=ROWS, loops=1)


def test_a_python_number_argument():
    def model(x, n):
        while n > 0:
            x = x * 2
            n -= 1
        return x

    assert_kept_alive(model, (X, 3), [(X, 0), (X, 1), (X, 7)], loops=1)


def test_true_with_break():
    def model(n, x):
        while True:
            if n <= 0:
                break
            x = x + n
            n = n - 1
        return x

    assert_kept_alive(model, *counts(3, 0, 1, 9), loops=1)


def test_true_with_break_at_the_end():
    def model(x):
        rounds = 0
        while True:
            x = x * 0.5
            rounds += 1
            if x.abs().max() < 1:
                break
        return x, rounds

    assert_kept_alive(model, (X,), [(X / 4,), (X * 100,)], loops=1)


def test_and_of_a_counter_and_a_tensor():
    def model(x):
        i = 0
        while i < 5 and x.abs().max() > 1:
            x = x * 0.7
            i += 1
        return x, i

    assert_kept_alive(model, (X,), [(X / 4,), (X * 0.6,), (X * 100,)], loops=1)


def test_or_and_not():
    def model(n, x):
        done = n > 100
        while not (done or n <= 0):
            x = x * 2
            n = n - 1
            done = x.max() > 50
        return x, n, done

    assert_kept_alive(model, *counts(3, 0, 1, 9, 200), loops=1)


def test_walrus():
    def model(x):
        while (size := x.abs().max()) > 1:
            x = x / size * 0.9
        return x, size

    assert_kept_alive(model, (X,), [(X / 4,), (X * 100,)], loops=1)


def test_walrus_in_and():
    def model(x):
        i = 0
        while i < 4 and (size := x.abs().max()) > 1:
            x = x * 0.7 + size * 0.01
            i += 1
        return x, i

    assert_kept_alive(model, (X,), [(X / 4,), (X * 0.6,), (X * 100,)], loops=1)


def test_a_plain_count_stays_unrolled():
    def model(x):
        i = 0
        while i < 3:
            x = x + i
            i += 1
        return x

    assert_kept_alive(model, (X,), [(X * 2,)], loops=0)


def test_nested():
    def model(n, x):
        while n > 0:
            m = n
            while m > 0:
                x = x + m * n
                m = m - 1
            n = n - 1
        return x

    assert_kept_alive(model, *counts(3, 0, 1, 5), loops=2)


def test_a_loop_that_may_never_run_binds_no_name_outside():
    def model(n, x):
        y = x
        while n > 0:
            inside = y * 2
            y = inside + 1
            n = n - 1
        return y

    assert_kept_alive(model, *counts(3, 0, 1, 9), loops=1)


def test_a_plain_count_that_a_tensor_shortens():
    def model(n, x):
        i = 0
        while i < 6:
            if x.max() > n:
                break
            x = x + 1
            i += 1
        return x, i

    assert_kept_alive(model, *counts(3, 0, 1, 9, 100), loops=1)


def test_newton():
    def model(a):
        x = a / 2 + 0.5
        while (x * x - a).abs() > 1e-3:
            x = (x + a / x) / 2
        return x

    assert_kept_alive(model, *split(numbers(2.0, 1.0, 100.0, 3.5)), loops=1)


def test_a_bool_that_the_loop_turns():
    def model(x):
        going = True
        while going:
            x = x * 0.5
            if x.abs().max() < 1:
                going = False
        return x, going

    assert_kept_alive(model, (X,), [(X / 4,), (X * 100,)], loops=1)


def test_the_test_is_known_in_a_round():
    """Each window has four items, since the test says so; the example, with two, makes no round."""

    def model(x):
        window, start, total = torch.arange(4.0), 0, torch.zeros(())
        while start + 4 <= x.shape[0]:
            total = total + (x[start : start + 4, 0] * window).sum()
            start += 2
        return total

    assert_kept_alive(model, *split(rows(2, 0, 3, 4, 6, 11)), dynamic_shapes=ROWS, loops=1)


def test_a_window_that_is_all_of_the_example():
    """`y[0:4]` is `y` itself where there are four rows, which says nothing of other examples."""

    def model(x):
        y, start = torch.zeros_like(x), 0
        while start + 4 <= x.shape[0]:
            y[start : start + 4] += x[start : start + 4] * 2
            start += 2
        return y

    assert_kept_alive(model, *split(rows(4, 0, 3, 2, 6, 11)), dynamic_shapes=ROWS, loops=1)
