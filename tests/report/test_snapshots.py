"""What users see, letter by letter: each typical finding and some larger outputs, kept as text files.

    TRUEPORT_SNAPSHOTS=write pytest tests/report/test_snapshots.py

writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import onnx_ir as ir
import pytest
import torch

import trueport
from tests.diagnostics.pages import example, run
from trueport.cli.outcome import our_fault
from trueport.cli.working import out_of_time_at
from trueport.diagnostics import Diagnostic
from trueport.diagnostics.registry import Rule, all_rules
from trueport.errors import UsageError
from trueport.fix.portable.portable import make_portable
from trueport.generation.proof import tied_tokens
from trueport.generation.watch import Lengths
from trueport.load.request import make_job
from trueport.load.targets import load_target
from trueport.lower.table import is_leaf
from trueport.optimise.stage import Optimised
from trueport.progress import Reached
from trueport.report import CheckedInput, Verdict
from trueport.report.audit import audit
from trueport.report.certificate import save_certificate
from trueport.report.text import diagnostics_lines, diagnostics_text, report_text
from trueport.temporary import Written
from trueport.verify.faults.findings import EXAMPLE, failure_found
from trueport.verify.judging.compare import tolerance_for
from trueport.verify.runtime.sandbox import FailureKind, WorkerFailure
from trueport.versions import judge_versions

SNAPSHOTS = Path(__file__).parent / "snapshots"
SHOWN = [kind for kind in all_rules().values() if not kind.no_example and example(kind, "Example").language == "python"]
"""Findings that the first example of their page provokes."""
MADE: dict[str, Callable[[], Iterable[Diagnostic]]] = {
    "TP001": lambda: usage_fault(),
    "TP108": lambda: not_portable(),
    "TP007": lambda: [out_of_time_at(30, Reached("verify", 4, None, "inputs"))],
    "TP206": lambda: unknown_axis(),
    "TP813": lambda: another_token(),
    "TP602": lambda: judge_versions({"onnxruntime": "1.16.3"}.get),
    "TP603": lambda: judge_versions({"torch": "2.99.0"}.get, lambda: ["torch._sync is missing"]),
    "TP701": lambda: Optimised(ir.Model(ir.Graph([], [], nodes=[]), ir_version=9), ()).without(["moves"], []).findings,
    "TP806": lambda: [failure_found(WorkerFailure(FailureKind.HANG, "no answer within 15 s"), "batch=3")],
    "TP807": lambda: [failure_found(WorkerFailure(FailureKind.CRASH, "SIGSEGV"), EXAMPLE)],
    "TP820": lambda: another_file(),
    "TP901": lambda: [our_fault(KeyError("s0"))],
}
"""Findings that no Python example can provoke, made as the rooms make them."""


def another_file() -> Iterable[Diagnostic]:
    """A file that was changed after its certificate was written."""
    report = trueport.Report(model="Net", checks=(CheckedInput({}, "zeros", Verdict.EQUAL, 0.0),), verified=True)
    Path("net.onnx").write_bytes(b"as it was checked")
    digest = hashlib.sha256(b"as it was checked").hexdigest()
    proof = save_certificate(report, [Written(Path("net.onnx"), 17, digest)], None)
    Path("net.onnx").write_bytes(b"as it is now")
    return audit(Path("net.onnx"), proof).findings


SEVERAL_FAULTS = """\
import numpy as np
import torch
from torch import nn


