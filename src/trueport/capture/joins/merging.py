"""What two arms leave behind, made one: the outputs of an `If`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from trueport.capture.containers.dicts import TracedDict, joined_entries
from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.effects.last_values import LastValues
from trueport.capture.graph import Number, Region, Value
from trueport.capture.joins.lists import merged_list, merged_parts, merged_parts_of
from trueport.capture.recording.tracer import Tracer
from trueport.capture.stops.raising import is_handled_here
from trueport.capture.values import maybe
from trueport.capture.values.chosen import Chosen, all_candidates, may_be_chosen, number_of
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.leaves import plain_leaves
from trueport.capture.values.stores import ContainerChange, Contents, as_left, keys_differ
from trueport.load.containers import kind_of_container
from trueport.load.structures import FoundLeaf, flatten
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.load.values import LeafKind
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place
from trueport.torch_internals.symbolic import expr_of

_PLAIN = (bool, int, float)
_SHORT = 30


class MeetingWays:
    """What a branch and a loop do alike about containers that two ways left with different contents."""

    tracer: Tracer
    place: Place

    def ask_makers(self, change: ContainerChange) -> None:
        self.tracer.demand.require_makers(change.owner, self.tracer.places, change.container)

    def set_on_one_way(self, change: ContainerChange, names: Iterable[Any], why: Disagreement) -> None:
        self.tracer.one_sided.update({(id(change.container), name): why for name in names})
        self.tracer.demand.require_callers(self.tracer.places)  # they may ask `hasattr`


@dataclass
class Merging(MeetingWays):
    """Collects the outputs of one `If`, and makes the values that stand for them afterwards."""

    tracer: Tracer
    place: Place
    mark: int
    """The point in the trace at which the branch began."""
    regions: tuple[Region, Region]
    """The arms."""
    again: Callable[[], None] | None = None
    """Asks for the rest of the block to be traced inside the arms."""
    then_values: LastValues = field(default_factory=dict)
    else_values: LastValues = field(default_factory=dict)
    """What tensors held at the end of each arm, where it wrote them."""
    then_contents: Contents = field(default_factory=dict)
    else_contents: Contents = field(default_factory=dict)
    """What containers held at the end of each arm, where it changed them."""
    then_outputs: list[Any] = field(default_factory=list)
    else_outputs: list[Any] = field(default_factory=list)
    results: list[Value | Number] = field(default_factory=list)
    test: Any = None
    """What decides: a tensor or a SymBool."""
    was_there: Callable[[Any], bool] = lambda _: False
    """Whether a container is older than the branch, so that others may know it."""
    is_test: bool = False
    """Whether it is a test that is merged, `a and b`, which nobody can write in place."""
    _made: dict[tuple[int, int], Any] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)
    _truth: Any = None

    def __post_init__(self) -> None:
        self._around = self.tracer.regions[-1]

    def merge(self, then: Any, orelse: Any, name: str) -> Any:
        """The value after the branch of something that is `then` in one arm and `orelse` in the other."""
        if then is orelse:
            return then
        key = (id(then), id(orelse))
        if key not in self._made:
            self._alive += (then, orelse)
            one, other = as_left(then, self.then_contents), as_left(orelse, self.else_contents)
            self._alive += (one, other)
            self._made[key] = self._merge(one, other, name)
        return self._made[key]

    def _merge(self, then: Any, orelse: Any, name: str) -> Any:
        if then is UNBOUND or orelse is UNBOUND:
            return self._one_sided(then, orelse, name)
        if may_be_none(then, orelse):
            return self._maybe(then, orelse, name)
        if may_be_chosen(then) and may_be_chosen(orelse):
            return self._chosen(then, orelse, name)
        if isinstance(then, Disagreement) or isinstance(orelse, Disagreement):
            return then if isinstance(then, Disagreement) else orelse
        if _is_number(then) and _is_number(orelse):
            return self._numbers(then, orelse)
        if any(isinstance(side, TracedList) for side in (then, orelse)) and _type(then) is _type(orelse):
            return merged_list(self, then, orelse, name)
        if isinstance(then, TracedDict) and isinstance(orelse, TracedDict):
            kind = then if _type(then) is _type(orelse) else TracedDict()
            return kind.holding(joined_entries(self, then.held, orelse.held), keys_differ(self))
        if isinstance(then, torch.Tensor) or isinstance(orelse, torch.Tensor):
            return self._tensors(then, orelse, name)
        return self._structures(then, orelse, name)

    def _maybe(self, then: Any, orelse: Any, name: str) -> Any:
        """None on one side: a flag that tells, and what it is otherwise."""
        flag = self.merge(maybe.flag_of(then), maybe.flag_of(orelse), name)
        one, other = (UNBOUND if side is None else maybe.value_of(side) for side in (then, orelse))
        value = self.merge(one, other, name)
        if isinstance(value, Disagreement) or flag is True:
            return value
        shown = f"`{name}`" if name.isidentifier() else name
        return maybe.Maybe(flag, value, shown, self.place, self.again)

    def _chosen(self, then: Any, orelse: Any, name: str) -> Any:
        """Two things that no value can be: a number that tells which."""
        candidates = all_candidates(then, orelse)
        if len(candidates) == 1:
            return candidates[0]
        number = self._numbers(number_of(then), number_of(orelse))
        return Chosen.by_number(number, candidates, self._disagreement(then, orelse, name))

    # --- numbers

    def _numbers(self, then: Any, orelse: Any) -> Any:
        kinds = {_kind(then), _kind(orelse)}
        kind = float if float in kinds else int if int in kinds else bool
        if type(then) is type(orelse) and not isinstance(then, Symbolic) and then == orelse:
            return then
        if type(then) is bool and type(orelse) is bool and self.test is not None:
            return self._decided(then)
        one, other = self._noted(then, kind), self._noted(orelse, kind)
        if one == other:
            return then
        result = self.tracer.symbols.shapes.new_data_number(kind, self._least(then, orelse) if kind is int else None)
        self._output(one, other, Number(_symbol(result), kind))
        return result

    def _least(self, *numbers: Any) -> int | None:
        """What both are at least; None where that is open."""
        lowest = self.tracer.symbols.shapes.lowest
        least = [
            lowest(expr_of(n)) if isinstance(n, torch.SymInt) else sympy.Integer(int(n))
            for n in numbers
            if not isinstance(n, torch.SymBool)
        ]
        return int(min(least)) if len(least) == len(numbers) and all(each.is_Integer for each in least) else None

    def _decided(self, then: bool) -> Any:
        """True in one arm and False in the other: the test itself, or that it fails. No arm has to yield it."""
        if self._truth is None and not isinstance(self.test, torch.Tensor):
            self._truth = self.test
        elif self._truth is None and self.tracer.regions[-1] is self._around:
            self._truth = self.test.item()
        elif self._truth is None:
            with inside(self.tracer, self._around):
                self._truth = self.test.item()
        return self._truth if then else torch.sym_not(self._truth)

    def _noted(self, number: Any, kind: type) -> Any:
        if not isinstance(number, Symbolic):
            return kind(number)
        noted = self.tracer.symbols.number_of(number)
        return noted if isinstance(noted, Number) else kind(noted)

    # --- tensors

    def _tensors(self, then: Any, orelse: Any, name: str) -> Any:
        if not isinstance(then, torch.Tensor) or not isinstance(orelse, torch.Tensor):
            return self._tensor_and_number(then, orelse, name)
        if then.dtype != orelse.dtype or then.dim() != orelse.dim():
            return self._disagreement(then, orelse, name)
        one, other = self._value(then, self.then_values), self._value(orelse, self.else_values)
        if one is other:
            return then
        sizes = [self._size(a, b) for a, b in zip(then.shape, orelse.shape, strict=True)]
        return self._one_of(self.tensor(one, other, then.dtype, sizes, then.device), then, orelse)

    def tensor(
        self, one: Value, other: Value, dtype: torch.dtype, sizes: list[Any], device: torch.device
    ) -> torch.Tensor:
        result = self.tracer.fresh(dtype, sizes, device)
        self._output(one, other, self.tracer.value(result))
        return result

    def _size(self, one: Any, other: Any) -> Any:
        symbols = self.tracer.symbols
        return one if symbols.size(one) == symbols.size(other) else symbols.shapes.new_data_size()

    def _tensor_and_number(self, then: Any, orelse: Any, name: str) -> Any:
        """A number on one side becomes a tensor like the other side, where that is a single value."""
        tensor, number = (then, orelse) if isinstance(then, torch.Tensor) else (orelse, then)
        fits = _is_number(number) and tensor.dim() == 0 and _rank(_kind(number)) <= _rank_of(tensor.dtype)
        if not fits:
            return self._disagreement(then, orelse, name)
        value = self._value(tensor, self.then_values if tensor is then else self.else_values)
        plain = self._noted(number, _kind(number))
        outputs = (value, plain) if tensor is then else (plain, value)
        return self._one_of(self.tensor(outputs[0], outputs[1], tensor.dtype, [], tensor.device), tensor)

    def _value(self, tensor: torch.Tensor, left: LastValues) -> Value:
        return left.get(id(tensor)) or self.tracer.value(self.tracer.adopt_all(tensor))

    def _one_of(self, result: torch.Tensor, *sides: torch.Tensor) -> torch.Tensor:
        """The result is one of these very tensors, which matters when somebody writes to it in place."""
        if not self.is_test:
            self.tracer.link(result, sides, self.again)
        return result

    # --- names bound on one side only, and structures

    def _one_sided(self, then: Any, orelse: Any, name: str) -> Any:
        """Reading the name after the other arm would be an error in Python: what it holds then does not matter."""
        bound = orelse if then is UNBOUND else then
        if not name.startswith("tp_") and self.is_caught("NameError", "UnboundLocalError"):
            return Disagreement(f"`{name}`", *_described(then, orelse), self.place)
        if isinstance(bound, maybe.Maybe):  # its flag is one of the arm's
            flag, value = (
                self._stand_in(part(bound), then is UNBOUND, name) for part in (maybe.flag_of, maybe.value_of)
            )
            return maybe.Maybe(flag, value, f"`{name}`", self.place, self.again)
        if isinstance(bound, Chosen):  # and so is its number
            some = number_of(all_candidates(bound)[0])
            sides = (some, number_of(bound)) if then is UNBOUND else (number_of(bound), some)
            return Chosen.by_number(
                self._numbers(*sides), all_candidates(bound), self._disagreement(then, orelse, name)
            )
        if isinstance(bound, Disagreement):
            return bound
        if isinstance(bound, TracedList) and bound.is_open:
            return merged_list(self, *([], bound) if then is UNBOUND else (bound, []), name)
        leaves, structure = flatten(bound, name)
        if any(not leaf.known and not isinstance(leaf.value, (maybe.Maybe, Chosen)) for leaf in leaves):
            return bound
        return structure.build([self._stand_in(leaf.value, then is UNBOUND, name) for leaf in leaves])

    def _stand_in(self, value: Any, in_then: bool, name: str) -> Any:
        if isinstance(value, (maybe.Maybe, Chosen)):
            return self.merge(UNBOUND, value, name) if in_then else self.merge(value, UNBOUND, name)
        if isinstance(value, torch.Tensor):
            known = self._value(value, self.else_values if in_then else self.then_values)
            symbols, told = self.tracer.symbols, [self._is_a_size_anywhere(size) for size in value.shape]
            sizes = [
                s if is_told else symbols.shapes.new_data_size() for s, is_told in zip(value.shape, told, strict=True)
            ]
            blank = Blank(
                value.dtype,
                tuple(symbols.size(s) if is_told else 0 for s, is_told in zip(value.shape, told, strict=True)),
            )
            one, other = (blank, known) if in_then else (known, blank)
            made = self.tensor(one, other, value.dtype, sizes, value.device)  # type: ignore[arg-type]
            return self._one_of(made, value)
        if isinstance(value, Symbolic):
            return self._numbers(_kind(value)(0), value) if in_then else self._numbers(value, _kind(value)(0))
        return value

    def _is_a_size_anywhere(self, size: Any) -> bool:
        """Whether it is one outside the arm, too: `torch.zeros(8 - n)` where n < 8 has none elsewhere."""
        return self.is_outer(size) and self.tracer.symbols.shapes.is_never_negative(size)

    def is_outer(self, size: Any) -> bool:
        """Whether a size can be told outside the arm in which it arose."""
        expr = self.tracer.symbols.size(size)
        shapes = self.tracer.symbols.shapes
        return isinstance(expr, int) or not any(shapes.made_since(s, self.mark) for s in expr.free_symbols)

    def _structures(self, then: Any, orelse: Any, name: str) -> Any:
        if any(plain_leaves(side, name) is None for side in (then, orelse)):
            return merged_parts_of(self, then, orelse, name)
        one, structure = flatten(then, name)
        other, other_structure = flatten(orelse, name)
        opaque = any(not _may_differ(leaf) for leaf in (*one, *other)) or len(one) != len(other) or not one
        opaque = opaque or one[0].value is then or other[0].value is orelse  # no structure: two things, not the same
        if opaque or not _alike(structure, other_structure):
            return self._disagreement(then, orelse, name)
        merged = [self.merge(a.value, b.value, a.path) for a, b in zip(one, other, strict=True)]
        return structure.build(merged)

    def _disagreement(self, then: Any, orelse: Any, name: str) -> Disagreement:
        return self.disagreement(f"`{name}`" if name.isidentifier() else name, *_described(then, orelse))

    def disagreement(self, name: str, then: str, orelse: str) -> Disagreement:
        return Disagreement(name, then, orelse, self.place, self.again, self._arguments())

    # --- what a container asks that the arms changed

    def merged_parts(self, then: ListParts, orelse: ListParts, name: str) -> ListParts:
        return merged_parts(self, then, orelse, name)

    def other_length(self, change: ContainerChange) -> None:
        self.ask_makers(change)  # there, its length may be open

    def is_caught(self, *errors: str) -> bool:
        return is_handled_here(set(errors), self.tracer.places)

    def _arguments(self) -> tuple[str, ...]:
        """The Python numbers among the model's arguments that alone decide which arm is taken."""
        known = self.tracer.symbols.number_symbols
        symbols = expr_of(self.test).free_symbols if isinstance(self.test, torch.SymBool) else ()
        return tuple(sorted(known[s] for s in symbols)) if all(s in known for s in symbols) else ()

    def inside_then(self) -> contextlib.AbstractContextManager[None]:
        """What is recorded meanwhile belongs to the first arm."""
        return inside(self.tracer, self.regions[0])

    def inside_else(self) -> contextlib.AbstractContextManager[None]:
        return inside(self.tracer, self.regions[1])

    def _output(self, one: Any, other: Any, result: Value | Number) -> None:
        self.then_outputs.append(one)
        self.else_outputs.append(other)
        self.results.append(result)


