"""What forward leaves behind in the model: buffers written, attributes set.

A graph keeps nothing between calls. Buffers that forward writes are found (functionalisation knows), and the caller
chooses: lift each to an input and an output, or keep its present value for good. The default is to refuse.
Attributes that the graph does not keep are named, with the line that sets them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType
from typing import Any

import torch

from trueport.capture.effects.snapshot import AttributeSnapshot, classes_near, rooms_near
from trueport.capture.recording.tracer import Tracer
from trueport.capture.recording.weights import MemoryKey, memory_key
from trueport.capture.stops.restarts import Restarting
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import GraphInput, GraphOutput, Size, Value, Weight, WeightKind, values_in
from trueport.source import Place, Where
from trueport.source.writes import line_that_writes

REPLACED = "replaced"
"""The fact of a finding that forward replaces a tensor, as caches are: eager says whether any call depends on it."""


class StateMode(Enum):
    """What to do with buffers that forward writes."""

    REFUSE = "refuse"
    FROZEN = "frozen"
    INPUTS_OUTPUTS = "inputs-outputs"


class ReadsState(Restarting):
    """The trace took a tensor's present value for a constant, and it is state that becomes an input: trace again."""

    def __init__(self, tensors: frozenset[MemoryKey]) -> None:
        super().__init__("a tensor that is state was taken for a constant: it becomes an input")
        self.fickle = tensors


