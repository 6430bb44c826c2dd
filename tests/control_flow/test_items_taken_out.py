"""Objects and dicts in a list of open length: read, made, put back. A change that would not reach it is refused."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, refused, rows


class Track:
    def __init__(self, score):
        self.score = score
        self.age = 0


def on(model):
    return assert_kept_alive(model, *rows(4), [*rows(1, 2, 7), (-torch.ones(3, 3),)], dynamic_shapes=ROWS)


def test_objects_with_numbers_that_differ():
    def model(x):
        tracks = []
        for i, row in enumerate(x):
            track = Track(row.sum())
            track.age = i
            if row[0] > 0:
                track.age += 5
            tracks.append(track)
        return torch.stack([track.score * track.age for track in tracks]), tracks[-1].age

    on(model)


def test_objects_that_are_sorted_and_cut():
    def model(x):
        tracks = [Track(row.sum()) for row in x]
        tracks.sort(key=lambda track: track.score, reverse=True)
        return torch.stack([track.score for track in tracks[:2]])

    on(model)


def test_the_last_one_is_changed_before_the_next_comes():
    def model(x):
        tracks = []
        for row in x:
            tracks.append(Track(row.sum()))
            tracks[-1].age += 2
        return torch.stack([track.score * track.age for track in tracks])

    on(model)


def test_a_changed_one_that_is_put_back():
    def model(x):
        found = []
        for row in x:
            found.append({"score": row.sum()})
        for i in range(len(found)):
            one = found[i]
            one["score"] = one["score"] * 2
            found[i] = one
        return torch.stack([one["score"] for one in found])

    on(model)


def by_key(x):
    found = []
    for row in x:
        found.append({"score": row.sum()})
    for one in found:
        one["score"] = one["score"] * 2
    return torch.stack([one["score"] for one in found])


def by_attribute(x):
    tracks = [Track(row.sum()) for row in x]
    for track in tracks:
        if track.score > 0:
            track.age += 1
    return torch.stack([track.score * track.age for track in tracks])


@pytest.mark.parametrize("model", [by_key, by_attribute])
def test_a_change_that_would_not_reach_the_list_is_refused(model):
    found = refused(model, *rows(4), dynamic_shapes=ROWS)
    assert found.code == "TP104"
    assert "changed after it was taken out of the list" in found.message
    assert found.where is not None