@contextlib.contextmanager
def inside(tracer: Tracer, region: Region) -> Iterator[None]:
    """What is recorded meanwhile is added to a region that was traced before."""
    tracer.regions.append(region)
    try:
        yield
    finally:
        tracer.leave(tracer.regions.pop())


@dataclass(frozen=True, slots=True)
class Blank:
    """A tensor of zeros that nobody reads: the value of a name in the arm that does not bind it."""

    dtype: torch.dtype
    sizes: tuple[Any, ...]


def may_be_none(then: Any, orelse: Any) -> bool:
    """Whether these are None and something that an ONNX value can be, or already such a pair."""
    sides = [side for side in (then, orelse) if side is not None]
    if len(sides) == 2 and not any(isinstance(side, maybe.Maybe) for side in sides):
        return False
    return bool(sides) and all(isinstance(side, maybe.Maybe) or _is_carriable(side) for side in sides)


def _is_carriable(value: Any) -> bool:
    if value is UNBOUND or isinstance(value, (Disagreement, TracedList)):
        return False
    leaves = plain_leaves(value, "value") or ()
    return any(isinstance(leaf.value, (torch.Tensor, *_PLAIN, *Symbolic)) for leaf in leaves) and all(
        leaf.known and leaf.kind is not LeafKind.CONSTANT for leaf in leaves
    )


