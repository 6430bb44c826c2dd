"""`python -m benchmarks.opsets`: every shared case in every opset, in the installed runtime and in older releases.

A model is captured once, lowered to each opset, and goes through all passes. A file is faithful if it loads and gives
what eager gave on all calls; an opset that cannot say a model must refuse it with the operator, the line and the lowest
opset that can.
`--kernels` prints, for each release, the newest opset of which it has a kernel for every operator that we write.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

import trueport
from benchmarks import case_files, results
from benchmarks.judge import references_of
from benchmarks.leaves import named_leaves
from benchmarks.matrix.runtimes import PYTHON, numpy_for, outcomes
from benchmarks.matrix.venvs import ROOT, venv
from benchmarks.runtime import OnnxModel
from trueport.diagnostics.base import Diagnostic
from trueport.lower.lower import lower
from trueport.lower.opsets import LOWEST, highest
from trueport.lower.runtimes import MEASURED, loaded_by
from trueport.lower.write import write
from trueport.optimise.names import NAMES
from trueport.optimise.sequence import optimise

RELEASES = ("1.17", "1.20", "1.23")
INSTALLED = "installed"


@dataclass(frozen=True)
class Row:
    """One case in one opset, in one runtime."""

    case: str
    opset: int
    runtime: str
    verdict: str
    why: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opsets", description=__doc__)
    parser.add_argument("--opsets", type=int, nargs="+", default=[13, 15, 17, 18, 20, 21, 23, highest()])
    parser.add_argument(
        "--releases", nargs="*", default=list(RELEASES), help="of ONNX Runtime, beside the installed one"
    )
    parser.add_argument("--only", metavar="REGEX", help="only the cases whose name matches")
    parser.add_argument("--kernels", action="store_true", help="only look which kernels the releases have")
    options = parser.parse_args(arguments)
    results.circumstances()
    if options.kernels:
        print(kernels(options.releases))
        return 0
    rows: list[Row] = []
    with TemporaryDirectory(prefix="trueport-opsets-") as folder:
        for case in _exported(options.only):
            rows += _write(case, Path(folder), options.opsets)
        rows += list(_run(Path(folder), options.opsets, options.releases))
    text = page(rows, options.opsets)
    print(text)
    if not options.only:
        counts = Counter((row.runtime, row.opset, row.verdict) for row in rows)
        told = [asdict(row) for row in rows if row.verdict != "faithful"]
        results.keep("opsets", {"counts": [[*which, number] for which, number in counts.items()], "told": told}, text)
    return 0


def _exported(only: str | None) -> Iterator[case_files.Case]:
    for suite in case_files.SUITES:
        for case in case_files.read(suite):
            if case.expect == "export" and (only is None or re.search(only, case.name)):
                yield case


def _write(case: case_files.Case, folder: Path, opsets: Sequence[int]) -> Iterator[Row]:
    """The files, what they are given at each call and what eager gives; a row for each opset that is refused."""
    subject = case.subject
    references = references_of(subject)
    leaves = [named_leaves(subject.model, *call) for call in (subject.inputs, *subject.more)]
    args, kwargs = copy.deepcopy(subject.inputs)
    program = trueport.export(
        copy.deepcopy(subject.model), args, kwargs=kwargs, dynamic_shapes=subject.dynamic_shapes, verify=False
    )
    for opset in opsets:
        name = f"{case.suite}.{case.name}"
        lowered = lower(program.captured, opset)
        if lowered.model is None:
            yield Row(name, opset, "", "refused", _told([found for found in lowered.diagnostics if found.is_error]))
            continue
        optimise(lowered.model, NAMES)
        own = folder / str(opset) / name
        own.mkdir(parents=True)
        write(lowered.model, own / "model.onnx")
        onnx.checker.check_model(own / "model.onnx", full_check=False)
        model = OnnxModel(own / "model.onnx")
        for number, call in enumerate(leaves):
            np.savez(own / f"given-{number}.npz", **model.feed(call))  # type: ignore[arg-type]
        (own / "expected.pickle").write_bytes(pickle.dumps((references, subject.tolerance)))


def _told(errors: Sequence[Diagnostic]) -> str:
    """The first finding, without the folder of this machine."""
    found = errors[0]
    where = "" if found.where is None else f"{Path(found.where.file).name}:{found.where.line} "
    return f"{found.code} {where}{found.message}: {found.fix}"


def _run(folder: Path, opsets: Sequence[int], releases: Sequence[str]) -> Iterator[Row]:
    def rows(runtime: str, opset: int, run: object) -> Iterator[Row]:
        for name, found in outcomes(run, folder / str(opset)).items():  # type: ignore[arg-type]
            yield Row(name, opset, runtime, found.verdict, found.detail)

    def installed(*words: str, limit: float) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(command, text=True, capture_output=True, check=False, timeout=limit, cwd=ROOT)

    for opset in opsets:
        yield from rows(INSTALLED, opset, installed)
    for release in releases:
        loads = loaded_by(_numbers(release))
        with venv(PYTHON) as made:
            made.install(f"onnxruntime=={release}.*", numpy_for(release))
            for opset in opsets:
                if loads is not None and opset <= loads.opset:
                    print(f"onnxruntime {release}, opset {opset}", file=sys.stderr, flush=True)
                    yield from rows(release, opset, made.run)


def page(rows: Sequence[Row], opsets: Sequence[int]) -> str:
    """How many cases are faithful, by opset and runtime; what is refused, and what is not faithful, by name."""
    runtimes = list(dict.fromkeys(row.runtime for row in rows if row.runtime))
    refused = [row for row in rows if row.verdict == "refused"]
    lines = []
    for opset in opsets:
        cells: list[object] = [opset, sum(row.opset == opset for row in refused)]
        for runtime in runtimes:
            mine = [row for row in rows if row.opset == opset and row.runtime == runtime]
            cells.append(f"{sum(row.verdict == 'faithful' for row in mine)} of {len(mine)}" if mine else "not loaded")
        lines.append(cells)
    named = [f"onnxruntime {runtime}" for runtime in runtimes]
    parts = [
        "# The shared cases in every opset\n\n`python -m benchmarks.opsets`: faithful of written, and refused.",
        results.table(["opset", "refused", *named], lines),
    ]
    if refused:
        by_case: dict[str, list[Row]] = {}
        for row in refused:
            by_case.setdefault(row.case, []).append(row)
        told = (f"- {case}, opsets {', '.join(str(r.opset) for r in of)}: {of[-1].why}" for case, of in by_case.items())
        parts += ["## Refused", "\n".join(told)]
    wrong = [row for row in rows if row.verdict not in ("refused", "faithful")]
    if wrong:
        told = (
            f"- {row.case}, opset {row.opset}, onnxruntime {row.runtime}: {row.verdict}: {row.why}" for row in wrong
        )
        parts += ["## Not faithful", "\n".join(told)]
    return "\n\n".join(parts)


def kernels(releases: Sequence[str]) -> str:
    """The newest opset of which a release computes all that translations write, and what it lacks above."""
    wanted = [release for release in releases or (".".join(map(str, each)) for each in MEASURED)]
    lines = []
    for release in wanted:
        with venv(PYTHON) as made:
            made.install(f"onnxruntime=={release}.*", numpy_for(release))
            done = made.run("-c", _DUMP, limit=120)
        if done.returncode:
            lines.append([release, "not known", done.stderr.strip().splitlines()[-1]])
            continue
        ranges = json.loads(done.stdout)
        complete, lost = _complete(ranges)
        lines.append([release, complete, ", ".join(lost)])
    return results.table(["onnxruntime", "complete", "lacks in the next"], lines)


_DUMP = """
import json
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
found = {}
for kernel in get_all_opkernel_def():
    if kernel.provider == "CPUExecutionProvider" and kernel.domain in ("", "ai.onnx"):
        found.setdefault(kernel.op_name, []).append(kernel.version_range)
