"""The work of `graph_quality`, each piece in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import torch

from benchmarks import children
from benchmarks.exporters import Request, legacy_axes
from benchmarks.graph_models import GRAPHS, llama
from benchmarks.leaves import flatten

_OWN = 5
_AGAIN = 4
"""Times that the passes run; the quickest counts."""


def _trueport(request: Request, opset: int | None = None) -> None:
    import trueport

    trueport.export(
        request.model, request.args, request.path, dynamic_shapes=request.dynamic_shapes, opset_version=opset,
        verify=False, external_data=False,
    )  # fmt: skip


def _dynamo(request: Request, opset: int) -> None:
    torch.onnx.export(
        request.model, request.args, str(request.path), dynamic_shapes=request.dynamic_shapes, dynamo=True,
        opset_version=opset, external_data=False, verbose=False,
    )  # fmt: skip


def _legacy(request: Request) -> None:
    names, axes = legacy_axes(request)
    torch.onnx.export(
        request.model, request.args, str(request.path), input_names=names, dynamic_axes=axes, dynamo=False,
        verbose=False,
    )  # fmt: skip


EXPORTS: Mapping[str, Callable[[Request], None]] = {
    "trueport": _trueport,
    "trueport, opset 23": lambda request: _trueport(request, 23),
    "dynamo 18": lambda request: _dynamo(request, 18),
    "dynamo 23": lambda request: _dynamo(request, 23),
    "legacy": _legacy,
}
SLIMMERS = ("onnxslim", "onnxsim")


def _request(name: str, path: str) -> Request:
    torch.manual_seed(0)
    model, args, dynamic_shapes = GRAPHS[name].build()
    return Request(model, args, {}, dynamic_shapes, Path(path), verify=False)


def exported(name: str, title: str, path: str, *, folder: Path, phase: children.Phase) -> None:
    torch.set_num_threads(1)
    EXPORTS[title](_request(name, path))


def slimmed(slimmer: str, before: str, path: str, *, folder: Path, phase: children.Phase) -> None:
    model = onnx.load(before)
    if slimmer == "onnxslim":
        import onnxslim

        onnx.save(onnxslim.slim(model), path)
        return
    import onnxsim

    made, is_right = onnxsim.simplify(model)
    if not is_right:
        raise RuntimeError("its own check failed")
    onnx.save(made, path)


@dataclass(frozen=True)
class Latency:
    """One file. `seconds` by what it was run on; `failed` says why there are none."""

    nodes: int
    bytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    failed: str = ""


def measured(
    name: str, files: Mapping[str, str], repeats: int, *, folder: Path, phase: children.Phase
) -> dict[str, Latency]:
    import onnxruntime

    request = _request(name, "")
    runs = {run: make(request.model) for run, make in GRAPHS[name].runs.items()} or {"": request.args}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    sessions: dict[str, Any] = {}
    found: dict[str, Latency] = {}
    for title, path in files.items():
        nodes, size = nodes_in(onnx.load(path, load_external_data=False)), Path(path).stat().st_size
        try:
            sessions[title] = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            found[title] = Latency(nodes, size)
        except Exception as error:  # noqa: BLE001 (anybody's file)
            found[title] = Latency(nodes, size, failed=f"does not load: {type(error).__name__}")
    for run, args in runs.items():
        values = [leaf.numpy() for leaf in flatten(args) if isinstance(leaf, torch.Tensor)]
        best: dict[str, float] = {}
        for turn in range(repeats + 1):
            for title, session in sessions.items():
                feeds = dict(zip((given.name for given in session.get_inputs()), values, strict=True))
                try:
                    spent = _run(session, feeds, 1 if turn == 0 else _OWN)
                except Exception as error:  # noqa: BLE001 (anybody's file)
                    found[title] = Latency(found[title].nodes, found[title].bytes, failed=type(error).__name__)
                    continue
                if turn:  # the first warms up
                    best[title] = min(spent, best.get(title, spent))
        for title, seconds in best.items():
            found[title].seconds[run] = seconds
    return found


def _run(session: Any, feeds: Mapping[str, Any], times: int) -> float:
    """The quickest of some runs in a row: what another model left in the caches is gone after the first."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        session.run(None, feeds)
        best = min(best, time.process_time() - began)
    return best


def nodes_in(model: onnx.ModelProto) -> int:
    graphs: list[Any] = [model.graph, *model.functions]
    count = 0
    while graphs:
        for node in graphs.pop().node:
            count += node.op_type != "Constant"
            graphs += [inner for each in node.attribute for inner in (each.g, *each.graphs) if inner.node]
    return count


@dataclass(frozen=True)
class Passes:
    """CPU seconds of our passes and of onnxscript's optimiser, on the same graph."""

    nodes_before: int
    nodes: int
    seconds: float
    onnxscript_nodes: int
    onnxscript_seconds: float
    export_seconds: float


def passes_timed(layers: int, *, folder: Path, phase: children.Phase) -> Passes:
    """A narrow decoder: the time goes into nodes, not into weights."""
    import onnx_ir as ir
    import onnxscript.optimizer

    import trueport
    from trueport.optimise.names import NAMES
    from trueport.optimise.sequence import optimise

    torch.set_num_threads(1)
    model, args, dynamic_shapes = llama(layers, width=256, vocabulary=64)
    trueport.export(*llama(1, width=256, vocabulary=64)[:2], verify=False)  # imports
    spent = []
    for _ in range(_AGAIN):
        began = time.process_time()
        plain = trueport.export(model, args, dynamic_shapes=dynamic_shapes, verify=False, optimize=False).model
        took = time.process_time() - began
        before = sum(1 for _ in plain.graph.all_nodes())
        path = folder / "plain.onnx"
        if not path.exists():
            ir.save(plain, path)
        began = time.process_time()
        optimise(plain, NAMES)
        spent.append((time.process_time() - began, took))
    loaded = ir.load(path)
    began = time.process_time()
    onnxscript.optimizer.optimize(loaded)
    theirs = time.process_time() - began
    return Passes(
        before,
        sum(1 for _ in plain.graph.all_nodes()),
        min(seconds for seconds, _ in spent),
        sum(1 for _ in loaded.graph.all_nodes()),
        theirs,
        min(seconds + took for seconds, took in spent),
    )
