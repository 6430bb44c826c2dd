"""Eager as the reference: its answers, and what it decided on the way to them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

import torch

from trueport.graph.regions import Graph, OpenItems, Switch, is_carried
from trueport.load.structures import StructureMismatch
from trueport.verify.decisions.tally import Relevant, Tally
from trueport.verify.decisions.trail import Overstayed, Trail, followed
from trueport.verify.inputs.work import Counted, Growth, Watched, Work
from trueport.verify.judging.compare import Expected

RunEager = Callable[[Sequence[object]], object]
"""Runs the model on one value per leaf. It may write to the values; it must not change the model."""
FlattenOutputs = Callable[[object], list[Expected]]
"""What eager returned, one value per output. Raises a TrueportError where that has another structure than it had."""

_UNITS = 300_000
_UNITS_IN_SEARCH = 60_000
_TIMES_THE_EXAMPLE = 50
_FEWEST = 200
"""A loop of eager that makes so many units of work (`work.py`), and so many times those of the example, counts as
endless: on inputs of our making it may well be (`while x.sum() < 100` of what shrinks)."""
_OF_A_ROUND = 100
_PATIENT = 8
"""After so many endless runs, a run gets no more than the fewest rounds: a model that ends on few inputs is not to be
waited for on all others."""


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
        most_decisions: int | None = None,
        otherwise: RunEager | None = None,
        precisely: RunEager | None = None,
        functions: Iterable[FunctionType] = (),
    ) -> None:
        self._run_eager, self._flatten = run_eager, flatten_outputs
        self.codes, self.functions = tuple(codes), tuple(functions)
        self._otherwise, self._precisely = otherwise, precisely
        self.tally = Tally(kept_alive)
        self._most_decisions = most_decisions
        self._example_decisions = 1
        self._has_loops = False
        self.work = Work()
        """Of a run on the example."""
        self.endless = 0
        """Runs that made more rounds than a run may."""
        self.out_of_time = 0
        """Runs that the clock ended."""

    def watch(self, values: Sequence[object]) -> Watched:
        """One run on the example, to see how much work it is and which numbers it decides by."""
        watched = Watched(values)
        ran = False
        with contextlib.suppress(Exception), watched, watched.lists():  # some models do not run under a mode
            ran = self._returned(values, must_run=False)[1]
        watched.sized_by_values |= not ran
        watched.trusts_offsets |= not ran
        return watched

    def works_like(self, watched: Watched) -> None:
        """How much work a run on the example is."""
        self.work = replace(watched.work, usual=Growth(rounds=float(self._has_loops)))

    def watch_larger(self, values: Sequence[object]) -> Work | None:
        """The work of one run on an input that is larger than the example; None where eager refuses it. Many runs of a
        model that forms all pairs, or triples, of a thousand rows would not end."""
        counted = Counted()
        with contextlib.suppress(Exception), counted, followed(self._decisions(_UNITS_IN_SEARCH)):
            if self._returned(values, must_run=False)[1]:
                return counted.work
        return None

    def _decisions(self, units: int) -> int:
        """How many a run may make: as many rounds like the example's as that much work is."""
        of_one = max(_OF_A_ROUND, self.work.units / self._example_decisions)
        most = max(units, _TIMES_THE_EXAMPLE * self.work.units) / of_one
        if self.endless >= _PATIENT:
            most = 2 * self._example_decisions
        return self._most_decisions or max(_FEWEST, int(most))

    def answer(self, values: Sequence[object], must_run: bool = False) -> tuple[list[Expected] | None, Trail]:
        """Eager's outputs on copies of the values, or None where it refuses them; and what it decided."""
        with followed(None if must_run else self._decisions(_UNITS)) as trail:
            returned, accepted = self._returned(values, must_run)
        if must_run:
            self._example_decisions = max(trail.decisions, 1)
            self._has_loops = bool(trail.trips)
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
        with followed(self._decisions(_UNITS)) as trail:
            returned, accepted = None, False
            if self._precisely is not None:
                returned, accepted = self._returned(values, must_run=False, run=self._precisely)
        return (self._flatten(returned) if accepted else None), trail

    def guided(self, values: Sequence[object]) -> Trail | None:
        """What eager decides on these values, with every test measured; None where it refuses them."""
        with followed(self._decisions(_UNITS_IN_SEARCH), guide=True) as trail:
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
            self.endless += 1
            return None, False
        except TimeoutError:
            if must_run:
                raise
            self.out_of_time += 1
            return None, False
        except Exception:
            # Whatever a model raises on an input of our making means that the input is none of its own.
            if must_run:
                raise
            return None, False


def expected_outputs(graph: Graph, eager: Any) -> list[Expected]:
    """Eager's results, one for each output of the ONNX model: what forward returned, then the state that was lifted."""
    returned, state = eager
    values = graph.returns.flatten(returned)
    outputs = graph.outputs[: len(values)]
    for value, output in zip(values, outputs, strict=True):
        if isinstance(output.value, Switch) and (type(value), value) != (type(output.constant), output.constant):
            raise StructureMismatch(f"`{output.name}` is {value!r} instead of {output.value.value!r}")
    carried = [
        _as_tensor(output.value, value)
        for value, output in zip(values, outputs, strict=True)
        if is_carried(output.value)
    ]
    return [*carried, *(state[name] for name in graph.lifted)]


def _as_tensor(output: Any, value: Any) -> Any:
    """A list of Python numbers whose length is open is one tensor of them in ONNX."""
    numbers = isinstance(output, OpenItems) and output.number is not None
    return torch.tensor(value, dtype=output.rows.dtype) if numbers else value
