"""What is remembered of calls: agreement only, by versions, and never trusted blindly."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
import torch
from torch import nn

import trueport
from trueport.report import CallsSummary
from trueport.verify.calls.remembered import Memory, memory_of, versions


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x).abs()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUEPORT_CACHE", str(tmp_path))
    return tmp_path / "calls"


def calls(**options: object) -> CallsSummary:
    report = trueport.check(Net().eval(), (torch.randn(5),), **options)
    assert report.calls is not None
    return report.calls


def files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.json"))


def test_the_second_export_runs_no_call(cache: Path) -> None:
    first, second = calls(), calls()
    assert (first.distinct, first.equal, first.remembered) == (2, 2, 0)
    assert first.runs > 0
    assert (second.distinct, second.equal, second.remembered, second.runs) == (2, 2, 2, 0)
    assert len(files(cache)) == 2


def test_what_is_damaged_is_run_again_and_written_anew(cache: Path) -> None:
    calls()
    broken, foreign = files(cache)
    broken.write_bytes(b"\x80\x04 no json")
    foreign.write_text(json.dumps({"call": "another", "by_design": ""}))
    assert calls().remembered == 0
    assert calls().remembered == 2


def test_it_may_be_deleted_at_any_moment(cache: Path) -> None:
    calls()
    for file in files(cache):
        file.unlink()
    assert calls().remembered == 0


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEPORT_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls()
    assert calls().remembered == 0
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("TRUEPORT_CACHE", str(occupied))
    assert calls().equal == 2


def test_it_is_kept_in_the_users_folder_of_caches() -> None:
    assert memory_of({"XDG_CACHE_HOME": "/c"}).folder == Path("/c/trueport/calls") / versions()
    assert memory_of({"HOME": "/h"}).folder == Path("/h/.cache/trueport/calls") / versions()
    assert memory_of({"HOME": "/h", "TRUEPORT_CACHE": "/own"}).folder == Path("/own/calls") / versions()
    assert memory_of({"HOME": "/h", "TRUEPORT_CACHE": "OFF"}).folder is None


def test_a_translation_of_the_users_own_is_never_remembered(cache: Path) -> None:
    table = {torch.ops.aten.round.default: lambda op, x: op.Round(x)}
    for _ in range(2):
        found = calls(custom_translation_table=table)
        assert found.equal == 2
    assert len(files(cache)) == 1
    assert "round" not in files(cache)[0].read_text()


def test_a_difference_by_design_is_remembered_with_its_words(cache: Path) -> None:
    class Pools(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.amax(x, 1)

    reports = [trueport.check(Pools().eval(), (torch.randn(3, 5),)) for _ in range(2)]
    first, second = (report.calls for report in reports)
    assert first is not None
    assert second is not None
    assert second.remembered == 1
    assert first.by_design == second.by_design


def _write(folder: str, count: int) -> None:
    memory = Memory(Path(folder))
    for number in range(count):
        memory.keep(f"call {number}", "x" * 1000)
        assert memory.agreed(f"call {number}") == "x" * 1000


def test_two_processes_write_the_same_calls(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_write, args=(str(tmp_path), 100)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    memory = Memory(tmp_path)
    assert all(memory.agreed(f"call {number}") for number in range(100))
    assert len(os.listdir(tmp_path)) == 100
