"""Slices with a step of a list that a loop left with an open number of items."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, rows

CUTS = ["-2::-1", "3:-3:-1", ":1:-1", "1:-1:-1", "1:-1:2", "::3", "::-1"]


@pytest.mark.parametrize("cut", CUTS)
def test_a_list_of_open_length_is_cut_with_a_step(cut):
    bounds = slice(*(int(bound) if bound else None for bound in cut.split(":")))

    def model(x):
        items = [x[:1]]
        for i in range(x.shape[0]):
            items.append(x[i : i + 1] * i)
        return torch.cat([x[:1], *items[bounds]])

    assert_kept_alive(model, *rows(4), rows(1, 2, 3, 9), dynamic_shapes=ROWS)


def test_a_pyramid_is_gone_down_and_up_again():
    """Levels of different sizes, as many as the picture has, taken from the last but one to the first."""

    def model(x):
        levels = [x]
        while levels[-1].shape[0] > 2:
            levels.append((levels[-1][::2] + levels[-1].mean(0)) / 2)
        y = levels[-1]
        for level in levels[-2::-1]:
            y = y.repeat_interleave(2, 0)[: level.shape[0]] + level
        return y, len(levels)

    assert_kept_alive(model, *rows(9), rows(1, 2, 4, 17), dynamic_shapes=ROWS)


def test_the_last_of_items_of_different_lengths_is_padded():
    def model(x):
        frames = []
        for offset in range(0, x.shape[0], 3):
            frames.append(x[offset : offset + 3] * 2)
        missing = frames[0].shape[0] - frames[-1].shape[0]
        if missing > 0:
            frames[-1] = F.pad(frames[-1], (0, 0, 0, missing))
        return torch.stack(frames), missing

    assert_kept_alive(model, *rows(4), rows(1, 3, 9, 11), dynamic_shapes=ROWS)


def test_a_range_by_its_own_length_is_one_round():
    def model(x):
        length = x.shape[0]
        return torch.stack([x[at : at + length].sum(0) for at in range(0, length, length)])

    assert_kept_alive(model, *rows(4), rows(1, 3, 9), dynamic_shapes=ROWS, loops=0)


def in_front(first, rest):
    """Decides nothing, so nobody has a reason to rewrite it."""
    return [first] + rest  # noqa: RUF005 (as users write)


def test_a_list_in_front_of_one_of_open_length():
    def model(x):
        positions = in_front(-1, list(range(x.shape[0]))[::2])
        return x * positions[0] + positions[-1], len(positions)

    assert_kept_alive(model, *rows(4), rows(1, 3, 9), dynamic_shapes=ROWS)
