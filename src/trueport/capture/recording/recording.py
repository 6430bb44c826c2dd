"""Noting ATen calls on fake tensors in the graph of a trace."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import sympy
import torch

from trueport.capture.decompositions.registry import results_of
from trueport.capture.graph import Node, Number, Region, Returns, Value, flat, mapped
from trueport.capture.recording.constants import Constants
from trueport.capture.recording.memory import ResultCache, set_value, value_of
from trueport.capture.recording.size_values import SizeValues
from trueport.capture.recording.strides import BY_STRIDES, in_memory_order
from trueport.capture.recording.symbols import Symbols
from trueport.capture.recording.ways import CHECKS_ONLY, IsLeaf, meets_complex
from trueport.capture.recording.weights import Owned
from trueport.capture.stops.demand import Demand
from trueport.capture.stops.places import Places
from trueport.capture.stops.raising import OF_OPERATORS, as_eager_fails
from trueport.capture.stops.stubs import untranslated
from trueport.capture.stops.swallowed import Swallowed
from trueport.diagnostics.base import Diagnostic
from trueport.torch_internals import (
    FakeTensor,
    FunctionalTensor,
    OpOverload,
    forget_numbers,
    from_functional,
    is_uncounted,
    outside_all_modes,
    symbolic_kernels,
)
from trueport.torch_internals.symbolic import is_symbolic, number_kind, symbol_behind

aten = torch.ops.aten

SAME_VALUE = {aten.detach.default, aten.alias.default, aten.lift_fresh.default, aten.lift_fresh_copy.default}
"""Operators that give their argument back under another name."""
_ITEMS = {aten._local_scalar_dense.default, aten.item.default}


Recorded: TypeAlias = list[tuple[Node, Any]]
"""What was recorded in one region, with what each call returned."""


class Reuse:
    """What a statement recorded when it was begun before: the same calls, in the same order, give the same values."""

    def __init__(self, before: Recorded, region: Region) -> None:
        self._before, self._region = iter(before), region

    def find(self, op: OpOverload, args: Any, kwargs: Any, here: Region) -> tuple[Node, Any] | None:
        if here is not self._region:
            return None
        node, returned = next(self._before, (None, None))
        if node is not None and node.op is op and node.args == args and node.kwargs == kwargs:
            return node, returned
        self._before = iter(())  # another way from here on
        return None


class Recording(ABC):
    """The regions being written, and the values in them. (See `tracer.py` for what comes before.)"""

    def __init__(self, model: torch.nn.Module, is_leaf: IsLeaf, demand: Demand) -> None:
        self.places = Places()
        self.swallowed = Swallowed(self.places)
        self.demand = demand
        self.symbols = Symbols(self.places, self._asked)
        self.memory = ResultCache(self.symbols)
        self.owned = Owned(model)
        self.constants = Constants()
        self.regions: list[Region] = [Region()]
        self.diagnostics: dict[tuple[Any, ...], Diagnostic] = {}
        self.is_leaf = is_leaf
        self.asking = False
        """Whether torch is asked for the result of an operator, which is not to be recorded."""
        self.reuse: Reuse | None = None
        self._recorded: tuple[Region, Recorded] | None = None
        self._bound_items: dict[Any, list[Region]] = {}
        self._read_in: dict[int, list[torch.Tensor]] = {}
        """By region, the tensors that were first asked in it for their number, or for how many are not zero."""

    @abstractmethod
    def known_result(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """What a data-dependent operator gives for constants of the model, as a fake tensor; None where it is open."""

    def _asked(self, expr: sympy.Basic) -> bool | sympy.Basic:
        return self.demand.asked(expr, self.places, self.symbols.size_symbols)

    def record(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """Note one ATen call on fake tensors, and give what it returns."""
        if self.asking:
            return op(*args, **kwargs)
        self.demand.step()
        if op in SAME_VALUE:
            return self._same_value(args[0])
        if op in _ITEMS:
            return self._item(aten._local_scalar_dense.default, args[0])
        if op in CHECKS_ONLY:
            return self._ask(op, args, kwargs)
        if torch.Tag.dynamic_output_shape in op.tags or torch.Tag.data_dependent_output in op.tags:
            known = self.known_result(op, self._note(args), {k: self._note(v) for k, v in kwargs.items()})
            if known is not None:
                return known
        if op in BY_STRIDES:
            order = in_memory_order(op, args[0], self.value(args[0]), self.constants.producer)
            if list(order) != sorted(order):
                args = (self.record(aten.permute.default, (args[0], list(order)), {}), *args[1:])
        again = self._recorded_before(op, args, kwargs)
        if again is not None:
            return again
        is_counting = torch.Tag.dynamic_output_shape in op.tags
        uncounted = [each for each in flat(args) if is_uncounted(each)] if is_counting else []
        returned = mapped(self.memory.results(op, args, kwargs, lambda: self._ask(op, args, kwargs)), self._new)
        self._read_in.setdefault(id(self.regions[-1]), []).extend(fake for fake in uncounted if not is_uncounted(fake))
        if isinstance(returned, (bool, int, float)):  # a question about shapes, which the trace can answer
            return returned
        self._note_unsupported(op, args, kwargs)
        self._append(op, args, kwargs, returned)
        return returned

    def _new(self, returned: Any) -> Any:
        """What an operator returned; a twin of it where that is its own argument (`conj_physical` of real numbers)."""
        if isinstance(returned, FakeTensor) and value_of(returned) is not None:
            return self.memory.new_fake(self.memory.signature(returned))
        return returned

    def _ask(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """What torch says that the operator returns, without recording how it finds out."""
        self.asking = True
        try:
            with self.symbols.fake_mode, symbolic_kernels():
                return results_of(op)(*args, **kwargs)
        except OF_OPERATORS as failure:
            if len(self.regions) == 1:
                raise
            raise as_eager_fails(failure, op, args, kwargs) from None
        finally:
            self.asking = False

    def _append(self, op: OpOverload, args: Any, kwargs: Any, returned: Any) -> None:
        if isinstance(returned, torch.Tensor):
            outputs: tuple[Any, ...] = (self._new_value(returned),)
            returns = Returns.ONE
        elif returned is None:
            outputs, returns = (), Returns.NOTHING
        elif isinstance(returned, (list, tuple)):
            outputs = tuple(self._new_value(r) if isinstance(r, torch.Tensor) else None for r in returned)
            returns = Returns.LIST if isinstance(returned, list) else Returns.TUPLE
        else:
            outputs, returns = (self.symbols.number_of(returned),), Returns.ONE
        noted_kwargs = {k: self._note(v) for k, v in kwargs.items()}
        node = Node(op, self._note(args), noted_kwargs, outputs, returns, self.places.here())
        self.regions[-1].nodes.append(node)
        self.constants.made_by(node)
        self._keep(node, returned)

    @contextlib.contextmanager
    def recorded_in(self, region: Region, recorded: Recorded, reuse: Reuse) -> Iterator[None]:
        """Keeps what is recorded in a region, and takes from `reuse` what was recorded there before."""
        before = self._recorded, self.reuse
        self._recorded, self.reuse = (region, recorded), reuse
        try:
            yield
        finally:
            self._recorded, self.reuse = before

    def _keep(self, node: Node, returned: Any) -> None:
        if self._recorded is not None and self._recorded[0] is self.regions[-1]:
            self._recorded[1].append((node, returned))

    def _recorded_before(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        if self.reuse is None:
            return None
        noted = {k: self._note(v) for k, v in kwargs.items()}
        found = self.reuse.find(op, self._note(args), noted, self.regions[-1])
        if found is None:
            return None
        self._keep(*found)
        return mapped(found[1], self._same_value)

    def _new_value(self, fake: torch.Tensor) -> Value:
        signature = self.memory.signature(fake)
        value = Value(signature.dtype, signature.shape)
        set_value(fake, value)
        return value

    def _note(self, argument: Any) -> Any:
        """An argument as the graph holds it."""
        if isinstance(argument, torch.Tensor):
            return self.value(argument)
        if isinstance(argument, (list, tuple)):
            return tuple(self._note(a) for a in argument)
        if is_symbolic(argument):
            return self.symbols.number_of(argument)
        return argument

    def value(self, tensor: torch.Tensor) -> Value:
        """The graph's value for a tensor of any layer: a wrapper, a fake, or a real one."""
        if isinstance(tensor, FunctionalTensor):
            tensor = from_functional(tensor)
        if not isinstance(tensor, FakeTensor):
            return self.owned.weight(tensor, made_in_trace=False).value
        value = value_of(tensor)
        if value is None:
            raise AssertionError(f"a tensor reached the recorder that no operation made: {tensor}")
        return value

    def _same_value(self, fake: Any) -> Any:
        if not isinstance(fake, FakeTensor):
            return fake
        twin = self.memory.new_fake(self.memory.signature(fake))
        set_value(twin, self.value(fake))
        return twin

    def _item(self, op: OpOverload, fake: torch.Tensor) -> Any:
        """`.item()`: a plain number where the tensor is a constant of the model, an expression where it was made of
        sizes, otherwise a new symbol."""
        known = self.constants.evaluate(self.value(fake))
        if known is not None:
            with outside_all_modes():
                return known.item()
        size = SizeValues(self.symbols, self.constants).number(self.value(fake))
        if size is not None:
            return size
        again = self._recorded_before(op, (fake,), {})
        if again is not None:
            return again
        returned = self._ask(op, (fake,), {})
        self.symbols.shapes.forget_pending()
        symbol = symbol_behind(returned)
        if symbol not in self._bound_items:
            self._read_in.setdefault(id(self.regions[-1]), []).append(fake)
        known_in = self._bound_items.setdefault(symbol, [])
        if symbol.is_Symbol and not any(region is here for region in known_in for here in self.regions):
            known_in.append(self.regions[-1])
            number = Number(symbol, number_kind(returned) or int)
            node = Node(op, (self.value(fake),), {}, (number,), Returns.ONE, self.places.here())
            self.regions[-1].nodes.append(node)
            self._keep(node, returned)
        return returned

    def leave(self, region: Region) -> None:
        """A number that was read in an arm is no number of the other arm, nor of what comes after: it is read again.
        So is a count: of `mask.nonzero()` in one arm, no other knows how many rows it has."""
        for fake in self._read_in.pop(id(region), ()):
            forget_numbers(fake)

    def _note_unsupported(self, op: OpOverload, args: Any, kwargs: Any) -> None:
        if self.is_leaf(op, False) or (self.is_leaf(op, True) and meets_complex((*args, *kwargs.values()))):
            return
        place = self.places.here()
        self.diagnostics.setdefault((op, place.where), untranslated(op, place))
