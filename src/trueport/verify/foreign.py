"""The check of any ONNX file against a model, whoever exported it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Unpack

import torch

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.diagnostics.rules.tp802_runtime_refuses_input import RuntimeRefusesInput
from trueport.diagnostics.rules.tp803_wrong_shape import WrongShape
from trueport.diagnostics.rules.tp804_wrong_dtype import WrongDtype
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.rules.tp810_arm_not_reached import ArmNotReached
from trueport.load.job import Job, Leaf, LeafKind
from trueport.load.structures import flatten
from trueport.source import Place, Where
from trueport.verify.check import Opened, Options, check_opened, limits_for, open_model
from trueport.verify.compare import Expected
from trueport.verify.comparing import dtypes_of
from trueport.verify.eager_values import Recogniser
from trueport.verify.instrument import functions_run_by
from trueport.verify.matching import DoesNotFit, match_inputs, match_outputs, with_fixed_numbers, with_sizes_of
from trueport.verify.mismatch import ONLY_HERE, Divergence
from trueport.verify.reference import Reference, RunEager
from trueport.verify.results import CheckResult
from trueport.verify.tally import Decision, way_words
from trueport.verify.tensors import dtype_of

_PROMISED_FROM = 2
"""torch.export takes a dynamic size to be two or more; what a file does with less is told as a warning."""


class RunEitherWay(Protocol):
    """Runs the model on one value per leaf, with autograd on or off: an exporter may have traced either."""

    def __call__(self, values: Sequence[object], grad: bool = False) -> object: ...


def check_file(
    path: Path,
    job: Job,
    run_eager: RunEitherWay,
    run_precisely: RunEager | None = None,
    **options: Unpack[Options],
) -> CheckResult:
    """Compare a file with eager. Its inputs and outputs are matched by name or by order; where the job declares no free
    size, the file's own are taken. Raises only what eager raises on the example.
    """
    opened = open_model(path, limits_for(job))
    if isinstance(opened, Diagnostic):
        return CheckResult(diagnostics=(opened,), seed=options.get("seed", 0))
    with opened.loaded:
        return _check(opened, job, run_eager, run_precisely, options)


def _check(
    opened: Opened, job: Job, run_eager: RunEitherWay, run_precisely: RunEager | None, options: Options
) -> CheckResult:
    loaded = opened.loaded
    example = [leaf.value for leaf in job.leaves]
    found, structure = flatten(run_eager(example), root_in_names=False)
    try:
        inputs = match_inputs(loaded.inputs, job.leaves)
        outputs = match_outputs(loaded.outputs, [leaf.name for leaf in found], [leaf.value for leaf in found])
    except DoesNotFit as misfit:
        return CheckResult(diagnostics=(_does_not_fit(misfit),), seed=options.get("seed", 0))
    missing = inputs.missing(job)
    job = with_fixed_numbers(with_sizes_of(inputs, job), missing)

    complex_as_pairs = {port.name for port in loaded.outputs if not dtype_of(port.type).startswith("complex")}

    def expected(returned: object) -> list[Expected]:
        values = structure.flatten(returned)
        return [_carried(values[at], name in complex_as_pairs) for name, at in outputs]

    def unreached(decisions: Sequence[Decision], _inputs: Sequence[Sequence[object]]) -> list[Diagnostic]:
        return [_not_reached(decision, way) for decision in decisions for way in decision.never_ran]

    recogniser = Recogniser(
        opened.blame.path, run_eager, inputs.feed, opened.blame.worker, opened.limits, dtypes_of(job)
    )

    def locate(values: Sequence[object], agreeing: Sequence[object] | None, hangs: bool) -> Divergence | None:
        if hangs:
            return None
        return recogniser.lost_after(values) if agreeing is None else recogniser.first(values, agreeing)

    own: Options = {"unreached": unreached, "promised_from": _PROMISED_FROM, "locate": locate}
    settled: Options = {**own, **options}
    reference = Reference(
        run_eager,
        expected,
        functions_run_by(lambda: run_eager(example)),
        otherwise=lambda values: run_eager(values, grad=True),
        precisely=run_precisely,
    )
    result = check_opened(opened, job, reference, inputs.feed, [name for name, _ in outputs], **settled)
    told = replace(result, diagnostics=tuple(_advised(finding) for finding in result.diagnostics))
    return told.with_findings([_absent(leaf) for leaf in missing])


def _advised(finding: Diagnostic) -> Diagnostic:
    """Whoever made the file, it is not the translation of ours that is to be mended."""
    if not isinstance(finding, WrongShape | WrongDtype | WrongValues | RuntimeRefusesInput) or not finding.is_error:
        return finding
    lost = any(fact.startswith(ONLY_HERE) for fact in finding.seen)
    why = "the file has one way of this line only; `trueport export` keeps all of them" if lost else ""
    return replace(finding, fix=why or "export the model again with `trueport export`, which compares what it writes")


def _carried(value: Any, as_pair: bool) -> Any:
    """Exporters write a complex tensor as one of real numbers with an axis of two more: the runtime has no other."""
    if as_pair and isinstance(value, torch.Tensor) and value.is_complex():
        return torch.view_as_real(value.resolve_conj())
    return value


def _does_not_fit(misfit: DoesNotFit) -> Diagnostic:
    return WrongShape(
        message=f"the file is not this model: {misfit}",
        fix="give the inputs in the order of the file, or with its names",
    )


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


def _not_reached(decision: Decision, way: int) -> Diagnostic:
    site = decision.site
    return ArmNotReached(
        message=f"no input was found for which `{site.text}` {way_words(site, way)}",
        place=Place((Where(site.file, site.line, site.function),)),
        fix="give an example that goes this way, or search longer with thorough=True",
    )
