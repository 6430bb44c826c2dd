"""What becomes of one program: run eagerly, exported, and compared on inputs that take different ways through it."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import trueport
from trueport.errors import ExportError
from trueport.load.structures import flatten
from trueport.verify.replay import replay

Args = tuple[Any, ...]

_COUNTER = itertools.count()
_SECONDS = 60
_OUR_FAULTS = ("TP402", "TP9")


class Verdict(Enum):
    FAITHFUL = "faithful"
    DIAGNOSED = "diagnosed"
    VOID = "void"  # eager itself refuses nearly everything: says nothing
    WRONG = "WRONG"
    CRASH = "CRASH"

    @property
    def is_bug(self) -> bool:
        return self in (Verdict.WRONG, Verdict.CRASH)


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    detail: str = ""
    code: str = ""


class _TooLong(Exception):
    pass


def inputs() -> list[Args]:
    """x of several sizes, all signs, small whole numbers; then y, an int tensor c, an int n and a float q."""
    made = []
    for index, size in enumerate([3, 1, 2, 5, 0, 4, 3, 2]):
        source = torch.Generator().manual_seed(index)
        x = torch.randint(-3, 4, (size, 3), generator=source).float()
        y = torch.randint(-3, 4, (3,), generator=source).float()
        if index in (2, 5):
            x, y = x.abs(), y.abs()
        if index in (3, 6):
            x, y = -x.abs(), -y.abs()
        made.append((x, y, torch.tensor(index % 4), (index * 2 + 1) % 5, index / 2 - 2.0))
    return made


def judge(source: str, optimize: bool = True) -> Outcome:
    """Run the whole way on a program's source, with passes or without."""
    with tempfile.TemporaryDirectory(prefix="trueport-fuzz-") as folder, _time_limit():
        return judge_model(load(source, Path(folder)), optimize)


def load(source: str, folder: Path) -> torch.nn.Module:
    """The program's model, imported from a file, so that it has a source; its weights are whole numbers."""
    name = f"fuzzed_{next(_COUNTER)}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: torch.nn.Module = module.Net().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-1, 2, parameter.shape, generator=torch.Generator().manual_seed(5)))
    return model


def judge_model(model: torch.nn.Module, optimize: bool = True) -> Outcome:
    accepted = [(args, result) for args in inputs() if (result := _eager(model, args)) is not None]
    if len(accepted) < 3:
        return Outcome(Verdict.VOID)
    example = accepted[0][0]
    try:
        program = trueport.export(
            model,
            copy.deepcopy(example),
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC}, None, None, None, None),
            verify=False,
            optimize=optimize,
        )
    except ExportError as refused:
        first = refused.diagnostics[0]
        if first.code.startswith(_OUR_FAULTS):
            return Outcome(Verdict.CRASH, _with_cause(refused), f"{first.code} {type(refused.__cause__).__name__}")
        return Outcome(Verdict.DIAGNOSED, str(refused), first.code)
    except _TooLong:
        raise
    except Exception as failure:
        return Outcome(Verdict.CRASH, "".join(traceback.format_exception(failure)[-12:]), type(failure).__name__)
    for args, expected in accepted:
        wrong = _compare_replay(program, args, expected) or _compare_runtime(program, args, expected)
        if wrong is not None:
            return wrong
    return Outcome(Verdict.FAITHFUL)


def _eager(model: torch.nn.Module, args: Args) -> list[Any] | None:
    """The leaves that eager returns; None where it refuses the input."""
    try:
        with torch.no_grad():
            returned = copy.deepcopy(model)(*copy.deepcopy(args))
    except (AssertionError, AttributeError, IndexError, NameError, RuntimeError, TypeError, ValueError):
        return None
    leaves = [leaf.value for leaf in flatten(returned)[0]]
    return leaves if all(isinstance(leaf, (torch.Tensor, bool, int, float)) for leaf in leaves) else None


def _compare_replay(program: Any, args: Args, expected: list[Any]) -> Outcome | None:
    graph = program.captured
    args = copy.deepcopy(args)
    given = {i.name: value for i, value in zip(graph.inputs, args, strict=False)}
    try:
        outputs = list(replay(graph, given).values())
    except Exception as failure:
        return Outcome(
            Verdict.CRASH, f"replay on {args}\n{''.join(traceback.format_exception(failure)[-6:])}", "replay"
        )
    return _compare("replay", args, outputs, expected)


def _compare_runtime(program: Any, args: Args, expected: list[Any]) -> Outcome | None:
    args = copy.deepcopy(args)
    try:
        outputs = [leaf.value for leaf in flatten(program(*args))[0]]
    except Exception as failure:
        return Outcome(Verdict.CRASH, f"ONNX Runtime on {args}\n{failure}", "runtime")
    return _compare("ONNX Runtime", args, outputs, expected)


def _compare(who: str, args: Args, got: list[Any], expected: list[Any]) -> Outcome | None:
    same = len(got) == len(expected) and all(_same(a, b) for a, b in zip(got, expected, strict=True))
    return None if same else Outcome(Verdict.WRONG, f"{who} on {args}\ngave  {got}\neager {expected}", who)


def _same(got: Any, expected: Any) -> bool:
    """Exactly equal, and a tensor of the same dtype and shape where eager has a tensor.

    Where eager has a number it may be a 0-d tensor: the name was a tensor in another arm.
    """
    if isinstance(expected, torch.Tensor):
        return (
            isinstance(got, torch.Tensor)
            and got.dtype == expected.dtype
            and got.shape == expected.shape
            and bool(torch.equal(got, expected))
        )
    if isinstance(got, torch.Tensor):
        return got.dim() == 0 and bool(got.item() == expected)
    return type(got) is type(expected) and bool(got == expected)


def _with_cause(refused: ExportError) -> str:
    cause = refused.__cause__
    return str(refused) + ("\n" + "".join(traceback.format_exception(cause)[-8:]) if cause is not None else "")


@contextmanager
def _time_limit() -> Iterator[None]:
    """A program that takes for ever is a crash too: of the processor's time, so that a busy machine finds none."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _TooLong(f"took more than {_SECONDS} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main() -> None:
    """Judge one file: `python -m tests.fuzz.outcome program.py`."""
    outcome = judge(Path(sys.argv[1]).read_text())
    print(outcome.verdict.value, outcome.code)
    print(outcome.detail)


if __name__ == "__main__":
    main()
