"""Eager as the reference: its answers, and what it decided on the way to them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType

import torch

from trueport.verify.compare import Expected
from trueport.verify.tally import Relevant, Tally
from trueport.verify.trail import Overstayed, Trail, followed

RunEager = Callable[[Sequence[object]], object]
"""Runs the model on one value per leaf. It may write to the values; it must not change the model."""
FlattenOutputs = Callable[[object], list[Expected]]
"""What eager returned, one value per output. Raises a TrueportError where that has another structure than it had."""

_PATIENCE = 0.15
_PATIENCE_IN_SEARCH = 0.05
_TIMES_THE_EXAMPLE = 50
"""A loop of eager that takes so many seconds of the processor's time, and so many times as long as the example, counts
as endless: on inputs of our making it may well be (`while x.sum() < 100` of what shrinks)."""


class Reference:
    """The user's model, asked for answers.

    `codes` are the functions whose decisions are counted (`functions`, where it is known who runs them); `kept_alive`
    tells those that the exported graph holds.
    `otherwise` is another way to run the model whose answers are right as well; `precisely` runs it in float64.
    """

    def __init__(
        self,
        run_eager: RunEager,
        flatten_outputs: FlattenOutputs,
        codes: Iterable[CodeType] = (),
        kept_alive: Relevant | None = None,
        patience: float | None = None,
        otherwise: RunEager | None = None,
        precisely: RunEager | None = None,
        functions: Iterable[FunctionType] = (),
    ) -> None:
        self._run_eager, self._flatten = run_eager, flatten_outputs
        self.codes, self.functions = tuple(codes), tuple(functions)
        self._otherwise, self._precisely = otherwise, precisely
        self.tally = Tally(kept_alive)
        self._patience = patience
        self._example_seconds = 0.0

    def _seconds(self, at_least: float) -> float:
        return self._patience or max(at_least, _TIMES_THE_EXAMPLE * self._example_seconds)

    def answer(self, values: Sequence[object], must_run: bool = False) -> tuple[list[Expected] | None, Trail]:
        """Eager's outputs on copies of the values, or None where it refuses them; and what it decided."""
        began = time.monotonic()
        with followed(None if must_run else self._seconds(_PATIENCE)) as trail:
            returned, accepted = self._returned(values, must_run)
        if must_run:
            self._example_seconds = time.monotonic() - began
        return (self._flatten(returned) if accepted else None), trail

    def outputs_and_ways(self, values: Sequence[object]) -> tuple[list[Expected] | None, frozenset[object]]:
        """The same, with no more of what it decided than which ways were taken."""
        outputs, trail = self.answer(values)
        return outputs, frozenset(trail.ways)

    def other_outputs(self, values: Sequence[object]) -> list[Expected] | None:
        """What eager gives when it is run otherwise; None where there is no other way, or it is refused."""
        if self._otherwise is None:
            return None
        returned, accepted = self._returned(values, must_run=False, run=self._otherwise)
        return self._flatten(returned) if accepted else None

    def precisely(self, values: Sequence[object]) -> tuple[list[Expected] | None, Trail]:
        """What the model gives in float64, and what it decides then; None where it does not run in float64."""
        with followed(self._seconds(_PATIENCE)) as trail:
            returned, accepted = None, False
            if self._precisely is not None:
                returned, accepted = self._returned(values, must_run=False, run=self._precisely)
        return (self._flatten(returned) if accepted else None), trail

    def guided(self, values: Sequence[object]) -> Trail | None:
        """What eager decides on these values, with every test measured; None where it refuses them."""
        with followed(self._seconds(_PATIENCE_IN_SEARCH), guide=True) as trail:
            accepted = self._returned(values, must_run=False)[1]
        return trail if accepted else None

    def _returned(self, values: Sequence[object], must_run: bool, run: RunEager | None = None) -> tuple[object, bool]:
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]
        try:
            with warnings.catch_warnings():
                if not must_run:  # what torch has to say to inputs of our making is no concern of the user's
                    warnings.simplefilter("ignore")
                return (run or self._run_eager)(copies), True
        except Overstayed:
            return None, False
        except Exception:
            # Whatever a model raises on an input of our making means that the input is none of its own.
            if must_run:
                raise
            return None, False
