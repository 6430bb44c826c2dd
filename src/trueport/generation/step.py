"""The parts of a model as modules that take and give tensors only, one graph each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from trueport.generation.plan import PAST, SEQUENCE, TOTAL, StepInput, StepPlan, TensorRole
from trueport.generation.watch import ModuleStates


class Step(torch.nn.Module):
    """One step: new tokens and past states in, logits and present states out. It takes the ports of its plan."""

    def __init__(self, model: torch.nn.Module, plan: StepPlan) -> None:
        super().__init__()
        self.model = model
        self.plan = plan

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not self.plan.recurrent:
            return self._step(given)
        # Such models go two ways, of which that for one token takes a fraction of the work: both are kept.
        roles = [port.role for port in self.plan.ports]
        tokens = given[roles.index(TensorRole.TOKENS)]
        one = tokens.shape[1] == 1
        if not torch.compiler.is_exporting():
            return self._one(*given) if one else self._many(*given)
        logits, *states = torch.cond(one, self._one, self._many, given)
        return (logits.reshape(*tokens.shape, logits.shape[-1]), *states)  # for each token, as the two ways agree

    def _one(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._step(_of_one_token(self.plan.ports, given))

    def _many(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._step(_of_the_start(self.plan.ports, given) if self.plan.from_start else given)

    def _step(self, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        plan = self.plan
        count = len(plan.arguments)
        arguments: dict[str, Any] = dict(zip(plan.arguments, given[:count], strict=True))
        arguments |= plan.constants
        cache, of_modules = plan.rebuilt(given[count:])
        if plan.cache_name:
            arguments[plan.cache_name] = cache
        if plan.encoded is not None:
            arguments["encoder_outputs"] = plan.encoder_outputs(self._in_place_of_the_source(given[count:]))
        kept = ModuleStates(self.model, plan.of_modules)
        before = kept.now()
        try:
            kept.put(of_modules)
            result = self.model(**arguments)
            present = plan.states_in(result.get(plan.cache_name, cache), kept.now())
        finally:
            kept.put(before)
        return (result.logits, *(present[state.present] for state in plan.own_states))

    def _in_place_of_the_source(self, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """Zeros of the shape of what the encoder gave: a decoder that has the keys and values of the source asks for
        nothing else. If one did, its tokens would not be those of `generate()`."""
        encoded = self.plan.encoded
        assert encoded is not None
        found = zip(self.plan.states, states, strict=True)
        state, tensor = next((state, tensor) for state, tensor in found if state.of_the_source)
        sizes = {name: tensor.shape[axis] for axis, name in state.axes.items()}
        return tensor.new_zeros(encoded.shape(sizes))


def _of_one_token(ports: Sequence[StepInput], given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same where there is one new token, in sizes that are known to count one."""
    new = next(value.shape[1] for port, value in zip(ports, given, strict=True) if port.role is TensorRole.TOKENS)
    found = []
    for port, value in zip(ports, given, strict=True):
        for axis, size in port.axes.items():
            if size in (SEQUENCE, TOTAL):
                value = value.narrow(axis, 0, value.shape[axis] - new + 1)
        found.append(value)
    return found


def _of_the_start(ports: Sequence[StepInput], given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same where nothing was read before. Where something was, it raises, and so does the file: an index that
    must be 0 is how many tokens there were. A graph cannot raise otherwise."""
    new = next(value.shape[1] for port, value in zip(ports, given, strict=True) if port.role is TensorRole.TOKENS)
    before = next(
        value.shape[axis]
        for port, value in zip(ports, given, strict=True)
        for axis, size in port.axes.items()
        if size == PAST
    )
    nothing = torch.zeros(1, dtype=torch.int64)[torch.full((1,), before)]
    found = []
    for port, value in zip(ports, given, strict=True):
        if port.role is TensorRole.TOKENS:
            value = value + nothing
        for axis, size in port.axes.items():
            if size == PAST:
                value = value.narrow(axis, 0, 0)
            if size == TOTAL:
                value = value.narrow(axis, value.shape[axis] - new, new)
        found.append(value)
    return found


class Encode(torch.nn.Module):
    """What is done once, before the first token: the source in, the keys and values of cross-attention out.

    The decoder runs for one token, since only it can make them; nothing else of that is left in the graph.
    """

    def __init__(self, model: torch.nn.Module, plan: StepPlan, names: tuple[str, ...], start: int) -> None:
        super().__init__()
        self.model = model
        self.plan = plan
        self.names = names
        self.start = start

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = torch.full((given[0].shape[0], 1), self.start, dtype=torch.int64)
        result = self.model(**dict(zip(self.names, given, strict=True)), decoder_input_ids=first, use_cache=True)
        present = self.plan.states_in(result[self.plan.cache_name], {})
        made = [present[state.present] for state in self.plan.states if state.of_the_source]
        return (result.encoder_last_hidden_state, *made)
