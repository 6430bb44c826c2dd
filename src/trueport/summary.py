"""What is told about an export: the report, and the metadata that travels inside the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import sympy
import torch

from trueport.capture.assumptions import judge
from trueport.capture.effects.state import REPLACED, StateMode
from trueport.capture.graph import Graph, is_carried
from trueport.diagnostics.base import Diagnostic, Label, Severity
from trueport.diagnostics.rules.tp004_not_deterministic import NotDeterministic
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.load.job import Job
from trueport.load.values import LeafKind
from trueport.lower.noted import note_place
from trueport.report import (
    CallsSummary,
    CheckedInput,
    DecisionSummary,
    Report,
    SizeSummary,
    TensorSummary,
    Verdict,
    Way,
)
from trueport.report.versions import installed_versions
from trueport.source import Place, SourceRoots, Where
from trueport.verify.assumptions import readable
from trueport.verify.calls import CallsChecked
from trueport.verify.decisions.tally import Decision, way_words
from trueport.verify.results import AgreedInput, CheckResult

if TYPE_CHECKING:
    from trueport.examine import Examined
    from trueport.run import CarriedModel


def model_name(model: object) -> str:
    if isinstance(model, torch.jit.ScriptModule):
        return str(model.original_name)
    return getattr(model, "__name__", None) or type(model).__name__


def settle_attributes(
    found: Sequence[Diagnostic], examined: Examined, choice: StateMode, remembers: Callable[[], bool | None]
) -> list[Diagnostic]:
    """Attributes that forward sets, and tensors that it replaces, are harmless where eager showed that no later call
    depends on them."""
    written = [finding for finding in found if isinstance(finding, StateWritten)]
    if choice is not StateMode.REFUSE or not any(_may_be_a_cache(finding) for finding in written):
        return list(found)
    replaced = any(finding.is_error and _may_be_a_cache(finding) for finding in written)
    matters = remembers() if replaced and not examined.state_matters else examined.state_matters
    settled: list[Diagnostic] = []
    for finding in found:
        if not isinstance(finding, StateWritten) or not _may_be_a_cache(finding):
            settled.append(finding)
            continue
        if matters is False and finding.is_error:
            finding = StateWritten(
                message=f"forward replaces `{finding.facts['state']}`, which the graph does not keep",
                place=finding.place,
                severity=Severity.NOTE,
                seen=("eager: no call gave another result after calls with other sizes and values",),
                facts=finding.facts,
            )
        elif (read := examined.counters.get(finding.facts["state"])) is not None and not finding.is_error:
            finding = StateWritten(
                message=f"{finding.message}; it is another one after every call, and forward looks at it",
                place=finding.place,
                also=(Label(read, "reads it"),),
                fix='pass state="frozen" to export the model as it is now, or make it an argument and a result',
                facts=finding.facts,
            )
        elif matters and not finding.is_error:
            finding = StateWritten(
                message=f"{finding.message}; and what a call gives depends on the calls before it",
                place=finding.place,
                seen=("eager: another input first, then the example again, gave another result",),
                fix='pass state="frozen" to export the model as it is now, or make it an argument and a result',
                facts=finding.facts,
            )
        settled.append(finding)
    return settled


def _may_be_a_cache(finding: StateWritten) -> bool:
    return not finding.is_error or finding.facts.get("written") == REPLACED


def describe(model: ir.Model, graph: Graph, job: Job, roots: SourceRoots | None) -> None:
    """Keep in the model what its file format has no place for: the structure of its arguments and results, and the
    lines that its nodes come from. Without `roots`, nothing of the source: no lines, and no values of arguments."""
    model.producer_version = installed_versions()["trueport"]
    model.metadata_props["trueport.arguments"] = json.dumps(job.call.describe())
    model.metadata_props["trueport.results"] = json.dumps(graph.returns.describe())
    if roots is not None:
        model.metadata_props["trueport.constants"] = json.dumps(_constants(job))
    for part in (model.graph, *(function.graph for function in model.functions.values())):
        for node in part.all_nodes():
            note_place(node.metadata_props, roots)


def with_lines(found: Iterable[Diagnostic], roots: SourceRoots) -> tuple[Diagnostic, ...]:
    """Findings whose places were read from a file: with the lines of the model's own source, and no others."""
    return tuple(one if one.place is None else replace(one, place=roots.read(one.place)) for one in found)


def _constants(job: Job) -> dict[str, str]:
    return {leaf.name: _spelt(leaf.value) for leaf in job.leaves if leaf.kind is LeafKind.CONSTANT}


