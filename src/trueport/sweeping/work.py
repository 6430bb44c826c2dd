"""One model of a sweep: `trueport export` in a process of its own, and what came of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueport import temporary
from trueport.sweeping.entries import Entry
from trueport.sweeping.rows import Outcome, PeerRow, SweepRow

_GRACE = 30.0
"""Seconds in which a command that is out of time says so by itself, before it is killed."""
_NO_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory", "not enough memory", "bad_alloc")
_TRUEPORT = (sys.executable, "-m", "trueport")


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    """Negative: the signal that ended it."""
    output: str
    complaint: str
    seconds: float
    cpu_seconds: float
    peak_memory: int
    out_of_time: bool

    @property
    def lacked_memory(self) -> bool:
        return any(text in self.complaint + self.output for text in _NO_MEMORY)


def run_entry(entry: Entry, versions: Mapping[str, str], peers: Sequence[str] = ()) -> tuple[SweepRow, str]:
    """The row of a model, and the whole report as JSON ('' where there is none)."""
    with temporary.folder() as work:
        folder = (
            work / "files"
        )  # the folder itself is locked while it is in use, and who writes a file locks its folder
        folder.mkdir()
        file = folder / "model.onnx"
        flags = [*entry.flags(), *entry.options, "-o", str(file), "--no-proof", "--output-format", "json", "--quiet"]
        ended = _run([*_TRUEPORT, "export", entry.target, *flags, "--timeout", f"{entry.timeout:g}"], entry, folder)
        size = sum(part.stat().st_size for part in folder.glob("model.onnx*") if part.is_file()) or None
        others = {peer: _peer(peer, entry, folder) for peer in peers}
    report = _report(ended.output)
    errors = [found for found in report.get("diagnostics", []) if found["severity"] == "error"]
    first = errors[0] if errors else {}
    row = SweepRow(
        name=entry.name,
        key=entry.key(versions, peers),
        target=entry.target,
        outcome=_outcome(ended, report),
        code=first.get("code", ""),
        message=first.get("message", "") or ("" if report else _last_line(ended)),
        where=_where(first),
        inputs=len(report.get("checks", [])),
        undecided=len(report.get("undecided", [])),
        warnings=tuple(found["code"] for found in report.get("diagnostics", []) if found["severity"] == "warning"),
        nodes=report.get("nodes"),
        size=size,
        cpu_seconds=round(ended.cpu_seconds, 2),
        seconds=round(ended.seconds, 2),
        peak_memory=ended.peak_memory,
        versions=dict(versions),
        peers=others,
    )
    return row, ended.output if report else ""


def _outcome(ended: Ended, report: Mapping[str, Any]) -> Outcome:
    codes = {found["code"] for found in report.get("diagnostics", ())}
    if ended.out_of_time or "TP007" in codes or "error[TP007]" in ended.complaint:
        return Outcome.OUT_OF_TIME
    if ended.code == 0 and report:
        return Outcome.PARTLY if report["partly"] or not report["verified"] else Outcome.FAITHFUL
    if ended.lacked_memory:
        return Outcome.OUT_OF_MEMORY
    if ended.code == 1 and report:
        return Outcome.REFUSED
    return {2: Outcome.USAGE, 3: Outcome.OUR_FAULT}.get(ended.code, Outcome.CRASHED)


def _peer(peer: str, entry: Entry, folder: Path) -> PeerRow:
    """Another exporter's file of the same model, held against eager."""
    file = folder / f"{peer}.onnx"
    command = [sys.executable, "-m", "trueport.sweeping.peers", peer, str(file), entry.target, *entry.flags()]
    exported = _run(command, entry, folder)
    if not file.is_file():
        how = "out of time" if exported.out_of_time else "out of memory" if exported.lacked_memory else "no file"
        return PeerRow(outcome=how, message=_last_line(exported), cpu_seconds=round(exported.cpu_seconds, 2))
    flags = [*entry.flags(), "--output-format", "json", "--quiet", "--timeout", f"{entry.timeout:g}"]
    judged = _run([*_TRUEPORT, "verify", str(file), entry.target, *flags], entry, folder)
    report = _report(judged.output)
    errors = [found for found in report.get("diagnostics", []) if found["severity"] == "error"]
    code = errors[0]["code"] if errors else ""
    outcome = "faithful" if judged.code == 0 else {"TP805": "different", "TP801": "does not load"}.get(code, "refused")
    message = errors[0]["message"] if errors else "" if report else _last_line(judged)
    return PeerRow(outcome=outcome, code=code, message=message, cpu_seconds=round(exported.cpu_seconds, 2))


def _run(command: Sequence[str], entry: Entry, folder: Path) -> Ended:
    """With all that it started, it is gone afterwards."""
    printed, complained = folder / "stdout", folder / "stderr"
    began = time.monotonic()
    with printed.open("wb") as out, complained.open("wb") as err:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=entry.folder, start_new_session=True
        )
    if entry.memory is not None and hasattr(resource, "prlimit"):
        resource.prlimit(child.pid, resource.RLIMIT_DATA, (entry.memory, entry.memory))
    late = threading.Event()

    def end() -> None:
        late.set()
        _end_group(child.pid)

    timer = threading.Timer(entry.timeout + _GRACE, end)
    timer.start()
    try:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    finally:
        timer.cancel()
        _end_group(child.pid)
    return Ended(
        code=child.returncode,
        output=printed.read_text(encoding="utf-8", errors="replace"),
        complaint=complained.read_text(encoding="utf-8", errors="replace"),
        seconds=time.monotonic() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_memory=used.ru_maxrss << 10,
        out_of_time=late.is_set(),
    )


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # all of them have ended


def _report(output: str) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _where(found: Mapping[str, Any]) -> str:
    calls = (found.get("place") or {}).get("calls", ())
    return f"{calls[-1]['file']}:{calls[-1]['line']}" if calls else ""


def _last_line(ended: Ended) -> str:
    lines = [line for line in ended.complaint.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("error[")), lines[-1] if lines else "")
    return told[:300] or f"ended with {ended.code}"
