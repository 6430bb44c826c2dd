"""One model, one exporter, one verdict: is what arrived what left?"""

from __future__ import annotations

import copy
import inspect
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from benchmarks.compare import Array, Tolerance, differences
from benchmarks.equals import FirstOfEquals
from benchmarks.exporters import EXPORTERS, Request, read_refusal
from benchmarks.leaves import Leaf, flatten, named_leaves
from benchmarks.runtime import OnnxModel

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
References = Sequence[list[list[Leaf] | None]]
"""The answers to each call, once for each way of eager's that counts."""


class Verdict(StrEnum):
    FAITHFUL = "faithful"  # equals eager on the traced input and on all others
    DIAGNOSED = "diagnosed"  # refused, and named a line of the user's own file
    REFUSED = "refused"  # an error that names no line of the user's
    SILENT = "silent"  # exports, loads, and gives something else than eager on some input
    INVALID = "invalid"  # exports, but does not load or fails at run time on an input that eager accepts
    CRASHED = "crashed"  # died, ran into the time limit, or (trueport) let a raw error out


@dataclass(frozen=True)
class Subject:
    """What is exported, and what tells a faithful graph from a specialised one."""

    name: str
    model: torch.nn.Module
    inputs: Inputs
    more: Sequence[Inputs]
    dynamic_shapes: Any
    own_files: str
    """The user's own file, or a folder of them: a diagnosis must point there."""
    tolerance: Tolerance | None = None
    stateful: bool = False
    """The calls are made one after the other on one module."""
    either_grad_mode: bool = False
    """Eager differs between grad and no_grad, and both count."""


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    detail: str = ""
    at: str = ""
    code: str = ""
    cpu_seconds: float = 0.0
    """CPU time of the export call, children of the exporter included."""


def judge(subject: Subject, exporter: str, folder: Path, phase: Callable[[str], None]) -> Judgement:
    """Export and compare. `phase` tells the watching parent how far we came, should this process die."""
    # The calls that eager answers come first, so that nothing an exporter leaves behind can touch the reference.
    references = references_of(subject)
    phase("export")
    path = folder / "model.onnx"
    args, kwargs = copy.deepcopy(subject.inputs)
    request = Request(copy.deepcopy(subject.model), args, kwargs, subject.dynamic_shapes, path)
    started = cpu_seconds()
    try:
        EXPORTERS[exporter](request)
    except Exception as error:  # noqa: BLE001 any error of an exporter is a result here, and is kept in the judgement
        told = read_refusal(exporter, error, subject.own_files, has_lines_in(subject.model, subject.own_files))
        verdict = Verdict.CRASHED if not told.on_purpose else Verdict.DIAGNOSED if told.at else Verdict.REFUSED
        return Judgement(verdict, told.message, told.at, told.code, cpu_seconds() - started)
    spent = cpu_seconds() - started
    phase("run")
    verdict, detail = judge_file(path, subject, references)
    return Judgement(verdict, detail.replace(f"{folder}/", ""), cpu_seconds=spent)


def references_of(subject: Subject) -> References:
    """What eager gives for all calls, in each way that counts."""
    references = [eager_answers(subject, grad) for grad in ((False, True) if subject.either_grad_mode else (False,))]
    with FirstOfEquals() as choice:
        settled = eager_answers(subject)
    if choice.met:
        references.append(settled)
    return references


def judge_file(path: Path, subject: Subject, references: References) -> tuple[Verdict, str]:
    """Run the file on every call and compare with each reference; one reference that agrees throughout is enough."""
    try:
        model = OnnxModel(path)
    except Exception as error:  # noqa: BLE001 onnxruntime raises many unrelated types; all mean "does not load"
        return Verdict.INVALID, f"does not load: {_brief(error)}"
    answers: list[list[Array] | str] = []
    for args, kwargs in [subject.inputs, *subject.more]:
        try:
            answers.append(model(named_leaves(subject.model, args, kwargs)))
        except Exception as error:  # noqa: BLE001 as above: all mean "does not run"
            answers.append(_brief(error))
    return judge_answers(answers, references, subject.tolerance)


def judge_answers(
    answers: list[list[Array] | str], references: References, tolerance: Tolerance | None
) -> tuple[Verdict, str]:
    """One list of outputs for each call, or why there is none; one reference that agrees throughout is enough."""
    judged = [_agreement(answers, reference, tolerance) for reference in references]
    order = (Verdict.FAITHFUL, Verdict.INVALID, Verdict.SILENT)
    return min(judged, key=lambda one: order.index(one[0]))


def _agreement(
    answers: list[list[Array] | str], reference: list[list[Leaf] | None], tolerance: Tolerance | None
) -> tuple[Verdict, str]:
    wrong, failed = [], []
    for index, (answer, expected) in enumerate(zip(answers, reference, strict=True)):
        which = "traced input" if index == 0 else f"input {index}"
        if isinstance(answer, str):
            failed.append(f"{which}: {answer}")
        elif expected is None:
            wrong.append(f"{which}: answers where eager refuses")
        else:
            wrong += [f"{which}: {reason}" for reason in differences(expected, answer, tolerance)]
    if wrong:
        return Verdict.SILENT, "; ".join(wrong + failed)
    if failed:
        return Verdict.INVALID, "; ".join(failed)
    return Verdict.FAITHFUL, ""


def eager_answers(subject: Subject, grad: bool = False) -> list[list[Leaf] | None]:
    """What eager gives for each call; None for a traced input that eager refuses (then nothing is faithful)."""
    answers: list[list[Leaf] | None] = []
    module = copy.deepcopy(subject.model)
    for index, call in enumerate([subject.inputs, *subject.more]):
        if not subject.stateful:
            module = copy.deepcopy(subject.model)
        args, kwargs = copy.deepcopy(call)
        try:
            with torch.set_grad_enabled(grad):
                answers.append([_detached(leaf) for leaf in flatten(module(*args, **kwargs))])
        except Exception:
            if index and answers[0] is not None:
                raise  # the case itself is broken: `more` must hold inputs that eager accepts
            answers.append(None)
    return answers


def eager_refuses(subject: Subject) -> bool:
    return eager_answers(subject)[0] is None


def has_lines_in(model: torch.nn.Module, own_files: str) -> bool:
    """Whether any module of the model has a `forward` written in the user's own files."""
    own = os.path.realpath(own_files)
    classes = {type(module) for module in model.modules()}
    forwards = [inspect.unwrap(cls.forward) for cls in classes if hasattr(cls, "forward")]  # a scripted one has none
    files = [os.path.realpath(f.__code__.co_filename) for f in forwards if hasattr(f, "__code__")]
    return any(file == own or file.startswith(own.rstrip("/") + "/") for file in files)


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def _detached(leaf: Leaf) -> Leaf:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
