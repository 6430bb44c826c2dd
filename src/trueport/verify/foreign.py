"""The check of any ONNX file against a model, whoever exported it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Protocol

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.diagnostics.rules.tp802_runtime_refuses_input import RuntimeRefusesInput
from trueport.diagnostics.rules.tp803_wrong_shape import WrongShape
from trueport.diagnostics.rules.tp804_wrong_dtype import WrongDtype
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.rules.tp810_arm_not_reached import ArmNotReached
from trueport.diagnostics.spelling import EXPORT, option, told
from trueport.garbage import thawed
from trueport.load.job import Job, Leaf
from trueport.load.values import LeafKind
from trueport.source import Place, Where
from trueport.verify.check import check_opened, limits_for, open_model
from trueport.verify.decisions.instrument import functions_run_by, unwatched
from trueport.verify.decisions.tally import Decision, way_words
from trueport.verify.faults.eager_values import Recogniser
from trueport.verify.faults.mismatch import ONLY_HERE, Divergence
from trueport.verify.fitted import Fitted, fit
from trueport.verify.judging.comparing import dtypes_of
from trueport.verify.judging.reference import Reference, RunEager
from trueport.verify.options import AS_USUAL, Insight, Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.origin import is_ours

_PROMISED_FROM = 2
"""torch.export takes a dynamic size to be two or more; what a file does with less is told as a warning."""


class RunEitherWay(Protocol):
    """Runs the model on one value per leaf, with autograd on or off: an exporter may have traced either."""

    def __call__(self, values: Sequence[object], grad: bool = False) -> object: ...


def check_file(path: Path, job: Job, run_eager: RunEitherWay) -> CheckResult:
    """Compare a file with a model that neither draws random numbers nor remembers its calls."""
    opened = open_model(path, limits_for(job))
    if isinstance(opened, Diagnostic):
        return CheckResult(diagnostics=(opened,))
    with opened.loaded:
        fitted = fit(opened, job, run_eager([leaf.value for leaf in job.leaves]))
        if isinstance(fitted, Diagnostic):
            return CheckResult(diagnostics=(fitted,))
        return check_fitted(fitted, run_eager)


@thawed()
def check_fitted(
    fitted: Fitted,
    run_eager: RunEitherWay,
    run_precisely: RunEager | None = None,
    options: Options = AS_USUAL,
) -> CheckResult:
    """Compare a file with eager by their values, each call from the model's present state.

    Raises only what eager raises on the example.
    """
    opened, job, feed = fitted.opened, fitted.job, fitted.feed
    example = [leaf.value for leaf in job.leaves]

    def unreached(decisions: Sequence[Decision], _inputs: Sequence[Sequence[object]]) -> list[Diagnostic]:
        return [_not_reached(decision, way) for decision in decisions for way in decision.never_ran]

    recogniser = Recogniser(opened.blame.path, run_eager, feed, opened.blame.worker, opened.limits, dtypes_of(job))

    def locate(values: Sequence[object], agreeing: Sequence[object] | None, hangs: bool) -> Divergence | None:
        if hangs:
            return None
        return recogniser.lost_after(values) if agreeing is None else recogniser.first(values, agreeing)

    promised = 0 if is_ours(opened.blame.path) else _PROMISED_FROM
    codes = functions_run_by(lambda: run_eager(example))
    reference = Reference(
        run_eager,
        fitted.expected,
        codes,
        otherwise=lambda values: run_eager(values, grad=True),
        precisely=run_precisely,
    )
    insight = Insight(unreached=unreached, promised_from=promised, locate=locate)
    result = check_opened(opened, job, reference, feed, fitted.output_names, options=options, insight=insight)
    told = replace(result, diagnostics=tuple(_advised(finding) for finding in result.diagnostics))
    unknown = [_not_watched(code) for code in unwatched(codes)] if told.agrees else []
    return told.with_findings([*(_absent(leaf) for leaf in fitted.missing), *unknown])


def _advised(finding: Diagnostic) -> Diagnostic:
    """Whoever made the file, it is not the translation of ours that is to be mended."""
    if not isinstance(finding, WrongShape | WrongDtype | WrongValues | RuntimeRefusesInput) or not finding.is_error:
        return finding
    lost = ONLY_HERE in finding.facts
    if lost:
        return replace(finding, fix=told("the file has one way of this line only; ", EXPORT, " keeps all of them"))
    return replace(finding, fix=told("export the model again with ", EXPORT, ", which compares what it writes"))


def _absent(leaf: Leaf) -> Diagnostic:
    """An argument that the exporter left out: a frozen number, or a tensor that it found nobody to read."""
    if leaf.kind is LeafKind.NUMBER and not leaf.declared_free:
        return NumberFrozen(
            message=f"the file has no input for the number `{leaf.name}`: it is fixed at {leaf.value!r}",
            seen=("it was held at that value in this check",),
            severity=Severity.WARNING,
        )
    return NumberFrozen(
        message=f"the file has no input for `{leaf.name}`; what it is given there makes no difference to the file",
        severity=Severity.WARNING,
    )


def _not_watched(code: CodeType) -> Diagnostic:
    return ArmNotReached(
        message=f"`{code.co_qualname}` has branches or loops and no source to count them in: whether the inputs that"
        " were tried went all of its ways is not known",
        place=Place((Where(code.co_filename, code.co_firstlineno, code.co_qualname),)),
        fix="put the function into a file, and load it from there",
    )


def _not_reached(decision: Decision, way: int) -> Diagnostic:
    site = decision.site
    return ArmNotReached(
        message=f"no input was found for which `{site.text}` {way_words(site, way)}",
        place=Place((Where(site.file, site.line, site.function),)),
        fix=told("give an example that goes this way, or search longer with ", option("thorough", True)),
    )
