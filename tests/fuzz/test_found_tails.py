"""Programs of the fuzzer's, reduced, in which the rest of a block is traced in both arms of a branch before it."""

from __future__ import annotations

import torch

from tests.fuzz.test_found import assert_faithful


def test_what_a_lambda_decides_is_decided_when_it_is_called():
    """Seed 9402, 1385: the ternary was made a branch around the lambda, which asked what `self.last` was there."""

    def forward(self, x, y, c, n):
        act = lambda v: v if self.last[2] == -2 else -v  # noqa: E731
        self.last = y * 2 if n > 0 else y - 1
        d = {"a": act(y)}
        match int(y[0].item()) % 3:
            case 0:
                return y.sum(), True
            case 2:
                pass
            case _:
                d["a"] += 1
        return y.sum() * 4 + d["a"].sum() + act(y).sum() * 11, True

    assert_faithful(forward)


def test_what_a_comprehension_decides_is_decided_for_each_item():
    def forward(self, x, y, c, n):
        v = y * 1
        rows = [v if row.sum() > c else -v for row in (x.sum(0), y * 2)]
        rows[0].add_(1)
        return v, rows[0], rows[1]

    assert_faithful(forward)


def test_a_ternary_beside_a_call_that_writes_what_it_asks_for():
    def forward(self, x, y, c, n):
        h = y * 1
        g = h.add_(c).sum() + (h if h.sum() > 1 else -y).mul_(2)
        return h, g

    assert_faithful(forward)


def test_the_arms_of_a_match_share_a_tensor():
    def forward(self, x, y, c, n):
        h = y * 1
        g = y * 2
        match int(c) % 3:
            case 0:
                h = g
            case 1:
                g = h
        g.add_(1)
        return h.sum(), g.sum() * 2

    assert_faithful(forward)


def test_a_branch_in_a_branch_shares_a_tensor():
    def forward(self, x, y, c, n):
        h, g = y * 1, y * 2
        if y.sum() > 0:
            if c > 1:
                h = g
            else:
                h = h + 1
        else:
            h = y - 2
        g.add_(1)
        return h.sum(), g.sum() * 2

    assert_faithful(forward)


# --- names that only one arm binds


def test_what_is_none_on_one_way_in_the_only_arm_that_binds_it():
    """Seed 12001, 48: whether it is None was asked of a number of the arm's, where nobody has it."""

    def forward(self, x, y, c, n):
        with torch.no_grad():
            if y.max() <= 0:
                return y.sum(), x[:2]
            elif y[0] > -0.5:
                best = y if y[1] > 0 else None
            else:
                return y.sum() * 2, x[1:]
        return (y.max() if best is None else best.sum()), x

    assert_faithful(forward)


def test_a_text_and_a_pair_that_are_chosen_in_the_only_arm_that_binds_them():
    def forward(self, x, y, c, n):
        if y.max() <= 0:
            key = "a" if y[1] > 0 else "b"
            pair = (y * 2, "a" if y[2] > -1 else "b", None if y[0] > -2 else x)
        if y.max() <= 0:
            y = pair[0] if pair[1] == key else -y
            x = x if pair[2] is None else pair[2] * 2
        return x, y

    assert_faithful(forward)
