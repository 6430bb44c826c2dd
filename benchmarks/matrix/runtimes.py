"""Files that we write, in other releases of ONNX Runtime: do they load, and give what eager gave?"""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

import trueport
from benchmarks import case_files, results
from benchmarks.judge import judge_answers, references_of
from benchmarks.leaves import named_leaves
from benchmarks.matrix.ledger import Ledger, Outcome, Row
from benchmarks.matrix.venvs import ROOT, venv
from benchmarks.runtime import OnnxModel
from trueport.lower.opsets import DEFAULT_OPSET

OPSETS = (DEFAULT_OPSET, 18)
PYTHON = "3.11"
"""The last Python for which all of these runtimes have wheels."""


def measure(releases: Sequence[str], ledger: Ledger, fresh: bool) -> None:
    """By this process's own torch, and then without any."""
    todo = [release for release in releases if fresh or any(_row(ledger, release, opset) is None for opset in OPSETS)]
    if not todo:
        return
    with TemporaryDirectory(prefix="trueport-matrix-") as folder:
        for case in _exported():
            _write(case, Path(folder))
        for release in todo:
            with venv(PYTHON) as made:
                made.install("onnxruntime" if release == "newest" else f"onnxruntime=={release}.*", numpy_for(release))
                versions = {name: made.version(name) for name in ("onnxruntime", "numpy")}
                for opset in OPSETS:
                    found = outcomes(made.run, Path(folder, str(opset)))
                    commit = results.circumstances()["commit"]
                    row = Row(f"onnxruntime {release}", f"opset {opset}", found, versions, commit)
                    ledger.keep(row)
                    print(row.setting, row.part, len(found), file=sys.stderr, flush=True)


def _row(ledger: Ledger, release: str, opset: int) -> Row | None:
    return ledger.get(f"onnxruntime {release}", f"opset {opset}")


def numpy_for(release: str) -> str:
    """Runtimes before 1.19 were built for numpy 1."""
    return "numpy<2" if release != "newest" and tuple(map(int, release.split("."))) < (1, 19) else "numpy"


def _exported() -> Iterator[case_files.Case]:
    for suite in case_files.SUITES:
        yield from (case for case in case_files.read(suite) if case.expect == "export")


def _write(case: case_files.Case, folder: Path) -> None:
    """The files, what they are given at each call, and what eager gives.

    Eager is asked once in a process: after the judge's mode has seen it, dynamo refuses the user's `torch.cond`.
    """
    subject = case.subject
    references = references_of(subject)
    calls = [subject.inputs, *subject.more]
    leaves = [named_leaves(subject.model, args, kwargs) for args, kwargs in calls]
    for opset in OPSETS:
        own = folder / str(opset) / f"{case.suite}.{case.name}"
        own.mkdir(parents=True)
        args, kwargs = copy.deepcopy(subject.inputs)
        options: dict[str, Any] = {"dynamic_shapes": subject.dynamic_shapes, "opset_version": opset}
        trueport.export(copy.deepcopy(subject.model), args, str(own / "model.onnx"), kwargs=kwargs, **options)
        model = OnnxModel(own / "model.onnx")
        for number, call in enumerate(leaves):
            np.savez(own / f"given-{number}.npz", **model.feed(call))  # type: ignore[arg-type]
        (own / "expected.pickle").write_bytes(pickle.dumps((references, subject.tolerance)))


class Run(Protocol):
    """Python with these words, in a process of its own."""

    def __call__(self, *words: str, limit: float) -> subprocess.CompletedProcess[str]: ...


def outcomes(run: Run, files: Path) -> dict[str, Outcome]:
    """What became of each file of a folder, in the runtime that this Python has."""
    with TemporaryDirectory(prefix="trueport-matrix-") as copied:
        folder = Path(copied, "files")
        shutil.copytree(files, folder)
        done = run(str(ROOT / "benchmarks" / "matrix" / "alone.py"), str(folder), limit=1800)
        if done.returncode:
            raise RuntimeError(f"onnxruntime ended with {done.returncode}: {done.stderr[-2000:]}")
        return {each.name: _outcome(each) for each in sorted(folder.iterdir())}


def _outcome(folder: Path) -> Outcome:
    references, tolerance = pickle.loads((folder / "expected.pickle").read_bytes())
    answers = [_answer(folder, number) for number in range(len(list(folder.glob("given-*.npz"))))]
    verdict, why = judge_answers(answers, references, tolerance)
    return Outcome(verdict.value, why)


def _answer(folder: Path, number: int) -> Any:
    said = folder / f"said-{number}.txt"
    if said.exists():
        return said.read_text()
    with np.load(folder / f"gave-{number}.npz") as arrays:
        return list(arrays.values())
