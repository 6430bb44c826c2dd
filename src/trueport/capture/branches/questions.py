"""What rewritten code asks of a trace, and is answered without a region: truth, sequences, lookups, text.

Calls of rewritten code that hand on one of several things: `pick(x, mode)`, where a traced value chose the mode.

`mode is Mode.UP` and `state is None` ask nobody: Python compares two objects, of which one stands for several. So a
function that is given such a thing, or a method of an object that holds one, is rewritten before it runs.
"""

from __future__ import annotations

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, MethodType
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.containers import choices
from trueport.capture.containers.dicts import TracedDict, has_open_keys
from trueport.capture.containers.generators import Generated, as_list
from trueport.capture.containers.lists import is_open
from trueport.capture.containers.pieces import unbind
from trueport.capture.containers.rows import Rows
from trueport.capture.containers.sequences import OpenSequence, refuse
from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.containers.tables import Table
from trueport.capture.containers.taken_out import TakenOut
from trueport.capture.recording.tracer import Tracer
from trueport.capture.stops.places import Places
from trueport.capture.stops.raising import catcher, fail
from trueport.capture.values.chosen import Chosen, each_way
from trueport.capture.values.disagreement import Disagreement, refuse_unsure
from trueport.capture.values.kinds import place_among
from trueport.capture.values.maybe import Maybe, flag_of, value_of
from trueport.capture.values.stores import TracedContainer, parts_of, store_of, walk
from trueport.capture.values.texts import Message, OpenText, written
from trueport.diagnostics.base import Severity
from trueport.diagnostics.rules.tp105_arm_dropped import ArmDropped
from trueport.rewrite.running.asking import nothing
from trueport.rewrite.running.runtime import OF_A_TEST, RUNTIME_FUNCTIONS, BlockNames
from trueport.source import Where
from trueport.torch_internals.symbolic import is_symbolic, is_traced, statement_of, traced_flag