@dataclass(frozen=True)
class Settled:
    """The state as the graph will carry it."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    inputs: tuple[GraphInput, ...] = ()
    outputs: tuple[GraphOutput, ...] = ()
    lifted: frozenset[Value] = frozenset()
    state: dict[str, Value] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Written:
    """A tensor of the model and what forward left there."""

    name: str
    weight: Weight
    last: Value
    place: Place | None
    replaced: bool = False
    """Whether forward put another tensor in its place, and did not write to the tensor itself."""

    def told(self, severity: Severity, message: str, fix: str = "") -> Diagnostic:
        facts = {"state": self.name, "kind": "tensor", **({"written": REPLACED} if self.replaced else {})}
        return StateWritten(message=message, place=self.place, severity=severity, fix=fix, facts=facts)


def settle_state(tracer: Tracer, snapshot: AttributeSnapshot, choice: StateMode, returned: list[Any]) -> Settled:
    """Find what was written, and settle it as the caller chose.

    A plain attribute that is set before anyone reads it (the computed weight of `weight_norm`) is no state.
    """
    written = _written_tensors(tracer, snapshot)
    read = {*tracer.values_read(), *values_in(returned)}
    written = [each for each in written if each.weight.kind is not WeightKind.ATTRIBUTE or each.weight.value in read]
    names = {each.name for each in written}
    others = [r.name for r in snapshot.rebound() if r.name not in names and _is_state(r.name)]
    attributes = _attributes(others, choice, snapshot.model)
    if choice is StateMode.INPUTS_OUTPUTS:
        return _lift(tracer, written, attributes)
    state = {each.name: each.last for each in written}
    if choice is StateMode.FROZEN:
        frozen = [
            each.told(Severity.NOTE, f"`{each.name}` stays as it is now; the write is dropped") for each in written
        ]
        return Settled(frozen + attributes, state=state)
    refused = [
        each.told(
            Severity.ERROR,
            f"forward writes `{each.name}`, and an ONNX model keeps nothing between calls",
            told(
                option("state", "inputs-outputs"),
                " makes it an input and an output; ",
                option("state", "frozen"),
                " keeps its present value",
            ),
        )
        for each in written
    ]
    return Settled(refused + attributes, state=state)


def _lift(tracer: Tracer, written: list[_Written], attributes: list[Diagnostic]) -> Settled:
    relied_on = [w.weight for w in written if w.weight.value in tracer.constants.relied_on]
    if relied_on:
        raise ReadsState(frozenset(memory_key(weight.tensor) for weight in relied_on))
    grown = [each for each in written if tuple(each.last.shape) != tuple(each.weight.value.shape)]
    if grown:
        return Settled([_changes_size(each) for each in grown])
    return Settled(
        [each.told(Severity.NOTE, f"`{each.name}` is an input, and its next value an output") for each in written]
        + attributes,
        inputs=tuple(GraphInput(each.name, each.weight.value) for each in written),
        outputs=tuple(GraphOutput(state_output(each.name), each.last) for each in written),
        lifted=frozenset(each.weight.value for each in written),
        state={each.name: each.last for each in written},
        tensors={each.name: each.weight.tensor for each in written},
    )


def state_output(name: str) -> str:
    """What the output is called that gives the next value of a lifted state."""
    return f"{name}_out"


def _changes_size(written: _Written) -> Diagnostic:
    before, after = _words(written.weight.value.shape), _words(written.last.shape)
    return written.told(
        Severity.ERROR,
        f"`{written.name}` is {before} before the call and {after} after it, so it cannot be fed back as an input",
        f"make `{written.name}` an argument and a result of forward, and declare its size free",
    )


def _words(shape: tuple[Size, ...]) -> str:
    return "×".join(map(str, shape)) or "a single number"


def _written_tensors(tracer: Tracer, snapshot: AttributeSnapshot) -> list[_Written]:
    """Tensors written in place, and tensor attributes or buffers that forward replaced by others."""
    written = {
        name: _Written(name, weight, last, tracer.place_of_write(weight))
        for name, (weight, last) in tracer.adoption.written().items()
    }
    for rebound in snapshot.rebound():
        before, after = rebound.before, rebound.after
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
            weight = tracer.owned.weight(before, made_in_trace=False)
            if (
                weight.name != rebound.name
            ):  # another name of a tensor that is owned elsewhere: eager tells if it matters
                continue
            last = tracer.value(after)
            if last is not weight.value and last.dtype == weight.value.dtype and len(last.shape) == before.dim():
                written[rebound.name] = _Written(
                    rebound.name, weight, last, tracer.constants.place_of(last), rebound.name not in written
                )
    return list(written.values())


def _attributes(names: list[str], choice: StateMode, model: torch.nn.Module) -> list[Diagnostic]:
    """Other attributes set by forward. Whether they matter to a later call is for eager to say (see `examine`)."""
    return [
        StateWritten(
            message=f"forward sets `{name}`, which the graph does not keep",
            place=where_set(model, name),
            severity=Severity.NOTE,
            fix=told("pass ", option("state", "frozen"), " to say that no later call depends on it")
            if choice is StateMode.REFUSE
            else "",
            facts={"state": name, "kind": "attribute"},
        )
        for name in names
    ]


def _is_state(name: str) -> bool:
    return not name.rsplit(".", 1)[-1].startswith("_is_full_backward")


_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setstate__", "__deepcopy__"})


def where_set(model: torch.nn.Module, name: str) -> Place | None:
    """Where `name` (`blocks.0.cache[2].k`) is written: in the class of the module that holds it, or near the model.

    Python tells nobody that an attribute was set, so the functions that may have done it are read.
    """
    path, attributes = _split(model, name)
    for attribute in reversed(attributes):
        for function in _candidates(model, model.get_submodule(path)):
            code = function.__code__
            line = line_that_writes(code.co_filename, code.co_firstlineno, attribute)
            if line is not None:
                return Place((Where(code.co_filename, line, function.__qualname__),), path)
    return None


def _split(model: torch.nn.Module, name: str) -> tuple[str, list[str]]:
    """The path of the module, and the names that lead on from it."""
    path = max((p for p, _ in model.named_modules() if not p or name.startswith(f"{p}.")), key=len)
    rest = name.removeprefix(f"{path}.") if path else name
    return path, re.findall(r"[^\W\d]\w*", re.sub(r"\[[^]]*\]", "", rest))


def _candidates(model: torch.nn.Module, owner: torch.nn.Module) -> Iterator[FunctionType]:
    for cls in type(owner).__mro__:
        yield from _functions(vars(cls).values())
    for cls in classes_near(model):
        yield from _functions(vars(cls).values())
    for room in rooms_near(model):
        yield from _functions(vars(room).values())
        for made in vars(room).values():
            if isinstance(made, type) and made.__module__ == room.__name__:
                yield from _functions(vars(made).values())


def _functions(values: Iterable[object]) -> Iterator[FunctionType]:
    for value in list(values):
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(function, FunctionType):
            function = inspect.unwrap(function)
        if isinstance(function, FunctionType) and function.__name__ not in _MAKING and not _is_installed(function):
            yield function


def _is_installed(function: FunctionType) -> bool:
    return Where(function.__code__.co_filename, 1).is_installed