def _may_differ(leaf: FoundLeaf) -> bool:
    return leaf.known or may_be_chosen(leaf.value) or isinstance(leaf.value, maybe.Maybe)


def _alike(one: Any, other: Any) -> bool:
    """The same containers and keys; a tensor may stand where the other has a number."""
    return bool(one.same_as(other)) or one.describe() == other.describe() or _skeleton(one) == _skeleton(other)


def _skeleton(structure: Any) -> str:
    text = str(structure.describe())
    return text.replace("'tensor'", "'number'").replace("'constant'", "'number'")


def _is_number(value: Any) -> bool:
    return isinstance(value, (*_PLAIN, *Symbolic))


def _kind(number: Any) -> Any:
    if isinstance(number, (bool, torch.SymBool)):
        return bool
    return int if isinstance(number, (int, torch.SymInt)) else float


def _rank(kind: type) -> int:
    return {bool: 0, int: 1, float: 2}[kind]


def _rank_of(dtype: torch.dtype) -> int:
    return 0 if dtype is torch.bool else 2 if dtype.is_floating_point else 1


def _symbol(number: Any) -> Any:
    expr = expr_of(number)
    return expr.args[0] if isinstance(number, torch.SymBool) else expr


def describe(value: Any) -> str:
    """A value as a person would call it."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} with {value.dim()} axes"
    if value is UNBOUND:
        return "not set"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= _SHORT else f"the text {value[:_SHORT]!r} and so on"
    if isinstance(value, Symbolic):
        return f"a {_kind(value).__name__}"
    return "None" if value is None else f"{value!r}" if isinstance(value, _PLAIN) else f"a {_type(value).__name__}"


def _described(then: Any, orelse: Any) -> tuple[str, str]:
    """Both sides; how many items they have, where nothing else tells them apart."""
    one, other = describe(then), describe(orelse)
    if one != other or not isinstance(then, (tuple, dict)) or not isinstance(orelse, (tuple, dict)):
        return one, other
    return f"{one} of {len(then)}", f"{other} of {len(orelse)}"


def _type(value: Any) -> type:
    """What a list or a dict of rewritten code is to the user."""
    return kind_of_container(value)
