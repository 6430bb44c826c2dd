"""`python -m benchmarks.rewrite_cost`: what rewriting a function costs, and how often a model is traced for it.

Rewriting is counted in what Python itself takes to parse and compile the same function, both in processor time, the
best of several runs: that ratio is the same on a busy machine. The functions are dense: more than a third of their
lines decide something. Each function that decides is found by the trace running into it, so a model is traced once more
for each of them; `export` is the second export of a process, in traces of the whole model.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import trueport
from benchmarks import results
from trueport.capture import trace
from trueport.rewrite import functions

_PIECE = """
        h = self.fc(x) + {i}
        if h.sum() > {i} and x.shape[0] > 2:
            y = y + h * 2
            z = [y, h]
        elif h.max() < 0:
            y = y - h.abs()
        else:
            y = torch.relu(y)
        for j in range(x.shape[0]):
            if y[j].sum() > 3:
                break
            total = total + y[j] * torch.sin(x[j]) / (1 + h[j].abs())
            out.append(total)
        while total.sum() > 10:
            total = total / 2
            n = n + 1
            if n > 5 and total.max() < 2:
                continue
            total = total - 1
"""
_FUNCTION = """
    def forward(self, x):
        y, total, n, out = x, x[0], 0, []
{pieces}
        return y, total, n
"""
_SMALL = """
    def forward(self, x):
        x = self.fc(x)
        if x.sum() > 0:
            x = x * 2
        return x
"""
_CLASS = """
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
{forward}
"""
_RUNS = 15


def imported(text: str, folder: Path, name: str) -> Any:
    """A module with this text; a function without a file cannot be rewritten."""
    file = folder / f"{name}.py"
    file.write_text(f"import torch\n{text}", "utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cost(work: Callable[[], object]) -> float:
    """Seconds of the processor, the best of several runs."""
    best = float("inf")
    for _ in range(_RUNS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def of_functions(folder: Path) -> list[list[object]]:
    rows: list[list[object]] = []
    for count in (0, 1, 2, 5, 15):
        forward = _FUNCTION.format(pieces="".join(_PIECE.format(i=i) for i in range(count))) if count else _SMALL
        text = _CLASS.format(name="Net", forward=forward)
        code = imported(text, folder, f"pieces_{count}").Net.forward.__code__

        def anew(code: Any = code) -> None:
            functions._rewritten_code.cache_clear()
            functions._parsed.cache_clear()
            functions.rewritten_code(code)

        def known(code: Any = code) -> None:
            functions.rewritten_code(code)

        python = cost(lambda text=text: compile(ast.parse(text), "net.py", "exec"))  # type: ignore[misc]
        again = cost(known)
        seconds = cost(anew)
        lines = len(forward.strip().splitlines())
        rows.append([lines, f"{1000 * seconds:.1f}", f"{seconds / python:.1f}", f"{again / python:.3f}"])
    return rows


def of_exports(folder: Path) -> list[list[object]]:
    rows: list[list[object]] = []
    for count in (1, 2, 4, 8):
        classes = "".join(_CLASS.format(name=f"Block{i}", forward=_SMALL) for i in range(count))
        module = imported(classes, folder, f"blocks_{count}")
        model = torch.nn.Sequential(*(getattr(module, f"Block{i}")() for i in range(count))).eval()
        traces: list[float] = []
        traced = trace._trace

        def timed(*args: Any, traces: list[float] = traces, traced: Any = traced) -> Any:
            start = time.process_time()
            try:
                return traced(*args)
            finally:
                traces.append(time.process_time() - start)

        trace._trace = timed
        try:
            trueport.export(model, (torch.ones(2, 3),), verify=False)
            traces.clear()
            start = time.process_time()
            trueport.export(model, (torch.ones(2, 3),), verify=False)
            seconds = time.process_time() - start
        finally:
            trace._trace = traced
        rows.append([count, len(traces), f"{sum(traces) / traces[-1]:.1f}", f"{seconds / traces[-1]:.1f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m benchmarks.rewrite_cost", description=__doc__).parse_args(arguments)
    results.circumstances()
    with tempfile.TemporaryDirectory() as folder:
        one, all_ = of_functions(Path(folder)), of_exports(Path(folder))
    functions_table = results.table(["lines", "ms", "in parse + compile", "again"], one)
    exports_table = results.table(["functions that decide", "traces", "all traces, in last ones", "export"], all_)
    print(functions_table, exports_table, sep="\n")
    title = f"# What rewriting costs\n\n{(__doc__ or '').strip()}\n"
    kept = {"functions": [list(map(str, row)) for row in one], "exports": [list(map(str, row)) for row in all_]}
    results.keep("rewrite_cost", kept, f"{title}\n{functions_table}\n\n{exports_table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
