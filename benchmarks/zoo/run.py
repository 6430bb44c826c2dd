"""One architecture through one exporter, in a child, under limits of time and memory."""

from __future__ import annotations

import copy
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import children, results
from benchmarks.judge import Inputs, Judgement, Subject, Verdict, eager_answers, judge, judge_file, references_of
from benchmarks.leaves import named_leaves
from benchmarks.runtime import OnnxModel
from benchmarks.zoo import models

MEMORY = 6 << 30
WALL = 20
"""Times the limit of the processor's time: the machine may be busy with others."""
EAGER = "eager"
"""An exporter's name for: made and run, and not exported."""
AT_ONCE = 40
"""Models that one child makes for `--build-only`: most of the time is that of imports."""
TIMED_CALLS = 15
ROUNDING = "within eager's own rounding"


@dataclass(frozen=True)
class ZooRow:
    """What became of a model."""

    judgement: Judgement | None
    """None: eager does not run it, and `why` tells."""
    why: str = ""
    how: str = ""
    """The class and its parts."""
    inputs: int = 0
    """On how many the judge compared."""
    eager_ms: float = 0.0
    onnx_ms: float = 0.0
    verified: str = ""
    """What `trueport verify` says of a peer's file."""
    confirmed: str = ""
    """What the judge sees at the counterexample that it shows; '' where it sees nothing."""
    build_seconds: float = 0.0
    commit: str = ""
    """Of the code that made the row: a long run is made in parts."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ZooRow:
        judged = content["judgement"]
        if judged is not None:
            judged = Judgement(**{**judged, "verdict": Verdict(judged["verdict"])})
        return cls(**{**content, "judgement": judged})


def judge_model(name: str, exporter: str, limit: float, *, folder: Path, phase: children.Phase) -> ZooRow:
    """Runs in the child."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    end = int(time.process_time() + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 30))
    subject, row = _built(name)
    if subject is None:
        return row
    judged = judge(subject, exporter, folder, phase)
    path = folder / "model.onnx"
    if judged.verdict is Verdict.SILENT and _only_rounding(subject, path):
        judged = replace(judged, verdict=Verdict.FAITHFUL, detail=f"{ROUNDING}: {judged.detail}")
    eager, onnx = _latency(subject, path) if judged.verdict is Verdict.FAITHFUL else (0.0, 0.0)
    row = replace(row, judgement=judged, eager_ms=eager, onnx_ms=onnx)
    if exporter != "trueport" and path.exists():
        phase("verify")
        said, confirmed = _verified(subject, path, folder / "counterexample")
        row = replace(row, verified=said, confirmed=confirmed)
    return row


def _built(name: str) -> tuple[Subject | None, ZooRow]:
    """The model, and the row of one that was only made."""
    began = time.process_time()
    try:
        subject = models.build(name)
        if eager_answers(subject)[0] is None:
            return None, ZooRow(None, "eager refuses the example")
    except Exception as wrong:  # noqa: BLE001 what eager does not build is no model, whatever it says
        return None, ZooRow(None, " ".join(str(wrong).split())[:400], build_seconds=time.process_time() - began)
    how = f"{type(subject.model).__name__}, {sum(weight.numel() for weight in subject.model.parameters()) / 1e6:.1f}M"
    return subject, ZooRow(None, how=how, inputs=1 + len(subject.more), build_seconds=time.process_time() - began)


