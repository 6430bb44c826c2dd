"""`python -m benchmarks.first_export`: what the first export of a process costs, `import torch` not counted.

A tiny MLP, so that nearly all of it is imports. Each measurement is a new interpreter with one thread, in turn, the
median of several; the first round fills the folder of compiled Python files and is not counted. Processor time of the
process that exports, and of the worker in which the check runs ONNX Runtime, which starts meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import results

_PROGRAM = """
import json, sys, time
import psutil
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
x, f = torch.randn(2, 4), sys.argv[1]
loaded = len(sys.modules)
began = time.process_time()
{export}
seconds = time.process_time() - began
workers = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
again = time.process_time()
{export}
print(json.dumps({{
    "seconds": seconds,
    "worker": sum(times.user + times.system for times in workers),
    "again": time.process_time() - again,
    "modules": len(sys.modules) - loaded,
}}))
"""
_OURS = "import trueport; trueport.export(model, (x,), f, overwrite=True{options})"
EXPORTERS = {
    "trueport, verify=False": _OURS.format(options=", verify=False"),
    "trueport, verify=False, a free size": _OURS.format(options=", verify=False, dynamic_shapes=({0: 'N'},)"),
    "trueport": _OURS.format(options=""),
    "dynamo=True": "torch.onnx.export(model, (x,), f, dynamo=True, verbose=False)",
    "dynamo=False": "torch.onnx.export(model, (x,), f, dynamo=False)",
}
_REFERENCE = "dynamo=True"
Measured = dict[str, float]


def measured(export: str, compiled: str) -> Measured:
    """One new process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="trueport-first-") as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(export=export), str(Path(folder, "model.onnx"))],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(taken: dict[str, list[Measured]]) -> list[list[object]]:
    """Medians, and the ratio to `dynamo=True` of the same round."""
    found: list[list[object]] = []
    for name, each in taken.items():
        ratios = [one["seconds"] / other["seconds"] for one, other in zip(each, taken[_REFERENCE], strict=True)]
        median = {key: statistics.median(one[key] for one in each) for key in each[0]}
        found.append(
            [
                name,
                f"{median['seconds']:.2f}",
                f"{statistics.median(ratios):.2f}",
                f"{median['worker']:.2f}" if median["worker"] else "",
                f"{median['again']:.2f}",
                f"{median['modules']:.0f}",
            ]
        )
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args(words).rounds
    results.circumstances()
    taken: dict[str, list[Measured]] = {name: [] for name in EXPORTERS}
    with tempfile.TemporaryDirectory(prefix="trueport-compiled-") as compiled:
        for number in range(rounds + 1):
            for name, export in EXPORTERS.items():
                one = measured(export, compiled)
                if number:
                    taken[name].append(one)
    header = ("exporter", "s of CPU", f"in {_REFERENCE}", "s in the worker", "second export", "modules imported")
    text = f"# The first export of a process\n\n{__doc__.strip()}\n\n{results.table(header, rows(taken))}"
    results.keep("first_export", {"measured": taken}, text)
    print(text)


if __name__ == "__main__":
    main()
