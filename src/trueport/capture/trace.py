"""capture: the user's own `forward`, run once on tensors without data, becomes a graph of regions."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.branches.control_flow import ControlFlow
from trueport.capture.branches.higher_order import higher_order_functions
from trueport.capture.effects.caches import caches_left_alone
from trueport.capture.effects.snapshot import AttributeSnapshot, Surroundings
from trueport.capture.effects.state import StateMode, settle_state
from trueport.capture.module_calls import module_calls
from trueport.capture.python.lending import lent_builtins
from trueport.capture.python.number_methods import numbers_like_pythons
from trueport.capture.recording.tracer import Tracer
from trueport.capture.recording.ways import IsLeaf
from trueport.capture.recording.weights import MemoryKey
from trueport.capture.returned import counted, outputs_of, told_of
from trueport.capture.stops.demand import Demand
from trueport.capture.stops.failures import diagnose, ends_the_call, place_of
from trueport.capture.stops.places import Places
from trueport.capture.stops.refusals import naming
from trueport.capture.stops.restarts import NeedsRewrite, Restarting, WritesInPlace
from trueport.capture.torch_calls import TorchCalls
from trueport.decompositions.arrays import arrays_of_traced_numbers
from trueport.decompositions.registry import layers_decomposed
from trueport.diagnostics.base import Diagnostic
from trueport.errors import ExportError, Unwinding
from trueport.graph.regions import Graph, GraphInput, GraphOutput, ModuleCall, Number, Restart, is_carried
from trueport.graph.tidy import tidy
from trueport.graph.validate import InvalidGraph, check_if_asked
from trueport.load.job import Job, sizes_in
from trueport.load.unscripted import unscripted
from trueport.load.values import LeafKind
from trueport.rewrite.functions import Rewriting
from trueport.rewrite.readable import readable
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals import (
    einsum_in_order,
    lists_as_calls,
    no_inference_tensors,
    nothing_to_disable,
    quiet_fake_tensors,
    saying_exporting,
    size_oblivious,
    unvalidated_distributions,
)
from trueport.torch_internals.flex import flex_attention_in_operators
from trueport.torch_internals.releases import guard_of_no_thread
from trueport.torch_internals.symbolic import symbol_behind

_LOG = logging.getLogger("trueport.capture")
"""A line for each trace that was begun anew. Nobody hears it unless asked for: `--debug` asks."""
_SMALLEST_HINT = 2
_ONE_AT_A_TIME = threading.RLock()
"""Torch keeps some of what a trace has to set (`is_exporting()`, how sizes are asked about) for the whole process."""


def capture(
    job: Job,
    is_leaf: IsLeaf,
    state: StateMode = StateMode.REFUSE,
    sizes: Mapping[str, int] | None = None,
    *,
    libraries: bool = False,
    calls: bool = False,
    exporting: bool = True,
    before: Graph | None = None,
) -> Graph:
    """Trace the model of `job`. Raises ExportError where the trace cannot go on.

    `sizes` overrides what the free sizes are while tracing; by default the example's, but never 0 or 1, which
    torch would treat as special. With `libraries`, both sides are kept also of what an installed library decides by a
    free size. With `calls`, it is noted by which call of which module each node came about. Without `exporting`, code
    that asks whether it is being exported is told what eager is told. `before` is an earlier capture of the same model:
    the functions that it found need not be found again.
    """
    with _ONE_AT_A_TIME, guard_of_no_thread(), saying_exporting(exporting):
        return _capture(job, is_leaf, state, sizes or {}, libraries, calls, before)


def _capture(
    job: Job,
    is_leaf: IsLeaf,
    state: StateMode,
    sizes: Mapping[str, int],
    libraries: bool,
    calls: bool,
    before: Graph | None,
) -> Graph:
    rewriting = Rewriting()
    demand, careful = Demand(rewriting, libraries), False
    fickle: frozenset[MemoryKey] = frozenset()
    restarts: list[Restart] = []
    try:
        if before is not None:
            careful = before.careful
            demand.knows(before, job.model)
        for number in range(1, limits.TRACES + 1):
            try:
                with unscripted(job.model) as model, layers_decomposed(model):
                    graph = _trace(replace(job, model=model), is_leaf, state, sizes, careful, demand, fickle, calls)
                    rewritten = tuple(rewriting.rewritten)
                    tails = {code: rewriting.tails(code) for code in rewritten}
                    return replace(
                        graph,
                        rewritten=rewritten,
                        functions=rewriting.functions,
                        tails=tails,
                        one_sided=demand.one_sided,
                        careful=careful,
                        restarts=tuple(restarts),
                    )
            except Restarting as again:
                restarts.append(_noted(number, again))
                careful |= again.careful
                fickle |= again.fickle
                if isinstance(again, NeedsRewrite):
                    demand.rewrite(again, job.model)
        raise RuntimeError(f"the model did not settle: {limits.TRACES.reached}; {restarts[-1]}")
    except ExportError as refused:
        refused.diagnostics = tuple(naming(demand.reached, finding) for finding in refused.diagnostics)
        refused.rewritten = tuple(readable(code, rewriting.tails(code)) for code in rewriting.rewritten)
        raise
    finally:
        rewriting.end()


def _noted(number: int, again: Restarting) -> Restart:
    """One line for each trace that was not the last."""
    place = again.place or place_of(again.__traceback__, Places())
    restart = Restart(number, again.why, place.where)
    _LOG.debug("%s", restart)
    return restart


def _trace(
    job: Job,
    is_leaf: IsLeaf,
    state: StateMode,
    sizes: Mapping[str, int],
    careful: bool,
    demand: Demand,
    fickle: frozenset[MemoryKey],
    calls: bool,
) -> Graph:
    noted: list[ModuleCall] | None = [] if calls else None
    tracer = Tracer(job.model, is_leaf, careful, demand, fickle)
    snapshot, around = AttributeSnapshot(job.model), Surroundings(job.model)
    demand.begin()
    try:
        with (
            _modes(tracer),
            module_calls(job.model, tracer, noted),
            _control_flow(tracer, [job.model, *around.users]),
            lent_builtins(job.model),
            caches_left_alone(job.model, tracer.places, demand.through_caches),
            numbers_like_pythons(tracer.places, demand),
            arrays_of_traced_numbers(),
        ):
            arguments, inputs = _arguments(job, tracer, sizes)
            args, kwargs = job.call.build(arguments)
            tracer.places.begin(sys._getframe())
            returned = job.model(*args, **kwargs)
            demand.end()
            tracer.swallowed.bring_up()
            graph = _finish(job, tracer, inputs, returned, snapshot, state, (args, kwargs))
            return replace(graph, calls=tuple(noted or ()))
    except (ExportError, InvalidGraph, Restarting):
        demand.end()
        raise
    except Exception as failure:
        demand.end()
        demand.retry(failure, tracer.places)
        raise ExportError([diagnose(failure, tracer.places), *tracer.diagnostics.values()]) from failure
    except (KeyboardInterrupt, Unwinding):
        raise
    except BaseException as ended:  # sys.exit(), or an error of the user's that is no Exception
        demand.end()
        raise ExportError([ends_the_call(ended, tracer.places), *tracer.diagnostics.values()]) from ended
    finally:
        tracer.places.end()
        snapshot.restore()
        around.restore()
        tracer.let_go()


@contextlib.contextmanager
def _modes(tracer: Tracer) -> Iterator[None]:
    def full_functionalisation() -> None:
        if not tracer.careful:
            raise WritesInPlace

    with contextlib.ExitStack() as stack:
        for mode in (
            nothing_to_disable(),
            size_oblivious(),
            quiet_fake_tensors(),
            lists_as_calls(),
            no_inference_tensors(),
            unvalidated_distributions(),
            einsum_in_order(),
            torch.no_grad(),
            tracer.symbols.shapes.convolutions_unnoted(),
            tracer.symbols.shapes.checks_of_numbers_unnoted(),
            tracer.symbols.fake_mode,
            tracer.recorder,
            tracer.functionaliser,
            TorchCalls(tracer, full_functionalisation),
            higher_order_functions(),
            flex_attention_in_operators(lambda: TRACE.trace is not None),
        ):
            stack.enter_context(mode)
        yield


@contextlib.contextmanager
def _control_flow(tracer: Tracer, roots: Sequence[Any]) -> Iterator[None]:
    """Rewritten code on this thread asks this trace."""
    control = ControlFlow(tracer, roots)
    before, TRACE.trace = TRACE.trace, control
    try:
        yield
        control.taken_out.refuse_changed()
    finally:
        TRACE.trace = before


def _arguments(job: Job, tracer: Tracer, sizes: Mapping[str, int]) -> tuple[list[Any], list[GraphInput]]:
    """The model's arguments as the trace sees them."""
    arguments: list[Any] = []
    inputs: list[GraphInput] = []
    at_first = _sizes_at_first(job, sizes)
    for leaf in job.leaves:
        if leaf.kind is LeafKind.CONSTANT:
            arguments.append(leaf.value)
        elif isinstance(leaf.value, torch.Tensor):
            lengths = list(leaf.value.shape)
            for axis, free in leaf.axes.items():
                lengths[axis] = tracer.symbols.axis(free, at_first)
            fake = tracer.symbols.fake_like(leaf.value, lengths)
            wrapper, value = tracer.new_input(fake, leaf.name)
            arguments.append(wrapper)
            inputs.append(GraphInput(leaf.name, value, leaf))
        elif isinstance(leaf.value, (bool, int, float)):
            number = tracer.symbols.number(leaf.name, leaf.value)
            arguments.append(number)
            inputs.append(GraphInput(leaf.name, Number(symbol_behind(number), type(leaf.value)), leaf))
        else:
            raise TypeError(f"leaf {leaf.name} is neither a tensor nor a number: {type(leaf.value)}")
    return arguments, inputs


