"""What one graph for generation takes and gives: arguments that are new at each step, constants, and states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from trueport.generation.watch import Axes, ForwardCall, Lengths, held, unknown
from trueport.load.structures import Structure
from trueport.load.values import LeafKind

BATCH, SEQUENCE, PAST, SOURCE = "batch", "sequence", "past", "source"
TOTAL = f"{PAST} + {SEQUENCE}"

_SAVINGS = {"logits_to_keep"}
"""What generate() passes to save work: a file gives the logits of every new token, as other tools' files do."""
_ENCODED = "encoder_outputs"
_SIDES = {"self_attention_cache": ".decoder", "cross_attention_cache": ".encoder"}


class TensorRole(Enum):
    """What a tensor that a graph takes is for."""

    TOKENS = "tokens"
    MASK = "mask"
    POSITIONS = "positions"
    FEATURES = "features"
    STATE = "state"


@dataclass(frozen=True)
class StepInput:
    """A tensor that a graph takes, with what its free axes stand for."""

    name: str
    """In the file; forward may call it otherwise."""
    role: TensorRole
    axes: Axes
    example: torch.Tensor

    def shape(self, sizes: Mapping[str, int]) -> list[int]:
        return [sizes[self.axes[i]] if i in self.axes else length for i, length in enumerate(self.example.shape)]


@dataclass(frozen=True)
class State(StepInput):
    """A tensor that a step gives to the next one."""

    present: str
    leaf: int
    """Its place among the leaves of the cache."""
    of_the_source: bool
    """Whether it is made once, of what the encoder gave."""


