"""Is the model healthy? Eager is run before anything is traced: what eager refuses, nobody can export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp004_not_deterministic import NotDeterministic
from trueport.diagnostics.rules.tp006_random_kept import RandomKept
from trueport.diagnostics.rules.tp202_output_type import OutputType
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.diagnostics.spelling import option, told
from trueport.examine.condition import (
    input_kinds,
    lazy_parameters,
    training_mode,
    unusual_kind,
    weight_kinds,
    wrong_device,
)
from trueport.examine.counters import counters_read
from trueport.examine.other_sizes import inputs_that_run_as_ones, sizes_that_run
from trueport.examine.places import place_of_return
from trueport.examine.randomness import places_of_random_operators
from trueport.examine.refusals import refusal
from trueport.examine.run import call_eagerly, run_watched
from trueport.examine.same import differing_outputs, same_outputs
from trueport.examine.scripted import scripted_decisions
from trueport.examine.state import Snapshot
from trueport.load.containers import type_name
from trueport.load.job import Job
from trueport.load.structures import flatten
from trueport.load.values import LeafKind
from trueport.source import Place, Where

_MORE_RUNS = 5
"""How often a model that drew random numbers is run again before its equal results are believed."""


@dataclass(frozen=True)
class Examined:
    """What eager showed. An error among the diagnostics means that the model must not be exported."""

    outputs: Any = None
    diagnostics: tuple[Diagnostic, ...] = ()
    deterministic: bool = True
    stateful: tuple[str, ...] = ()
    """Attributes, buffers and parameters that one call wrote."""
    state_matters: bool = False
    """Whether a call with another input changes what the next call gives."""

    counters: Mapping[str, Where] = field(default_factory=dict)
    """Numbers that are others after every call and that forward looks at, by name, and where it does."""

    ran: bool = False
    """Whether eager came to its end, whatever is wrong with what it gave."""

    @property
    def refused(self) -> bool:
        return any(diagnostic.is_error for diagnostic in self.diagnostics)


def examine(job: Job, *, training: bool = False, random: bool = False) -> Examined:
    """Run the model on its example and say what is wrong with it.

    `training=True` means that training mode is meant, `random=True` that random results are. The model, its inputs and
    torch's random generator are left as they were found.
    """
    unmade = [*lazy_parameters(job.model), *scripted_decisions(job.model)]
    if unmade:
        return Examined(diagnostics=(*job.diagnostics, *unmade))
    state = Snapshot(job.model)
    found = [*job.diagnostics, *wrong_device(job, state), *input_kinds(job), *weight_kinds(state)]
    if any(diagnostic.is_error for diagnostic in found):
        return Examined(diagnostics=tuple(found))
    left_training = [] if training else list(training_mode(job.model, random))
    found += left_training
    with torch.random.fork_rng(devices=[]):
        return _run(job, state, found, not left_training, random)


def _run(job: Job, state: Snapshot, found: list[Diagnostic], check_twice: bool, random: bool) -> Examined:
    example = [leaf.value for leaf in job.leaves]
    try:
        outputs, stateful = run_watched(job, example, state)
        chance = torch.random.get_rng_state()
        again, _ = run_watched(job, example, state) if check_twice else (outputs, ())
        drew = not torch.equal(chance, torch.random.get_rng_state())
    except Exception as error:  # noqa: BLE001  a model may raise anything, and whatever it is, it is told
        as_ones = () if isinstance(error, IndexError) else inputs_that_run_as_ones(job)
        sizes = {} if as_ones else sizes_that_run(job)
        return Examined(diagnostics=(*found, refusal(job, error, sizes, as_ones)))
    found += [*_lost(state), *_outputs_that_cannot_be_carried(outputs, place_of_return(job.model))]
    deterministic = same_outputs(outputs, again) and (not drew or _stays_the_same(job, example, outputs, state))
    if not deterministic or (random and drew):
        found.append(_not_deterministic(job, random, differing_outputs(outputs, again) or ()))
    matters = bool(stateful) and deterministic and _state_matters(job, state, example, outputs)
    counters = counters_read(job, state, example, stateful) if stateful and not matters else {}
    return Examined(outputs, tuple(found), deterministic, stateful, matters, counters, ran=True)


def _stays_the_same(job: Job, example: list[object], outputs: Any, state: Snapshot) -> bool:
    """Random numbers were drawn and the results were equal: by chance (a small dropout), or as nobody used them?"""
    return all(same_outputs(outputs, run_watched(job, example, state)[0]) for _ in range(_MORE_RUNS))


def _lost(state: Snapshot) -> Iterator[Diagnostic]:
    for name in state.lost():
        yield StateWritten(
            message=f"forward writes the parameter {name}, of which no copy was kept in a model of this size",
            fix="do not write parameters in forward: use a buffer",
        )


def _outputs_that_cannot_be_carried(outputs: Any, place: Place | None) -> Iterator[Diagnostic]:
    leaves, structure = flatten(outputs)
    for leaf in leaves:
        kind = unusual_kind(leaf.value)
        if kind is not None:
            yield OutputType(
                message=f"{leaf.path} is a {kind[0]} tensor",
                place=place,
                fix=f"return {leaf.path}{kind[1]}",
                facts={"path": leaf.path, "kind": kind[0], "call": kind[1]},
            )
        elif not leaf.known:
            yield OutputType(
                message=f"{leaf.path} is a {type_name(type(leaf.value))}, which no model can return",
                place=place,
                fix=_instead(leaf.value),
                facts={"path": leaf.path, "kind": type_name(type(leaf.value))},
            )
    # A list that is empty on the example may hold something on other inputs.
    if not structure.has_empty_list and all(leaf.known and leaf.kind is LeafKind.CONSTANT for leaf in leaves):
        said = repr(outputs) if len(leaves) <= 1 else f"{len(leaves)} constants"
        yield OutputType(
            message=f"forward returns {said}: no tensor and no number", place=place, fix="return what it computes"
        )


def _instead(value: object) -> str:
    """What to return instead of something that no graph can."""
    match type_name(type(value)):
        case "numpy.ndarray":
            return "return the tensor itself: .numpy() leaves torch, and the graph"
        case "generator":
            return "return the items as a list, or as one tensor: torch.stack(list(items))"
        case "coroutine":
            return "forward must be a plain function, without async"
        case _:
            return "return tensors, numbers, or containers and dataclasses of them"


def _not_deterministic(job: Job, meant: bool, differing: Sequence[str]) -> Diagnostic:
    drawn = places_of_random_operators(job)
    names = sorted({name for name, _ in drawn})
    eval_first = any(getattr(module, "training", False) for module in job.model.modules())
    fix: str = told("make the noise an input, switch it off in eval(), or keep it with ", option("random", "onnx"))
    if eval_first:
        fix = "model.eval(), if the randomness is for training only; otherwise make the noise an input"
    if not drawn:
        return NotDeterministic(
            message="two runs on the same input differ, and not by torch's random numbers",
            seen=(
                *([f"what differs: {', '.join(differing[:4])}"] if differing else ()),
                "what is left: Python's or numpy's random, the time, or state kept outside the model",
            ),
            fix=fix,
        )
    others = tuple(f"also at {_short(place)}: {name}" for name, place in drawn[1:5])
    if meant:
        return RandomKept(
            message=f"the exported model draws its own random numbers ({', '.join(names)}), as forward does here",
            place=drawn[0][1],
            label=f"{drawn[0][0]} draws here",
            seen=others,
        )
    return NotDeterministic(
        message=f"two runs on the same input differ: forward draws random numbers ({', '.join(names)})",
        place=drawn[0][1],
        label=f"{drawn[0][0]} draws here",
        seen=others,
        fix=fix,
    )


def _short(place: Place) -> str:
    return f"{Path(place.where.file).name}:{place.where.line}" if place.where else str(place)


def _state_matters(job: Job, state: Snapshot, example: list[object], outputs: Any) -> bool:
    """Run another input, then the example, without putting the state back in between; the same with the example twice,
    since a tracker may keep what only its own input meets again."""
    for before in ([_another(value) for value in example], example):
        try:
            call_eagerly(job, before)
        except Exception:  # noqa: BLE001  eager decides which inputs are valid; the example itself always is
            state.put_back()
            continue
        try:
            if not same_outputs(outputs, call_eagerly(job, example)):
                return True
        except Exception:  # noqa: BLE001  the example was accepted, and after another call it is not
            return True
        finally:
            state.put_back()
    return False


def _another(value: object) -> object:
    """A tensor of the same kind and range with other values."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    turned = value.detach().flatten().roll(1).reshape(value.shape)
    return turned * 0.5 + 0.25 if turned.is_floating_point() else turned
