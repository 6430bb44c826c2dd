"""A branch that parts for longer than its block: one arm raises and a `try` goes on, or a function returns two kinds.

The statement around it is then traced for each way.
"""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

import trueport
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, numbers, refused, rows
from trueport.capture.limits import Limit

# --- errors that the user's code catches


def positive(x):
    if x.sum() > 20:
        raise KeyError("too much")
    if x.sum() > 0:
        raise ValueError("positive")
    return x


def raised_in_the_block(x):
    log = []
    try:
        if x.sum() > 0:
            raise ValueError("no")
        y = x * 2
    except ValueError:
        y = x + 5
    else:
        y = y - 1
    finally:
        log.append(1)
    return y * len(log)


def raised_by_a_helper(x):
    try:
        y = positive(x)
    except KeyError:
        return x * 5
    except (ValueError, TypeError) as error:
        return x * len(error.args)
    return y + 1


def raised_anew(x):
    try:
        try:
            y = positive(x)
        except KeyError:
            raise ValueError from None
        finally:
            x = x * 2
    except ValueError:
        return x * 7
    return y


def caught_by_a_bare_except(x):
    try:
        y = positive(x)
    except:  # noqa: E722
        y = x - 3
    return y


def decided_under_a_bare_except(x):
    try:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x
    except:  # noqa: E722
        y = x - 3
    return y


def an_assertion_that_is_caught(x):
    try:
        assert x.sum() > 0, "negative"
        return x * 2
    except AssertionError:
        return x - 1


def suppressed(x):
    y = x
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError
        y = x * 2
    return y


class Forgiving:
    def __enter__(self):
        return 3

    def __exit__(self, kind, *_):
        return kind is ValueError


def forgiven(x):
    y = x
    with Forgiving() as k:
        if x.sum() > 0:
            raise ValueError
        y = x * k
    return y


@pytest.mark.parametrize(
    "model",
    [
        raised_in_the_block,
        raised_by_a_helper,
        raised_anew,
        caught_by_a_bare_except,
        decided_under_a_bare_except,
        an_assertion_that_is_caught,
        suppressed,
        forgiven,
    ],
    ids=lambda model: model.__name__,
)
def test_an_error_that_is_caught(model):
    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 9,)])


@pytest.mark.parametrize("continues", [True, False])
def test_an_error_that_is_caught_in_each_round(continues):
    def model(x):
        total, count = torch.zeros(3), 0
        for row in x:
            try:
                if row[0] > 0:
                    raise ValueError
                total = total + row
            except ValueError:
                total = total - 1
                if continues:
                    continue
            finally:
                count += 1
            total = total * 2
        return total * count

    first, *others = rows(4, 0, 1)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS, loops=1)


def test_an_index_and_a_key_that_may_be_nan():
    def model(t):
        items, table = [1.0, 2.0, 3.0], {1: 10.0, 5: 20.0}
        try:
            y = t * items[int(t)]
        except IndexError:
            y = t - 1
        try:
            return y + table[int(t)]
        except KeyError:
            return -y

    assert_kept_alive(model, (torch.tensor(1.0),), numbers(0.0, 2.0, 3.0, 5.0, 9.0))


# --- functions whose arms return things of two kinds


def with_or_without_mask(x):
    if x.sum() > 0:
        return x, x > 0
    return x


def of_some_rank(x):
    if x.shape[0] > 2 and x.sum() > 0:
        return x.sum(0)
    return x


def drawn(x):
    noise = torch.rand(3)
    if noise.sum() * 0 + x.sum() > 0:
        return noise
    return noise[None]


def a_pair_or_a_tensor(x):
    y = with_or_without_mask(x)
    if isinstance(y, tuple):
        y, mask = y
        y = y * mask
    return y + 1


def of_another_rank(x):
    y = of_some_rank(x)
    if y.dim() == 1:
        y = y[None]
    return y * 2


def through_another_function(x):
    def inner(v):
        return of_some_rank(v)

    y = inner(x)
    z = y.unsqueeze(0) if y.ndim == 1 else y
    return z.mean(0)


def of_another_dtype(x):
    def whole(v):
        return v.long() if v.sum() > 0 else v

    y = whole(x)
    return (y / 2 if y.is_floating_point() else y // 2).float()


def several_at_once(x):
    y, z = of_some_rank(x), of_some_rank(-x)
    return y.sum() + z.mean() * y.dim() + sum(of_some_rank(v).dim() for v in (x, -x))


def left_by_loops_and_branches(x):
    def first_that(v):
        if v.sum() > 0:
            if v.max() > 2:
                return v * 3
            return v * 2
        for row in v:
            if row[0] < -0.5:
                return row
        return v[0]

    return first_that(x).sum() + 1


@pytest.mark.parametrize(
    "model",
    [
        a_pair_or_a_tensor,
        of_another_rank,
        through_another_function,
        of_another_dtype,
        several_at_once,
        left_by_loops_and_branches,
    ],
    ids=lambda model: model.__name__,
)
def test_a_function_that_returns_things_of_two_kinds(model):
    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 9,)])


