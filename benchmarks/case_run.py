"""One shared case through one exporter, in a child; kept apart from the command so that the fork server can load it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import case_files, children
from benchmarks.case_files import CONTROL_FLOW, Suite
from benchmarks.judge import Judgement, Verdict, judge


@dataclass(frozen=True)
class Row:
    """One case through one exporter."""

    suite: Suite
    category: str
    name: str
    expect: str
    exporter: str
    judgement: Judgement

    @property
    def needs_control_flow(self) -> bool:
        return self.name in CONTROL_FLOW

    @property
    def good(self) -> bool:
        verdict = self.judgement.verdict
        return verdict is Verdict.FAITHFUL or (self.expect == "diagnose" and verdict is Verdict.DIAGNOSED)


def judge_case(suite: Suite, name: str, exporter: str, *, folder: Path, phase: children.Phase) -> Row:
    """Runs in the child."""
    torch.set_num_threads(1)
    case = case_files.load_case(suite, name)
    judgement = judge(case.subject, exporter, folder, phase)
    return Row(suite, case.category, name, case.expect, exporter, judgement)


def describe_case(suite: Suite, name: str, *, folder: Path, phase: children.Phase) -> tuple[str, str]:
    """Runs in a child of its own, for the cases whose judging child died."""
    case = case_files.load_case(suite, name)
    return case.category, case.expect


def list_names(suite: Suite, *, folder: Path, phase: children.Phase) -> list[str]:
    return case_files.names(suite)


def run_case(suite: Suite, name: str, exporter: str, limit: float) -> Row:
    ending = children.run(judge_case, suite, name, exporter, limit=limit)
    if not ending.died:
        assert isinstance(ending.value, Row)
        return ending.value
    category, expect = children.run(describe_case, suite, name, limit=limit).value
    # The exporter had returned: then it is its file that kills or hangs the runtime.
    verdict = Verdict.INVALID if ending.last_phase == "run" else Verdict.CRASHED
    detail = f"{ending.died} in {ending.last_phase or 'loading'}: {' '.join(ending.tail.split())[-160:]}"
    return Row(suite, category, name, expect, exporter, Judgement(verdict, detail))
