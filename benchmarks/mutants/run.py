"""One case in a child: make the file, have the judge confirm what it is, and give it to `trueport verify`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import torch

from benchmarks import children
from benchmarks.exporters import EXPORTERS, Request
from benchmarks.mutants import judge, kinds
from benchmarks.mutants.cases import Call, Case, Model
from benchmarks.mutants.derived import derive
from benchmarks.mutants.edit import DoesNotApply, Edit
from benchmarks.mutants.models import all_models
from benchmarks.mutants.variations import VARIATIONS, optimised

OTHER = "by torch.onnx, dynamo="
OPTIMISED = "optimised by the runtime"


@dataclass(frozen=True)
class Row:
    """What became of one case."""

    model: str
    kind: str
    name: str
    control: bool
    proof: str = ""
    """How the witness shows that a mutant is wrong."""
    absent: str = ""
    """Why there is no such file for this model, or why it is no control: it does not count then."""
    takes: str = ""
    """What it takes to show the mutant: the example does already, other values, or other sizes too."""
    codes: tuple[str, ...] = ()
    """The errors that `trueport verify` reported."""
    warnings: tuple[str, ...] = ()
    told: str = ""
    seconds: float = 0.0
    died: str = ""
    """How the process ended, where it did not come back."""
    last_phase: str = ""

    @property
    def id(self) -> str:
        return f"{self.model}/{self.name}"

    @property
    def broken(self) -> bool:
        """The measuring failed: nothing follows for what is measured."""
        return bool(self.died) and self.last_phase != "verify"

    @property
    def counts(self) -> bool:
        return not self.absent and not self.broken

    @property
    def found(self) -> bool:
        """An error. A difference that was excused, or only warned of, is not found."""
        return bool(self.codes)


def cases() -> list[Case]:
    """Every mutant and every control, model by model."""
    found = []
    for place, model in enumerate(all_models().values()):
        for mutant in model.mutants:
            found.append(Case(model.name, mutant.kind, mutant.name))
        found.append(Case(model.name, kinds.DERIVED, "derived"))
        others = [*VARIATIONS][1:]
        names = ["as exported", *(others[(2 * place + turn) % len(others)] for turn in range(2)), OPTIMISED]
        names += [f"{OTHER}{peer == 'dynamo'}" for peer in model.others]
        found += [Case(model.name, kinds.CONTROL, name) for name in names]
    assert len({case.id for case in found}) == len(found)
    return found


def judged(case: Case, *, folder: Path, phase: children.Phase) -> Row:
    """Runs in the child."""
    torch.set_num_threads(1)
    model = all_models()[case.model]
    path = folder / "model.onnx"
    phase("make")
    try:
        witness = make(model, case, folder, path)
    except DoesNotApply as absent:
        if case.kind not in (kinds.CONTROL, kinds.DERIVED):
            raise
        return replace(_row(case), absent=str(absent))
    phase("judge")
    if case.control:
        row = replace(_row(case), absent=control_fault(model, path))
    else:
        proof, takes = mutant_proof(model, case, folder, path, model.call(witness))
        row = replace(_row(case), proof=proof, takes=takes)
    if not row.counts:
        return row
    phase("verify")
    return _verified(row, model, path)


def make(model: Model, case: Case, folder: Path, path: Path) -> Callable[[], Call]:
    """Writes the file of a case. Gives the witness of a mutant."""
    base = folder / "base.onnx"
    if case.name.startswith(OTHER):
        try:
            _export(model, "dynamo" if case.name.endswith("True") else "legacy", path)
        except Exception as error:
            raise DoesNotApply(f"{type(error).__name__}") from error
        return model.example
    _export(model, model.exporter, base)
    if case.kind == kinds.DERIVED:
        return derive(model, base, path)
    if case.name == OPTIMISED:
        optimised(base, path)
        return model.example
    edited = Edit(onnx.load(base))
    if case.control:
        VARIATIONS[case.name](edited)
        witness = model.example
    else:
        mutant = next(mutant for mutant in model.mutants if mutant.name == case.name)
        mutant.change(edited)
        witness = mutant.witness
    onnx.save(edited.model, path)
    return witness


def mutant_proof(model: Model, case: Case, folder: Path, path: Path, witness: Call) -> tuple[str, str]:
    """How the witness shows the fault, after the unchanged file was seen to agree on it; and what that takes."""
    judge.refuse_witness(model, witness)
    wrong_before = judge.shown(model, folder / "base.onnx", witness)
    if wrong_before:
        raise children.HarnessError(f"{case.id}: the exported file is wrong on the witness already: {wrong_before}")
    proof = judge.shown(model, path, witness)
    if not proof:
        raise children.HarnessError(f"{case.id}: the witness shows nothing")
    on_example = judge.shown(model, path, model.call(model.example))
    if on_example.startswith(judge.DOES_NOT_RUN):
        raise children.HarnessError(f"{case.id}: not subtle, the example {on_example}")
    place = onnx.load(path).doc_string  # where a derived one was changed
    return f"{place}: {proof}" if place else proof, judge.THE_EXAMPLE if on_example else judge.needed(model, witness)


def control_fault(model: Model, path: Path) -> str:
    """How it differs on the example or a witness: it is no control then."""
    for make_call in [model.example, *(mutant.witness for mutant in model.mutants)]:
        wrong = judge.shown(model, path, model.call(make_call))
        if wrong:
            return wrong
    return ""


def _export(model: Model, exporter: str, path: Path) -> None:
    EXPORTERS[exporter](Request(model.built(), model.call(model.example), {}, model.free, path, verify=False))


def _verified(row: Row, model: Model, path: Path) -> Row:
    import trueport

    began = time.perf_counter()
    try:
        report = trueport.verify(
            path,
            model.built(),
            model.call(model.example),
            dynamic_shapes=model.free,
            value_ranges=model.ranges or None,
        )
    except Exception as error:  # noqa: BLE001 no verdict is a result too, and the table shows it
        return replace(row, died=f"raised {type(error).__name__}: {str(error)[:200]}", last_phase="verify")
    seconds = time.perf_counter() - began
    told = [finding for finding in report.diagnostics if finding.is_error]
    warned = [finding for finding in report.diagnostics if not finding.is_error]
    first = next(iter([*told, *warned]), None)
    return replace(
        row,
        codes=tuple(dict.fromkeys(finding.code for finding in told)),
        warnings=tuple(dict.fromkeys(finding.code for finding in warned)),
        told="" if first is None else first.message,
        seconds=seconds,
    )


def _row(case: Case) -> Row:
    return Row(case.model, case.kind, case.name, case.control)


def watched(case: Case, limit: float) -> Row:
    """A case in a process of its own. What dies under `verify` found nothing, and accused nobody."""
    row = _row(case)
    try:
        ending = children.run(judged, case, limit=limit)
    except children.HarnessError as broken:
        return replace(row, died=str(broken).strip().splitlines()[-1][:300])
    if ending.died:
        return replace(row, died=ending.died, last_phase=ending.last_phase)
    assert isinstance(ending.value, Row)
    return ending.value
