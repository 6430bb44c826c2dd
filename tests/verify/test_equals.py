"""Of equal values, torch leaves open which comes first; another order than eager's is no difference."""

from __future__ import annotations

import torch

from tests.lower.ops.faithful import faithful
from trueport.verify.judging.equals import FirstOfEquals


def test_ties_are_no_difference():
    def forward(x):
        return x.topk(3, 1), x.kthvalue(2, 0), x.sort(1), x.argsort(0)

    faithful(forward, torch.randint(0, 2, (6, 20)), free=({0},), unique=False)


def test_the_lowest_place_comes_first():
    tied = torch.tensor([1.0, 3.0, 1.0, 3.0, 1.0])
    with FirstOfEquals() as choice:
        top, third, middle = tied.topk(2).indices, tied.kthvalue(3).indices, tied.median(0).indices
        order = tied.sort(descending=True).indices
    assert choice.met
    assert (top.tolist(), third.item(), middle.item(), order.tolist()) == ([1, 3], 4, 4, [1, 3, 0, 2, 4])


def test_without_such_an_operator_there_is_no_choice():
    with FirstOfEquals() as choice:
        torch.ones(3).argmax()
    assert not choice.met


def test_what_is_chosen_can_be_seen_as_another_shape():
    """The best of each class, and then of all, as detectors take them: a view of columns would refuse the `.view`."""

    def forward(x):
        scores, places = x.topk(3)
        best, which = scores.view(x.shape[0], -1).topk(2)
        return best, places.view(x.shape[0], -1).gather(1, which)

    faithful(forward, torch.zeros(2, 4, 6), free=({0},), unique=False)
