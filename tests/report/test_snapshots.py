"""What users see, letter by letter: each typical finding and some larger outputs, kept as text files.

    TRUEPORT_SNAPSHOTS=write pytest tests/report/test_snapshots.py

writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch

import trueport
from tests.diagnostics.pages import example, run
from trueport.diagnostics.registry import all_rules
from trueport.report.text import diagnostics_lines, diagnostics_text, report_text

SNAPSHOTS = Path(__file__).parent / "snapshots"
CODES = "TP002 TP004 TP101 TP103 TP104 TP106 TP107 TP203 TP204 TP205 TP301 TP302 TP304 TP305 TP401 TP402 TP501"
TYPICAL = CODES.split()

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


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


def compare(name: str, text: str) -> None:
    """Hold a text against its file; what differs from machine to machine is left out of both."""
    plain = re.sub(r"(/[\w.~+-]+)+/(?=[\w.-]+\.py)", "…/", text.replace(str(Path.cwd()), "…")) + "\n"
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("TRUEPORT_SNAPSHOTS") == "write":
        file.write_text(plain)
    assert plain == file.read_text()


@pytest.mark.parametrize("code", TYPICAL)
def test_a_typical_finding(code: str) -> None:
    outcome = run(example(all_rules()[code], "Example").code, "model")
    compare(code, diagnostics_text(outcome.findings))


def several_faults() -> trueport.Report:
    Path("model.py").write_text(SEVERAL_FAULTS)
    from trueport.load.targets import load_target

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