@torch.library.custom_op("mylib::warp", mutates_args=())
def warp(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@warp.register_fake
def sizes_of_warp(x):
    return torch.empty_like(x)


@torch.library.custom_op("mylib::peaks", mutates_args=())
def peaks(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)


@peaks.register_fake
def sizes_of_peaks(x):
    return x.amax(-1)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        x = warp(x)
        x = warp(x * 2)
        return peaks(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()

    def forward(self, x):
        return self.head(x.view(4, 8))
"""
"""A model with faults of four kinds, as a hurried user would write it."""

BY_CHANCE = [
    (r"please report it (at \S+|to its authors)", "please report it …"),
    (r"\d+ other inputs? agrees?", "… other inputs agree"),
    (r"batch=\d+, values: [\w' ]+", "batch=…"),
    (r"agrees on \d+ sets", "agrees on … sets"),
    (r"(eager|ONNX) -?[\d.]+ ± [\d.]+", r"\1 …"),
    (r"\d+ runs of eager, \d+ of", "… runs of eager, … of"),
    (r"differ by [\d.]+, where chance explains [\d.]+", "differ by …, where chance explains …"),
    (r" \(\d+ remembered\)", ""),
    (r"13 to \d+ are", "13 to … are"),  # the newest that the installed onnx has
    (r"(memory limit while running the example): .*", r"\1: …"),
]
"""What the time that a machine has, its memory, or a package decides."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


def compare(name: str, text: str) -> None:
    """Hold a text against its file; what differs from machine to machine is left out of both."""
    plain = re.sub(r"(/[\w.~+-]+)+/(?=[\w.-]+\.py)", "…/", text.replace(str(Path.cwd()), "…")) + "\n"
    for words, instead in BY_CHANCE:
        plain = re.sub(words, instead, plain)
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("TRUEPORT_SNAPSHOTS") == "write":
        file.write_text(plain)
    assert plain == file.read_text()


def usage_fault() -> tuple[Diagnostic, ...]:
    with pytest.raises(UsageError) as refused:
        load_target("model.py:Nett")
    return refused.value.diagnostics


def unknown_axis() -> tuple[Diagnostic, ...]:
    lengths = Lengths({"batch": (2, 2, 3), "past": (5, 6, 7)})
    with pytest.raises(trueport.ExportError) as refused:
        lengths.axes("past_key_values.layers[0].keys", [torch.ones(2, length) for length in (4, 4, 9)])
    return refused.value.diagnostics


def another_token() -> tuple[Diagnostic, ...]:
    eager, runtime = torch.tensor([[0.25, 0.5, 0.0]]), torch.tensor([[0.25, 0.125, 0.0]])
    with pytest.raises(trueport.ExportError) as refused:
        list(tied_tokens((7,), 3, torch.tensor([1]), eager, runtime, tolerance_for(torch.float32, ())))
    return refused.value.diagnostics


NOT_PORTABLE = """\
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        for row in x:
            if row.sum() > 0:
                return row
        return x[0]
"""


def not_portable() -> tuple[Diagnostic, ...]:
    Path("model.py").write_text(NOT_PORTABLE)
    model = load_target("model.py:Net").model
    return make_portable(make_job(model, (torch.ones(3, 4),)), is_leaf).diagnostics


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.code)
def test_the_finding_of_an_example(kind: Rule) -> None:
    outcome = run(example(kind, "Example").code, "model")
    compare(kind.code, diagnostics_text(outcome.findings))


@pytest.mark.parametrize("code", MADE)
def test_a_finding_that_no_example_provokes(code: str) -> None:
    Path("model.py").write_text(SEVERAL_FAULTS)
    compare(code, diagnostics_text(MADE[code]()))


def test_every_code_has_its_text() -> None:
    """What every user of a code sees was read by one of us; and no text outlives its code."""
    kept = {file.stem for file in SNAPSHOTS.glob("TP*.txt")}
    assert kept == set(all_rules()) == {kind.code for kind in SHOWN} | set(MADE)


def several_faults() -> trueport.Report:
    Path("model.py").write_text(SEVERAL_FAULTS)
    model = load_target("model.py:Net").model.eval()
    return trueport.check(model, (torch.rand(4, 8),), dynamic_shapes=({0: "batch"},))


def test_several_faults_at_once() -> None:
    found = several_faults()
    compare("several_faults", diagnostics_text(found.diagnostics))


def test_several_faults_on_a_narrow_terminal() -> None:
    lines = diagnostics_lines(several_faults().diagnostics, width=60)
    compare("several_faults_60", "\n".join("".join(text for text, _ in line).rstrip() for line in lines))


def test_a_faithful_export() -> None:
    report = trueport.check(torch.nn.Linear(3, 2).eval(), (torch.rand(2, 3),), dynamic_shapes=({0: "batch"},))
    kept = [line for line in report_text(report).splitlines() if not re.match(r"  (time|versions|checked|   )", line)]
    compare("faithful", re.sub(r"on \d+ of \d+ inputs.*", "on … inputs", "\n".join(kept)))
