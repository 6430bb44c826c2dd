"""The calls of torch's own samples of an operator, each by itself on edge operands, in a child."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.children import Phase
from benchmarks.ops import calls as models
from benchmarks.ops.samples import LARGEST, Unmeasurable, chosen, database, drawn
from trueport.capture.effects.state import StateMode
from trueport.capture.trace import capture
from trueport.graph.regions import Graph
from trueport.load.request import make_job
from trueport.lower.lower import lower
from trueport.lower.table import is_leaf
from trueport.verify.calls.call import Call, calls_of
from trueport.verify.calls.run import run_call
from trueport.verify.runtime.onnx_program import Laboratory
from trueport.verify.runtime.sandbox import Limits, shared_worker

OPSET = 20


@dataclass(frozen=True)
class Seen:
    """What one distinct call has shown; `shown` is [level, operands, eager, runtime] for each level that differs."""

    operator: str
    dtypes: str
    call: str
    """Its arguments, as its signature has them."""
    digest: str
    runs: int
    not_run: str
    shown: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Swept:
    """An operator of torch's database in one dtype: its distinct calls that were not met before, and what it could not
    be asked."""

    operator: str
    calls: tuple[Seen, ...]
    samples: int
    refused: str = ""
    commit: str = ""
    """Of the tree in which it was measured."""


def sweep(
    operators: Sequence[str], variant: str, known: Collection[str], limit: int, *, folder: Path, phase: Phase
) -> list[Swept]:
    """A few operators one after the other. `known` are the digests of calls that need not be run again."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    met = set(known)
    laboratory = Laboratory(lambda graph: lower(graph, OPSET), shared_worker(), Limits(memory_bytes=4 << 30))
    found = []
    for name in operators:
        phase(name)
        found.append(_swept(name, variant, met, limit, laboratory))
    shared_worker().close()
    return found


def _swept(name: str, variant: str, met: set[str], limit: int, laboratory: Laboratory) -> Swept:
    samples = drawn(name, getattr(torch, variant), seed=0)
    if isinstance(samples, Unmeasurable):
        return Swept(name, (), 0, samples.why)
    seen: list[Seen] = []
    refused = ""
    captured = 0
    for index in chosen(len(samples), limit):
        sample = samples[index]
        if sum(tensor.numel() for tensor in sample.tensors) > LARGEST:
            continue
        try:
            model = models.Call(database()[name].op, lambda tensors, sample=sample: sample.rebuild(tensors))
            graph = capture(make_job(model, (sample.tensors,), {}), is_leaf, StateMode.REFUSE)
        except Exception as error:  # noqa: BLE001  what cannot be captured is the other sweep's business
            refused = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            continue
        captured += 1
        for call in calls_of(graph, OPSET).distinct:
            if (digest := _digest(call)) not in met:
                met.add(digest)
                seen.append(_seen(call.on_any_values(), graph, laboratory))
    return Swept(name, tuple(seen), captured, refused)


def _seen(call: Call, graph: Graph, laboratory: Laboratory) -> Seen:
    outcome = run_call(call, laboratory, graph, full=True)
    dtypes = " ".join(str(operand.value.dtype).removeprefix("torch.") for operand in call.operands)
    shown = tuple(
        (level.name.lower(), shown.operands[:300], shown.eager[:80], shown.runtime[:200])
        for level, shown in sorted(outcome.shown.items())
    )
    arguments = call.signature.split(" | ")[2][:120]
    return Seen(str(call.op), dtypes, arguments, _digest(call), outcome.runs, outcome.not_run, shown)


def _digest(call: Call) -> str:
    return hashlib.sha256(call.signature.encode()).hexdigest()[:16]
