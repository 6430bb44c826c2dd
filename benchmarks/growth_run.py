"""One program of `python -m benchmarks.growth`, in a process of its own."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from google.protobuf.message import DecodeError

import trueport
from benchmarks import children
from trueport.capture.loops.rounds import Rounds


def functions(count: int) -> str:
    """Functions of the module, called one after the other; each has an `if` of its own."""
    made = "".join(
        f"""
def step{i}(x):
    if x.sum() > {i}:
        x = x * 2
    return x + 1
"""
        for i in range(count)
    )
    calls = "".join(f"        x = step{i}(x)\n" for i in range(count))
    return f"{made}\nclass Net(torch.nn.Module):\n    def forward(self, x):\n{calls}        return x\n"


def layers(count: int) -> str:
    """Layers of classes of their own, each with an `if` in its `forward`."""
    made = "".join(
        f"""
class Layer{i}(torch.nn.Module):
    def forward(self, x):
        if x.sum() > {i}:
            x = x * 2
        return x + 1
"""
        for i in range(count)
    )
    listed = ", ".join(f"Layer{i}()" for i in range(count))
    init = f"    def __init__(self):\n        super().__init__()\n        self.all = torch.nn.Sequential({listed})\n"
    forward = "    def forward(self, x):\n        return self.all(x)\n"
    return f"{made}\nclass Net(torch.nn.Module):\n{init}\n{forward}"


def nested(count: int) -> str:
    """Loops over a free length, each in the body of the other."""
    loops = "".join(f"{'    ' * (i + 2)}for i{i} in range(x.shape[0]):\n" for i in range(count))
    body = f"{'    ' * (count + 2)}total = total + x[i{count - 1}]\n"
    return f"{_FORWARD}        total = x.new_zeros(())\n{loops}{body}        return total\n"


def nested_each_changing(count: int) -> str:
    """The same, where each level changes a name of its own."""
    names = ", ".join(f"t{i}" for i in range(count))
    start = "        " + "".join(f"t{i} = " for i in range(count)) + "x.new_zeros(())\n"
    loops = "".join(
        f"{'    ' * (i + 2)}for i{i} in range(x.shape[0]):\n{'    ' * (i + 3)}t{i} = t{i} + x[i{i}]\n"
        for i in range(count)
    )
    return f"{_FORWARD}{start}{loops}        return {names}\n"


def elifs(count: int) -> str:
    """Arms of one `elif` chain."""
    arms = "".join(f"        elif s < {i}:\n            y = x * {i}\n" for i in range(1, count))
    chain = f"        if s < 0:\n            y = x\n{arms}        else:\n            y = x - 1\n"
    return f"{_FORWARD}        s = x.sum()\n{chain}        return y + 1\n"


def returns(count: int) -> str:
    """Early returns."""
    ends = "".join(f"        if s < {i}:\n            return x * {i}\n" for i in range(count))
    return f"{_FORWARD}        s = x.sum()\n{ends}        return x\n"


def exits(count: int) -> str:
    """Pairs of `break` and `continue` in one loop."""
    pairs = "".join(
        f"            if total > {i + 100}:\n                break\n"
        f"            if row > {i}:\n                total = total + {i}\n                continue\n"
        for i in range(count)
    )
    loop = f"        for row in x:\n{pairs}            total = total + row\n"
    return f"{_FORWARD}        total = x.new_zeros(())\n{loop}        return total\n"


_FORWARD = "class Net(torch.nn.Module):\n    def forward(self, x):\n"
FAMILIES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "functions": (functions, (5, 10, 20, 40)),
    "layers": (layers, (5, 10, 20, 40)),
    "nested": (nested, (2, 4, 8, 12)),
    "nested_each_changing": (nested_each_changing, (2, 4, 8, 12)),
    "elifs": (elifs, (8, 16, 32, 64, 128)),
    "returns": (returns, (8, 16, 40, 80)),
    "exits": (exits, (4, 8, 16, 32)),
}


@dataclass(frozen=True)
class Cost:
    """One export of one program."""

    family: str
    count: int
    seconds: float | None
    traces: int
    rounds: int
    written: str


def imported(text: str, folder: Path, name: str) -> Any:
    """A module with this text; a function without a file cannot be rewritten."""
    file = folder / f"{name}.py"
    file.write_text(f"import torch\n{text}", "utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(text: str, folder: Path) -> tuple[int, int, str]:
    """Export a program: how often it was traced, how often the body of a loop was, and what came of it.

    The example has one element, so that eager runs one round of loops within loops and not three to the twelfth.
    """
    model = imported(text, folder, "grown").Net().eval()
    traced, rounds = Rounds.trace, 0

    def counted(*args: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return traced(*args)

    Rounds.trace = counted  # type: ignore[method-assign]
    file = folder / "grown.onnx"
    try:
        program = trueport.export(model, (torch.ones(1),), file, dynamic_shapes={"x": {0: "n"}}, verify=False)
    except trueport.ExportError as refused:
        return 0, rounds, ", ".join(found.code for found in refused.diagnostics if found.is_error)
    finally:
        Rounds.trace = traced  # type: ignore[method-assign]
    try:
        onnx.load(file)
    except DecodeError as failure:
        return len(program._graph.restarts) + 1, rounds, f"unreadable: {type(failure).__name__}"
    return len(program._graph.restarts) + 1, rounds, "yes"


def measure(family: str, count: int, *, folder: Path, phase: children.Phase) -> Cost:
    text = FAMILIES[family][0](count)
    for turn in ("first", "again"):
        phase(turn)
        own = folder / turn
        own.mkdir()
        start = time.process_time()
        traces, rounds, written = exported(text, own)
    return Cost(family, count, time.process_time() - start, traces, rounds, written)
