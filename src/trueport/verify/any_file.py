"""The check of any ONNX file, whoever exported it: how it is compared depends on what eager showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp811_wrong_distribution import WrongDistribution
from trueport.diagnostics.spelling import EXPORT, option, told
from trueport.examine import Examined, Precisely, Snapshot, run_eager
from trueport.load.job import Job
from trueport.verify.check import limits_for, open_model
from trueport.verify.distribution import Distributions
from trueport.verify.faults.other_weights import with_other_weights
from trueport.verify.fitted import Fitted, fit
from trueport.verify.foreign import RunEitherWay, check_fitted
from trueport.verify.in_turn import check_in_turn
from trueport.verify.inputs.draw import draw
from trueport.verify.options import Options
from trueport.verify.results import CheckResult


def check_any_file(path: Path, job: Job, examined: Examined, options: Options, frozen: bool = False) -> CheckResult:
    """Compare a file with eager: by its values; by how they are distributed, where eager draws random numbers; and by
    calls that follow one another, where eager remembers them. `frozen` means that each call is to begin in the model's
    present state.
    """
    opened = open_model(path, limits_for(job))
    if isinstance(opened, Diagnostic):
        return CheckResult(diagnostics=(opened,), seed=options.seed)
    before = Snapshot(job.model)

    def eager(values: Sequence[object], grad: bool = False) -> object:
        return run_eager(job, values, grad, before)

    with opened.loaded:
        with torch.random.fork_rng(devices=[]):
            returned = eager([leaf.value for leaf in job.leaves])
        fitted = fit(opened, job, returned, {state.name: state.tensor for state in before.tensors})
        if isinstance(fitted, Diagnostic):
            return CheckResult(diagnostics=(fitted,), seed=options.seed)
        if not examined.deterministic:
            return _by_distribution(fitted, eager, options)
        single = check_fitted(fitted, eager, Precisely(job, run_eager), options)
        if not single.checked:
            single = replace(single, diagnostics=with_other_weights(single.diagnostics, path, job.model))
        if frozen or not examined.state_matters or any(finding.is_error for finding in single.diagnostics):
            return single
        in_turn = check_in_turn(fitted, before, examined.stateful, options)
        return replace(
            single,
            checked=(*single.checked, *in_turn.checked),
            diagnostics=(*in_turn.diagnostics, *single.diagnostics),
            refused_by_eager=single.refused_by_eager + in_turn.refused_by_eager,
            kept=in_turn.kept or single.kept,
        )


def _by_distribution(fitted: Fitted, eager: RunEitherWay, options: Options) -> CheckResult:
    seed = options.seed
    names = tuple(fitted.output_names)
    check = Distributions(fitted.job, fitted.opened, eager, fitted.expected, names, fitted.feed, seed, options.evidence)
    result = check.result(draw(fitted.job, [leaf.value for leaf in fitted.job.leaves], seed))
    return replace(result, diagnostics=tuple(_advised(finding) for finding in result.diagnostics))


def _advised(finding: Diagnostic) -> Diagnostic:
    if not isinstance(finding, WrongDistribution):
        return finding
    return replace(
        finding,
        fix=told(
            "make the noise an input; or ", EXPORT, " with ", option("random", "onnx"), " compares what it writes"
        ),
    )
