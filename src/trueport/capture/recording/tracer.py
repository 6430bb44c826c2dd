"""The mode stack under which the user's `forward` runs, and the recorder that writes down what it does.

From the user's code downwards: functionalisation (writes and views become values), the recorder (notes each ATen call
with the user's line), fake tensors (sizes without data). Tensors of the model are not replaced: when an operation
meets a real tensor, it is adopted, that is wrapped and named, so closures, globals and scripted modules need no care.

A trace starts out hopeful: while nothing is written in place, a view is an operation like any other and costs little.
The first write in place raises `WritesInPlace`, and the trace starts again with torch's full functionalisation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import sympy
import torch

from trueport.capture.recording.constants import Constants
from trueport.capture.recording.memory import ResultCache, set_value, value_of
from trueport.capture.recording.sharing import Again
from trueport.capture.recording.size_values import SizeValues
from trueport.capture.recording.strides import BY_STRIDES, in_memory_order
from trueport.capture.recording.symbols import Symbols
from trueport.capture.recording.ways import CHECKS_ONLY, IsLeaf, Treatment, Ways, meets_complex
from trueport.capture.recording.weights import Adoption, MemoryKey, Owned, is_real
from trueport.capture.recording.writes import Writes
from trueport.capture.stops.demand import Demand
from trueport.capture.stops.failures import Swallowed, untranslated
from trueport.capture.stops.places import Places
from trueport.capture.stops.raising import OF_OPERATORS, as_eager_fails
from trueport.capture.values.disagreement import Disagreement
from trueport.decompositions.accepted import ASK_FOR_STRIDES, RESHAPES, TAKES_MASKS, with_all_sizes, with_masks_of_bools
from trueport.decompositions.arguments import flat, mapped
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.quantised import after as after_quantised
from trueport.decompositions.quantised import grid_among
from trueport.decompositions.registry import operator_decomposition, results_of
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import Node, Number, Region, Returns, Value, Weight, values_in
from trueport.source import Place
from trueport.torch_internals import (
    FakeTensor,
    FunctionalTensor,
    FunctionalTensorMode,
    OpOverload,
    ProxySlotMode,
    decomposition_of,
    forget_numbers,
    from_functional,
    is_uncounted,
    memory_of,
    outside_all_modes,
    sizes_by_example,
    symbolic_kernels,
)
from trueport.torch_internals.schemas import arguments_of, writes_in_place
from trueport.torch_internals.symbolic import is_least_of, is_symbolic, number_kind, symbol_behind

_NUMBERS = (torch.SymInt, torch.SymFloat)


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


class Tracer:
    """One trace: the regions being written, and what is known of the tensors in them."""

    def __init__(
        self,
        model: torch.nn.Module,
        is_leaf: IsLeaf,
        careful: bool,
        demand: Demand | None = None,
        fickle: frozenset[MemoryKey] = frozenset(),
    ) -> None:
        self.places = Places()
        self.swallowed = Swallowed(self.places)
        self.demand = demand or Demand()
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
        self.careful = careful
        self.writes = Writes()
        self.one_of_several = False
        """Whether something was made that stands for one of several things."""
        self.one_sided: dict[tuple[int, str], Disagreement] = {}
        """Attributes that are there on one way and not on another, by their dict and name."""
        self.adoption = Adoption(self, fickle)
        self._ways = Ways(is_leaf, careful)
        self._writes: dict[int, Place] = {}
        self._defining = 0
        """How deep we are in definitions of operators."""
        self.recorder = Recorder(self)
        self.functionaliser = Functionaliser(self)

    def let_go(self) -> None:
        """The trace is over: nothing that torch may still hold of it keeps the rest, or the model, alive."""
        self.memory.let_go()
        self.symbols.shapes.let_go()

    # --- from the user's code

    def dispatch(self, op: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """An operator as the user's code called it, on functional wrappers and on real tensors."""
        if getattr(op, "namespace", "") == "profiler":  # a name for a stretch of the run, and no part of the model
            with outside_all_modes():
                return op(*args, **kwargs)
        if not isinstance(op, OpOverload) or op in FunctionalTensor.metadata_fns or op.namespace == "prim":
            return self.functionaliser.plainly(op, types, args, kwargs)
        returned = self._carried_out(op, types, args, kwargs)
        if self._defining or (grid := grid_among(args)) is None:
            return returned
        with self._definition():
            return after_quantised(op, grid, returned)

    def _carried_out(self, op: OpOverload, types: Any, args: Any, kwargs: Any) -> Any:
        if kwargs.get("generator") is not None:
            raise CannotBeCarried(
                "random numbers are drawn here from a generator of their own, which no ONNX operator can follow",
                told(
                    "draw them before, and make them a buffer or an input; or leave the generator out, with ",
                    option("random", "onnx"),
                ),
            )
        way = self._ways.of(op, meets_complex((*args, *kwargs.values())))
        if way is Treatment.LIFT:
            return self.adoption.adopt(args[0], made_in_trace=True) if is_real(args[0]) else args[0]
        if args and isinstance(args[0], _NUMBERS) and not any(isinstance(a, torch.Tensor) for a in args):
            args = (self._as_tensor(op, args[0]), *args[1:])
        args, kwargs = self.adopt_all(args), {k: self.adopt_all(v) for k, v in kwargs.items()}
        if op in TAKES_MASKS:
            with self._definition():
                args = with_masks_of_bools(args)
        elif op in RESHAPES:
            args = with_all_sizes(args)
        if self.writes.sharing.stale:
            self._check_read((args, tuple(kwargs.values())))
        if way is Treatment.RECORD:
            fakes = self.record(op, _unwrap(args), {k: _unwrap(v) for k, v in kwargs.items()})
            return self._wrap(fakes)
        if way is Treatment.DECOMPOSE:
            return self._reshaped(op, lambda: self._decompose(op, args, kwargs))
        if writes_in_place(op):
            self._note_writes(op, args, kwargs)
        returned = self._reshaped(op, lambda: self.functionaliser.plainly(op, types, args, kwargs))
        self.writes.view(returned)
        return returned

    def _reshaped(self, op: OpOverload, call: Callable[[], Any]) -> Any:
        return self.symbols.shapes.by_usual_strides(call) if op in ASK_FOR_STRIDES else call()

    def _as_tensor(self, op: OpOverload, number: Any) -> Any:
        """`torch.div(x.size(1), 2)` computes with tensors, and would make one of a plain number."""
        if not arguments_of(op)[0].is_tensor:
            return number
        with self.functionaliser:
            whole = number_kind(number) is int
            return torch.scalar_tensor(number, dtype=torch.int64 if whole else torch.get_default_dtype())

    def _decompose(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """Trace through torch's own definition of an operator that has no translation."""
        ours = operator_decomposition(op, self.careful)
        definition = ours or decomposition_of(op)
        assert definition is not None
        with self._definition():
            returned = definition(*args, **kwargs)
        if returned is NotImplemented:
            if ours is None:  # one of ours decides by the arguments, each time anew
                self._ways.record(op, meets_complex((*args, *kwargs.values())))
            return self._wrap(self.record(op, _unwrap(args), {k: _unwrap(v) for k, v in kwargs.items()}))
        return returned

    @contextlib.contextmanager
    def _definition(self) -> Iterator[None]:
        """Operators called meanwhile are called by us, in the definition of another."""
        self._defining += 1
        try:
            with self.functionaliser, symbolic_kernels():
                yield
        finally:
            self._defining -= 1

    # --- into the graph

    def record_functionalised(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """What a view or a write was turned into: `zero_` arrives as `zero`, and may itself need its definition."""
        if self.asking or op in SAME_VALUE or decomposition_of(op) is None:
            return self.record(op, args, kwargs)
        if self.is_leaf(op, meets_complex((*args, *kwargs.values()))):
            return self.record(op, args, kwargs)
        with self.recorder:
            returned = self._decompose(op, self._wrap(args), {k: self._wrap(v) for k, v in kwargs.items()})
        return _unwrap(returned)

    def value_read(self, tensor: torch.Tensor, place: Place | None = None) -> Value:
        """The graph's value for a tensor that the model reads, outside of any operator: a result, a test."""
        tensor = self.adopt_all(tensor)
        self._check_read(tensor, place)
        return self.value(tensor)

    def _check_read(self, argument: Any, place: Place | None = None) -> None:
        for each in flat(argument):
            if isinstance(each, FunctionalTensor):
                self.writes.sharing.read(memory_of(each), place or self.places.here())

    def link(
        self,
        result: torch.Tensor,
        others: Iterable[torch.Tensor],
        again: Again | None = None,
        as_stale: bool = True,
    ) -> None:
        """`result` may be one of the others, depending on the way that the model took."""
        if self.careful:
            memories = [self.memory_of(other) for other in others]
            self.writes.sharing.link(memory_of(result), memories, again, as_stale)

    def is_whole(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is all of its memory, if under further axes of one, and not a view of a part."""
        wrapper = self.adopt_all(tensor)
        both = (wrapper, self.writes.base(wrapper))
        sizes, whole = ([size for s in t.shape if (size := self.symbols.size(s)) != 1] for t in both)
        return sizes == whole

    def memory_of(self, tensor: torch.Tensor) -> int:
        """The same for a tensor and all its views, also where it is the model's own."""
        return memory_of(self.adopt_all(tensor))

    def holding(self, value: Value, like: torch.Tensor) -> torch.Tensor:
        """A tensor of its own that holds a value which `like` had: what is written may be made anew when it is read."""
        twin = self.memory.new_fake(self.memory.signature(from_functional(self.adopt_all(like))))
        set_value(twin, value)
        made = self.wrap(twin)
        self.link(made, [like])
        return made

    def known_result(self, op: OpOverload, args: Any, kwargs: Any) -> Any:
        """What a data-dependent operator gives for constants of the model, as a fake tensor; None where it is open."""
        result = self.constants.run(op, args, kwargs)
        if not isinstance(result, torch.Tensor):
            return None
        return from_functional(self.adoption.adopt(result, made_in_trace=True))

    # --- noting calls on fake tensors

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
        operands = [each for each in flat((args, *kwargs.values())) if isinstance(each, torch.Tensor)]
        try:
            with self.symbols.fake_mode, symbolic_kernels(), self.symbols.shapes.given(operands):
                try:
                    return self._reshaped(op, lambda: results_of(op)(*args, **kwargs))
                except OF_OPERATORS:
                    if not any(map(_is_cut_off, flat((args, *kwargs.values())))):
                        raise
                    with contextlib.suppress(*OF_OPERATORS), sizes_by_example():
                        return results_of(op)(*args, **kwargs)
                    raise
        except OF_OPERATORS as failure:
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

    # --- real tensors and wrappers

    def adopt_all(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return self.adoption.adopt(argument, made_in_trace=False) if is_real(argument) else argument
        if isinstance(argument, (list, tuple)) and any(isinstance(a, (torch.Tensor, list, tuple)) for a in argument):
            return type(argument)([self.adopt_all(a) for a in argument])
        return argument

    def wrap(self, fake: torch.Tensor) -> torch.Tensor:
        with self.functionaliser:
            wrapper = self.memory.wrap(fake)
        if self.careful:
            self.writes.own(wrapper)
        return wrapper

    def fresh(self, dtype: torch.dtype, sizes: Any, device: torch.device, name: str = "") -> torch.Tensor:
        """A tensor that a region yields or is given: its sizes are known, nothing in the graph made it yet."""

        def made() -> torch.Tensor:
            with outside_all_modes(), self.symbols.fake_mode:
                return torch.empty(tuple(sizes), dtype=dtype, device=device)

        empty = torch.ops.aten.empty.memory_format
        fake = self.memory.results(empty, (tuple(sizes),), {"dtype": dtype, "device": device}, made)
        return self.new_input(fake, name)[0]

    @contextlib.contextmanager
    def region(self) -> Iterator[Region]:
        """A scope of its own: what is recorded meanwhile belongs to it."""
        if self.careful:
            self.writes.settle()
        region = Region()
        self.regions.append(region)
        try:
            with self.memory.apart():
                yield region
        finally:
            self.leave(self.regions.pop())

    def _wrap(self, returned: Any) -> Any:
        return mapped(returned, lambda each: self.wrap(each) if isinstance(each, FakeTensor) else each)

    def new_input(self, fake: torch.Tensor, name: str) -> tuple[torch.Tensor, Value]:
        """A wrapper for an input of the model, and its value."""
        signature = self.memory.signature(fake)
        value = Value(signature.dtype, signature.shape, name)
        set_value(fake, value)
        return self.wrap(fake), value

    def _note_writes(self, op: OpOverload, args: Any, kwargs: Any) -> None:
        for position, declared in enumerate(arguments_of(op)):
            given = args[position] if position < len(args) else kwargs.get(declared.name)
            if not declared.is_written:
                continue
            for argument in flat(given):
                if isinstance(argument, FunctionalTensor):
                    self._writes.setdefault(memory_of(argument), self.places.here())
                    self.writes.about_to_write(argument, self.places.here())

    def place_of_write(self, weight: Weight) -> Place | None:
        """The line that first wrote to a tensor of the model, through any view of it."""
        wrapper = self.adoption.wrapper_of(weight)
        return self._writes.get(memory_of(wrapper)) if wrapper is not None else None

    def values_read(self) -> set[Value]:
        """Every value that some node takes, and the weights that were looked at while tracing."""
        found = set(self.constants.relied_on)
        for node in self.regions[0].walk():
            found.update(values_in(node.given))
            found.update(value for region in node.regions for value in values_in(region.outputs))
        return found


def _unwrap(argument: Any) -> Any:
    return mapped(argument, lambda each: from_functional(each) if isinstance(each, FunctionalTensor) else each)


class Functionaliser(FunctionalTensorMode):
    """Torch's functionalisation, with a look at each operator before it acts."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._tracer.dispatch(func, types, args, kwargs or {})

    def plainly(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with symbolic_kernels():
            return super().__torch_dispatch__(func, types, args, kwargs)


class Recorder(ProxySlotMode):
    """Below functionalisation: sees the value-semantics operators that views and writes were turned into."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload) or func.namespace == "prim" or func in FunctionalTensor.metadata_fns:
            return func(*args, **kwargs)
        return self._tracer.record_functionalised(func, args, kwargs)


def _is_cut_off(part: Any) -> bool:
    """Whether a tensor is as long as a part of a free size: `m[:1]` has one row or none, and is broadcast or not."""
    return isinstance(part, torch.Tensor) and any(map(is_least_of, part.shape))
