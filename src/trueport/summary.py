"""What is told about an export: the report. It reads what the stages gave, runs nothing and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import sympy
import torch

from trueport.capture.assumptions import judge
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp004_not_deterministic import NotDeterministic
from trueport.functions.bodies import DOMAIN
from trueport.graph.regions import Graph, is_carried
from trueport.load.job import Job
from trueport.load.values import spelt
from trueport.lower.noted import every_node
from trueport.picture import pictured
from trueport.program import CarriedModel
from trueport.report import (
    CallsSummary,
    CheckedInput,
    DecisionSummary,
    PassSummary,
    Report,
    SizeSummary,
    TensorSummary,
    Verdict,
    Way,
)
from trueport.report.versions import installed_versions
from trueport.source import Place, SourceRoots, Where
from trueport.torch_internals.expressions import with_sizes
from trueport.verify.assumed.sizes import readable
from trueport.verify.calls import CallsChecked
from trueport.verify.decisions.tally import Decision, way_words
from trueport.verify.results import AgreedInput, CheckResult
from trueport.verify.two_files import PairCompared


def model_name(model: object) -> str:
    if isinstance(model, torch.jit.ScriptModule):
        return str(model.original_name)
    return getattr(model, "__name__", None) or type(model).__name__


def with_lines(found: Iterable[Diagnostic], roots: SourceRoots) -> tuple[Diagnostic, ...]:
    """Findings whose places were read from a file: with the lines of the model's own source, and no others."""
    return tuple(one if one.place is None else replace(one, place=roots.read(one.place)) for one in found)


def report(
    job: Job,
    carried: CarriedModel,
    path: Path | None,
    opset: int,
    seconds: Mapping[str, float],
    roots: SourceRoots | None,
) -> Report:
    """`roots` are those of the file's notes: what the certificate is made of has places of the same kind, or none."""
    checked = carried.checked
    sizes = [each.sizes for each in checked.checked] if checked else []
    called = Counter(node.op_identifier() for node in every_node(carried.model))
    functions = [each for each in carried.model.functions.values() if each.domain == DOMAIN]
    return Report(
        model=model_name(job.model),
        path=None if path is None else str(path),
        opset=opset,
        diagnostics=carried.found,
        inputs=tuple(_tensor(value) for value in carried.model.graph.inputs if not value.is_initializer()),
        outputs=tuple(_tensor(value) for value in carried.model.graph.outputs),
        left_out={out.name: spelt(out.constant) for out in carried.graph.outputs if not is_carried(out.value)},
        free_sizes=tuple(SizeSummary(s.name, s.minimum, s.maximum) for s in job.free_sizes),
        constants=job.constants,
        assumptions=tuple(_assumptions(carried.graph, sizes, roots)),
        nodes=called.total(),
        functions={each.name: called[each.identifier()] for each in functions},
        passes=tuple(PassSummary(each.name, each.changes, each.nodes_removed) for each in carried.passes),
        **checked_facts(checked),
        seconds=dict(seconds),
        versions=installed_versions(),
        graph=pictured(carried.model, roots),
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
        constants=job.constants,
        versions=installed_versions(),
        **checked_facts(checked),
    )


def pair_report(reference: Path, path: Path, compared: PairCompared) -> Report:
    """What there is to tell about a file beside the one that it was made of."""
    sizes = compared.job.free_sizes if compared.job is not None else ()
    return Report(
        model=reference.name,
        path=str(path),
        diagnostics=compared.result.diagnostics,
        free_sizes=tuple(SizeSummary(s.name, s.minimum, s.maximum) for s in sizes),
        assumptions=compared.notes,
        versions=installed_versions(),
        compared_with=reference.name,
        budget=compared.budget,
        **checked_facts(compared.result),
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
    return CheckedInput(each.sizes, each.family, Verdict.EQUAL, each.worst, each.allowed or None, each.by_output)


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
    """Also where the expression has no meaning for these sizes, and the model ran all the same."""
    return with_sizes(expr, sizes) in (sympy.false, None)


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