def test_what_was_computed_before_the_branch_is_computed_once():
    def model(x):
        return drawn(x).sum()

    program = trueport.export(model, (UP,), verify=False, random="onnx")
    assert [node.op for node in program.captured.root.walk()].count(torch.ops.aten.rand.default) == 1


def test_a_function_of_two_kinds_in_each_round():
    def one_or_two(row):
        if row[0] > 0:
            return row, row + 1
        return row

    def model(x):
        total = torch.zeros(3)
        for row in x:
            found = one_or_two(row)
            if isinstance(found, tuple):
                total = total + found[0] * found[1]
            else:
                total = total - found
        return total

    first, *others = rows(5, 0, 1)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS, loops=1)


@pytest.mark.parametrize("before", [True, False], ids=["pre-hook", "hook"])
def test_hooks_that_change_something_or_return_none(before):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            if before:
                self.fc.register_forward_pre_hook(self.double)
            else:
                self.fc.register_forward_hook(self.double)

        def double(self, module, given, *result):
            value = result[0] if result else given[0]
            if value.sum() > 0:
                return value * 2 if result else (value * 2,)

        def forward(self, x):
            return self.fc(x)

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), (UP,), [(DOWN,)])


def _lower_or_absolute(a):
    if a.sum() > 0:
        return a - 1
    return a.abs()


def _same_or_another(a):
    return a if a.sum().item() < 3 else _lower_or_absolute(a)


def test_a_number_decides_and_a_tensor_after_it():
    """What the first test tells settled it before it was met, and the second was taken for the first."""

    def model(x):
        h = x * 1
        g = _same_or_another(h)
        g[0] += 1
        return h, g

    given = [(torch.tensor(row),) for row in ([1.0, 1.0], [0.0, 3.0], [4.0, -1.0], [-5.0, 1.0])]
    assert_kept_alive(model, given[0], given)


def test_there_are_not_as_many_ways_as_all_forks_of_a_trace_make_together(monkeypatch):
    """Each fork in the arm of another is run for each of its ways: from some number on, the model is refused."""
    monkeypatch.setattr("trueport.capture.limits.FORKINGS", Limit("FORKINGS", 1, "runs of statements"))

    def model(x):
        h, g = x * 1, x * 2
        _larger(h, g).add_(1)
        _larger(g, h).sub_(1)
        return h, g

    told = refused(model, (torch.tensor([1.0, -2.0]),))
    assert told.code == "TP103"
    assert told.facts["limit"] == "FORKINGS"
    assert any("limit of 1 runs" in seen for seen in told.seen)


def _larger(a, b):
    return a if a.sum() > b.sum() else b


# --- loops that are left early, where the rounds change what a name is


def left_by_a_break(x):
    """LightGlue's mask: a number of points at first, true or false after the first layer."""
    kept = (x[:, 0] * 8).int()
    for _ in range(3):
        x = x * 2 + kept.to(x.dtype)[:, None]
        if x.sum() > 12:
            break
        kept = kept > 0
    return x


def left_by_a_return(x):
    kept = x.int()
    for i in range(3):
        if x.sum() > 4:
            return x + kept.sum()
        kept = kept > 0 if i == 0 else kept.float().sum(0)
        x = x * 2 + kept
    return x - 1


def left_by_a_break_in_an_inner_arm(x):
    kept, seen = (x * 4).int(), []
    for i in range(2):
        seen.append(kept)
        x = x * 2
        if x.max() > 3:
            kept = kept + 1
            if x.sum() > 6:
                x = x + 1
                break
        kept = kept > 0 if i == 0 else kept.float()
    return x, len(seen), kept.sum().float(), seen[-1].float()


WAYS_OUT = [(torch.full((2, 3), value),) for value in (5.0, 1.1, 0.6, 0.4, 0.1, 0.0, -1.0, -3.0)]


@pytest.mark.parametrize("model", [left_by_a_break, left_by_a_return, left_by_a_break_in_an_inner_arm])
def test_a_loop_that_is_left_before_a_name_becomes_something_else(model):
    assert_kept_alive(model, WAYS_OUT[3], [*WAYS_OUT, *rows(1, 2, 5)], dynamic_shapes=ROWS)


def test_what_a_loop_left_behind_is_told_where_it_is_a_result_of_two_kinds():
    """No ONNX value is int32 now and bool then."""

    def model(x):
        kept = x.int()
        for _ in range(2):
            x = x * 2
            if x.sum() > 4:
                break
            kept = kept > 0
        return x, kept

    assert refused(model, (UP,)).code == "TP103"


@contextlib.contextmanager
def _measured(seen):
    seen.append("begun")
    try:
        yield
    finally:
        seen.append("ended")


class _Measured:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def raised_where_a_generator_measures(x):
    with _measured([]):
        if x.sum() < -20:
            raise ValueError
        return x * 2


def raised_where_a_class_measures(x):
    with _Measured():
        assert x.sum() > -20
        return x * 2


@pytest.mark.parametrize("model", [raised_where_a_generator_measures, raised_where_a_class_measures])
def test_a_context_manager_that_ends_no_error(model):
    """Eager ends with the error, and the arm is dropped as anywhere else."""
    assert_kept_alive(model, (UP,), [(DOWN,)])
