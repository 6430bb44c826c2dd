"""What a name can be, and what it is where two ways meet: the lattice that branches and loops share.

    not bound   below everything: to read it there is an error of the user's, so what it holds does not matter
    number      bool, int, float: the wider of the two; what both are at least; a plain value only if it is the same
    tensor      of one dtype and number of axes; a size that differs is open. It takes in a number that it can hold
    choice      one of several things that no value of ONNX is: texts, layers, functions, None
    optional    None on one way, and on the other something that a value of ONNX can be
    list, dict  of rewritten code: how many items or which keys may be open
    record      any other structure: the same containers and keys on both ways, joined leaf by leaf
    conflict    above everything: nothing that ONNX could hold is both

`join` gives the least kind that holds both. A branch joins once what its two arms leave. A loop joins what it began
with and what a round leaves, again and again, until nothing changes; `widened` lets it come to an end. A kind knows
nothing of a trace: joins/meeting.py looks at values, and gives kinds to ONNX.

Things that no value of ONNX can be, and of which a number may tell which one is meant: when two are the same.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any, ClassVar

import torch

from trueport.graph.regions import Number, Size, Value
from trueport.load.structures import Structure

_SHORT = 30
_WIDTH: dict[type, int] = {bool: 0, int: 1, float: 2}


TEXTS = (str, bytes, torch.dtype, torch.device, enum.Enum)


def all_things(*groups: Iterable[Any]) -> tuple[Any, ...]:
    """The things of all these, each once."""
    found: list[Any] = []
    for group in groups:
        found += [one for one in group if place_among(found, one) is None]
    return tuple(found)


def _told(kind: type) -> str:
    """A class in the user's words; one of ours says which."""
    return getattr(kind, "told_as", f"a {kind.__name__}")


def place_among(things: Sequence[Any], wanted: Any) -> int | None:
    return next((i for i, one in enumerate(things) if _same(one, wanted)), None)


def made_anew(things: Sequence[Any], thing: Any) -> bool:
    """Whether it is a function of the code of one of these, made once more, with names of its own around it."""
    codes = [one.__code__ for one in things if isinstance(one, FunctionType)]
    return isinstance(thing, FunctionType) and thing.__code__ in codes and place_among(things, thing) is None


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return _same_function(one, other)
    return type(one) is type(other) and isinstance(one, (*TEXTS, MethodType)) and bool(one == other)


