"""One shared case through one peer and then through `trueport.verify`, in a child."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks import case_files, children
from benchmarks.case_files import Suite
from benchmarks.exporters import EXPORTERS, Request
from benchmarks.judge import Subject, Verdict, eager_answers, eager_refuses, judge_file

DATA, SCRIPT = "counterexample.npz", "show_difference.py"
"""What `trueport verify` keeps of a counterexample."""


@dataclass(frozen=True)
class Found:
    """What `trueport verify` said to a peer's file, and what the case's own inputs say."""

    suite: Suite
    name: str
    exporter: str
    verdict: Verdict | None
    """By the case's own inputs; None where the peer wrote no file, and there is nothing to verify."""
    detail: str = ""
    codes: tuple[str, ...] = ()
    told: str = ""
    line: str = ""
    seconds: float = 0.0
    shown: str = ""
    """What shows the fault: a counterexample that was kept, or that the file does not load."""
    answerable: bool = True
    """Whether eager has an answer to the example. Without one no input can show anything."""

    @property
    def is_wrong(self) -> bool:
        return self.verdict in (Verdict.SILENT, Verdict.INVALID)


def verify_case(
    suite: Suite, name: str, exporter: str, kept: Path | None, *, folder: Path, phase: children.Phase
) -> Found:
    """Runs in the child. Only the example and the free sizes are given to `trueport verify`.

    `kept` is a folder for the peer's file and what the case's inputs say of it: both stay the same from run to run.
    """
    torch.set_num_threads(1)
    subject = case_files.load_case(suite, name).subject
    place = kept or folder
    place.mkdir(parents=True, exist_ok=True)
    if not (place / _JUDGED).exists():
        verdict, detail = _exported(subject, exporter, place / _MODEL, phase)
        (place / _JUDGED).write_text(json.dumps([verdict, detail]))
    verdict, detail = json.loads((place / _JUDGED).read_text())
    found = Found(suite, name, exporter, None if verdict is None else Verdict(verdict), detail)
    if found.verdict is None:
        return found
    phase("verify")
    return _verified(found, subject, place / _MODEL, folder / "counterexample")


_MODEL, _JUDGED = "model.onnx", "judged.json"


def _exported(subject: Subject, exporter: str, path: Path, phase: children.Phase) -> tuple[Verdict | None, str]:
    """What the case's own inputs say of the peer's file; None where it wrote none."""
    references = [eager_answers(subject, grad) for grad in ((False, True) if subject.either_grad_mode else (False,))]
    phase("export")
    args, kwargs = copy.deepcopy(subject.inputs)
    try:
        EXPORTERS[exporter](Request(copy.deepcopy(subject.model), args, kwargs, subject.dynamic_shapes, path))
    except Exception as error:  # noqa: BLE001 a peer that refuses leaves nothing to verify
        return None, type(error).__name__
    phase("judge")
    return judge_file(path, subject, references)


def _verified(found: Found, subject: Subject, path: Path, kept: Path) -> Found:
    import trueport

    args, kwargs = copy.deepcopy(subject.inputs)
    began = time.perf_counter()
    tolerance = subject.tolerance
    report = trueport.verify(
        path,
        copy.deepcopy(subject.model),
        args,
        kwargs=kwargs,
        dynamic_shapes=subject.dynamic_shapes,
        rtol=None if tolerance is None else tolerance.relative,
        atol=None if tolerance is None else tolerance.absolute,
        counterexample=kept,
    )
    seconds = time.perf_counter() - began
    first = next(iter(report.errors), None)
    line = str(first.where.line) if first is not None and first.where is not None else ""
    told = "" if first is None else " | ".join([first.message, *first.seen])
    return Found(
        found.suite,
        found.name,
        found.exporter,
        found.verdict,
        found.detail.replace(f"{path.parent}/", ""),
        tuple(dict.fromkeys(error.code for error in report.errors)),
        told.replace(f"{path.parent}/", ""),
        line,
        seconds,
        _shown([error.code for error in report.errors], kept),
        not eager_refuses(subject),
    )


def _shown(codes: Sequence[str], kept: Path) -> str:
    if "TP801" in codes:
        return "does not load"
    if not (kept / SCRIPT).is_file():
        return ""
    with np.load(kept / DATA) as saved:
        calls = {name.split(".")[0] for name in saved.files if name[0].isdigit()}
    how = {"TP203": f"{len(calls)} calls in turn", "TP811": f"{len(calls)} calls, distributed otherwise"}
    return next((words for code, words in how.items() if code in codes), "an input")