def _sizes_at_first(job: Job, wanted: Mapping[str, int]) -> dict[str, int]:
    """The size with which each symbol begins: as asked for, or as in the example, but not very small."""
    found = sizes_in(job.leaves, [leaf.value for leaf in job.leaves])
    small = {size.name: _SMALLEST_HINT for size in job.free_sizes if size.admits(_SMALLEST_HINT)}
    return {**{name: max(size, small.get(name, size)) for name, size in found.items()}, **wanted}


def _finish(
    job: Job,
    tracer: Tracer,
    inputs: list[GraphInput],
    returned: Any,
    snapshot: AttributeSnapshot,
    state: StateMode,
    arguments: Any,
) -> Graph:
    outputs, structure = outputs_of(tracer, returned)
    diagnostics: list[Diagnostic] = list(tracer.diagnostics.values())
    settled = settle_state(tracer, snapshot, state, [read for output in outputs for read in output.reads])
    diagnostics += settled.diagnostics
    lifted = {gi.name for gi in settled.inputs}
    named = _named(outputs, job.output_names, {i.name for i in inputs} | lifted)
    diagnostics += told_of(named)
    diagnostics += counted(job, arguments)
    weights = tuple(w for w in tracer.owned.used.values() if w.value not in settled.lifted)
    root = tracer.regions[0]
    root.params = [i.value for i in (*inputs, *settled.inputs)]
    root.outputs = [read for output in (*named, *settled.outputs) for read in output.reads]
    graph = Graph(
        inputs=(*inputs, *settled.inputs),
        outputs=(*named, *settled.outputs),
        root=root,
        weights=weights,
        returns=structure,
        size_symbols=dict(tracer.symbols.size_symbols),
        number_symbols=dict(tracer.symbols.number_symbols),
        examples=dict(tracer.symbols.hints),
        assumptions=tuple(tracer.symbols.assumptions),
        diagnostics=tuple(diagnostics),
        state=settled.state,
        lifted=settled.tensors,
    )
    check_if_asked(graph, "traced", tidied=False)
    graph = replace(graph, root=tidy(root))
    check_if_asked(graph, "tidied")
    return graph


def _named(outputs: list[GraphOutput], wanted: tuple[str, ...] | None, taken: set[str]) -> list[GraphOutput]:
    """Unique names for outputs: the caller's, then the structure's keys; never the name of an input."""
    named, used, given = [], set(taken), list(wanted or ())
    for output in outputs:
        name = given.pop(0) if given and is_carried(output.value) else output.name
        base, count = name, 1
        while name in used:
            name, count = (f"{base}_out" if count == 1 else f"{base}_out{count}"), count + 1
        used.add(name)
        named.append(GraphOutput(name, output.value))
    return named