print(json.dumps(found))
"""


def _complete(ranges: dict[str, list[list[int]]]) -> tuple[int, list[str]]:
    """The newest opset before the first that loses something: an operator that an older opset has computed."""
    before: set[str] = set()
    newest: int = onnx.defs.onnx_opset_version()
    for opset in range(LOWEST, newest + 1):
        lacking = set(_lacking(ranges, opset))
        if lost := before & lacking:
            return opset - 1, sorted(lost)
        before |= {name for name in _written() if onnx.defs.has(name, opset)} - lacking
    return newest, []


def _lacking(ranges: dict[str, list[list[int]]], opset: int) -> list[str]:
    """Operators that translations name and the opset has, but neither a kernel nor a definition computes."""
    found = []
    for name in _written():
        if not onnx.defs.has(name, opset):
            continue
        schema = onnx.defs.get_schema(name, opset)
        since = schema.since_version
        # A kernel without an end is one of its own version only, until the next is registered.
        known = any(
            first <= since <= last and (last < 2**31 - 1 or first == since) for first, last in ranges.get(name, ())
        )
        if not known and not (schema.has_function or schema.has_context_dependent_function):
            found.append(name)
    return found


@functools.cache
def _written() -> list[str]:
    """The operators that the sources of our translations name."""
    text = "".join(path.read_text() for path in (ROOT / "src" / "trueport" / "lower").rglob("*.py"))
    return sorted(
        {name for name in re.findall(r'\b(?:op|_op)\.([A-Z]\w+)\(|"([A-Z]\w+)"', text) for name in name if name}
    )


def _numbers(release: str) -> tuple[int, int]:
    major, minor = map(int, release.split(".")[:2])
    return major, minor


if __name__ == "__main__":
    sys.exit(main())
