"""torch.cond, while_loop, scan, map and associative_scan in the user's own source, also where torch refuses them."""

from __future__ import annotations

import torch
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as torch_map

from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, rows

X = torch.tensor([0.5, -1.0, 2.0])


def both(model, **options):
    return assert_kept_alive(model, (UP,), [(DOWN,)], **options)


def counts(model, **options):
    return assert_kept_alive(model, (torch.tensor(3), X), [(torch.tensor(n), X) for n in (0, 1, 7)], **options)


def by_rows(model, *sizes, **options):
    example, *others = rows(*(sizes or (4, 1, 7)))
    return assert_kept_alive(model, example, others, dynamic_shapes=ROWS, **options)


def test_cond():
    both(lambda x: torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,)), ifs=1, verify=True)


def test_cond_on_a_size():
    def model(x):
        return torch.cond(x.shape[0] > 4, lambda t: t * 2, lambda t: t - 1, (x,))

    by_rows(model, ifs=1)


def test_cond_returning_its_input():
    def model(x):
        return torch.cond(x.sum() > 0, lambda t: t, lambda t: -t, (x,))

    def eager(x):
        return x if x.sum() > 0 else -x

    both(model, eager=eager, ifs=1)


def test_cond_with_closures_and_several_results():
    def model(x):
        scale = x.max() + 2

        def up(t):
            return t * scale, t.sum()

        def down(t):
            return t / scale, t.mean()

        return torch.cond(x.sum() > 0, up, down, (x,))

    both(model, ifs=1)


def test_cond_in_cond():
    def model(x):
        def up(t):
            return torch.cond(t.max() > 2, lambda u: u * 3, lambda u: u + 3, (t,))

        return torch.cond(x.sum() > 0, up, lambda t: t - 1, (x,))

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 3,)], ifs=2)


def test_cond_with_arms_of_other_sizes():
    def model(x):
        return torch.cond(x.sum() > 0, lambda t: t[:2] * 1, lambda t: torch.cat([t, t]), (x,))

    def eager(x):
        return x[:2] * 1 if x.sum() > 0 else torch.cat([x, x])

    both(model, eager=eager, ifs=1)


def test_python_branches_inside_the_arms():
    def model(x):
        def up(t):
            if t.max() > 2:
                return t * 3
            return t + 3

        return torch.cond(x.sum() > 0, up, lambda t: t - 1, (x,))

    def eager(x):
        if x.sum() > 0:
            return x * 3 if x.max() > 2 else x + 3
        return x - 1

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 3,)], eager=eager, ifs=2)


def test_while_loop():
    def model(n, x):
        return while_loop(lambda i, y: i > 0, lambda i, y: (i - 1, y * 1.5 + i), (n, x))

    counts(model, loops=1)


def test_while_loop_that_grows():
    def model(n, x):
        return while_loop(lambda i, y: i > 0, lambda i, y: (i - 1, torch.cat([y, y[:1] * i])), (n, x))

    def eager(n, x):
        while n > 0:
            n, x = n - 1, torch.cat([x, x[:1] * n])
        return n, x

    counts(model, eager=eager, loops=1)


def test_cond_in_while_loop():
    def model(n, x):
        def body(i, y):
            y = torch.cond(y.sum() > 3, lambda t: t * 0.5, lambda t: t + 1, (y,))
            return i - 1, y

        return while_loop(lambda i, y: i > 0, body, (n, x))

    def eager(n, x):
        while n > 0:
            x = x * 0.5 if x.sum() > 3 else x + 1
            n = n - 1
        return n, x

    counts(model, eager=eager, loops=1, ifs=1)


def test_scan_over_a_free_size():
    def model(x):
        def step(carry, row):
            carry = torch.tanh(carry + row)
            return carry, carry * 2

        return scan(step, torch.zeros(3), x)

    def eager(x):
        carry, outs = torch.zeros(3), []
        for row in x:
            carry = torch.tanh(carry + row)
            outs.append(carry * 2)
        return carry, torch.stack(outs)

    by_rows(model, eager=eager, loops=1)


def test_operators_that_are_called_by_themselves():
    """Flat lists of tensors, and what all rounds see given apart."""
    operators = torch.ops.higher_order

    def model(x):
        weight, count = x.sum(0), torch.zeros((), dtype=torch.int64)
        total, scaled = operators.scan(lambda c, row, w: [c + row, row * w], [torch.zeros(3)], [x], [weight])
        count, doubled = operators.while_loop(
            lambda i, y, w: i < y.shape[0], lambda i, y, w: (i + 1, y * 0.5 + w), (count, x), (weight,)
        )
        (chosen,) = operators.cond(x.sum() > 0, lambda x: (x + 1,), lambda x: (x - 1,), (x,))
        (mapped,) = operators.map_impl(lambda row, w: (row[0] * w,), (x,), (weight,))
        return total, scaled, count, doubled, chosen, mapped

    def eager(x):
        weight, doubled = x.sum(0), x
        for _ in range(x.shape[0]):
            doubled = doubled * 0.5 + weight
        total = torch.zeros(3)
        for row in x:
            total = total + row
        count = torch.tensor(x.shape[0])
        return total, x * weight, count, doubled, x + 1 if x.sum() > 0 else x - 1, x[:, :1] * weight

    by_rows(model, eager=eager, loops=3, ifs=1)


def test_scan_backwards_along_another_axis():
    def model(x):
        def step(carry, row):
            carry = carry * 0.5 + row
            return carry, carry * 2

        return scan(step, torch.zeros(4), x, dim=1, reverse=True)

    def eager(x):
        h, outs = torch.zeros(4), []
        for i in reversed(range(3)):
            h = h * 0.5 + x[:, i]
            outs.append(h * 2)
        return h, torch.stack(outs[::-1], 1)

    both(model, eager=eager)


def test_map_over_a_free_size():
    def model(x):
        return torch_map(lambda row, scale: row * scale + row.sum(), x, torch.tensor(2.0))

    def eager(x):
        return torch.stack([row * 2.0 + row.sum() for row in x])

    by_rows(model, eager=eager, loops=1)


def test_associative_scan_over_a_free_size():
    def model(x):
        return associative_scan(lambda a, b: a * 0.5 + b, x, 0, combine_mode="generic")

    def eager(x):
        outs = [x[0]]
        for row in x[1:]:
            outs.append(outs[-1] * 0.5 + row)
        return torch.stack(outs)

    by_rows(model, eager=eager, loops=1)
