"""`break`, `continue`, `return` inside loops at any depth, and the loop's `else`."""

from __future__ import annotations

import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, rows


def given(*rows_of_numbers):
    """Inputs with a free number of rows of one number each."""
    return [(torch.tensor(numbers, dtype=torch.float32).reshape(-1, 1),) for numbers in rows_of_numbers]


EVERY_WAY = given([1, 2, 3, 4], [], [1], [9], [1, 9, 2], [1, 2, 9, 9], [-1, 3, -1, 5], [-1, -1], [7, 1, 9])
"""Numbers above 8 leave, negative ones are skipped, 7 is the strange one."""


def every_way(model, **options):
    example, *others = EVERY_WAY
    return assert_kept_alive(model, example, others, dynamic_shapes=ROWS, **options)


def test_break():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row > 8:
                break
            total = total * 2 + row
        return total

    every_way(model, loops=1, verify=True)


def test_break_after_code():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            total = total * 2 + row
            if row > 8:
                total = total + 100
                break
        return total

    every_way(model, loops=1)


def test_a_list_is_as_long_as_the_rounds_before_a_break():
    def model(x):
        outs = [x.sum().reshape(1)]
        for row in x:
            outs.append(row * 2)
            if row > 8:
                break
        return torch.stack(outs), len(outs)

    every_way(model, loops=1)


def test_continue():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row < 0:
                continue
            total = total * 2 + row
        return total

    every_way(model, loops=1, ifs=1)


def test_continue_in_while():
    def model(x):
        i, total = 0, torch.zeros(1)
        while i < x.shape[0]:
            i += 1
            if x[i - 1] < 0:
                continue
            total = total * 2 + x[i - 1]
        return total, i

    every_way(model, loops=1)


def test_break_and_continue():
    def model(x):
        total = torch.zeros(1)
        seen = 0
        for row in x:
            if row < 0:
                continue
            seen += 1
            if row > 8:
                break
            total = total * 2 + row
        return total, seen

    every_way(model, loops=1)


def test_return():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row > 8:
                return total - 1
            total = total * 2 + row
        return total

    every_way(model, loops=1)


def test_return_of_several_things():
    def model(x):
        for i, row in enumerate(x):
            if row > 8:
                return row, i
        return torch.zeros(1), -1

    every_way(model, loops=1)


def test_return_and_break():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row > 8:
                break
            if row == 7:
                return total - 50
            total = total * 2 + row
        return total + 1

    every_way(model, loops=1)


def test_exits_in_a_nested_branch():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row != 2:
                if row > 8:
                    break
                elif row < 0:
                    continue
                total = total + 1
            total = total * 2 + row
        return total

    every_way(model, loops=1)


def test_return_in_a_nested_loop():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            for other in x:
                if row + other > 12:
                    return total - 1
                total = total + row * other
            total = total * 2
        return total

    every_way(model, loops=2)


def test_break_in_a_nested_loop_is_the_inner_ones():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            for other in x:
                if other > 8:
                    break
                total = total + other
            total = total * 2 + row
        return total

    every_way(model, loops=2)


def test_continue_of_the_outer_loop_after_an_inner_one():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            for other in x:
                if other < 0:
                    continue
                total = total + other
            if row < 0:
                continue
            total = total * 2
        return total

    every_way(model, loops=2)


def test_for_else():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            if row > 8:
                break
            total = total * 2 + row
        else:
            total = total + 1000
        return total

    every_way(model, loops=1)


def test_else_without_break():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            total = total * 2 + row
        else:
            total = total + 1000
        return total

    every_way(model, loops=1)


def test_while_else():
    def model(x):
        i, total = 0, torch.zeros(1)
        while i < x.shape[0]:
            if x[i] > 8:
                break
            total = total * 2 + x[i]
            i += 1
        else:
            total = total + 1000
        return total, i

    every_way(model, loops=1)


def test_else_with_return_inside():
    def model(x):
        for row in x:
            if row > 8:
                found = row
                break
        else:
            return torch.zeros(1)
        return found * 2

    every_way(model, loops=1)


def test_while_that_returns_and_else_that_returns():
    """Without a `break`, nothing but one of the two returns can end the function."""

    def model(x):
        i = 0
        while i < len(x):
            if x[i].max() > 1.2:
                return x[i], i
            i += 1
        else:
            return torch.zeros(3), -1

    assert_kept_alive(model, *rows(5), rows(0, 1, 2, 9), dynamic_shapes=ROWS)


def test_else_of_try_does_not_run_after_an_exit():
    def model(x):
        n = 0
        for _ in range(5):
            try:
                if x.norm() < 1:
                    continue
                x = x / 2
                if x[0] > 2:
                    break
            except RuntimeError:
                x = x * 0
            else:
                n += 10
            finally:
                n += 1
        return x, n

    assert_kept_alive(model, (torch.ones(3),), [(torch.ones(3) * scale,) for scale in (0.1, 3, 40)])


def test_exits_inside_with():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            with torch.no_grad():
                if row > 8:
                    break
                if row < 0:
                    continue
                if row == 7:
                    return total - 50
            total = total * 2 + row
        return total

    every_way(model, loops=1)


def test_exits_inside_try():
    def model(x):
        total = torch.zeros(1)
        for row in x:
            try:
                if row > 8:
                    break
                if row < 0:
                    continue
            finally:
                total = total + 1
            total = total * 2 + row
        return total

    every_way(model, loops=1)


def test_exits_of_an_unrolled_loop():
    def model(x):
        total = x.sum() * 0
        for i in range(4):
            if total > 8 + i:
                break
            if total < 0:
                return total * 5
            total = total + x.sum()
        else:
            total = total + 1000
        return total

    every_way(model, loops=0)


def test_break_out_of_true():
    def model(x):
        i = 0
        while True:
            if i >= x.shape[0]:
                return x.sum()
            if x[i] > 8:
                break
            i += 1
        return x[i].sum() * 100

    every_way(model, loops=1)