@dataclass(frozen=True)
class StepPlan:
    """The calls of forward as one signature."""

    arguments: Mapping[str, StepInput]
    """By the name that forward has for each."""
    constants: Mapping[str, Any]
    """Arguments of forward that are the same at each step."""
    states: tuple[State, ...]
    cache_name: str
    cache: Structure
    cache_values: tuple[object, ...]
    """One per leaf of the cache; a state takes the place of its tensor."""
    encoded: StepInput | None = None
    """What an encoder gave, where there is one."""
    encoded_kind: type[Any] = tuple
    """What it gave that in: models ask for it by its place in a tuple, or by its name in a class of their library."""
    of_modules: tuple[str, ...] = ()
    """The states that lie in attributes of modules."""
    from_start: bool = False
    """Whether several tokens are only read at the start of a text, since eager refuses them after others."""

    @property
    def ports(self) -> tuple[StepInput, ...]:
        """The inputs of the graph, in their order."""
        return (*self.arguments.values(), *self.states)

    @property
    def own_states(self) -> tuple[State, ...]:
        return tuple(state for state in self.states if not state.of_the_source)

    @property
    def recurrent(self) -> bool:
        """Whether a state stays as large as it is, whatever was read."""
        return any(PAST not in state.axes.values() for state in self.own_states)

    @property
    def grows(self) -> bool:
        """Whether a state has a place for each token that was read."""
        return any(PAST in state.axes.values() for state in self.own_states)

    def encoder_outputs(self, encoded: torch.Tensor) -> Any:
        """What the model takes for the outputs of its encoder."""
        named = hasattr(self.encoded_kind, "last_hidden_state")
        return self.encoded_kind(last_hidden_state=encoded) if named else (encoded,)

    def rebuilt(self, states: Sequence[torch.Tensor]) -> tuple[Any, dict[str, Any]]:
        """The cache around these states, and those that belong into modules."""
        values = list(self.cache_values)
        for state, tensor in zip(self.states, states, strict=True):
            values[state.leaf] = tensor
        built = self.cache.build(values)
        return (built["cache"], built["modules"]) if self.of_modules else (built, {})

    def states_in(self, cache: Any, of_modules: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """By the name that each has as an output."""
        found: list[Any] = self.cache.flatten(held(cache, of_modules))
        return {state.present: found[state.leaf] for state in self.states}


def planned(calls: Sequence[ForwardCall], lengths: Lengths) -> StepPlan:
    """The plan that these calls follow. Raises ExportError where they follow none."""
    first = calls[0]
    if not all(call.cache_name == first.cache_name and call.structure.alike(first.structure) for call in calls):
        raise unknown(f"{first.cache_name or 'what modules keep'} has another structure at each step of generate()")
    states = tuple(_states(calls, lengths))
    grows = any(PAST in state.axes.values() for state in states)
    of_arguments = Lengths(
        {name: seen for name, seen in lengths.of.items() if name != PAST and (grows or name != TOTAL)}
    )
    arguments: dict[str, StepInput] = {}
    constants: dict[str, Any] = {}
    for name in first.arguments:
        if name == first.cache_name or name in _SAVINGS or name == _ENCODED:
            continue
        values = [call.arguments.get(name) for call in calls]
        if any(isinstance(value, torch.Tensor) for value in values):
            axes = of_arguments.axes(name, values)
            example = next(value for value in values if value is not None)
            arguments[name] = StepInput(_public(name, axes), _role(name), axes, example)
        elif all(_same(value, values[0]) for value in values):
            constants[name] = values[0]
        else:
            message = f"{name} is {', '.join(map(repr, values))} in the calls of generate() that were watched"
            raise unknown(message)
    kept = tuple(leaf.value for leaf in first.leaves)
    encoded, kind = None, tuple
    if _ENCODED in first.arguments:
        kind = type(first.arguments[_ENCODED])
        seen = [call.arguments[_ENCODED][0] for call in calls]
        encoded = StepInput(_ENCODED, TensorRole.FEATURES, of_arguments.axes(_ENCODED, seen), seen[0])
    return StepPlan(
        arguments, constants, states, first.cache_name, first.structure, kept, encoded, kind, first.of_modules
    )


def source_ports(runs: Sequence[Mapping[str, torch.Tensor]], lengths: Lengths) -> dict[str, StepInput]:
    """What an encoder takes: the inputs of `generate()`, as they were in the runs that were watched."""
    known = Lengths({name: seen for name, seen in lengths.of.items() if name in (BATCH, SOURCE)})
    found = {}
    for name, example in runs[0].items():
        if name != "decoder_input_ids":
            role = _role(name) if name in ("input_ids", "attention_mask") else TensorRole.FEATURES
            found[name] = StepInput(name, role, known.axes(name, [run[name] for run in runs]), example)
    return found


def _public(name: str, axes: Axes) -> str:
    """What other tools call an argument of a decoder."""
    if name == "attention_mask" and SOURCE in axes.values():
        return "encoder_attention_mask"
    return name.removeprefix("decoder_")


def _role(name: str) -> TensorRole:
    for ending, role in (
        ("input_ids", TensorRole.TOKENS),
        ("attention_mask", TensorRole.MASK),
        ("position_ids", TensorRole.POSITIONS),
    ):
        if name.removeprefix("decoder_") == ending:
            return role
    message = f"generate() gives forward {name}, and what it is to be at the next step is not known"
    raise unknown(message)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and (not isinstance(one, (int, float, str)) or one == other)


def _states(calls: Sequence[ForwardCall], lengths: Lengths) -> list[State]:
    found = []
    names = {name: seen for name, seen in lengths.of.items() if name in (BATCH, PAST, SOURCE)}
    for i, leaf in enumerate(calls[0].leaves):
        values: list[Any] = [call.leaves[i].value for call in calls]
        if leaf.kind is LeafKind.TENSOR:
            axes = Lengths(names).axes(leaf.path, values)
            past, present = state_names(leaf.path)
            found.append(
                State(past, TensorRole.STATE, axes, values[0], present, i, "cross_attention_cache" in leaf.path)
            )
        elif any(value != leaf.value for value in values):
            message = f"{leaf.path} is a number that changes from step to step: {', '.join(map(str, values))}"
            raise unknown(message)
    return found


def state_names(path: str) -> tuple[str, str]:
    """What a state is called as an input and as an output: `past_key_values.0.key` and `present.0.key`, as other tools
    have it; what is neither key nor value has its own name: `past_conv_states.0`, `present_conv_states.0`."""
    words = re.findall(r"\w+", path)[1:]
    side = "".join(_SIDES.get(word, "") for word in words)
    numbers = [word for word in words if word.isdigit()]
    kind = next(word for word in reversed(words) if not word.isdigit())
    if kind in ("keys", "values"):
        rest = ".".join(numbers) + f"{side}.{kind[:-1]}"
        return f"past_key_values.{rest}", f"present.{rest}"
    numbers = numbers[:1] if numbers[1:] == ["0"] else numbers  # a layer with one state of the kind
    rest = f"{kind}.{'.'.join(numbers)}{side}"
    return f"past_{rest}", f"present_{rest}"
