"""Blocks that rewritten code hands over to be run any number of times, or once: `while`, `for`, `with`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trueport.rewrite.running.asking import TRACE, BlockNames, Thunk, Trace, nothing


class Repeating:
    """The part of what rewritten code calls that runs blocks."""

    def while_(self, test: Thunk, body: Thunk, state: BlockNames) -> None:
        trace = TRACE.trace
        if trace is None:
            while test():
                body()
            return
        escape = trace.escape(state)
        if escape is not None:
            self._while(trace, lambda: escape.going(test), lambda: escape.round(body), escape.state)
            escape.leave()
        else:
            self._while(trace, test, body, state)

    @staticmethod
    def _while(trace: Trace, test: Thunk, body: Thunk, state: BlockNames) -> None:
        count = 0
        while True:
            truth = trace.truth(test())
            if not isinstance(truth, bool):
                trace.repeat_while(test, truth, body, state)
                return
            if not truth:
                return
            if count == 0 and trace.becomes_traced(lambda: (body(), test())[1], state):
                trace.repeat_while(test, None, body, state)
                return
            body()
            count += 1

    def for_(self, over: Iterable[Any], body: Callable[[Any], Any], stop: Thunk, state: BlockNames) -> None:
        trace = TRACE.trace
        if trace is None:
            for item in over:
                body(item)
                if stop():
                    return
            return
        escape = trace.escape(state)
        if escape is not None:
            self._for(trace, over, lambda item: escape.round(body, item), lambda: escape.stopped(stop), escape.state)
            escape.leave()
        else:
            self._for(trace, over, body, stop, state)

    @staticmethod
    def _for(trace: Trace, over: Iterable[Any], body: Callable[[Any], Any], stop: Thunk, state: BlockNames) -> None:
        if trace.went_step_by_step(over, body, stop, state):
            return
        generator = trace.generator_behind(over)
        if generator is not None:
            generator.push(body, stop)
            return
        sequence = trace.sequence(over)
        if sequence is None:
            sequence = trace.endless(over, lambda item: (body(item), stop())[1], state)
        if sequence is not None:
            trace.repeat_for(sequence, body, stop, state)
            return
        if trace.ended_early(over, body, stop, state):
            return
        for count, item in enumerate(over):
            if count:
                stopped = trace.truth(stop())
                if stopped is True:
                    return
                if stopped is not False:
                    trace.stopped_early(over, count)
                    go_on = trace.truth(trace.negate(stop()))
                    trace.branch(go_on, lambda item=item: body(item), nothing, state)  # type: ignore[misc]
                    continue
            body(item)

    @staticmethod
    def with_(manager: Any, body: Callable[[Any], Any]) -> None:
        """`with manager as item: body`, where a generator may be behind the manager that decides by traced values."""
        trace = TRACE.trace
        if trace is None or not trace.went_into(manager, body):
            with manager as item:
                body(item)
