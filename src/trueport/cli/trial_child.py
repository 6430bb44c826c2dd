"""The process in which a model is tried with edited files: `python -m trueport.cli.trial_child`.

A module is imported once per process, so each trial has a process of its own. It is forked from one that has imported
torch and done nothing else with it: the import takes longer than most trials. Requests and outcomes are files, because
the model may print what it likes.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import pickle
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trueport import temporary
from trueport.cli.checking import Checking
from trueport.cli.request import Request, read_request
from trueport.diagnostics.base import Diagnostic
from trueport.errors import UsageError
from trueport.fix import overlay
from trueport.fix.command import Command
from trueport.fix.edit import SourceFile
from trueport.fix.outcome import AnswersKept, TrialOutcome
from trueport.report import Report
from trueport.report.versions import installed_versions
from trueport.source import Where
from trueport.source.scene import Scene, Seen

if TYPE_CHECKING:
    from trueport.load.job import Job

_MOST_RUNS = 3
_LARGEST_SIZE = 512
_OF_THE_JOB = ("kwargs", "dynamic_shapes", "constants", "value_ranges")


@dataclass(frozen=True)
class TrialRequest:
    """What to try, and where eager's answers from before any edit are, or are to be put."""

    command: Command
    files: Mapping[str, SourceFile]
    answers: Path
    first: bool
    outcome: Path
    folder: Path
    """The current folder of whoever asked."""


def main() -> None:
    """For each path of a request on stdin, try it and answer with a line: how its process ended."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    temporary.end_with(os.getppid())
    import trueport.api  # noqa: F401  what every trial needs

    for line in sys.stdin:
        nursery, child = os.getpid(), os.fork()
        if child == 0:
            temporary.end_with(nursery)
            _run(Path(line.rstrip("\n")))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _run(path: Path) -> NoReturn:
    """One trial. The process ends here, however the trial does; what it said last is beside the request."""
    errors = os.open(path.with_suffix(".err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(errors, stream.fileno())
    ended = 1
    try:
        request: TrialRequest = pickle.loads(path.read_bytes())
        os.chdir(request.folder)
        overlay.install(request.files)
        request.outcome.write_bytes(pickle.dumps(_tried(request)))
        ended = 0
    except BaseException:  # noqa: BLE001  the parent shows it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(ended)


def _tried(trial: TrialRequest) -> TrialOutcome:
    import torch

    command = trial.command
    torch.manual_seed(0)  # the same weights in every trial, as far as the model draws them alike
    options = dict(command.options)
    checking = Checking.taken_from(options)
    try:
        request = read_request(target=command.target, inputs=command.inputs, dims=command.dims, **options)
    except UsageError as refused:
        return TrialOutcome(_refused(command, refused), unusable=True)
    from trueport.api import check

    try:
        report = check(request.model, request.args, **request.options, **checking.arguments(trial.folder))
    except UsageError as refused:
        report = _refused(command, refused)
    forward, target = _definition(type(request.model).forward), _target(request.model, command.target)
    job = _job(request)
    if job is None:
        return TrialOutcome(report, forward=forward, target=target)
    return TrialOutcome(report, _scene(job, report.diagnostics, forward), _kept(job, trial, report), forward, target)


def _refused(command: Command, refused: UsageError) -> Report:
    return Report(model=command.target, diagnostics=refused.diagnostics, versions=installed_versions())


def _job(request: Request) -> Job | None:
    from trueport.load.request import make_job

    try:
        given = {name: value for name, value in request.options.items() if name in _OF_THE_JOB}
        return make_job(request.model, request.args, **given)
    except UsageError:
        return None


def _kept(job: Job, trial: TrialRequest, report: Report) -> AnswersKept:
    """Note what eager answers, the first time; later, whether it still does."""
    from trueport.verify.answers import answers, kept

    if trial.first:
        trial.answers.write_bytes(pickle.dumps(answers(job, _numbers_near(report.diagnostics))))
        return AnswersKept()
    compared = kept(job, pickle.loads(trial.answers.read_bytes()))
    return AnswersKept(compared.same, compared.different, compared.only_at_one)


def _scene(job: Job, found: Iterable[Diagnostic], forward: Where | None) -> Scene:
    """What the names held at the lines of the findings, at the example's sizes and at others."""
    from trueport.examine.scene import names_at
    from trueport.load.job import sizes_in
    from trueport.verify.inputs.draw import draw

    lines = {(where.file, where.line) for one in found if (where := one.where)}
    example = [leaf.value for leaf in job.leaves]
    sizes = sizes_in(job.leaves, example)
    runs = [Seen(sizes, names_at(job, example, lines))] if lines else []
    for drawn in draw(job, example, 0) if runs and job.free_sizes else ():
        if len(runs) >= _MOST_RUNS:
            break
        if drawn.sizes not in [seen.sizes for seen in runs] and min(drawn.sizes.values()) > 1:
            runs.append(Seen(dict(drawn.sizes), names_at(job, drawn.values, lines)))
    return Scene(tuple(runs))


def _numbers_near(found: Iterable[Diagnostic]) -> list[int]:
    """The sizes that the functions around the findings are written for: what they can be held against."""
    numbers: dict[int, None] = {}
    for one in found:
        if one.where is None:
            continue
        with contextlib.suppress(OSError, SyntaxError):
            for node in ast.walk(SourceFile.read(Path(one.where.file)).tree):
                if isinstance(node, ast.Constant) and type(node.value) is int and 1 < node.value <= _LARGEST_SIZE:
                    numbers[node.value] = None
    return list(numbers)[:16]


def _target(model: object, target: str) -> Where | None:
    """Where the name after the colon is defined."""
    place, _, name = target.partition(":")
    modules = [module for module in sys.modules.values() if _is_called(module, place)]
    found: Any = modules[0] if modules else None
    for part in name.split(".") if name else []:
        found = getattr(found, part, None)
    if inspect.isclass(found) or inspect.isfunction(found):
        return _definition(found)
    file = getattr(modules[0], "__file__", None) if modules else None
    return Where(file, 1) if file else _definition(type(model))


def _is_called(module: object, place: str) -> bool:
    if place.endswith(".py"):
        return getattr(module, "__file__", None) == str(Path(place).resolve())
    return getattr(module, "__name__", None) == place


def _definition(thing: Any) -> Where | None:
    with contextlib.suppress(OSError, TypeError):
        file = inspect.getsourcefile(inspect.unwrap(thing))
        line = inspect.getsourcelines(inspect.unwrap(thing))[1]
        if file is not None:
            return Where(file, max(line, 1), getattr(thing, "__qualname__", ""))
    return None


if __name__ == "__main__":
    main()
