"""What two arms leave behind, made one: the outputs of an `If`."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.capture.graph import Number, Region, Value
from trueport.capture.last_values import LastValues
from trueport.capture.lists import TracedList
from trueport.capture.merging_lists import merged_list
from trueport.capture.tracer import Tracer
from trueport.diagnostics.base import Label
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.load.structures import flatten
from trueport.rewrite.runtime import UNBOUND
from trueport.source import Place, assignments, returned_name

Symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
_PLAIN = (bool, int, float)
_COMPARABLE = (str, bytes, torch.dtype, torch.device, enum.Enum)


class Disagreement:
    """The value of a name on which two arms did not agree. Harmless until somebody uses it."""

    __slots__ = ("_said",)
    _said: tuple[str, str, str, Place, Callable[[], None] | None]

    def __init__(
        self, name: str, then: str, orelse: str, place: Place, again: Callable[[], None] | None = None
    ) -> None:
        object.__setattr__(self, "_said", (name, then, orelse, place, again))

    def complain(self) -> Any:
        """The value is used: trace again with the rest in both arms, or say that the arms disagree."""
        name, then, orelse, place, again = self._said
        if again is not None:
            again()
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"{name} is {then} where the test holds, {orelse} where not, and is used afterwards",
                    place=place,
                    label="the arms of this branch disagree",
                    also=_in_the_arms(place, name, then, orelse),
                    fix="give it the same dtype, number of axes and structure on both sides",
                )
            ]
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for item in [*args, *(kwargs or {}).values()]:
            for each in item if isinstance(item, (list, tuple)) else (item,):
                if isinstance(each, Disagreement):
                    each.complain()

    def __getattr__(self, _name: str) -> Any:
        self.complain()

    def _complain_too(self, *_: Any) -> Any:
        self.complain()

    __bool__ = __iter__ = __len__ = __call__ = __getitem__ = __setitem__ = __float__ = __int__ = __index__ = (
        _complain_too
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _complain_too
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __floordiv__ = _complain_too
    __eq__ = __ne__ = __hash__ = _complain_too


def _in_the_arms(place: Place, name: str, then: str, orelse: str) -> tuple[Label, ...]:
    """The lines on which each arm gives the name its value, where it is a plain name of the function."""
    if place.where is None:
        return ()
    plain = name.strip("`")
    lines = assignments(place.where, plain if plain.isidentifier() else returned_name(place.where))
    return tuple(Label(at, what) for at, what in zip(lines, (then, orelse), strict=True) if at is not None)


@dataclass
class Merging:
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
    then_outputs: list[Any] = field(default_factory=list)
    else_outputs: list[Any] = field(default_factory=list)
    results: list[Value | Number] = field(default_factory=list)
    _made: dict[tuple[int, int], Any] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)

    def merge(self, then: Any, orelse: Any, name: str) -> Any:
        """The value after the branch of something that is `then` in one arm and `orelse` in the other."""
        if then is orelse:
            return then
        key = (id(then), id(orelse))
        if key not in self._made:
            self._alive += (then, orelse)
            self._made[key] = self._merge(then, orelse, name)
        return self._made[key]

    def _merge(self, then: Any, orelse: Any, name: str) -> Any:
        if isinstance(then, Disagreement) or isinstance(orelse, Disagreement):
            return then if isinstance(then, Disagreement) else orelse
        if then is UNBOUND or orelse is UNBOUND:
            return self._one_sided(then, orelse, name)
        if _is_number(then) and _is_number(orelse):
            return self._numbers(then, orelse)
        if isinstance(then, list) and isinstance(orelse, list) and TracedList in (type(then), type(orelse)):
            return merged_list(self, then, orelse, name)
        if isinstance(then, torch.Tensor) or isinstance(orelse, torch.Tensor):
            return self._tensors(then, orelse, name)
        return self._structures(then, orelse, name)

    # --- numbers

    def _numbers(self, then: Any, orelse: Any) -> Any:
        kinds = {_kind(then), _kind(orelse)}
        kind = float if float in kinds else int if int in kinds else bool
        if type(then) is type(orelse) and not isinstance(then, Symbolic) and then == orelse:
            return then
        one, other = self._noted(then, kind), self._noted(orelse, kind)
        if one == other:
            return then
        result = self.tracer.symbols.shapes.new_data_number(kind)
        self._output(one, other, Number(_symbol(result), kind))
        return result

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
        self.tracer.link(result, sides, self.again)
        return result

    # --- names bound on one side only, and structures

    def _one_sided(self, then: Any, orelse: Any, name: str) -> Any:
        """Reading the name after the other arm would be an error in Python: what it holds then does not matter."""
        bound = orelse if then is UNBOUND else then
        if isinstance(bound, TracedList) and bound.is_open:
            return merged_list(self, *([], bound) if then is UNBOUND else (bound, []), name)
        leaves, structure = flatten(bound, name)
        if any(not leaf.known for leaf in leaves):
            return bound
        return structure.build([self._stand_in(leaf.value, then is UNBOUND) for leaf in leaves])

    def _stand_in(self, value: Any, in_then: bool) -> Any:
        if isinstance(value, torch.Tensor):
            known = self._value(value, self.else_values if in_then else self.then_values)
            sizes = [s if self.is_outer(s) else self.tracer.symbols.shapes.new_data_size() for s in value.shape]
            blank = Blank(
                value.dtype, tuple(self.tracer.symbols.size(s) if self.is_outer(s) else 0 for s in value.shape)
            )
            one, other = (blank, known) if in_then else (known, blank)
            made = self.tensor(one, other, value.dtype, sizes, value.device)  # type: ignore[arg-type]
            return self._one_of(made, value)
        if isinstance(value, Symbolic):
            return self._numbers(_kind(value)(0), value) if in_then else self._numbers(value, _kind(value)(0))
        return value

    def is_outer(self, size: Any) -> bool:
        """Whether a size can be told outside the arm in which it arose."""
        expr = self.tracer.symbols.size(size)
        shapes = self.tracer.symbols.shapes
        return isinstance(expr, int) or not any(shapes.made_since(s, self.mark) for s in expr.free_symbols)

    def _structures(self, then: Any, orelse: Any, name: str) -> Any:
        if type(then) is type(orelse) and isinstance(then, _COMPARABLE) and then == orelse:
            return then
        one, structure = flatten(then, name)
        other, other_structure = flatten(orelse, name)
        opaque = any(not leaf.known for leaf in (*one, *other)) or len(one) != len(other) or not one
        opaque = opaque or one[0].value is then or other[0].value is orelse  # no structure: two things, not the same
        if opaque or not _alike(structure, other_structure):
            return self._disagreement(then, orelse, name)
        merged = [self.merge(a.value, b.value, a.path) for a, b in zip(one, other, strict=True)]
        return structure.build(merged)

    def _disagreement(self, then: Any, orelse: Any, name: str) -> Disagreement:
        return self.disagreement(f"`{name}`" if name.isidentifier() else name, describe(then), describe(orelse))

    def disagreement(self, name: str, then: str, orelse: str) -> Disagreement:
        return Disagreement(name, then, orelse, self.place, self.again)

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
        tracer.regions.pop()


@dataclass(frozen=True, slots=True)
class Blank:
    """A tensor of zeros that nobody reads: the value of a name in the arm that does not bind it."""

    dtype: torch.dtype
    sizes: tuple[Any, ...]


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
    expr = number.node.expr
    return expr.args[0] if isinstance(number, torch.SymBool) else expr


def describe(value: Any) -> str:
    """A value as a person would call it."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} with {value.dim()} axes"
    if value is UNBOUND:
        return "not set"
    if isinstance(value, Symbolic):
        return f"a {_kind(value).__name__}"
    return "None" if value is None else f"{value!r}" if isinstance(value, _PLAIN) else f"a {type(value).__name__}"