class Questions(ABC):
    """The part of a trace's control flow that records no regions."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.taken_out = TakenOut()
        self._things: list[Any] = []
        self.plain_rounds = False
        """Whether the rounds of the loop could as well be written out, with plain numbers."""
        self._rest = (0, contextlib.ExitStack())
        """How many regions are open in the arm that is traced, and what is known until it ends."""

    def number_of_thing(self, thing: Any) -> int:
        known = place_among(self._things, thing)
        if known is None:
            self._things.append(thing)
        return len(self._things) - 1 if known is None else known

    @abstractmethod
    def branch(self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any], state: BlockNames) -> Any:
        """Both arms as regions."""

    # --- tests

    def truth(self, value: Any) -> Any:
        """A plain bool where it is known, otherwise a 0-d bool tensor or a SymBool."""
        match value:
            case bool():
                return value
            case torch.Tensor():
                flag = value if value.dtype is torch.bool else value != 0
                flag = flag if flag.dim() == 0 else flag.reshape(())
                known = self.tracer.constants.evaluate(self.tracer.value(self.tracer.adopt_all(flag)))
                return flag if known is None else bool(known)
            case torch.SymBool():
                certain = self.tracer.symbols.shapes.known_truth(value)
                return value if certain is None else certain
            case torch.SymInt() | torch.SymFloat():
                return self.truth(value != 0)
            case Maybe():
                return self.truth(RUNTIME_FUNCTIONS.and_(flag_of(value), lambda: value_of(value)))
            case Chosen():
                return value.where(bool)
            case OpenSequence() | TracedContainer() if value.is_open:
                return self.truth(value.length)
        asked = self.own_method(value, "__bool__") or self.own_method(value, "__len__")
        return bool(value) if asked is None else self.truth(asked())

    def own_method(self, value: Any, name: str) -> Callable[..., Any] | None:
        """A method that the user's class defines, of which Python itself would take no traced answer."""
        method = getattr(type(value), name, None)
        if not isinstance(method, FunctionType) or self.tracer.places.is_foreign(method.__code__):
            return None
        return partial(method, value)

    def negate(self, value: Any) -> Any:
        truth = self.truth(value)
        return torch.logical_not(truth) if isinstance(truth, torch.Tensor) else torch.sym_not(truth)

    def predicate(self, truth: Any) -> Any:
        """A test as the graph holds it."""
        if isinstance(truth, torch.Tensor):
            return self.tracer.value_read(truth)
        return self.tracer.symbols.number_of(truth)

    def check(self, test: Any, error: type[Exception] | None = AssertionError, said: str = "") -> None:
        """An assertion on traced values: eager raises where it fails, so the rest may rely on it.

        Without an error it is something that has to be assumed, and eager goes on otherwise.
        """
        if error is not None and catcher(error, self.tracer.places) is not None:
            self.branch(test, nothing, lambda: fail(error), OF_A_TEST)
            return
        place = self.tracer.places.here()
        if (error is None or not self.relied_on(test, True)) and self.tracer.symbols.assume(test, place):
            return
        if error is None:
            self.drop(f"{said} is assumed: in ONNX it cannot grow", place)
            return
        said = "an assertion" if error is AssertionError else f"what would be a {error.__name__} in eager"
        self.drop(f"{said} cannot fail in ONNX: the model goes on as if it held", place)

    def check_if_caught(self, test: Callable[[], Any], error: type[Exception]) -> None:
        """What eager raises an error for, if the user's code goes on with that; otherwise it is taken to hold."""
        if catcher(error, self.tracer.places) is None:
            return
        truth = self.truth(test())
        if truth is False:
            fail(error)
        if truth is not True:
            self.check(truth, error)

    @contextlib.contextmanager
    def relying(self) -> Iterator[None]:
        """An arm: what it asks for before it goes on is known in the rest of it, and nowhere else."""
        before = self._rest
        with contextlib.ExitStack() as rest:
            self._rest = (len(self.tracer.regions) + 1, rest)
            try:
                yield
            finally:
                self._rest = before

    def relied_on(self, test: Any, holds: bool) -> bool:
        """Eager raises unless this holds: the rest of the arm may rely on it, if it is one that speaks of sizes."""
        depth, rest = self._rest
        if len(self.tracer.regions) != depth or statement_of(test) is None:
            return False
        rest.enter_context(self.tracer.symbols.where(test, holds))
        return True

    def drop(self, message: str, place: Any) -> None:
        dropped = ArmDropped(message=message, place=place, severity=Severity.NOTE)
        self.tracer.diagnostics.setdefault(("dropped", message, place.where), dropped)

    # --- sequences

    def sequence(self, value: Any) -> Any:
        """The open sequence behind an iterable, or None where its length is plain."""
        match value:
            case Generated():
                return self.sequence(value.collected())
            case OfOpenLength():
                return value.rest()
            case OpenSequence() | TracedContainer():
                return value.sequence()
            case torch.Tensor() if value.dim() > 0:
                length: Any = value.shape[0]
                return OpenSequence(length, lambda i: value.select(0, i)) if isinstance(length, torch.SymInt) else None
        return None

    def stopped_early(self, over: Any, count: int) -> None:
        behind = _generator_in(over)
        if behind is not None and not self.tracer.places.is_foreign(behind.gi_code):
            self.tracer.demand.require_code(behind.gi_code, self.tracer.places.here())
        if count > limits.ROUNDS_OF_UNKNOWN and not isinstance(over, Sized):
            refuse(
                "a traced value ends this loop, and what it goes through gives ever more items",
                "use a `while` loop, or a generator of the model's own",
                limits.ROUNDS_OF_UNKNOWN,
            )

    def taken_apart(self, items: Any, first: int, last: int | None) -> list[Any] | None:
        items = as_list(items)
        if isinstance(items, torch.Tensor) and self.sequence(items) is not None:
            items = unbind(items).cut()
        if not is_open(items):
            return None
        rows: Rows = items.rows()
        if last is None:
            self.check(rows.length == first)
            return rows.exactly(first)
        self.check(rows.length >= first + last)
        rest = items[first : -last if last else None]
        return [*(items[i] for i in range(first)), rest, *(items[i] for i in range(-last, 0))]

    generator: Callable[[Callable[..., None]], Any] = staticmethod(Generated)

    def went_into(self, manager: Any, body: Callable[[Any], Any]) -> bool:
        written = getattr(manager, "gen", None)
        if isinstance(manager, AbstractContextManager) and isinstance(written, Generated):
            written.push(body, lambda: False)
            return True
        return False

    def entered_by_hand(self) -> None:
        """A `with` of the user's enters a generator of rewritten code: the function may hand over its block."""
        frame = next(self.tracer.places.users_frames(), None)
        if frame is not None:
            self.tracer.demand.want_called(frame, self.tracer.places)

    def generator_behind(self, over: Any) -> Any:
        if isinstance(over, Generated):
            return over
        if isinstance(over, TracedDict):
            return over.keys() if over.is_open else None
        own = self.own_method(over, "__iter__")
        if own is None:
            return None
        started = own()  # an object of the user's, whose `__iter__` may be such a generator
        return started if isinstance(started, Generated) else None

    # --- lookups

    def decides_lookup(self, container: Any, key: Any) -> bool:
        if not choices.is_traced_key(key) or not choices.is_container(container) or is_open(container):
            return False
        if has_open_keys(container):
            if is_symbolic(key):
                self.want_table(container)
            container.why.complain()
        if _site_of(container) is not None and is_symbolic(key):
            return True
        # an empty list may be one that earlier rounds of a loop filled
        return len(container) > 0 or (isinstance(container, dict) and choices.is_of_sizes(key))

    def looked_up(self, container: Any, key: Any, *default: Any) -> Any:
        found = choices.looked_up(container, key, *default)
        if self.plain_rounds and isinstance(found, Chosen) and isinstance(key, torch.SymInt):
            raise LookupError("a layer of each round is looked up by its number")
        return found

    def _site(self) -> tuple[str, int]:
        """The file and the line that run just now: the user's, or those of a library that is traced."""
        frame = next(self.tracer.places.traced_frames())
        return frame.f_code.co_filename, frame.f_lineno

    def is_table_here(self) -> bool:
        return self._site() in self.tracer.demand.tables

    def want_table_here(self) -> None:
        self.tracer.demand.want_table(self._site())

    def want_table(self, container: Any) -> None:
        if (site := _site_of(container)) is not None:
            self.tracer.demand.want_table(site)

    def made_dict(self, made: TracedDict, parts: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A dict of the user's, or a table where it is given keys that are known only when the model runs."""
        if self.is_table_here():
            given = Table({}, made.stands_for, getattr(made, "missing", None))
            given.update(*parts, **named)
            return given
        made.site = self._site()
        made.update(*parts, **named)
        return made

    put_under = staticmethod(choices.put_under)
    update_under = staticmethod(choices.update_under)

    def holds(self, container: Any, item: Any) -> Any:
        if isinstance(container, TracedContainer) and (known := container.holds(item)) is not None:
            return known
        if isinstance(container, torch.Tensor):
            return (container == item).any().item()
        if isinstance(container, str) and isinstance(item, Message):
            return item in item  # which it refuses: what stands in it is not known
        own = self.own_method(container, "__contains__")
        if own is not None:
            return self.truth(own(item))
        if self.decides_lookup(container, item) and not isinstance(container, (tuple, list)):
            return choices.contains(container, item)
        return None

    def text(self, before: str, value: Any, after: str) -> Any:
        if isinstance(value, Chosen):
            return value.made(lambda candidate: f"{before}{candidate}{after}")
        if isinstance(value, torch.Tensor) and value.ndim == 0 and value.dtype in choices.INTEGERS:
            value = value.item()  # eager's text of such a tensor is that of its number
        return OpenText.of((before, after), (value,)) if isinstance(value, torch.SymInt) else None

    message: Callable[[Callable[[], str]], str] = staticmethod(written)
    each_way = staticmethod(each_way)

    def holds_traced(self, values: Any) -> bool:
        if is_open(values) or is_traced(values):
            return True
        return isinstance(values, (tuple, list)) and any(map(self.holds_traced, values))

    # --- items of open lists

    def of_all(self, function: Any, items: Any) -> Any:
        items = as_list(items)
        if not is_open(items) or function not in (zip, max, min):
            return None
        return items.columns() if function is zip else RUNTIME_FUNCTIONS.traced(function)(items)

    def took_out(self, item: Any, structure: Any, values: Sequence[Any]) -> None:
        self.taken_out.note(item, structure, tuple(values), self.tracer.places.here())

    def put_back(self, item: Any) -> None:
        self.taken_out.put_back(item)

    # --- other questions

    def rewrite_caller(self) -> None:
        self.tracer.demand.require(self.tracer.places.asking_frame(), self.tracer.places)

    def asked_by_rewritten(self) -> bool:
        frame = self.tracer.places.asking_frame()
        self.tracer.demand.require(frame, self.tracer.places)
        return frame is not None

    def is_same(self, left: Any, right: Any) -> Any:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Maybe) and other is None:
                return self.negate(flag_of(one))
            if isinstance(one, torch.SymBool) and isinstance(other, bool):
                return one if other else self.negate(one)
            if isinstance(one, Chosen):
                return one.where(lambda candidate, other=other: candidate is other)  # type: ignore[misc]
        refuse_unsure(left, right)
        return left is right

    # --- what it calls

    def checked(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """A function that looks first whether what it is given stands for several things; None where it need not."""
        if not self.tracer.one_of_several:
            return None
        code = code_called(function, self.tracer.places)
        if code is None or self.tracer.demand.covers(code):
            return None
        return partial(self._handing_on, function, code)

    def by_flags(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """An operator of torch's, which takes plain flags only; None of anything else."""
        return partial(self._flagged, function) if _is_operator(function) else None

    def _flagged(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.either_way(function, args, kwargs)

    def either_way(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """`attention(…, is_causal=x.shape[1] > 1)`: the call with the flag is one arm, without it the other."""
        flag = traced_flag((*args, *kwargs.values()))
        if flag is None:
            return function(*args, **kwargs)

        def with_it(plain: bool) -> Callable[[], Any]:
            given = [plain if each is flag else each for each in args]
            named = {name: plain if each is flag else each for name, each in kwargs.items()}
            return lambda: self.either_way(function, given, named)

        truth = self.truth(flag)
        if isinstance(truth, bool):
            return with_it(truth)()
        return self.branch(truth, with_it(True), with_it(False), OF_A_TEST)

    def stands_for_several(self) -> None:
        self.tracer.one_of_several = True

    def _handing_on(self, function: Callable[..., Any], code: CodeType, *args: Any, **kwargs: Any) -> Any:
        if hands_on_a_choice(function, (*args, *kwargs.values())):
            self.tracer.demand.require_code(code, self.tracer.places.here(), (function,))
        return function(*args, **kwargs)


def _is_operator(function: object) -> bool:
    """A function of torch's that is written in C, or such a method of a tensor."""
    if not isinstance(function, BuiltinFunctionType):
        return False
    return isinstance(function.__self__, torch.Tensor) or str(function.__module__).startswith("torch")


def _site_of(container: Any) -> tuple[str, int] | None:
    """The file and the line of the user's code that make a dict."""
    return container.site if isinstance(container, TracedDict) else None


def _generator_in(over: Any) -> GeneratorType[Any, Any, Any] | None:
    """The generator that is gone through, by itself or by an `enumerate` or a `map` of it, which keep it hidden."""
    while isinstance(over, (enumerate, map)):
        inside = [each for each in over.__reduce__()[1] if isinstance(each, Iterator)]
        if len(inside) != 1:
            return None
        over = inside[0]
    return over if isinstance(over, GeneratorType) else None


def code_called(function: Any, places: Places) -> CodeType | None:
    """The code of the user's, or of a library, that a call runs first."""
    match function:
        case partial():
            return code_called(function.func, places)
        case torch.nn.Module():
            function = type(function).forward
        case type():
            function = vars(function).get("__init__")
        case FunctionType() | MethodType():
            pass
        case _:
            function = inspect.getattr_static(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or places.is_foreign(code) or Where(code.co_filename, 1).is_standard:
        return None
    return code


def hands_on_a_choice(function: Any, given: Iterable[Any]) -> bool:
    """Whether one of several things is among the arguments of a call, or in the object whose method is called."""
    if isinstance(function, partial):
        return hands_on_a_choice(function.func, (*given, *function.args, *function.keywords.values()))
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    return any(isinstance(each, Disagreement) for value in (*given, owner) for each in walk(value, 2, _parts))


def _parts(value: Any) -> Iterable[Any]:
    """The parts of a structure, and those attributes of an object that are such things themselves."""
    if isinstance(value, (torch.Tensor, type, Disagreement)):
        return ()
    attributes = getattr(value, "__dict__", {}).values() if store_of(value) is None else ()
    return (*parts_of(value), *(held for held in attributes if isinstance(held, Disagreement)))
