"""Where two ways meet, arms of a branch or rounds of a loop: which kinds values are, and how ONNX holds them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from trueport.capture.containers.dicts import TracedDict, has_open_keys
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import no_size
from trueport.capture.containers.rows import IsInner
from trueport.capture.effects.last_values import LastValues
from trueport.capture.recording.sharing import Left
from trueport.capture.recording.tracer import Tracer
from trueport.capture.recording.writes import Write
from trueport.capture.values import kinds
from trueport.capture.values.chosen import Chosen, candidates_of, may_be_chosen, number_of
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.leaves import plain_structure
from trueport.capture.values.maybe import Maybe, value_of
from trueport.capture.values.stores import ContainerChange, Contents, as_left, contents_after
from trueport.graph.regions import Number, Region, Size, Value, symbols_of
from trueport.load.containers import Attributes, kind_of_container
from trueport.load.values import NUMBERS, LeafKind, attributes_of
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place
from trueport.torch_internals.symbolic import expr_of, is_symbolic


@dataclass
class TracedWay:
    """One way through the user's code, an arm of a branch or a round of a loop, after it was traced and undone."""

    region: Region
    shared: Left = field(default_factory=Left)
    was_there: Callable[[Any], bool] = lambda _: False
    """Whether a container is older than the way, so that others may know it."""
    after: tuple[Any, ...] = ()
    """What names hold at its end."""
    changes: tuple[ContainerChange, ...] = ()
    writes: tuple[Write, ...] = ()
    values: LastValues = field(default_factory=dict)
    """What tensors held at its end."""

    @cached_property
    def contents(self) -> Contents:
        """What containers held at its end, where it changed them."""
        return contents_after(self.changes)

    def left(self, value: Any) -> Any:
        """A value as the way left it, although what it put into containers was undone."""
        return as_left(value, self.contents)


@dataclass
class Arm(TracedWay):
    """One arm of a branch, before it is joined with the other."""

    returned: Any = None
    raised: Exception | None = None
    _copies: dict[int, Any] = field(default_factory=dict)
    """Of objects, as the arm left them."""

    def left(self, value: Any) -> Any:
        """Objects too: if the other arm leaves another object under the name, one is made of the attributes of both."""
        found = super().left(value)
        if not self.contents or may_be_chosen(found) or attributes_of(found) is None:
            return found
        held = self.contents.get(id(getattr(found, "__dict__", found)))
        if held is None:
            return found
        if id(found) not in self._copies:
            kind = Attributes(type(found), tuple(held))
            made = self._copies[id(found)] = kind.shell()
            kind.fill(made, [self.left(part) for part in held.values()])
        return self._copies[id(found)]


