"""One shared case as `trueport fix --portable` writes it, through torch.onnx, in a child."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import case_files, children
from benchmarks.case_files import Suite
from benchmarks.exporters import EXPORTERS, Request
from benchmarks.judge import Verdict, eager_answers, judge_file


@dataclass(frozen=True)
class After:
    """A case before and after. `why` says why there is no portable form; the verdict is then the one before."""

    name: str
    before: Verdict
    verdict: Verdict
    why: str = ""


def judge_portable(suite: Suite, name: str, *, folder: Path, phase: children.Phase) -> tuple[Verdict | None, str]:
    """Runs in the child. No verdict where nothing was written anew."""
    from trueport.errors import ExportError
    from trueport.fix.portable.functions import exchanged
    from trueport.fix.portable.portable import make_portable
    from trueport.load.request import make_job
    from trueport.lower.table import is_leaf

    torch.set_num_threads(1)
    subject = case_files.load_case(suite, name).subject
    references = [eager_answers(subject)]
    args, kwargs = subject.inputs
    phase("fix")
    try:
        job = make_job(subject.model, args, kwargs, dynamic_shapes=subject.dynamic_shapes)
        made = make_portable(job, is_leaf)
    except ExportError as refused:
        return None, str(refused.diagnostics[0])
    if not made.changes:
        return None, made.diagnostics[0].message if made.diagnostics else "nothing decides by a value in Python"
    phase("export")
    path = folder / "model.onnx"
    with contextlib.ExitStack() as stack:
        for change in made.changes:
            stack.enter_context(exchanged(change.before, change.after, made.codes))
        EXPORTERS["dynamo"](Request(subject.model, args, kwargs, subject.dynamic_shapes, path))
    phase("run")
    return judge_file(path, subject, references)


def run_portable(suite: Suite, name: str, before: Verdict, limit: float) -> After:
    ending = children.run(judge_portable, suite, name, limit=limit)
    if ending.died:
        return After(name, before, Verdict.CRASHED, f"{ending.died} in {ending.last_phase}")
    verdict, why = ending.value
    return After(name, before, verdict or before, " ".join(why.split())[:160].replace("|", "/"))
