"""`python -m benchmarks.large [GB]`: a model of 6 GB, exported and verified, and what that takes.

A stack of `nn.Linear`, made on the spot, in a process of its own that measures itself: the time of each stage, and the
most memory that the process, and its worker, held at any moment beyond what the model itself takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

WIDTH = 8192
RESULTS = Path(__file__).parent / "results" / "large.md"
LIMIT = 0.1
"""Of the weights: what the process may take above them."""


class Peak:
    """The most memory that is a process's own, sampled. Mapped files are not counted: the system takes those back."""

    def __init__(self) -> None:
        self.own = self.workers = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._over.wait(0.05):
            self.own = max(self.own, anonymous(me))
            self.workers = max(self.workers, sum(map(resident, me.children(recursive=True))))


def anonymous(process: psutil.Process) -> int:
    """Memory of its own: what is resident, but for what is shared or mapped from files."""
    try:
        known = process.memory_info()
        return int(known.rss - known.shared)
    except psutil.Error:
        return 0


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def measure(gigabytes: float, width: int = WIDTH) -> dict[str, float | str]:
    """Make a model of this size, export and verify it; what it took, in bytes and seconds."""
    import torch

    import trueport
    from trueport import progress

    layers = max(1, round(gigabytes * 1e9 / (4 * width * width)))
    torch.manual_seed(0)
    small = torch.nn.Linear(8, 8)
    with tempfile.TemporaryDirectory(prefix="trueport-large-") as folder:
        trueport.export(small, (torch.ones(2, 8),), Path(folder, "small.onnx"))  # everything is loaded that ever is
        stack = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers))).eval()
        weights = sum(p.numel() * p.element_size() for p in stack.parameters())
        x = torch.randn(2, width)
        before, began = anonymous(psutil.Process()), time.perf_counter()
        told = progress.Reached()
        with Peak() as peak, progress.heard_by(told), progress_lines(told):
            program = trueport.export(stack, (x,), Path(folder, "large.onnx"), dynamic_shapes={"input": {0: "batch"}})
        seconds = time.perf_counter() - began
        written = sum(path.stat().st_size for path in Path(folder).glob("large.onnx*"))
    report = program.report
    return {
        "weights": weights,
        "layers": layers,
        "above": peak.own - before,
        "workers": peak.workers,
        "seconds": seconds,
        "written": written,
        "inputs": len(report.checks),
        "verified": report.verified and report.ok,
        "stages": ", ".join(f"{stage} {spent:.1f} s" for stage, spent in report.seconds.items()),
    }


class progress_lines:
    """A line on stderr every ten seconds."""

    def __init__(self, told: object) -> None:
        self._told, self._over = told, threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def _tell(self) -> None:
        while not self._over.wait(10):
            print(self._told, file=sys.stderr, flush=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()


def main(gigabytes: float) -> None:
    command = [sys.executable, "-m", "benchmarks.large", "--measure", str(gigabytes)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
    share = found["above"] / found["weights"]
    lines = [
        "# A model of several gigabytes",
        "",
        f"`python -m benchmarks.large {gigabytes:g}`, {psutil.cpu_count()} cores,"
        f" {psutil.virtual_memory().total / 2**30:.0f} GiB of memory.",
        "",
        "| | |",
        "|---|---|",
        f"| model | {found['layers']} × nn.Linear({WIDTH}, {WIDTH}), {found['weights'] / 1e9:.2f} GB of weights |",
        f"| verified | {found['verified']}, on {found['inputs']} inputs |",
        f"| written | {found['written'] / 1e9:.2f} GB |",
        f"| seconds | {found['seconds']:.0f} ({found['stages']}) |",
        f"| memory of this process above the model | {found['above'] / 1e9:.2f} GB, {share:.3f} of the weights |",
        f"| memory of the runtime's process | {found['workers'] / 1e9:.2f} GB resident, mapped files included |",
        "",
    ]
    RESULTS.write_text("\n".join(lines))
    print("\n".join(lines))
    if share > LIMIT or not found["verified"]:
        sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(float(sys.argv[2]))))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