def build_models(names: list[str], ledger: str, *, folder: Path, phase: children.Phase) -> None:
    """Runs in the child: a line for each model as soon as it is known."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for name in names:
        phase(name)
        with open(ledger, "a") as lines:
            lines.write(json.dumps([name, _built(name)[1].to_json()]) + "\n")


def run_builds(names: list[str], limit: float) -> Iterator[tuple[str, ZooRow]]:
    """All of them in eager, many in one child. Who dies is left out, and the rest begin again."""
    left = list(names)
    while left:
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as ledger:
            ending = children.run(build_models, left[:AT_ONCE], ledger.name, limit=WALL * limit)
            done = [json.loads(line) for line in ledger]
        yield from ((name, ZooRow.from_json(row)) for name, row in done)
        left = left[len(done) :]
        if ending.died and left:
            yield left.pop(0), ZooRow(None, f"{ending.died} in building")


def run_model(name: str, exporter: str, limit: float) -> ZooRow:
    """`limit`: seconds of the processor."""
    ending = children.run(judge_model, name, exporter, limit, limit=WALL * limit)
    if ending.died:
        if not ending.last_phase:
            return ZooRow(None, f"{ending.died} in building")
        verdict = Verdict.INVALID if ending.last_phase == "run" else Verdict.CRASHED
        return ZooRow(Judgement(verdict, f"{ending.died} in {ending.last_phase}"))
    assert isinstance(ending.value, ZooRow)
    return replace(ending.value, commit=results.circumstances()["commit"])


def _only_rounding(subject: Subject, path: Path) -> bool:
    """Whether the file is no further from the model in float64 than eager in float32 is, at every output of every call.

    Where a network makes the last bits large, two ways to add give two answers, and neither is eager's more than the
    other's. An answer that is wrong is far from float64, and eager is near.
    """
    file = OnnxModel(path)
    try:
        exact = eager_answers(
            replace(
                subject,
                model=copy.deepcopy(subject.model).double(),
                more=_double(subject.more),
                inputs=_double([subject.inputs])[0],
            )
        )
    except Exception:  # noqa: BLE001 a model that cannot be float64 gets no second look
        return False
    eager = eager_answers(subject)
    for call, precise, plain in zip([subject.inputs, *subject.more], exact, eager, strict=True):
        try:
            answers = file(named_leaves(subject.model, *call))
        except Exception:  # noqa: BLE001 what does not run is no rounding
            return False
        if precise is None or plain is None or len(answers) != len(precise):
            return False
        for ours, theirs, truth in zip(answers, plain, precise, strict=True):
            if not isinstance(theirs, torch.Tensor) or not isinstance(truth, torch.Tensor):
                continue
            if ours.shape != tuple(truth.shape) or (not theirs.is_floating_point() and (ours != theirs.numpy()).any()):
                return False
            reference = truth.double().numpy()
            own, rounding = np.abs(ours.astype(np.float64) - reference), np.abs(theirs.double().numpy() - reference)
            if own.size and not own.max() <= 4 * rounding.max() + 1e-6 * max(1.0, np.abs(reference).max()):
                return False
    return True


def _double(calls: Sequence[Inputs]) -> list[Inputs]:
    def cast(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return [(tuple(map(cast, args)), {name: cast(value) for name, value in kwargs.items()}) for args, kwargs in calls]


def _latency(subject: Subject, path: Path) -> tuple[float, float]:
    """Milliseconds of the processor for the example, the least of some calls that take turns."""
    args, kwargs = subject.inputs
    file = OnnxModel(path)
    leaves = named_leaves(subject.model, args, kwargs)
    model = copy.deepcopy(subject.model)
    eager, onnx = [], []
    with torch.no_grad():
        for _ in range(TIMED_CALLS):
            start = time.process_time()
            model(*args, **kwargs)
            middle = time.process_time()
            file(leaves)
            eager.append(middle - start)
            onnx.append(time.process_time() - middle)
            if sum(eager) + sum(onnx) > 2.0 and len(eager) > 2:
                break
    return round(min(eager) * 1e3, 3), round(min(onnx) * 1e3, 3)


def _verified(subject: Subject, path: Path, kept: Path) -> tuple[str, str]:
    """What `trueport verify` says of another exporter's file, and what the judge says of the input that it shows."""
    import trueport

    args, kwargs = copy.deepcopy(subject.inputs)
    model, shapes = copy.deepcopy(subject.model), subject.dynamic_shapes
    try:
        report = trueport.verify(path, model, args, kwargs=kwargs, dynamic_shapes=shapes, counterexample=kept)
    except trueport.ExportError as refused:
        first = refused.diagnostics[0]
        return f"no verdict: {first.code} {first.message}", ""
    found = next(iter(report.errors), None)
    if found is None:
        return "agrees", ""
    return f"{found.code} {' | '.join([found.message, *found.seen])}"[:500], _confirmed(subject, path, kept)


def _confirmed(subject: Subject, path: Path, kept: Path) -> str:
    """The judge's own comparison at the counterexample; '' where there is none, or it sees no difference."""
    data = kept / "counterexample.npz"
    if not data.is_file():
        return ""
    with np.load(data) as saved:
        given = {name: saved[f"in.{name}"] for name in subject.inputs[1] if f"in.{name}" in saved.files}
    if set(given) != set(subject.inputs[1]) or subject.inputs[0]:
        return ""
    shown = replace(subject, inputs=((), {name: torch.from_numpy(array) for name, array in given.items()}), more=())
    verdict, detail = judge_file(path, shown, references_of(shown))
    if verdict is Verdict.SILENT and _only_rounding(shown, path):
        return ""
    return detail if verdict in (Verdict.SILENT, Verdict.INVALID) else ""
