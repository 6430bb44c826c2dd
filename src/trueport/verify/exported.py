"""The check of our own exports: the captured graph tells where a difference begins, and what was never reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sympy
import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.spelling import size_range, told
from trueport.examine.same import same_outputs
from trueport.garbage import uncollected
from trueport.graph.regions import Graph, SizeAssumption, Value
from trueport.load.job import Job, sizes_in
from trueport.lower.lower import CustomTable, lower
from trueport.source import line_of
from trueport.torch_internals import saying_exporting
from trueport.verify.assumed.sizes import TraceJudged, first_broken, readable
from trueport.verify.calls import check_calls
from trueport.verify.check import check_model, limits_for
from trueport.verify.decisions.kept_alive import kept_alive
from trueport.verify.decisions.tally import Decision
from trueport.verify.faults.arms import ArmCheck
from trueport.verify.faults.localise import Localiser
from trueport.verify.faults.mismatch import Divergence
from trueport.verify.inputs.planned import watched_at
from trueport.verify.judging.comparing import dtypes_of
from trueport.verify.judging.reference import Reference, RunEager, expected_outputs
from trueport.verify.judging.steps import moved_steps
from trueport.verify.options import Insight, Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.onnx_program import Laboratory
from trueport.verify.runtime.sandbox import shared_worker
from trueport.verify.unchecked import with_indices_checked


def check_exported(
    path: Path,
    job: Job,
    graph: Graph,
    run_eager: RunEager,
    run_precisely: RunEager,
    *,
    opset: int,
    custom: CustomTable,
    options: Options,
    judged: TraceJudged,
) -> CheckResult:
    """`check_model` for a file that was lowered from `graph`, after each of its calls by itself. What `run_eager` gives
    is what forward returned, and the state that it left."""
    laboratory = Laboratory(lambda part: lower(part, opset, custom), shared_worker(), limits_for(job))
    with uncollected():
        calls = check_calls(graph, laboratory, opset, custom, options.nonfinite)
    localiser = Localiser(laboratory, dtypes_of(job))
    by_name = _by_name(job, graph)
    checked = with_indices_checked(run_eager, graph, by_name)

    def locate(values: Sequence[object], agreeing: Sequence[object] | None, hangs: bool) -> Divergence | None:
        given = by_name(values)
        try:
            found = localiser.in_loops(graph, given) if hangs else localiser.first(graph, given)
            if found is None and knows_that_it_is_exported(run_eager, values):
                return _EXPORTED
            return found or _assumed(graph, sizes_in(job.leaves, values))
        except Exception:  # noqa: BLE001  a graph that was captured wrongly may not run at all; the difference stands
            return None

    def unreached(decisions: Sequence[Decision], inputs: Sequence[Sequence[object]]) -> list[Diagnostic]:
        given = [by_name(values) for values in inputs]
        return ArmCheck(graph, localiser, options.budget.arms).findings(decisions, given)

    found = check_model(
        path,
        job,
        Reference(
            checked,
            partial(expected_outputs, graph),
            graph.rewritten,
            kept_alive(graph),
            precisely=run_precisely,
            functions=graph.functions,
        ),
        graph.output_names,
        fixed_feeds=graph.lifted,
        limits=laboratory.limits,
        options=options,
        insight=Insight(
            extra_sizes=judged.must_try,
            extra_values=judged.must_try_values,
            admits=judged.admits,
            working_dtypes=_floats_of(graph),
            steps=moved_steps(graph, by_name, graph.output_names, options.seed),
            watched_at=watched_at(graph),
            locate=locate,
            unreached=unreached,
        ),
    )
    return replace(found, diagnostics=_together(found.diagnostics, calls.findings), calls=calls)


def _together(of_model: Sequence[Diagnostic], of_calls: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Where the whole model shows what a call of the line showed, that is one finding: the one with an input."""
    shown = {finding.where for finding in of_model if finding.is_error} - {None}
    by_itself = {finding.where: finding for finding in reversed(of_calls) if finding.where in shown}
    told = [
        replace(finding, seen=(*finding.seen, f"{call.message}; {call.seen[0]}"))
        if finding.is_error and (call := by_itself.get(finding.where)) is not None
        else finding
        for finding in of_model
    ]
    return (*told, *(finding for finding in of_calls if finding.where not in by_itself))


def _assumed(graph: Graph, sizes: Mapping[str, int]) -> Divergence | None:
    """Where the captured program gives what the file gives, it is the trace that went another way than eager goes here:
    at the first thing that it assumed and that these sizes break."""
    assumption = first_broken(graph, sizes)
    if assumption is None:
        return None
    held = readable(graph, assumption)
    return Divergence(assumption.place, f"was traced with {held}, which does not hold here", _way_out(assumption, held))


def knows_that_it_is_exported(run_eager: RunEager, values: Sequence[object]) -> bool:
    """A trace says that it is one, as torch's own does: libraries take their traceable path then. A model may ask, too,
    and compute something else."""

    def answer(exporting: bool) -> object:
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]
        with saying_exporting(exporting):
            return run_eager(copies)

    plain = answer(False)
    try:
        return not same_outputs(plain, answer(True))
    except Exception:  # noqa: BLE001  what it takes as a plain call, it refuses as an exported one
        return True


_EXPORTED = Divergence(
    None,
    "eager itself gives another result where torch.compiler.is_exporting() is True, as it is during an export",
    "let the model compute the same whether or not it is exported: look for is_exporting() and is_compiling()",
)


def _way_out(assumption: SizeAssumption, held: str) -> str:
    never_one = assumption.expr.func is sympy.Ne and set(assumption.expr.args) >= {sympy.Integer(1)}
    if not never_one or len(assumption.symbols) != 1 or not any(arg.is_Symbol for arg in assumption.expr.args):
        return f"write the line so that it does the same for every size, or declare the range in which {held}"
    where = assumption.place.where
    squeezes = "squeeze(" in (line_of(where) or "") if where is not None else False
    line = "drop only axes that always have one item: .squeeze(-1)" if squeezes else "write it for every size"
    return told(f"{line}; or declare that there is never just one: ", size_range(str(assumption.symbols[0]), 2))


def _floats_of(graph: Graph) -> tuple[torch.dtype, ...]:
    """The float dtypes that the graph computes in: a float64 result may have been a float32 one on its way."""
    made = (output for node in graph.root.walk() for output in node.outputs if isinstance(output, Value))
    dtypes = {value.dtype.to_real() for value in made}
    return tuple(dtype for dtype in dtypes if dtype.is_floating_point and dtype.itemsize > 1)


def _by_name(job: Job, graph: Graph) -> Callable[[Sequence[object]], Mapping[str, Any]]:
    def named(values: Sequence[object]) -> Mapping[str, Any]:
        leaves = zip(job.leaves, values, strict=True)
        return {**graph.lifted, **{leaf.name: value for leaf, value in leaves if leaf.is_input}}

    return named
