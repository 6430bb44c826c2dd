"""Statements that are traced once for each way through a branch in what they call (see rewrite/forks.py).

Where a branch parts for longer than its block, nothing of Python's can take up the rest of the program twice. So the
statement is begun anew: a first run comes to the branch and gives its test, and is undone; then an `If` is made of that
test, whose arms are the whole statement, each with the way through that branch settled. What the first run recorded up
to the branch belongs to the scope around the `If`, and the arms take it from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueport.capture import limits
from trueport.capture.joins.meeting import Arm
from trueport.capture.recording.flow import Flow
from trueport.capture.recording.tracer import Recorded, Reuse
from trueport.capture.values.maybe import known
from trueport.errors import Unwinding
from trueport.rewrite.running.runtime import BlockNames
from trueport.source import Place


@dataclass(frozen=True)
class SettledArm:
    """The way through a branch that is settled, and where the branch stands."""

    holds: bool
    place: Place


@dataclass
class ForkRun:
    """One run of a forked statement: the ways that are settled, by the number of the branch that is met."""

    settled: Mapping[int, SettledArm]
    catches: tuple[type[Exception], ...] = ()
    """The errors after which it goes on."""
    met: int = 0
    facts: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    recorded: Recorded = field(default_factory=list)

    def next_number(self) -> int:
        self.met += 1
        return self.met - 1


class Forking(Unwinding):
    """A branch wants the statement around it to be run for each of its ways. No `except Exception` stops it."""

    def __init__(self, run: ForkRun, number: int, test: Any, place: Place) -> None:
        super().__init__(f"branch {number}")
        self.run, self.number, self.test, self.place = run, number, test, place
        self.nodes: list[Any] = []


class Branching(Flow, Protocol):
    """Whoever traces arms (control_flow.py)."""

    def trace_arm(self, arm: Callable[[], Any], state: BlockNames, before: tuple[Any, ...]) -> Arm:
        """Run an arm into a region of its own, note what it left behind, and undo that."""

    def take(self, arm: Arm, state: BlockNames) -> Any:
        """Only this arm can run: its nodes belong to the scope around it."""

    def branch(
        self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any], state: BlockNames, told: bool = True
    ) -> Any:
        """`told` is off where the arms come to the test themselves: what it tells is not known before."""


class Forks:
    """The forked statements that run just now."""

    def __init__(self, control: Branching) -> None:
        self._control = control
        self._runs: list[ForkRun | None] = [None]
        self._left = int(limits.FORKINGS)

    @property
    def run(self) -> ForkRun | None:
        """The innermost forked statement; None in a round of a loop, which cannot be taken up again outside of it."""
        return self._runs[-1]

    @contextlib.contextmanager
    def running(self, run: ForkRun | None) -> Iterator[None]:
        self._runs.append(run)
        try:
            yield
        finally:
            self._runs.pop()

    def fork(self, run: ForkRun | None, number: int, test: Any) -> None:
        """Begin the statement anew, for each way through this branch. Returns where there is none, or too many ways."""
        demand = self._control.tracer.demand
        if run is None or demand.forks_off:
            return
        if len(run.settled) >= limits.WAYS:
            demand.reached.append(limits.WAYS)
        elif self._left <= 0:
            demand.reached.append(limits.FORKINGS)
        else:
            self._left -= 1
            raise Forking(run, number, test, self._control.tracer.places.here())

    def take(self, run: ForkRun, number: int, test: Any, state: BlockNames) -> bool:
        """The way through a branch that is settled in this run; what it tells is known from here on."""
        holds, place = run.settled[number].holds, run.settled[number].place
        if self._control.tracer.places.here() != place:  # its number is another's
            self._control.tracer.demand.give_up_forks()
        self._control.tracer.reuse = None
        run.facts.enter_context(self._control.tracer.symbols.where(test, holds))
        state.put(tuple(known(value, test, holds) for value in state.get()))
        return holds

    def expects(self, kind: type[Exception]) -> bool:
        """Whether a statement that runs just now goes on after such an error."""
        return any(run is not None and issubclass(kind, run.catches) for run in self._runs)

    def trace(self, block: Callable[[], Any], state: BlockNames, catches: tuple[type[Exception], ...] = ()) -> Any:
        return self._traced(block, state, ForkRun({}, catches), [])

    def _traced(self, block: Callable[[], Any], state: BlockNames, run: ForkRun, before: Recorded) -> Any:
        control = self._control
        try:
            arm = control.trace_arm(lambda: self._begun(block, run, before), state, state.get())
        except Forking as fork:
            if fork.run is not run:
                raise
            test, number, place, nodes = fork.test, fork.number, fork.place, fork.nodes
        else:
            returned = control.take(arm, state)
            if arm.raised is not None:
                raise arm.raised
            return returned
        control.tracer.regions[-1].nodes += nodes

        def way(holds: bool) -> Callable[[], Any]:
            settled = {**run.settled, number: SettledArm(holds, place)}
            return lambda: self._traced(block, state, ForkRun(settled, run.catches), run.recorded)

        # Not before a run comes to the branch itself is it known which way it goes: what it asks until then is numbered
        # as in the first one.
        return control.branch(test, way(True), way(False), state, told=False)

    def _begun(self, block: Callable[[], Any], run: ForkRun, before: Recorded) -> Any:
        tracer = self._control.tracer
        region = tracer.regions[-1]
        with self.running(run), run.facts, tracer.recorded_in(region, run.recorded, Reuse(before, region)):
            try:
                return block()
            except Forking as fork:
                if fork.run is run:
                    fork.nodes = region.nodes
                raise