def _spelt(value: object) -> str:
    """As Python shows it, but for the addresses of objects, which are others each time."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def report(
    job: Job,
    carried: CarriedModel,
    path: Path | None,
    opset: int,
    found: Sequence[Diagnostic],
    seconds: Mapping[str, float],
    roots: SourceRoots | None,
) -> Report:
    """`roots` are those of the file's notes: what the certificate is made of has places of the same kind, or none."""
    checked = carried.checked
    sizes = [each.sizes for each in checked.checked] if checked else []
    return Report(
        model=model_name(job.model),
        path=None if path is None else str(path),
        opset=opset,
        diagnostics=tuple(found),
        inputs=tuple(_tensor(value) for value in carried.model.graph.inputs),
        outputs=tuple(_tensor(value) for value in carried.model.graph.outputs),
        left_out={
            output.name: _spelt(output.value) for output in carried.graph.outputs if not is_carried(output.value)
        },
        free_sizes=tuple(SizeSummary(s.name, s.minimum, s.maximum) for s in job.free_sizes),
        constants=_constants(job),
        assumptions=tuple(_assumptions(carried.graph, sizes, roots)),
        nodes=sum(1 for _ in carried.model.graph.all_nodes()),
        **checked_facts(checked),
        seconds=dict(seconds),
        versions=installed_versions(),
    )


def of_a_file(finding: Diagnostic) -> Diagnostic:
    """What eager showed of a model that has been exported already. Random results are compared all the same."""
    if not isinstance(finding, NotDeterministic):
        return finding
    seen = (*finding.seen, "both were therefore run many times, and compared by how their results are distributed")
    return replace(finding, seen=seen, fix="", severity=Severity.WARNING)


def file_report(job: Job, path: Path, found: Sequence[Diagnostic], checked: CheckResult | None) -> Report:
    """What there is to tell about a file that somebody else may have made."""
    return Report(
        model=model_name(job.model),
        path=str(path),
        diagnostics=tuple(found),
        free_sizes=tuple(SizeSummary(s.name, s.minimum, s.maximum) for s in job.free_sizes),
        constants=_constants(job),
        versions=installed_versions(),
        **checked_facts(checked),
    )


def checked_facts(checked: CheckResult | None) -> dict[str, Any]:
    """What a check says beyond its findings, as the report has it."""
    if checked is None:
        return {}
    return {
        "calls": _calls(checked.calls),
        "checks": tuple(_checked(each, checked.by_distribution) for each in checked.checked),
        "verified": checked.agrees,
        "decisions": tuple(_decision(each) for each in checked.decisions),
        "searched": checked.searched,
        "refused_by_eager": checked.refused_by_eager,
        "undecided": checked.undecided,
        "endless": checked.endless,
        "partly": checked.partly,
        "tolerances": {name: _tolerance(checked, name) for name in checked.tolerances},
        "seed": checked.seed,
    }


def _calls(calls: CallsChecked | None) -> CallsSummary | None:
    if calls is None:
        return None
    return CallsSummary(calls.distinct, calls.equal, calls.remembered, calls.runs, calls.not_run, calls.by_design)


def _tolerance(checked: CheckResult, name: str) -> str:
    own = checked.own_errors.get(name)
    besides = "" if own is None else f" + up to {own:.1g} for eager's own rounding, measured against float64"
    return f"{checked.tolerances[name]}{besides}"


def _checked(each: AgreedInput, by_distribution: bool) -> CheckedInput:
    if by_distribution:
        return CheckedInput(each.sizes, each.family, Verdict.ALIKE)
    return CheckedInput(each.sizes, each.family, Verdict.EQUAL, each.worst, each.allowed or None)


def _decision(decision: Decision) -> DecisionSummary:
    site = decision.site
    ways = tuple(Way(way_words(site, way), count) for way, count in enumerate(decision.counts))
    return DecisionSummary(Where(site.file, site.line, site.function), site.kind.value, site.text, ways)


def _assumptions(graph: Graph, checked: Sequence[Mapping[str, int]], roots: SourceRoots | None) -> Iterable[str]:
    """What the trace decided about free sizes, but for decisions that a checked input has shown not to matter."""
    told = set()
    symbols = {size.name: symbol for symbol, size in graph.size_symbols.items()}
    for judged in judge(graph):
        assumption = judged.assumption
        if any(_is_broken(assumption.expr, {symbols[n]: s for n, s in sizes.items()}) for sizes in checked):
            continue
        near = "" if roots is None else f" ({_near(assumption.place, roots)})"
        text = readable(graph, assumption) + near
        if text not in told:
            told.add(text)
            yield text


def _is_broken(expr: sympy.Basic, sizes: Mapping[sympy.Symbol, int]) -> bool:
    try:
        return bool(expr.xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()}) == sympy.false)
    except ZeroDivisionError:  # the expression has no meaning for these sizes, and the model ran all the same
        return True


def _near(place: Place, roots: SourceRoots) -> str:
    where = place.where
    if where is None:
        return f"module {place.module}" if place.module else "unknown place"
    return f"{roots.note(where.file)}:{where.line}"


def _tensor(value: ir.Value) -> TensorSummary:
    shape: Any = value.shape
    dtype = value.dtype.numpy().name if value.dtype is not None else "unknown"
    sizes = tuple("?" if getattr(d, "value", d) is None else str(d) for d in shape) if shape is not None else ()
    return TensorSummary(value.name or "", dtype, sizes, isinstance(value.type, ir.SequenceType))
