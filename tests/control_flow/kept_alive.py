"""What every test of this folder says: one export, and eager == replay == ONNX Runtime on every input.

The inputs of a test take every arm and run its loops 0 times, once and often.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch

import trueport
from tests.capture.helpers import assert_same
from trueport.errors import ExportError
from trueport.examine import run_eager
from trueport.graph.regions import Control
from trueport.load.request import make_job
from trueport.program import Program
from trueport.verify.replay import replay

FREE = torch.export.Dim.DYNAMIC
ROWS = ({0: FREE},)
UP, DOWN = torch.ones(4, 3), -torch.ones(4, 3)
"""One input for each side of `x.sum() > 0`."""


def rows(*counts: int) -> list[tuple[torch.Tensor]]:
    """Tensors with these many rows of three."""
    torch.manual_seed(sum(counts))
    return [(torch.randn(count, 3),) for count in counts]


def numbers(*values: float) -> list[tuple[torch.Tensor]]:
    return [(torch.tensor(value),) for value in values]


def assert_kept_alive(
    model: Any,
    args: tuple[Any, ...],
    others: Iterable[tuple[Any, ...]],
    *,
    dynamic_shapes: Any = None,
    ifs: int | None = None,
    loops: int | None = None,
    verify: bool = False,
    eager: Any = None,
    **options: Any,
) -> Program:
    """Export once on `args`; the graph, replayed, and the ONNX model must give what eager gives, there and on `others`.

    `ifs` and `loops` are how many of each the graph holds. `eager` stands in where torch itself refuses the model.
    """
    program = trueport.export(model, args, dynamic_shapes=dynamic_shapes, verify=verify, **options)
    job = make_job(eager or model, args, dynamic_shapes=dynamic_shapes, constants=options.get("constants", ()))
    graph = program.captured
    for given in (args, *others):
        expected = run_eager(job, job.call.flatten((copy.deepcopy(given), {})))
        values = job.call.flatten((copy.deepcopy(given), {}))
        feeds = {leaf.name: value for leaf, value in zip(job.leaves, values, strict=True) if leaf.is_input}
        outputs = list(replay(graph, {**feeds, **graph.lifted}).values())
        assert_same(graph.returns.build(outputs[: graph.returns.count]), expected)
        assert_same(program(*copy.deepcopy(given)), expected)
    if ifs is not None:
        assert count(program, Control.IF) == ifs
    if loops is not None:
        assert count(program, Control.LOOP) == loops
    return program


def count(program: Program, kind: Control) -> int:
    return sum(node.op is kind for node in program.captured.root.walk())


def refused(model: Any, args: tuple[Any, ...], **options: Any) -> Any:
    """The first error of an export that must be refused."""
    try:
        trueport.export(model, args, verify=False, **options)
    except ExportError as error:
        return error.diagnostics[0]
    raise AssertionError("the export was not refused")
