"""The parts of a model as modules that take and give tensors only, one graph each."""

from __future__ import annotations

from typing import Any

import torch

from trueport.generation.plan import StepPlan


class Step(torch.nn.Module):
    """One step: new tokens and past states in, logits and present states out. It takes the ports of its plan."""

    def __init__(self, model: torch.nn.Module, plan: StepPlan) -> None:
        super().__init__()
        self.model = model
        self.plan = plan

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plan = self.plan
        count = len(plan.arguments)
        arguments: dict[str, Any] = dict(zip(plan.arguments, given[:count], strict=True))
        arguments |= plan.constants
        arguments[plan.cache_name] = plan.rebuilt(given[count:])
        if plan.encoded is not None:
            arguments["encoder_outputs"] = (self._in_place_of_the_source(given[count:]),)
        result = self.model(**arguments)
        present = plan.states_in(result[plan.cache_name])
        return (result.logits, *(present[state.present] for state in plan.own_states))

    def _in_place_of_the_source(self, states: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Zeros of the shape of what the encoder gave: a decoder that has the keys and values of the source asks for
        nothing else. If one did, its tokens would not be those of `generate()`."""
        encoded = self.plan.encoded
        assert encoded is not None
        found = zip(self.plan.states, states, strict=True)
        state, tensor = next((state, tensor) for state, tensor in found if state.of_the_source)
        sizes = {name: tensor.shape[axis] for axis, name in state.axes.items()}
        return tensor.new_zeros(encoded.shape(sizes))


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
        present = self.plan.states_in(result[self.plan.cache_name])
        made = [present[state.present] for state in self.plan.states if state.of_the_source]
        return (result.encoder_last_hidden_state, *made)