def _same_function(one: FunctionType, other: FunctionType) -> bool:
    """`lambda a: a + h` in a loop is another function in each round, and nobody can tell: it reads the same names."""
    if one.__code__ is not other.__code__ or one.__globals__ is not other.__globals__:
        return False
    around = [
        (*(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()) for f in (one, other)
    ]
    return len(around[0]) == len(around[1]) and all(map(operator.is_, *around))


@dataclass(frozen=True, slots=True)
class Blank:
    """A tensor of zeros that nobody reads: the value of a name on the way that does not bind it."""

    dtype: torch.dtype
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Kind:
    """One of these. Subclasses are in the order of `level`: each knows how it takes in those below it."""

    level: ClassVar[int] = 0
    beside_none: ClassVar[bool] = False
    """Whether None on the other way makes an optional of it."""
    words: ClassVar[str] = "one thing or another"
    is_conflict: ClassVar[bool] = False
    """Whether nothing that ONNX could hold is all that it was found to be."""
    is_optional: ClassVar[bool] = False
    """Whether it is held as a flag, that tells whether there is something, and a value."""
    is_tensor: ClassVar[bool] = False
    things: ClassVar[tuple[Any, ...]] = ()
    """What it can be, if that is none of ONNX's values: a number tells which."""

    def taking(self, other: Kind) -> Kind | None:
        """The least kind that holds this one and another of its level or below; None where there is none."""
        return None

    def elsewhere(self) -> Kind:
        """What it is where the way that binds it was not gone: not its value, unless that is a plain one."""
        return self

    def widened(self, wider: Kind) -> Kind:
        """What a loop goes on with that found a kind to be a wider one: nothing that could go on for ever."""
        return wider

    @property
    def told(self) -> str:
        """What a person would call it."""
        return self.words

    @property
    def sides(self) -> tuple[Kind, ...]:
        """What it was found to be, on one way and on the other where nothing is both."""
        return (self,)

    @property
    def is_text(self) -> bool:
        return False

    @property
    def is_settled(self) -> bool:
        """Whether it is one and the same thing on all ways, so that nothing has to be handed on."""
        return True

    @property
    def carried_as(self) -> Kind:
        """The tensor or number by which ONNX holds it."""
        return self

    @property
    def blank(self) -> Any:
        """What stands for it on the way that does not bind it."""
        raise NotImplementedError

    def noted(self, number: Any) -> Any:
        """How ONNX holds a number of this kind."""
        return number


def join(one: Kind, other: Kind) -> Kind:
    """The least kind that holds both; a conflict where there is none."""
    high, low = (one, other) if one.level >= other.level else (other, one)
    if low is UNBOUND_KIND:
        return high.elsewhere()
    return one if one == other else high.taking(low) or Conflict(one, other)


@dataclass(frozen=True)
class Unbound(Kind):
    words = "not set"


UNBOUND_KIND = Unbound()


@dataclass(frozen=True, eq=False)
class NumberKind(Kind):
    level = 1
    beside_none = True

    python: type[bool] | type[int] | type[float]
    low: int | None = None
    """What it is at least, as far as that is known of an int."""
    held: Number | bool | int | float | None = None
    """What it always is; None where it is one or another."""

    def __eq__(self, other: object) -> bool:
        """Zeros of both signs are equal to Python, and not the same number."""
        if not isinstance(other, NumberKind):
            return NotImplemented
        return (self.python, self.low) == (other.python, other.low) and _same_number(self.held, other.held)

    def taking(self, other: Kind) -> Kind | None:
        assert isinstance(other, NumberKind)
        wider = max(self.python, other.python, key=_WIDTH.__getitem__)
        lows = (self.low, other.low)
        low = min(low for low in lows if low is not None) if wider is int and None not in lows else None
        same = self.python is other.python and _same_number(self.held, other.held)
        return NumberKind(wider, low, self.held if same else None)

    def elsewhere(self) -> Kind:
        return self if self.is_plain else replace(self, held=None)

    @property
    def is_plain(self) -> bool:
        """Whether it is a number that is known now."""
        return self.is_settled and not isinstance(self.held, Number)

    def widened(self, wider: Kind) -> Kind:
        """A bound that sinks in one round may sink in every one."""
        if not isinstance(wider, NumberKind) or wider.low is None or (self.low is not None and wider.low >= self.low):
            return wider
        return replace(wider, low=None)

    @property
    def is_settled(self) -> bool:
        return self.held is not None

    @property
    def blank(self) -> Any:
        return self.python(0)

    def noted(self, number: Any) -> Any:
        return number if isinstance(number, Number) else self.python(number)

    @property
    def told(self) -> str:
        return f"{self.held!r}" if self.is_plain else f"a {self.python.__name__}"


def _same_number(one: Any, other: Any) -> bool:
    if type(one) is float and type(other) is float and one == 0:
        return other == 0 and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


@dataclass(frozen=True)
class TensorKind(Kind):
    level = 2
    beside_none = True
    is_tensor = True

    dtype: torch.dtype
    sizes: tuple[Size | None, ...]
    """None where a size is open: it differs, or only one of the ways knows it."""
    device: torch.device
    held: Value | None = None
    """The value in the graph that it always is; None where it is one or another."""

    def taking(self, other: Kind) -> Kind | None:
        if isinstance(other, NumberKind):
            return replace(self, held=None) if not self.sizes and self.can_hold(other) else None
        if not isinstance(other, TensorKind) or other.dtype != self.dtype or len(other.sizes) != len(self.sizes):
            return None
        pairs = zip(self.sizes, other.sizes, strict=True)
        sizes = tuple(one if one is not None and one == two else None for one, two in pairs)
        return TensorKind(self.dtype, sizes, self.device, self.held if self.held is other.held else None)

    def can_hold(self, number: NumberKind) -> bool:
        """Whether a number stays what it is as an element."""
        width = 0 if self.dtype is torch.bool else 2 if self.dtype.is_floating_point else 1
        return width >= _WIDTH[number.python]

    def elsewhere(self) -> Kind:
        return replace(self, held=None)

    @property
    def is_settled(self) -> bool:
        return self.held is not None

    @property
    def blank(self) -> Any:
        return Blank(self.dtype, tuple(0 if size is None else size for size in self.sizes))

    @property
    def told(self) -> str:
        return f"a tensor of {str(self.dtype).removeprefix('torch.')} with {len(self.sizes)} axes"


@dataclass(frozen=True)
class Structured(Kind):
    """A container of Python's, or an object of the user's."""

    level = 3

    made_as: type
    """By the user."""
    count: int | None = None
    """How many items it has; None where that is open, or no matter."""
    values_only: bool = False
    """Whether there are numbers and tensors in it, and nothing else."""

    @property
    def beside_none(self) -> bool:  # type: ignore[override]
        return self.values_only

    @property
    def told(self) -> str:
        return _told(self.made_as)


@dataclass(frozen=True, eq=False)
class Opaque(Structured):
    """A thing that is itself, and nothing else is."""

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(frozen=True, eq=False)
class Record(Structured):
    """A structure of which all leaves can be joined one by one."""

    level = 4

    structure: Structure | None = None
    """None where a list of open length is in it: then there is no saying how many leaves it has."""

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Record) and (self.made_as, self.values_only) == (other.made_as, other.values_only)
        return same and self.taking(other) is not None  # type: ignore[arg-type]

    def taking(self, other: Kind) -> Kind | None:
        if not isinstance(other, Record):
            return None
        if self.structure is None or other.structure is None:
            return replace(self, structure=None) if self.made_as is other.made_as else None
        alike = self.structure.count > 0 and self.structure.alike(other.structure)
        return replace(self, values_only=self.values_only and other.values_only) if alike else None


