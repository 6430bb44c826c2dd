"""Loops of traced length as `Loop` regions.

What a round of the loop changes is found by tracing one: at first everything is taken to stay as it is; what turns out
to change is carried from round to round, a size that changes is left open, and the body is traced again until nothing
new turns up. Everything that the body reads and does not change is simply a value of the scope around it.

Views that rounds of a loop put into a list, while they write what the views show.

    for t in range(n):
        z[t] = step(z[t])
        out.append(z[t])        each round writes a row of its own: nobody writes it again
        z += 1                  this one changes what earlier rounds put into the list

A list of open length holds values and no views. The first is let through, and of the second the list is out of date.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from trueport.capture import limits
from trueport.capture.containers.lists import Unfilled
from trueport.capture.loops.last_time import LastTime, Outermost, is_linked_anew
from trueport.capture.loops.learning import Learner
from trueport.capture.loops.plan import FirstRoundDiffers, Plan
from trueport.capture.loops.results import Results
from trueport.capture.loops.rounds import Rounds, Step
from trueport.capture.recording.flow import Flow
from trueport.capture.recording.sharing import Memory
from trueport.capture.recording.tracer import Tracer
from trueport.graph.regions import Node, Number, Region, Value
from trueport.rewrite.running.runtime import BlockNames
from trueport.torch_internals.symbolic import expr_of

aten = torch.ops.aten

_OTHER_AXES = (aten.unsqueeze.default, aten.squeeze.dim)
"""The same row, under another number of axes."""


@dataclass(frozen=True)
class OpenRound:
    """A round that is being traced: its region, its number, and the point in the trace at which it began."""

    region: Region
    iteration: sympy.Symbol
    mark: int

    def is_own_row(self, tracer: Tracer, view: torch.Tensor) -> bool:
        """Whether a view is a row that no other round has, of a tensor of which this round writes nothing else."""
        wrapper = tracer.adopt_all(view)
        shown, base = self._maker(tracer.value(wrapper)), tracer.value(tracer.writes.base(wrapper))
        while shown is not None and shown.op in _OTHER_AXES:
            shown = self._maker(shown.args[0])
        if shown is None or shown.op is not aten.select.int or not self._differs(tracer, _index(shown.args[1:])):
            return False
        while (made := self._maker(base)) is not None:
            if made.op is not aten.select_scatter.default or _index(made.args[2:]) != _index(shown.args[1:]):
                return False
            base = made.args[0]
        return True

    def _maker(self, value: Value) -> Node | None:
        return next((node for node in reversed(self.region.nodes) if value in node.outputs), None)

    def _differs(self, tracer: Tracer, index: Any) -> bool:
        """Whether an index is another one in each round."""
        if index is None:
            return False
        step = sympy.expand(index.subs(self.iteration, self.iteration + 1) - index)
        others = index.free_symbols - {self.iteration}
        varies = any(tracer.symbols.shapes.made_since(symbol, self.mark) for symbol in others)
        return bool(step.is_number and step != 0 and not varies)


def _index(args: tuple[Any, ...]) -> sympy.Expr | None:
    """The traced number by which a row is taken along the first axis."""
    axis, index = args[:2]
    return index.expr if axis == 0 and isinstance(index, Number) else None


class Loops:
    """Traces loops for one trace."""

    def __init__(self, control: Flow) -> None:
        self._control = control
        self._tracer = control.tracer
        self._rounds: list[OpenRound] = []
        self._running: list[LastTime] = []
        """The loops that are traced just now, outermost first."""
        self.rows_shown: dict[Memory, list[torch.Tensor]] = {}
        """By what holds items of a list: the views that it stands for, of what rounds write, each its own row."""

    def written_by_others(self, made: torch.Tensor, parts: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """The parts of a list's tensor, without those of which only the present round writes what they show."""
        tracer, others = self._tracer, []
        here = self._rounds[-1] if self._rounds and self._rounds[-1].region is tracer.regions[-1] else None
        shown = self.rows_shown.setdefault(tracer.memory_of(made), [])
        for part in parts:
            shown += self.rows_shown.get(tracer.memory_of(part), ())
            if here is not None and not tracer.is_whole(part) and here.is_own_row(tracer, part):
                shown.append(part)
            else:
                others.append(part)
        return others

    @contextlib.contextmanager
    def round(self, region: Region, iteration: Any, mark: int) -> Iterator[None]:
        self._rounds.append(OpenRound(region, expr_of(iteration), mark))
        try:
            yield
        finally:
            self._rounds.pop()

    def run(self, step: Step, state: BlockNames, trips: Any, first: Any, blocks: Sequence[Any]) -> bool:
        """False where the first round is another than the others: it has to be traced on its own."""
        place = self._tracer.places.here()

        def traced(last_time: LastTime) -> bool:
            self._running.append(last_time)
            try:
                return self._attempts(Plan(self._control, state, place, blocks), last_time, step, trips, first)
            finally:
                self._running.pop()

        with self._control.forks.running(None):
            if self._running:
                return traced(self._running[-1].inner(place))
            outermost = Outermost(self._tracer.symbols.shapes.mark(), self._tracer.writes.mark())
            try:
                return traced(LastTime(outermost))
            except Exception as failure:  # also one of the user's, raised for a kind that was too narrow so far
                if not outermost.remembered:
                    raise
                self._tracer.swallowed.forget(failure)
            return traced(LastTime(replace(outermost, remembers=False)))

    def _attempts(self, plan: Plan, last_time: LastTime, step: Step, trips: Any, first: Any) -> bool:
        known = last_time.begin(plan)
        rounds, learner = Rounds(plan), Learner(plan)
        first_round = False
        for _ in range(limits.LOOP_ATTEMPTS):
            last_time.round_begins()
            try:
                traced = rounds.trace(step, 0 if first_round else None)
                learned = learner.learn(traced)
            except FirstRoundDiffers as differs:
                if differs.plan is not plan:
                    raise
                return False
            except Unfilled:
                if first_round:
                    raise
                first_round = True  # a list that only later rounds read: the very first round tells what is put into it
                continue
            learned |= last_time.unsettled or (known and is_linked_anew(plan, traced))
            around = self._running[:-1]
            if learned and not first_round and around and last_time.puts_off(plan):
                for outer in around:
                    outer.unsettled = True
                learned = False
            if not learned and not first_round:
                last_time.remember(plan)
                Results(plan, traced).finish(trips, first, learner.tangles)
                return True
            first_round = known = False
        return plan.give_up()
