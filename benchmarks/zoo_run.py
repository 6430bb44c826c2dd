"""One architecture through one exporter, in a child."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks import children, zoo_models
from benchmarks.judge import Judgement, Verdict, judge


def judge_model(name: str, exporter: str, *, folder: Path, phase: children.Phase) -> Judgement:
    """Runs in the child."""
    torch.set_num_threads(1)
    return judge(zoo_models.build(name), exporter, folder, phase)


def run_model(name: str, exporter: str, limit: float) -> Judgement:
    ending = children.run(judge_model, name, exporter, limit=limit)
    if ending.died:
        verdict = Verdict.INVALID if ending.last_phase == "run" else Verdict.CRASHED
        return Judgement(verdict, f"{ending.died} in {ending.last_phase or 'building'}")
    assert isinstance(ending.value, Judgement)
    return ending.value
