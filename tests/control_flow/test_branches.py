"""`if`, `elif`, `else`: names that arms bind, returns, and every kind of test."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import DOWN, FREE, ROWS, UP, assert_kept_alive, numbers, rows


def both(model, **options):
    """On both sides of `x.sum() > 0`, and on its edge."""
    return assert_kept_alive(model, (UP,), [(DOWN,), (torch.zeros(4, 3),)], **options)


# --- what the arms bind


def test_one_name():
    def model(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    both(model, ifs=1, verify=True)


def test_several_names():
    def model(x):
        if x.sum() > 0:
            y, z = x * 2, x + 1
            w = y + z
        else:
            y = z = x.abs()
            w = y
        return y, z, w

    both(model, ifs=1)


def test_no_else():
    def model(x):
        if x.sum() > 0:
            x = x * 2
        return x

    both(model, ifs=1)


def test_a_name_born_in_one_arm():
    def model(x):
        y = x
        if x.sum() > 0:
            scale = x.max() * 3
            y = y * scale
        return y

    both(model, ifs=1)


def test_a_name_born_in_one_arm_and_read_where_that_arm_ran():
    def model(x):
        up = x.sum() > 0
        if up:
            scale = x.max() * 3
        y = x + 1
        if up:
            y = y * scale
        return y

    both(model, ifs=2)


def test_names_born_in_both_arms():
    def model(x):
        if x.sum() > 0:
            part = x[0]
            whole = part.sum()
        else:
            part = x[1] * 2
            whole = x.sum()
        return part * whole

    both(model, ifs=1)


def test_arms_that_bind_nothing():
    def model(x):
        if x.sum() > 0:
            pass
        else:
            x + 1
        return x * 2

    both(model, ifs=0)


def test_an_unchanged_name_stays_out_of_the_branch():
    def model(x):
        y = x + 1
        if x.sum() > 0:
            z = y * 2
        else:
            z = y * 3
        return y, z

    program = both(model, ifs=1)
    (branch,) = [node for node in program.captured.root.nodes if node.regions]
    assert len(branch.outputs) == 1


def test_elif():
    def model(x):
        y = x + 1
        kind = 0
        if x.sum() > 20:
            y = y * 3
            kind = 1
        elif x.sum() > 0:
            y = y.exp()
        else:
            kind = 2
        return y, kind

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,)], ifs=2)


def test_nested():
    def model(x):
        if x.sum() > 0:
            if x[0, 0] > 2:
                y = x * 2
            else:
                y = x * 3
                if x[0, 0] > 1:
                    y = y + x
        else:
            y = -x
        return y

    assert_kept_alive(model, (UP,), [(UP * 1.5,), (UP * 3,), (DOWN,)], ifs=3)


def test_augmented_and_annotated_assignment():
    def model(x):
        total: torch.Tensor = x.sum()
        if total > 0:
            total += 1
            offset: float = 2.0
        else:
            total -= 1
            offset: float = 3.0
        return x * total + offset

    both(model, ifs=1)


def test_unpacking_with_a_star():
    def model(x):
        if x.sum() > 0:
            first, *rest = x[0], x[1], x[2]
        else:
            *rest, first = x[0], x[1], x[2]
        return first, rest[0] + 2 * rest[1]

    both(model, ifs=1)


def test_a_deleted_name():
    def model(x):
        y = x * 2
        if x.sum() > 0:
            z = y + 1
            del y
        else:
            z = y - 1
        return z

    both(model, ifs=1)


def test_with_and_try_inside():
    def model(x):
        if x.sum() > 0:
            with torch.no_grad():
                y = x * 2
        else:
            try:
                y = x * 3
            finally:
                y = y + 1
        return y

    both(model, ifs=1)


def test_try_around_and_except_in_an_arm():
    def model(x):
        try:
            if x.sum() > 0:
                y = x * 2
            else:
                try:
                    y = {}["missing"]
                except KeyError:
                    y = x - 1
        except ValueError:
            y = x
        else:
            y = y + 1
        return y

    both(model, ifs=1)


# --- returns


def test_return_in_one_arm():
    def model(x):
        if x.sum() > 0:
            return x * 2
        y = x + 1
        return y * 3

    both(model, ifs=1)


def test_return_in_all_arms():
    def model(x):
        if x.sum() > 20:
            return x * 2
        elif x.sum() > 0:
            return x * 3
        else:
            return -x

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,)], ifs=2)


def test_return_in_a_nested_arm():
    def model(x):
        y = x + 1
        if x.sum() > 0:
            if x[0, 0] > 2:
                return y * 2
            y = y * 3
        return y - 1

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,)], ifs=2)


def test_return_after_code_and_code_after_returns():
    def model(x):
        y = x.clone()
        if x.sum() > 0:
            y = y * 2
            z = y.mean()
            return y + z
        y = y - 1
        if x[0, 0] < -2:
            return y.abs()
        return y * y

    assert_kept_alive(model, (UP,), [(DOWN,), (DOWN * 5,)], ifs=2)


def test_return_of_a_structure():
    def model(x):
        if x.sum() > 0:
            return {"value": x * 2, "pair": (x[0], 1)}
        return {"value": -x, "pair": (x[1], 2)}

    both(model, ifs=1)


def test_return_inside_with():
    def model(x):
        with torch.no_grad():
            if x.sum() > 0:
                return x * 2
            y = x - 1
        return y * 3

    both(model)


def test_return_inside_try():
    def model(x):
        try:
            if x.sum() > 0:
                return x * 2
            y = x - 1
        finally:
            z = x + 1
        return y * z

    both(model)


def test_return_none_of_a_helper():
    def helper(x, out):
        if x.sum() > 0:
            out.mul_(2)
            return
        out.add_(1)

    def model(x):
        y = x.clone()
        helper(x, y)
        return y

    both(model, ifs=1)


# --- tests


@pytest.mark.parametrize(
    "test",
    [
        lambda x: x.sum(),
        lambda x: (x > 0).any(),
        lambda x: bool((x > 0).all()),
        lambda x: int(x.sum().item()) > 0,
        lambda x: float(x.max()) > 0.5,
        lambda x: x.sum().item() > 0,
        lambda x: not x.sum() > 0,
        lambda x: x.sum() > 0 and x[0, 0] < 3,
        lambda x: x.sum() < 0 or x[0, 0] > 3,
        lambda x: -5 < x.sum() < 100,
        lambda x: 0 < x[0, 0] <= x.sum() < 100,
        lambda x: (total := x.sum()) > 0 and total < 100,
        lambda x: x.sum() == 12,
        lambda x: x.sum() != 12,
        lambda x: x.sum() in (12, -12),
        lambda x: torch.equal(x, x.abs()),
        lambda x: torch.allclose(x, x.abs()),
        lambda x: x.is_floating_point() and x.sum() > 0,
        lambda x: x.sum() > 0 and x.dim() == 2,
        lambda x: x.dim() == 3 or x.sum() > 0,
    ],
)
def test_the_truth_of(test):
    def model(x):
        if test(x):
            return x * 2
        return x - 1

    assert_kept_alive(model, (UP,), [(DOWN,), (torch.zeros(4, 3),), (UP * 5,)])


def test_walrus_in_the_test():
    def model(x):
        if (total := x.sum()) > 0:
            return x * total
        return x - total

    both(model, ifs=1)


def test_static_tests_stay_static():
    def model(x):
        if x.dim() == 2 and x.shape[1] == 3:
            return x * 2
        return x

    both(model, ifs=0)


def test_short_circuit_is_kept():
    """The second operand would fail on an empty tensor."""

    def model(x):
        if x.shape[0] > 0 and x[0, 0] > 0:
            return x * 2
        return x - 1

    assert_kept_alive(model, *_split(rows(4, 1, 7, 0)), dynamic_shapes=ROWS)


def test_short_circuit_of_or():
    def model(x):
        if x.shape[0] == 0 or x[0, 0] > 0:
            return x.sum()
        return x.max()

    assert_kept_alive(model, *_split(rows(4, 1, 7, 0)), dynamic_shapes=ROWS)


def test_two_sizes_compared():
    def model(x):
        if x.shape[0] == x.shape[1]:
            return x.sum()
        return x.sum() * 2

    others = [(torch.randn(5, 5),), (torch.randn(2, 7),), (torch.randn(7, 2),)]
    assert_kept_alive(model, (torch.randn(4, 3),), others, dynamic_shapes=({0: FREE, 1: FREE},), ifs=1)


def test_a_python_number_argument():
    def model(x, n):
        if n > 2:
            return x * n
        return x - n

    assert_kept_alive(model, (UP, 3), [(UP, 0), (DOWN, 2), (UP, 7)], ifs=1)


def test_a_python_bool_argument():
    def model(x, flip):
        if flip:
            x = -x
        return x

    assert_kept_alive(model, (UP, True), [(UP, False)], ifs=1)


def test_and_gives_its_operand_where_it_is_plain():
    def model(x, scale=None):
        scale = scale or 2.0
        return x * scale if x.sum() > 0 else x

    both(model)


def test_integers_and_a_chain_of_comparisons():
    def model(t):
        if 0 < t < 5 and not t == 2:
            return t * 2
        return t - 1 if t > 6 or t < -10 else t + 1

    assert_kept_alive(model, *_split(numbers(3, 2, 0, 6, 9, -20)))


def _split(inputs):
    return inputs[0], inputs[1:]
