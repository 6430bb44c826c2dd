"""Branches of rewritten code as `If` regions, and the other things that it asks of a trace (see rewrite/running)."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.branches.escapes import Escape
from trueport.capture.branches.forks import Forking, Forks
from trueport.capture.branches.questions import Questions
from trueport.capture.branches.short_circuits import combined, needs_no_branch
from trueport.capture.containers import stepping
from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.sequences import OpenSequence, is_plain_iterator, opened
from trueport.capture.containers.stepping import Remembered
from trueport.capture.effects.last_values import last_values
from trueport.capture.effects.world import World
from trueport.capture.joins.meeting import Arm
from trueport.capture.joins.merging import Merging
from trueport.capture.loops.loops import Loops
from trueport.capture.python import (  # noqa: F401  (they register themselves)
    builtin_containers,
    builtin_sequences,
    made_by_type,
    polyfills,
)
from trueport.capture.python.builtin_functions import traced_builtin
from trueport.capture.recording.tracer import Tracer
from trueport.capture.stops.places import calling_frame
from trueport.capture.stops.raising import OF_OPERATORS, as_raised, catcher, is_refused_by_eager, refuse_if_caught
from trueport.capture.stops.refusals import refuse_endless
from trueport.capture.values.maybe import known
from trueport.capture.values.stores import fill, held_disagreement
from trueport.errors import ExportError
from trueport.graph.regions import Control, Node, Returns
from trueport.rewrite.forks import Fork
from trueport.rewrite.running.asking import nothing
from trueport.rewrite.running.runtime import OF_A_TEST, RUNTIME_FUNCTIONS, BlockNames
from trueport.torch_internals import from_functional
from trueport.torch_internals.symbolic import is_traced, number_kind, statement_of

_OF_SIZES = (*OF_OPERATORS, ZeroDivisionError)
"""What the sizes of the example may lead to in an arm that it does not come to: `stride = height // 16`."""


class ControlFlow(Questions):
    """What a running trace offers to rewritten code."""

    def __init__(self, tracer: Tracer, roots: Sequence[Any]) -> None:
        super().__init__(tracer)
        self.roots = roots
        """What any arm may change: the model, and the containers that are globals of the user's."""
        self.loops = Loops(self)
        self.forks = Forks(self)
        self._iterators: dict[int, tuple[Any, Remembered]] = {}

    # --- branches

    def branch(
        self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any], state: BlockNames, told: bool = True
    ) -> Any:
        """`told` is off where the arms come to the test themselves: what it tells is not known before."""
        refuse_endless(self.tracer.places, len(self.tracer.regions), test)
        run = self.forks.run
        number = -1 if run is None else run.next_number()
        said = statement_of(test)
        answer = None if said is None else self.tracer.symbols.shapes.settled(said)
        if answer is not None:
            return then() if answer else orelse()
        if run is not None and number in run.settled:
            return then() if self.forks.take(run, number, test, state) else orelse()
        if self.tracer.demand.is_fork(self.tracer.places):
            self.forks.fork(run, number, test)
        before = state.get()
        place = self.tracer.places.here()
        mark = self.tracer.symbols.shapes.mark()
        both = ((then, True), (orelse, False))
        try:
            arms = [self._trace_where(test if told else None, holds, arm, state, before) for arm, holds in both]
        except Forking as inner:
            if run is not None and inner.run is run:  # a branch in an arm: this one has to be settled before
                raise Forking(run, number, test, place) from None
            raise
        if arms[0].raised and arms[1].raised:
            kinds = [type(arm.raised) for arm in arms if arm.raised is not None]
            for kind in kinds if len(set(kinds)) > 1 else ():  # each may be caught by another `except`
                self.raised(kind, lambda: self.forks.fork(run, number, test))
            raise arms[0].raised
        for arm, other in (arms, reversed(arms)):
            if arm.raised is not None:
                self.raised(type(arm.raised), lambda: self.forks.fork(run, number, test))
                self.drop(f"the arm that raises {type(arm.raised).__name__} is dropped: ONNX cannot raise", place)
                taken = self.take(other, state)
                self.relied_on(test, other is arms[0])
                return taken
        if state is OF_A_TEST and needs_no_branch(test, arms):
            for arm in arms:
                self.take(arm, state)
            return combined(test, arms)
        merging = Merging(self.tracer, place, mark, arms[0], arms[1], self._again(), test, state is OF_A_TEST)
        return self._join(merging, state)

    def _trace_where(
        self, test: Any, holds: bool, arm: Callable[[], Any], state: BlockNames, before: tuple[Any, ...]
    ) -> Arm:
        """An arm, with what is known because the test holds there, or does not."""
        with self.tracer.symbols.where(test, holds), self.relying():
            return self._fitting(lambda e: self.trace_arm(arm, state, before, lambda v: known(v, test, holds), e))

    def _fitting(self, trace: Callable[[bool], Arm]) -> Arm:
        """An arm; where an operator refuses the example's sizes, with others: the example does not come there.

        `if y.sum() > 0 and x.shape[0] > 3: x[3]`. Where eager refuses them all, it raises in this arm.
        """
        try:
            return trace(False)
        except RecursionError:
            raise
        except _OF_SIZES as failure:
            shapes, refusals = self.tracer.symbols.shapes, [is_refused_by_eager(failure)]
            for sizes in shapes.other_examples():
                with shapes.shown(sizes):
                    try:
                        return trace(False)
                    except _OF_SIZES as again:
                        refusals.append(is_refused_by_eager(again))
            if len(refusals) == 1 or not all(refusals):
                raise
            return trace(True)

    def _again(self) -> Callable[[], None]:
        """What a value on which the arms disagree does when it is used."""
        frame = self.tracer.places.asking_frame()
        code, line = (frame.f_code, frame.f_lineno) if frame is not None else (None, 0)
        callers = [(each.f_code, each.f_lineno) for each in self.tracer.places.users_frames()]

        def again() -> None:
            self.tracer.demand.want_tail(code, line)
            self.tracer.demand.want_ways(code, line, callers)

        return again

    def trace_arm(
        self,
        arm: Callable[[], Any],
        state: BlockNames,
        before: tuple[Any, ...],
        in_arm: Callable[[Any], Any] = lambda v: v,
        ends: bool = False,
    ) -> Arm:
        """Run an arm into a region of its own, note what it left behind, and undo that.

        `in_arm` gives what a value is known to be where the arm runs. `ends` where an operator ends it in eager, too.
        """
        world = World([*self.roots, *before, *state.look()], [arm], state.names)
        sharing = self.tracer.writes.sharing
        try:
            with self.tracer.region() as region, sharing.arm() as shared, self.tracer.writes.watched() as writes:
                traced = Arm(region, shared=shared, was_there=world.holds)
                state.put(tuple(in_arm(value) for value in before))
                try:
                    traced.returned = in_arm(arm())
                except Exception as failure:
                    traced.raised = failure if ends else as_raised(failure, self.tracer.places)
                    if traced.raised is None:
                        raise
                traced.after = tuple(in_arm(value) for value in state.get())
                written = self.tracer.writes.written_here()
                traced.changes = tuple(world.changes(written))
                contents: list[Any] = [change.parts for change in traced.changes]
                if written:  # the other arm may put something else in their place
                    contents.append(world.tensors())
                traced.values = last_values(self.tracer, traced.returned, traced.after, contents)
            traced.writes = tuple(writes)
        finally:
            world.restore()
            state.put(before)
        return traced

    def forked(self, block: Callable[[], Any], state: BlockNames) -> Any:
        return self.forks.trace(block, state)

    def take(self, arm: Arm, state: BlockNames) -> Any:
        """Only this arm can run: its nodes belong to the scope around it."""
        self.tracer.regions[-1].nodes += arm.region.nodes
        self.tracer.writes.sharing.join(arm.shared)
        state.put(arm.after)
        for change in arm.changes:
            change.put()
        for write in arm.writes:
            self.tracer.writes.put(write.base, write.after)
        return arm.returned

    def _join(self, merging: Merging, state: BlockNames) -> Any:
        then, orelse = merging.then, merging.orelse
        self.tracer.writes.sharing.join(then.shared, orelse.shared)
        returned = merging.merge(then.returned, orelse.returned, "what it returns")
        after = tuple(
            merging.merge(a, b, name) for a, b, name in zip(then.after, orelse.after, state.names, strict=True)
        )
        contents = merging.contents()
        if held_disagreement([returned, *(content for _, content in contents)]) is not None:
            # A caller may ask `is None`, which nobody hears of unless it is rewritten.
            self.tracer.demand.require_callers(self.tracer.places)
        written = merging.written()
        if merging.results:
            for arm, outputs in ((then, merging.then_outputs), (orelse, merging.else_outputs)):
                arm.region.outputs = [merging.filled(output, arm.region) for output in outputs]
            made, regions = tuple(merging.results), (then.region, orelse.region)
            decides = self.predicate(merging.test)
            node = Node(Control.IF, (decides,), {}, made, Returns.TUPLE, merging.place, regions)
            self.tracer.regions[-1].nodes.append(node)
        state.put(after)
        for container, content in contents:
            fill(container, content)
        for base, result in written:
            self.tracer.writes.put(base, from_functional(result))
        return returned

    # --- loops

    def repeat_while(self, test: Callable[[], Any], first: Any, body: Callable[[], Any], state: BlockNames) -> None:
        def step(_iteration: Any) -> Any:
            with self.tracer.symbols.where(self._test_of_a_round(test, first, state), True):
                body()
            return self.truth(test())

        if not self.loops.run(step, state, trips=None, first=first, blocks=(test, body)):
            self._when(True if first is None else first, lambda: self._while_after_first(test, body, state), state)

    def _test_of_a_round(self, test: Callable[[], Any], first: Any, state: BlockNames) -> Any:
        """What holds when a round begins: the test, where numbers are all that it compares."""
        if number_kind(first) is not bool:
            return None
        return self.trace_arm(lambda: self.truth(test()), state, state.get()).returned

    def _knowing(self, fact: Any) -> contextlib.AbstractContextManager[None]:
        said = statement_of(fact)
        return contextlib.nullcontext() if said is None else self.tracer.symbols.shapes.knowing(said)

    def went_step_by_step(
        self, over: Any, body: Callable[[Any], None], stop: Callable[[], Any], state: BlockNames
    ) -> bool:
        steps = stepping.stepper(self, over)
        if steps is not None:
            stepping.go_through(self, steps, body, stop, state)
        return steps is not None

    def _while_after_first(self, test: Callable[[], Any], body: Callable[[], Any], state: BlockNames) -> None:
        body()
        RUNTIME_FUNCTIONS.while_(test, body, state)

    def _when(self, test: Any, then: Callable[[], Any], state: BlockNames) -> None:
        truth = self.truth(test)
        if truth is True:
            then()
        elif truth is not False:
            self.branch(truth, then, nothing, state)

    def becomes_traced(self, round: Callable[[], Any], state: BlockNames) -> bool:
        """One round is traced and forgotten: `while True` with a traced `break` is one Loop from its first round on.

        More than one where a size decides that is known for the first rounds: `h = x[:1]; while h.shape[0] < 10:`.
        """

        def rounds() -> Any:
            for _ in range(limits.ROUNDS_TRIED):
                test = round()
                truth = self.truth(test)
                if truth is not True or test is True:
                    break
            return truth

        with self.forks.running(None):  # what is tried here belongs to no statement that could be begun anew
            tried = self.trace_arm(rounds, state, state.get())
        return tried.raised is None and is_traced(tried.returned)

    def repeat_for(
        self, sequence: Any, body: Callable[[Any], None], stop: Callable[[], Any], state: BlockNames
    ) -> None:
        if sequence.most is not None:
            self._at_most(sequence, body, stop, state)
            return

        def step(iteration: Any) -> Any:
            with self._knowing(None if sequence.length is None else iteration < sequence.length):
                body(sequence.at(iteration))
            return self.negate(stop())

        if not self.loops.run(step, state, trips=sequence.length, first=None, blocks=(body, stop)):
            self._when(sequence.length > 0, lambda: self._for_after_first(sequence, body, stop, state), state)

    def _for_after_first(
        self, sequence: Any, body: Callable[[Any], None], stop: Callable[[], Any], state: BlockNames
    ) -> None:
        """The first round on its own, and the others as a loop."""
        body(sequence.at(0))
        others = OpenSequence(sequence.length - 1, lambda i: sequence.at(i + 1))
        self._when(self.negate(stop()), lambda: self.repeat_for(others, body, stop, state), state)

    def _at_most(self, sequence: Any, body: Callable[[Any], None], stop: Callable[[], Any], state: BlockNames) -> None:
        """As many rounds as there can be, each only where there is an item."""
        for count in range(sequence.most):
            go_on: Any = count < sequence.length
            if count:
                go_on = RUNTIME_FUNCTIONS.and_(go_on, lambda: self.negate(stop()))
            truth = self.truth(go_on)
            if truth is False:
                return
            self._when(truth, lambda count=count: body(sequence.at(count)), state)  # type: ignore[misc]

    def new_list(self, items: Iterable[Any]) -> list[Any]:
        return TracedList(items)

    def new_dict(self, parts: Iterable[Any]) -> Any:
        return self.made_dict(TracedDict(), tuple(parts), {})

    def collect(self, sequence: Any, each: Callable[[Any], Any]) -> Any:
        """A comprehension over an open sequence: a loop that fills a list."""
        collected = TracedList()
        state = BlockNames(lambda: (collected,), nothing, ("the list",), tuple)
        self.repeat_for(sequence, lambda item: collected.append(each(item)), lambda: False, state)
        return collected

    def endless(self, over: Any, round: Callable[[Any], Any], state: BlockNames) -> Any:
        if not isinstance(over, itertools.count):
            return None
        sequence = opened(over)
        return sequence if self.becomes_traced(lambda: round(sequence.at(0)), state) else None

    def ended_early(self, over: Any, body: Callable[[Any], None], stop: Callable[[], Any], state: BlockNames) -> bool:
        """`for _ in range(60): … if small: break` is one Loop, and not sixty branches.

        Where a round needs its number as a plain one, the rounds are written out like those of any plain range.
        """
        if not isinstance(over, range) or len(over) < limits.ROUNDS_WRITTEN_OUT:
            return False

        def first() -> Any:
            body(over[0])
            return stop()

        if not self.becomes_traced(first, state):
            return False
        sequence = OpenSequence(len(over), lambda i: over.start + i * over.step)
        before, self.plain_rounds = self.plain_rounds, True
        try:
            self.repeat_for(sequence, body, stop, state)
        except (ExportError, TypeError, ValueError, LookupError, RuntimeError, AttributeError) as failure:
            self.tracer.swallowed.forget(failure)
            return False  # whatever is the matter comes up again where the rounds are written out
        finally:
            self.plain_rounds = before
        return True

    # --- errors that one arm of a branch raises, where the user's code goes on with them

    def raised(self, kind: type[Exception], fork: Callable[[], None]) -> None:
        """One arm raises: where the user's code would go on with the error, the statement that does runs for each."""
        if self.forks.expects(kind):
            fork()
        if issubclass(kind, StopIteration):
            self.tracer.demand.require_callers(self.tracer.places)  # the loop that goes on after it
        caught = catcher(kind, self.tracer.places)
        if caught is not None:
            if caught.loop in self.tracer.demand.escapes:
                self.tracer.demand.want_escape(caught.loop, kind)
            self.tracer.demand.want_fork(caught.code, Fork(caught.line, rest=False))
            fork()
            if caught.loop is not None:
                self.tracer.demand.want_escape(caught.loop, kind)
        refuse_if_caught(kind, self.tracer.places)

    def escape(self, state: BlockNames) -> Escape | None:
        frame = calling_frame()
        kinds = self.tracer.demand.escapes.get((frame.f_code.co_filename, frame.f_lineno))
        return None if kinds is None else Escape(self, tuple(kinds), state)

    # --- other questions

    def builtin(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        return traced_builtin(self, function) or self.checked(function) or self.by_flags(function)

    def remembered(self, items: Any) -> Any:
        """A plain iterator as one that can be put back to where it was; anything else as it is."""
        if not is_plain_iterator(items):
            return items
        return self._iterators.setdefault(id(items), (items, Remembered(items, self.tracer)))[1]

    def remembered_already(self, items: Any) -> Any:
        """What remembers how far a plain iterator is, of which items were taken by hand; None where none were."""
        return self._iterators.get(id(items), (None, None))[1]

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if self.tracer.careful else tensor

    def may_be(self, made: torch.Tensor, parts: Iterable[torch.Tensor]) -> None:
        if self.tracer.careful:
            self.tracer.link(made, self.loops.written_by_others(made, parts))
