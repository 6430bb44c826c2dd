"""One timed export in a new interpreter. Nothing here prints; the numbers go back to the parent."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from benchmarks import children
from benchmarks.bench_models import WORKLOADS, Built, decoder, tiny_mlp, weight_bytes
from benchmarks.exporters import EXPORTERS, Request


@dataclass(frozen=True)
class Sample:
    """One export. `failed` says why there are no numbers."""

    workload: str
    exporter: str
    failed: str = ""
    cpu_seconds: float = 0.0
    """User and system time of the exporting process during the call."""
    children_cpu_seconds: float = 0.0
    """The same of the processes it started and waited for."""
    wall_seconds: float = 0.0
    memory_before: int = 0
    """Resident bytes with the model built and everything imported."""
    peak_memory: int = 0
    weight_bytes: int = 0
    file_bytes: int = 0

    @property
    def memory_added(self) -> int:
        return max(0, self.peak_memory - self.memory_before)

    @property
    def memory_over_weights(self) -> float:
        return self.memory_added / self.weight_bytes


def modules_used(exporter: str, *, folder: Path, phase: children.Phase) -> list[str]:
    """What an exporter imports in the course of an export; imported beforehand when timing, to time only work."""
    for index, built in enumerate((tiny_mlp(), decoder(1, True))):
        _export(exporter, built, folder / f"{index}.onnx")
    return [name for name, module in sys.modules.items() if getattr(module, "__spec__", None) is not None]


def measure(workload: str, exporter: str, modules: list[str], *, folder: Path, phase: children.Phase) -> Sample:
    torch.set_num_threads(1)
    for name in modules:
        with contextlib.suppress(ImportError):  # names that libraries put into sys.modules without a file
            importlib.import_module(name)
    if WORKLOADS[workload].warm_up:
        _export(exporter, tiny_mlp(), folder / "first.onnx")
    built = WORKLOADS[workload].build()
    gc.collect()
    before = psutil.Process().memory_info().rss
    phase("export")
    cpu, children_cpu, wall = time.process_time(), _children_cpu(), time.perf_counter()
    _export(exporter, built, folder / "model.onnx")
    cpu, children_cpu, wall = time.process_time() - cpu, _children_cpu() - children_cpu, time.perf_counter() - wall
    phase("exported")
    return Sample(
        workload,
        exporter,
        cpu_seconds=cpu,
        children_cpu_seconds=children_cpu,
        wall_seconds=wall,
        memory_before=before,
        weight_bytes=weight_bytes(built[0]),
        file_bytes=sum(file.stat().st_size for file in folder.glob("model.onnx*")),
    )


def _children_cpu() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _export(exporter: str, built: Built, path: Path) -> None:
    model, args, dynamic_shapes = built
    EXPORTERS[exporter](Request(model, args, {}, dynamic_shapes, path, verify=False))
