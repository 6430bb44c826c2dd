"""`deque`, `defaultdict`, `OrderedDict`, `iter` and the like: containers and iterators that rewritten code makes."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from trueport.capture.containers.deques import TracedDeque
from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.generators import Generated
from trueport.capture.containers.lists import is_open
from trueport.capture.containers.ordered_dicts import TracedOrderedDict
from trueport.capture.containers.stepping import (
    ByPosition,
    OfOpenLength,
    OfTheUser,
    Stepper,
    StepResult,
)
from trueport.capture.containers.tables import MakingDict
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.python.polyfills.of_builtins import until
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import Chosen, each_of
from trueport.rewrite.running.runtime import NO_NAMES, RUNTIME_FUNCTIONS, TRACE


@traced_for(deque)
def _deque(_: Flow, items: Any = (), maxlen: int | None = None) -> Any:
    if TRACE.trace is None:
        return deque(items, maxlen)
    given = RUNTIME_FUNCTIONS.traced(list)(items)
    return TracedDeque(given if is_open(given) else list(given), maxlen)


@traced_for(defaultdict)
def _defaultdict(control: Flow, factory: Any = None, *args: Any, **kwargs: Any) -> Any:
    if factory is None:
        return defaultdict(factory, *args, **kwargs)
    return control.made_dict(MakingDict(RUNTIME_FUNCTIONS.traced(factory), defaultdict), args, kwargs)


@traced_for(Counter)
def _counter(control: Flow, *args: Any, **kwargs: Any) -> Any:
    if args and control.sequence(args[0]) is not None and not control.is_table_here():
        control.want_table_here()
    return control.made_dict(MakingDict(int, Counter), args, kwargs)


@traced_for(dict)
def _dict(control: Flow, *args: Any, **kwargs: Any) -> Any:
    return control.made_dict(TracedDict(), args, kwargs)


@traced_for(OrderedDict)
def _ordered_dict(control: Flow, *args: Any, **kwargs: Any) -> Any:
    return control.made_dict(TracedOrderedDict(), args, kwargs)


@traced_for(iter)
def _iter(control: Flow, *args: Any) -> Any:
    if len(args) == 2:
        return until(*args)
    if isinstance(args[0], Stepper):
        return args[0]
    sequence = control.sequence(args[0]) if control.generator_behind(args[0]) is None else None
    return iter(*args) if sequence is None else OfOpenLength(sequence, args[0])


@traced_for(next)
def _next(control: Flow, items: Any, *default: Any) -> Any:
    if isinstance(items, Chosen):
        given = items.able(lambda one: isinstance(one, Iterator | Stepper | Generated), TypeError)
        return each_of(given, lambda one: _next(control, one, *default))
    items = control.remembered(items)
    if isinstance(items, ByPosition):
        if default:
            return RUNTIME_FUNCTIONS.ternary(items.has_more, items.take, lambda: default[0])
        if items.has_more is False:
            return next(iter(()))  # raises as Python does
        control.check_if_caught(lambda: items.has_more, StopIteration)
        return items.take()
    own = control.own_method(items, "__next__")
    if own is None:
        return items.first(*default) if hasattr(items, "first") else next(items, *default)
    return own() if not default else _or_default(control, items, own, default[0])


def _or_default(control: Flow, items: Any, own: Callable[[], Any], default: Any) -> Any:
    step = StepResult()
    OfTheUser(items, own).advance(control, step, step.beside(NO_NAMES, lambda: items))
    return RUNTIME_FUNCTIONS.ternary(step.found, lambda: step.item, lambda: default)
