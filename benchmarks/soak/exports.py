"""Hundreds of exports and refusals in one process, which is in the end as it was."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn

import trueport
from benchmarks.soak.models import EXPORTED, REFUSED, example, made
from tests.global_state import torch_state

_MODEL_BYTES = 20 << 20


def run(count: int, folder: Path) -> dict[str, Any]:
    """`count` exports and `count` refusals, after two rounds that fill the caches which Python and torch keep."""
    tempfile.tempdir = str(folder.parent)  # others use the machine's own meanwhile
    rounds = [*EXPORTED.items(), *REFUSED.items()]
    for _ in range(2):
        for name, entry in rounds:
            _once(name, entry, folder)
    before = _state(folder)
    times: dict[str, list[float]] = {}
    wrong: list[str] = []
    for table, expected in ((EXPORTED, True), (REFUSED, False)):
        entries = list(table.items())
        for at in range(count):
            name, entry = entries[at % len(entries)]
            began = time.process_time()
            if _once(name, entry, folder) is not expected:
                wrong.append(name)
            times.setdefault(name, []).append(time.process_time() - began)
            if at % 20 == 0:
                print(f"exports: {'exported' if expected else 'refused'} {at}/{count}", flush=True)
    after = _state(folder)
    grown = {what: (before[what], after[what]) for what in before if before[what] != after[what]}
    slower = {name: _slower(seconds) for name, seconds in times.items() if len(seconds) >= 9}
    faults = [f"{name}: not as expected" for name in wrong]
    faults += [
        f"{what}: {was} before, {now} after" for what, (was, now) in grown.items() if not _is_level(what, was, now)
    ]
    return {
        "exports": count,
        "refusals": count,
        "before": {what: str(value) for what, value in before.items() if what != "torch"},
        "after": {what: str(value) for what, value in after.items() if what != "torch"},
        "torch's global state": "as before" if before["torch"] == after["torch"] else "changed",
        "processor time of the last third over the first, by model (median)": slower,
        "faults": faults,
    }


def _once(name: str, entry: Any, folder: Path) -> bool:
    model, given = made(entry), example(*entry[1])
    path = folder / "net.onnx"
    try:
        trueport.export(
            model, (given,), path, dynamic_shapes=({0: "n"},), overwrite=True, external_data="branch" in name
        )
        return True
    except trueport.ExportError:
        return False


def _slower(seconds: list[float]) -> float:
    third = len(seconds) // 3
    return round(statistics.median(seconds[-third:]) / statistics.median(seconds[:third]), 2)


def _state(folder: Path) -> dict[str, Any]:
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "trueport-limit":
            thread.join(60)  # it ends by itself when there has been nothing to limit for a moment
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed counts as memory until somebody asks for it
    process = psutil.Process()
    found = gc.get_objects()
    storages = {}
    for each in found:
        if type(each) in (torch.Tensor, nn.Parameter) and each.device.type == "cpu":
            storage = each.untyped_storage()
            storages[storage._cdata] = storage.nbytes()
    return {
        "resident memory (bytes)": process.memory_info().rss,
        "bytes of tensors": sum(storages.values()),
        "objects": len(found),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "processes": len(process.children(recursive=True)),
        "temporary files": sorted(path.name for path in Path(tempfile.gettempdir()).glob("trueport-work-*")),
        "files beside the model": sum(1 for _ in folder.iterdir()) - len(list(folder.glob("*.data"))),
        "signal handlers": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "timers": [signal.getitimer(which) for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)],
        "torch": torch_state(),
    }


def _is_level(what: str, before: Any, after: Any) -> bool:
    if what in ("resident memory (bytes)", "bytes of tensors"):
        return bool(after - before < _MODEL_BYTES)
    if what == "objects":  # caches of abstract classes and the like grow by some; an export left 615 of its own
        return bool(after - before < 2000)
    return bool(before == after)