class MeetingWays:
    """What a branch and a loop do alike."""

    tracer: Tracer
    place: Place

    # --- which kind a value is

    def kind_of(self, value: Any, values: LastValues | None = None, is_inner: IsInner = no_size) -> kinds.Kind:
        """With what it always is, where `values` tell what tensors held at the end of the way."""
        match value:
            case torch.Tensor():
                return self.kind_of_tensor(value, values, is_inner)
            case None:
                return kinds.Nothing()
            case Maybe():
                return kinds.Optional(self.kind_of(value_of(value), values, is_inner))
            case Chosen():
                return kinds.Choice(candidates_of(value))
            case Disagreement():
                return kinds.Conflict(*value.between)
            case _ if value is UNBOUND:
                return kinds.UNBOUND_KIND
            case _ if may_be_chosen(value):
                return kinds.Choice((value,))
            case bool():
                return kinds.NumberKind(bool, held=value)
            case int():
                return kinds.NumberKind(int, value, value)
            case float():
                return kinds.NumberKind(float, held=value)
            case torch.SymInt() | torch.SymFloat() | torch.SymBool():
                return self._kind_of_symbol(value)
            case TracedList():
                return kinds.ListKind(kind_of_container(value), None if value.is_open else list.__len__(value))
            case _:
                return _structured(value)

    def kind_of_tensor(
        self, tensor: torch.Tensor, values: LastValues | None = None, is_inner: IsInner = no_size
    ) -> kinds.TensorKind:
        sizes = tuple(None if is_inner(size) else self.tracer.symbols.size(size) for size in tensor.shape)
        return kinds.TensorKind(
            tensor.dtype, sizes, tensor.device, None if values is None else self.value(tensor, values)
        )

    def _kind_of_symbol(self, number: torch.SymInt | torch.SymFloat | torch.SymBool) -> kinds.NumberKind:
        python, lowest = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(number)], None
        if python is int:
            lowest = self.tracer.symbols.shapes.lowest(expr_of(number))
        low = int(lowest) if lowest is not None and lowest.is_Integer else None
        return kinds.NumberKind(python, low, self.tracer.symbols.number_of(number))

    def value(self, tensor: torch.Tensor, values: LastValues) -> Value:
        """What a tensor held at the end of a way."""
        return values.get(id(tensor)) or self.tracer.value(self.tracer.adopt_all(tensor))

    def is_no_size_elsewhere(self, size: Any, mark: int) -> bool:
        """Whether it is one on this way alone: `torch.zeros(8 - n)` where n < 8 has none elsewhere."""
        return self.is_inner(size, mark) or not self.tracer.symbols.shapes.is_never_negative(size)

    def is_inner(self, size: Any, mark: int) -> bool:
        """Whether a size can be told only on the way that began at `mark`."""
        made_since = self.tracer.symbols.shapes.made_since
        return any(made_since(symbol, mark) for symbol in symbols_of(expr_of(size) if is_symbolic(size) else size))

    # --- how ONNX holds it

    def fresh(self, kind: kinds.Kind) -> tuple[Any, Value | Number]:
        """A tensor or a number of a kind, of which nothing more is known, and what it is in the graph."""
        if isinstance(kind, kinds.TensorKind):
            tensor = self.tracer.fresh(kind.dtype, self._sizes(kind.sizes), kind.device)
            return tensor, self.tracer.value(tensor)
        assert isinstance(kind, kinds.NumberKind)
        made = self.tracer.symbols.shapes.new_data_number(kind.python, kind.low)
        expr = expr_of(made)
        return made, Number(expr.args[0] if kind.python is bool else expr, kind.python)

    def noted(self, kind: kinds.Kind, value: Any, values: LastValues) -> Any:
        """A value as ONNX holds it where it is of this kind; a blank where it is not bound."""
        value = kind.blank if value is UNBOUND else value
        match number_of(value) if kind.things else value:
            case torch.Tensor():
                return self.value(value, values)
            case (torch.SymInt() | torch.SymFloat() | torch.SymBool()) as number:
                return kind.noted(self.tracer.symbols.number_of(number))
            case number:
                return kind.noted(number)

    def start(self, kind: kinds.Kind, value: Any) -> Any:
        """The same before the first round of a loop: a tensor, where it becomes one in a round."""
        if not isinstance(kind, kinds.TensorKind) or isinstance(value, torch.Tensor) or value is UNBOUND:
            return self.filled(self.noted(kind, value, {}), self.tracer.regions[-1])
        made = torch.full((), value, dtype=kind.dtype)
        sizes = self._sizes(1 if size is None else size for size in kind.sizes)
        return self.tracer.value(made.expand(sizes).clone() if sizes else made)

    def filled(self, noted: Any, region: Region) -> Any:
        """A blank becomes zeros, made in the region that yields it."""
        if not isinstance(noted, kinds.Blank):
            return noted
        with inside(self.tracer, region):
            return self.tracer.value(torch.zeros(self._sizes(noted.sizes), dtype=noted.dtype))

    def _sizes(self, sizes: Iterable[Size | None]) -> list[Any]:
        """As torch takes them; a new symbol where a size is open."""
        shapes = self.tracer.symbols.shapes
        known = (size if size is None or isinstance(size, int) else shapes.of_expr(size) for size in sizes)
        return [shapes.new_data_size() if size is None else size for size in known]

    # --- what containers ask

    def disagreement(self, name: str, then: kinds.Kind = kinds.ONE, orelse: kinds.Kind = kinds.ANOTHER) -> Disagreement:
        raise NotImplementedError

    def ask_makers(self, change: ContainerChange) -> None:
        self.tracer.demand.require_makers(change.owner, self.tracer.places, change.container)

    def set_on_one_way(self, change: ContainerChange, names: Iterable[Any], why: Disagreement) -> None:
        self.tracer.one_sided.update({(id(change.container), name): why for name in names})
        self.tracer.demand.require_callers(self.tracer.places)  # they may ask `hasattr`


def _structured(value: Any) -> kinds.Kind:
    """Something in which there may be leaves."""
    made_as = kind_of_container(value)
    if has_open_keys(value):
        return kinds.DictKind(made_as)
    count = len(value) if isinstance(value, (list, tuple, dict)) else None
    found = plain_structure(value, "value")
    if found is None:
        return kinds.Record(made_as)
    leaves, structure = found
    values_only = any(isinstance(leaf.value, (torch.Tensor, *NUMBERS)) for leaf in leaves) and all(
        leaf.known and leaf.kind is not LeafKind.CONSTANT for leaf in leaves
    )
    if isinstance(value, TracedDict):
        return kinds.DictKind(made_as, count, values_only)
    whole = len(leaves) == 1 and leaves[0].value is value
    joined = all(leaf.known or may_be_chosen(leaf.value) or isinstance(leaf.value, Maybe) for leaf in leaves)
    return (
        kinds.Record(made_as, count, values_only, structure)
        if joined and leaves and not whole
        else kinds.Opaque(made_as, count)
    )


@contextlib.contextmanager
def inside(tracer: Tracer, region: Region) -> Iterator[None]:
    """What is recorded meanwhile is added to a region that was traced before."""
    tracer.regions.append(region)
    try:
        yield
    finally:
        tracer.leave(tracer.regions.pop())
