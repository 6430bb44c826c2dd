"""What every test of capture says: what was captured, run again with real tensors, gives what eager gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

import trueport
from trueport.capture.effects.state import StateMode
from trueport.capture.trace import capture
from trueport.errors import ExportError
from trueport.examine import run_eager
from trueport.graph.regions import Graph, Node
from trueport.load.request import make_job
from trueport.load.structures import flatten
from trueport.lower.table import is_leaf
from trueport.program import Program
from trueport.verify.replay import replay

FREE = torch.export.Dim.DYNAMIC


def assert_captured(
    model: object,
    args: tuple[Any, ...],
    others: Iterable[tuple[Any, ...]] = (),
    *,
    dynamic_shapes: Any = None,
    kwargs: dict[str, Any] | None = None,
    constants: Sequence[str] = (),
    state: StateMode = StateMode.REFUSE,
) -> Graph:
    """Trace `model` on `args`; eager and the replayed graph must agree there and on each of `others`.

    Structure, Python types, dtypes and shapes must be the same; floats up to the noise of another order of sums.
    An operator without a translation is no matter of capture: it is replayed as it is.
    `others` are positional arguments, with the example's `kwargs`.
    """
    job = make_job(model, args, kwargs, dynamic_shapes=dynamic_shapes, constants=constants)
    run_eager(job, [leaf.value for leaf in job.leaves])  # as in an export: eager comes first, and fills its caches
    graph = capture(job, is_leaf, state)
    errors = [found for found in graph.diagnostics if found.is_error and found.code != "TP401"]
    assert not errors, "\n".join(map(str, errors))
    for given in (args, *others):
        values = job.call.flatten((tuple(given), dict(kwargs or {})))
        expected = run_eager(job, values)
        feeds = {leaf.name: value for leaf, value in zip(job.leaves, values, strict=True) if leaf.is_input}
        outputs = list(replay(graph, {**feeds, **graph.lifted}).values())
        assert_same(graph.returns.build(outputs[: graph.returns.count]), expected)
    return graph


def assert_same(got: Any, expected: Any) -> None:
    """Equal in structure, type, dtype, shape and value."""
    ours, our_structure = flatten(got)
    theirs, their_structure = flatten(expected)
    assert our_structure.same_as(their_structure), f"{our_structure.describe()} != {their_structure.describe()}"
    assert type(got) is type(expected)
    for mine, wanted in zip(ours, theirs, strict=True):
        if isinstance(wanted.value, torch.Tensor):
            torch.testing.assert_close(
                mine.value, wanted.value, equal_nan=True, msg=lambda m, p=wanted.path: f"{p}: {m}"
            )
        else:
            assert type(mine.value) is type(wanted.value), wanted.path
            assert mine.value == wanted.value, wanted.path


def assert_exported(
    model: object, args: tuple[Any, ...], others: Iterable[tuple[Any, ...]] = (), **options: Any
) -> Program:
    """The whole way: `export` itself compares with eager on drawn inputs; then the program is called like the model."""
    program = trueport.export(model, args, **options)
    assert program.report.verified
    kwargs = options.get("kwargs") or {}
    for given in (args, *others):
        with torch.no_grad():
            assert_same(program(*given, **kwargs), model(*given, **kwargs))  # type: ignore[operator]
    return program


def refusal(model: object, args: tuple[Any, ...], **options: Any) -> ExportError:
    """The ExportError of an export that must be refused."""
    try:
        trueport.export(model, args, **options)
    except ExportError as refused:
        return refused
    raise AssertionError("the export was not refused")


def line_of(found: Any) -> str:
    """The text of the line that a diagnostic points at."""
    import linecache

    assert found.where is not None, f"no place: {found}"
    return linecache.getline(found.where.file, found.where.line).strip()


def ops_of(graph: Graph) -> list[str]:
    return [str(node.op) for node in graph.root.walk()]


def nodes_of(graph: Graph, name: str) -> list[Node]:
    return [node for node in graph.root.walk() if str(node.op).startswith(name)]