@dataclass(frozen=True)
class ListKind(Structured):
    """A list of rewritten code. With another number of items on the other way, it is open how many there are."""

    level = 5

    def taking(self, other: Kind) -> Kind | None:
        if not isinstance(other, (ListKind, Record)) or other.made_as is not self.made_as:
            return None
        return ListKind(self.made_as, self.count if self.count == other.count else None)


@dataclass(frozen=True)
class DictKind(Structured):
    """A dict of rewritten code. A key that is there on one way has a flag that tells whether it is."""

    level = 6

    def taking(self, other: Kind) -> Kind | None:
        if not isinstance(other, DictKind):
            return None
        made_as = self.made_as if other.made_as is self.made_as else dict
        return DictKind(made_as, None, self.values_only and other.values_only)


@dataclass(frozen=True)
class Nothing(Kind):
    """None."""

    level = 7
    words = "None"
    things = (None,)

    def taking(self, other: Kind) -> Kind | None:
        return Optional(other.elsewhere()) if other.beside_none else None


@dataclass(frozen=True, eq=False)
class Choice(Kind):
    """A number tells which of these things it is."""

    level = 8

    things: tuple[Any, ...]  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        """Of the same things, in any order."""
        if not isinstance(other, Choice):
            return NotImplemented
        return len(all_things(self.things, other.things)) == len(self.things) == len(other.things)

    def taking(self, other: Kind) -> Kind | None:
        return Choice(all_things(self.things, other.things)) if other.things else None

    @property
    def is_settled(self) -> bool:
        return len(self.things) == 1

    @property
    def carried_as(self) -> Kind:
        return NumberKind(int, 0)

    @property
    def blank(self) -> Any:
        return self.things[0]

    @property
    def is_text(self) -> bool:
        return len(self.things) == 1 and isinstance(self.things[0], str)

    @property
    def told(self) -> str:
        first = self.things[0]
        if not self.is_text:
            return _told(type(first)) if len(self.things) == 1 else "one of several things"
        return f"the text {first!r}" if len(first) <= _SHORT else f"the text {first[:_SHORT]!r} and so on"


@dataclass(frozen=True)
class Optional(Kind):
    """A flag that tells whether there is something, and a value of that kind."""

    level = 9
    words = "something or None"
    is_optional = True

    kind: Kind

    def taking(self, other: Kind) -> Kind | None:
        if isinstance(other, Nothing):
            return self
        inner = join(self.kind, other.kind if isinstance(other, Optional) else other)
        return Optional(inner) if inner.beside_none else None

    def elsewhere(self) -> Kind:
        return Optional(self.kind.elsewhere())


@dataclass(frozen=True)
class InWords(Kind):
    """One side of a conflict of which there is no more to say than these words."""

    level = 9

    words: str  # type: ignore[misc]


@dataclass(frozen=True)
class Length(Kind):
    """How many items there are, where two ways do not agree on that."""

    level = 9

    items: int | None

    @property
    def told(self) -> str:
        return "of open length" if self.items is None else f"{self.items} item{'s' * (self.items != 1)} long"


@dataclass(frozen=True)
class Conflict(Kind):
    """Nothing is both."""

    level = 10
    is_conflict = True

    one: Kind
    other: Kind

    def taking(self, other: Kind) -> Kind | None:
        return self

    @property
    def sides(self) -> tuple[Kind, ...]:
        return (self.one, self.other)

    @property
    def told(self) -> str:
        return " or ".join(both_told(self.one, self.other))


def both_told(one: Kind, other: Kind) -> tuple[str, str]:
    """Two kinds in words; with how many items they have, where nothing else tells them apart."""
    counts = [kind.count for kind in (one, other) if isinstance(kind, Structured) and kind.count is not None]
    if one.told != other.told or len(counts) < 2:
        return one.told, other.told
    return f"{one.told} of {counts[0]}", f"{other.told} of {counts[1]}"


ONE, ONE_LIST, ANOTHER = InWords("one thing"), InWords("one list"), InWords("another")
