"""Ways that drawn inputs do not take are looked for, and found: thresholds, single values, loops of no rounds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from tests.verify.onnx_models import job, leaf
from trueport.load.job import AxisSize, FreeSize, sizes_in
from trueport.rewrite.probes import probed
from trueport.rewrite.running.probe_runtime import DecisionKind
from trueport.verify.decisions.search import Search
from trueport.verify.decisions.tally import way_words
from trueport.verify.decisions.trail import Overstayed, followed
from trueport.verify.inputs.moves import Candidate
from trueport.verify.inputs.sizes import groups_of
from trueport.verify.judging.reference import Reference


def beyond_a_sum(x):
    if x.sum() > 1000:
        return x * 2
    return -x


def one_of_them(ids):
    if (ids == 7).any():
        return ids * 2
    return ids


def all_below(x):
    return x + 1 if x.max() < -5 else x


def exactly_three(x, n):
    if n == 31:
        return x * n
    return x


def until_enough(x):
    while x.sum() < 100:
        x = x * 2 + 1
    return x


def of_a_length(x):
    if x.shape[0] == 23:
        return x
    return -x


def two_at_once(x, y):
    if x[0] > 40 and y.min() < -20:
        return x
    return y


def nested(x):
    if x.mean() > 30:
        if x[0] < -60:
            return x
        return -x
    return x + 1


def asked_before(x):
    flag = bool(x.abs().sum() > 400)
    total = 0
    if not flag:
        total = 1
    return x + total


def through_a_layer(x):
    torch.manual_seed(1)
    h = torch.randn(4, 4) @ x
    if h[0] > 12 and h[1] < -12:
        return h
    return x


ROWS = {0: AxisSize.of(FreeSize("rows"))}
HARD = [
    (beyond_a_sum, leaf("x", torch.ones(2, 3))),
    (one_of_them, leaf("ids", torch.tensor([100, 205, 311]))),
    (all_below, leaf("x", torch.rand(4))),
    (exactly_three, leaf("x", torch.rand(2)), leaf("n", 5)),
    (until_enough, leaf("x", torch.rand(3))),
    (of_a_length, leaf("x", torch.rand(4), ROWS)),
    (two_at_once, leaf("x", torch.rand(2)), leaf("y", torch.rand(2))),
    (nested, leaf("x", torch.rand(3))),
    (asked_before, leaf("x", torch.rand(3))),
    (through_a_layer, leaf("x", torch.rand(4))),
]


def looked_for(function, *leaves, attempts=2000, seed=0):
    """Sets out from the example alone, and compares nothing: whatever is found counts."""
    work = job(*leaves)
    values = tuple(each.value for each in leaves)
    sizes = sizes_in(leaves, values)
    reference = Reference(lambda given: function(*given), lambda y: [y], [function.__code__])
    found = []
    with probed(reference.codes):
        reference.tally.add(reference.answer(values)[1])
        search = Search(work, groups_of(work.free_sizes, sizes), reference.tally, reference.guided, seed)
        for candidate in search.found([Candidate(values, sizes)], attempts):
            found.append(candidate)
            reference.tally.add(reference.answer(candidate.values)[1])
            if not any(decision.never_ran for decision in reference.tally.decisions()) and not any(
                decision.site.kind.is_loop for decision in reference.tally.decisions()
            ):
                break
            if not reference.tally.goals():
                break
    return reference.tally, found, search


@pytest.mark.parametrize(("function", "leaves"), [(each[0], each[1:]) for each in HARD], ids=lambda each: "")
def test_every_way_is_found(function, leaves):
    tally, _, search = looked_for(function, *leaves, attempts=2000)
    missing = [f"{d.site.text} {way_words(d.site, way)}" for d in tally.decisions() for way in d.never_ran]
    assert missing == []
    assert search.attempts < 2000


def test_a_loop_of_no_rounds_of_one_and_of_more():
    tally, _, _ = looked_for(until_enough, leaf("x", torch.rand(3)))
    (decision,) = tally.decisions()
    assert decision.site.kind is DecisionKind.WHILE
    assert all(decision.counts)


def test_the_same_seed_finds_the_same_inputs():
    once, again = (looked_for(two_at_once, *HARD[6][1:], seed=5)[1] for _ in range(2))
    assert [[v.tolist() for v in c.values] for c in once] == [[v.tolist() for v in c.values] for c in again]


def test_declared_ranges_are_kept():
    _, found, _ = looked_for(beyond_a_sum, leaf("x", torch.ones(2, 3), value_range=(0.0, 1.0)), attempts=300)
    assert all(0 <= float(value.min()) and float(value.max()) <= 1 for each in found for value in each.values)


def test_what_never_looks_at_an_input_is_no_way_to_look_for():
    wide = True

    def configured(x):
        if wide:
            return x * 2
        return x

    tally, found, search = looked_for(configured, leaf("x", torch.rand(3)), attempts=500)
    assert tally.decisions() == ()
    assert found == []
    assert search.attempts == 1


def test_eager_that_does_not_come_back_counts_as_a_refusal():
    def endless(x):
        while x.sum() < 100:
            x = x * 2
        return x

    reference = Reference(lambda given: endless(*given), lambda y: [y], [endless.__code__], most_decisions=1000)
    with probed(reference.codes):
        assert reference.answer([torch.zeros(2)])[0] is None
        assert reference.answer([torch.ones(2)])[0] is not None
        with pytest.raises(Overstayed), followed(1000):
            endless(torch.zeros(2))


class LeavesItsLoop(nn.Module):
    """The graph has no branch for the `break`: it is part of the loop's condition."""

    def forward(self, x):
        if x.min() < -1e6:
            raise ValueError("too low")
        total = x.new_zeros(())
        for row in x:
            total = total + row.sum()
            if total > 4000:
                break
        return total


def test_a_way_out_of_a_loop_is_a_way_to_look_for():
    model = LeavesItsLoop()
    program = trueport.export(model, (torch.rand(3, 2),), dynamic_shapes={"x": {0: "rows"}})
    counted = {decision.text: {way.name: way.inputs for way in decision.ways} for decision in program.report.decisions}
    assert counted["total > 4000"]["holds"] >= 3
    assert counted["total > 4000"]["fails"] >= 3


def test_a_way_that_raises_is_none_to_look_for():
    report = trueport.check(LeavesItsLoop(), (torch.rand(3, 2),), dynamic_shapes={"x": {0: "rows"}})
    assert not [finding for finding in report.diagnostics if finding.code == "TP810"]


def test_a_raise_that_is_caught_is_a_way_like_others():
    def careful(x):
        try:
            if x.sum() > 1000:
                raise ValueError
        except ValueError:
            return x * 2
        return x

    tally, _, _ = looked_for(careful, leaf("x", torch.ones(3)))
    (decision,) = tally.decisions()
    assert decision.site.raising == ()
    assert all(decision.counts)
