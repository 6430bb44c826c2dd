"""What forward leaves behind in the model: buffers written, attributes set.

A graph keeps nothing between calls. Buffers that forward writes are found (functionalisation knows), and the caller
chooses: lift each to an input and an output, or keep its present value for good. The default is to refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import torch

from trueport.capture.graph import GraphInput, GraphOutput, Value, Weight
from trueport.capture.snapshot import Snapshot
from trueport.capture.tracer import Tracer
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp203_state_written import StateWritten


class State(Enum):
    """What to do with buffers that forward writes."""

    REFUSE = "refuse"
    FROZEN = "frozen"
    INPUTS_OUTPUTS = "inputs-outputs"


@dataclass(frozen=True)
class Settled:
    """The state as the graph will carry it."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    inputs: tuple[GraphInput, ...] = ()
    outputs: tuple[GraphOutput, ...] = ()
    lifted: frozenset[Value] = frozenset()
    state: dict[str, Value] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


def settle_state(tracer: Tracer, snapshot: Snapshot, choice: State) -> Settled:
    """Find what was written, and settle it as the caller chose."""
    written = _written_tensors(tracer, snapshot)
    others = [r.name for r in snapshot.rebound() if r.name not in written and _is_state(r.name)]
    state = {name: last for name, (_, last) in written.items()}
    if choice is State.INPUTS_OUTPUTS:
        inputs = tuple(GraphInput(name, weight.value) for name, (weight, _) in written.items())
        outputs = tuple(GraphOutput(f"{name}_out", last) for name, (_, last) in written.items())
        notes = [_note(tracer, weight, Severity.NOTE, f"`{name}` is an input, and its next value an output") for name, (weight, _) in written.items()]
        notes += _attributes(others, tracer, choice)
        lifted = frozenset(weight.value for weight, _ in written.values())
        tensors = {name: weight.tensor for name, (weight, _) in written.items()}
        return Settled(notes, inputs, outputs, lifted, state, tensors)
    if choice is State.FROZEN:
        frozen = [_note(tracer, weight, Severity.NOTE, f"`{name}` stays as it is now; the write is dropped") for name, (weight, _) in written.items()]
        return Settled(frozen + _attributes(others, tracer, choice), state=state)
    refused = [
        _note(tracer, weight, Severity.ERROR, f"forward writes `{name}`, and an ONNX model keeps nothing between calls")
        for name, (weight, _) in written.items()
    ]
    return Settled(refused + _attributes(others, tracer, choice), state=state)


def _written_tensors(tracer: Tracer, snapshot: Snapshot) -> dict[str, tuple[Weight, Value]]:
    """Tensors written in place, and tensor attributes or buffers that forward replaced by others."""
    written = tracer.written()
    for rebound in snapshot.rebound():
        before, after = rebound.before, rebound.after
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
            weight = tracer.owned.weight(before, made_in_trace=False)
            last = tracer.value(after)
            if last is not weight.value and last.dtype == weight.value.dtype and len(last.shape) == before.dim():
                written[rebound.name] = (weight, last)
    return written


def _attributes(names: list[str], tracer: Tracer, choice: State) -> list[Diagnostic]:
    """Other attributes set by forward. Whether they matter to a later call is for eager to say (see `examine`)."""
    return [
        StateWritten(
            message=f"forward sets `{name}`, which the graph does not keep",
            severity=Severity.NOTE,
            fix='pass state="frozen" to say that no later call depends on it' if choice is State.REFUSE else "",
        )
        for name in names
    ]


def _note(tracer: Tracer, weight: Weight, severity: Severity, message: str) -> Diagnostic:
    place = tracer.place_of_write(weight)
    fix = 'state="inputs-outputs" makes it an input and an output; state="frozen" keeps its present value'
    return StateWritten(message=message, place=place, severity=severity, fix=fix if severity is Severity.ERROR else "")


def _is_state(name: str) -> bool:
    return not name.rsplit(".", 1)[-1].startswith("_is_full_backward")
