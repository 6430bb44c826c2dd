"""The lattice of what a name can be: `join` gives the least kind that holds both, and loops of joins come to an end."""

from __future__ import annotations

import itertools
from random import Random

import pytest
import sympy
import torch

from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import (
    UNBOUND_KIND,
    Choice,
    Conflict,
    DictKind,
    Kind,
    Length,
    ListKind,
    Nothing,
    NumberKind,
    Opaque,
    Optional,
    Record,
    TensorKind,
    both_told,
    join,
)
from trueport.graph.regions import Number, Value
from trueport.load.structures import flatten
from trueport.source import Place

CPU = torch.device("cpu")
N = sympy.Symbol("n")
LAYER = torch.nn.ReLU()


def tensor(*sizes, dtype=torch.float32, held=None):
    return TensorKind(dtype, sizes, CPU, held)


def record(value):
    return Record(type(value), len(value), True, flatten(value)[1])


HELD = Value(torch.float32, (2, N))
KINDS: list[Kind] = [
    UNBOUND_KIND,
    NumberKind(bool, held=True),
    NumberKind(bool),
    NumberKind(int, 3, 3),
    NumberKind(int, 0, 0),
    NumberKind(int, 0, Number(N, int)),
    NumberKind(int),
    NumberKind(float, held=0.0),
    NumberKind(float, held=-0.0),
    NumberKind(float),
    tensor(),
    tensor(dtype=torch.int64),
    tensor(dtype=torch.bool),
    tensor(2, N),
    tensor(2, N, held=HELD),
    tensor(2, 3),
    tensor(None, 3),
    tensor(2, N, dtype=torch.int64),
    Opaque(object),
    record((1.0, 2)),
    record((1.0, torch.zeros(2))),
    record((1.0, (2,))),
    record({"a": 1}),
    ListKind(list, 2),
    ListKind(list, 3),
    ListKind(list),
    DictKind(dict, 1, True),
    DictKind(dict, 2),
    Nothing(),
    Choice(("up",)),
    Choice(("up", LAYER)),
    Choice((LAYER, "down")),
    Choice((None, "up")),
    Optional(tensor()),
    Optional(tensor(2, N)),
    Optional(NumberKind(int, 0)),
    Conflict(Nothing(), Opaque(object)),
]


def same(one: Kind, other: Kind) -> bool:
    """Conflicts are one kind, whatever they are between."""
    return type(one) is type(other) is Conflict or one == other


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_kind_joined_with_itself_is_itself(kind):
    assert join(kind, kind) == kind


def test_the_order_of_the_ways_does_not_matter():
    for one, other in itertools.product(KINDS, repeat=2):
        assert same(join(one, other), join(other, one)), (one, other)


def test_it_does_not_matter_which_ways_meet_first():
    for one, two, three in itertools.product(KINDS, repeat=3):
        assert same(join(join(one, two), three), join(one, join(two, three))), (one, two, three)


def test_only_of_plain_tuples_that_meet_an_open_one_the_order_matters():
    """Two plain tuples with nothing in common conflict; an open list takes in the first, and then the second too."""
    pair, nested, open_one = record((1.0, 2)), record((1.0, (2,))), ListKind(tuple)
    assert isinstance(join(join(pair, nested), open_one), Conflict)
    assert join(pair, join(nested, open_one)) == open_one


def test_what_holds_both_holds_each():
    for one, other in itertools.product(KINDS, repeat=2):
        both = join(one, other)
        assert same(join(one, both), both) and same(join(both, other), both), (one, other)


def test_a_conflict_stays_the_one_that_it_was():
    conflict = join(Nothing(), ListKind(list))
    assert conflict == Conflict(Nothing(), ListKind(list))
    for kind in KINDS:
        if not isinstance(kind, Conflict):
            assert join(conflict, kind) == join(kind, conflict) == conflict


def test_two_things_of_one_type_are_not_the_same():
    assert isinstance(join(Opaque(set), Opaque(set)), Conflict)


def test_what_is_not_bound_takes_nothing_but_the_value_of_the_other_way():
    assert join(UNBOUND_KIND, NumberKind(int, 3, 3)) == NumberKind(int, 3, 3)
    assert join(UNBOUND_KIND, NumberKind(int, 0, Number(N, int))) == NumberKind(int, 0)
    assert join(tensor(2, N, held=HELD), UNBOUND_KIND) == tensor(2, N)
    assert join(UNBOUND_KIND, Nothing()) == Nothing()


def test_numbers_and_tensors():
    assert join(NumberKind(bool, held=True), NumberKind(int, 4, 4)) == NumberKind(int)
    assert join(NumberKind(int, 3, 3), NumberKind(int, 5, 5)) == NumberKind(int, 3)
    assert join(NumberKind(float, held=0.0), NumberKind(float, held=-0.0)) == NumberKind(float)
    assert join(tensor(2, N), tensor(2, 3)) == tensor(2, None)
    assert join(NumberKind(int, 3, 3), tensor()) == tensor()
    assert isinstance(join(NumberKind(float, held=0.5), tensor(dtype=torch.int64)), Conflict)
    assert isinstance(join(NumberKind(int, 3, 3), tensor(2)), Conflict)


def test_none_beside_a_value_is_optional_and_beside_a_thing_one_of_several():
    assert join(Nothing(), tensor(2, N, held=HELD)) == Optional(tensor(2, N))
    assert join(Optional(tensor(2, N)), tensor(2, 3)) == Optional(tensor(2, None))
    assert join(Nothing(), Choice(("up",))) == Choice((None, "up"))
    assert isinstance(join(Optional(tensor()), Choice(("up",))), Conflict)


def test_rounds_of_a_loop_come_to_an_end():
    """However the rounds go on: a kind that is widened by each of them changes a few times at most."""
    chance = Random(7)
    more = [NumberKind(int, -low, -low) for low in range(50)] + [tensor(size, 50 - size) for size in range(50)]
    for _ in range(300):
        kind, changes = chance.choice(KINDS + more), 0
        for _ in range(60):
            wider = kind.widened(join(kind, chance.choice(KINDS[:18] + more)))
            changes += not same(wider, kind)
            kind = wider
        assert changes <= 6


def test_the_fix_is_chosen_by_the_kinds():
    def fix(then, orelse):
        return Disagreement("x", then, orelse, Place(())).told().fix

    assert "instead of None" in fix(tensor(), Nothing())
    assert "set it before the branch" in fix(UNBOUND_KIND, tensor())
    assert "stands for the text" in fix(Choice(("up",)), Choice(("down",)))
    assert "append in both arms" in fix(Length(1), Length(None))
    assert "the same dtype" in fix(tensor(), Choice(("None",))) and "the same dtype" in fix(
        Choice(("x long",)), Length(2)
    )


def test_two_kinds_in_words():
    assert both_told(Length(1), Length(None)) == ("1 item long", "of open length")
    assert both_told(record((1.0, 2)), record((1.0, 2, 3))) == ("a tuple of 2", "a tuple of 3")
    assert both_told(NumberKind(int, 3, 3), NumberKind(float)) == ("3", "a float")
