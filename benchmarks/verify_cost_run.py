"""What the check of one model costs beside its export, in a child."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks import children
from benchmarks.bench_models import decoder, resnet50, tiny_mlp
from benchmarks.judge import Subject

_AGAIN = 3
Given = tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]


class Ways(nn.Module):
    """Branches and loops that drawn inputs do not all reach."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        if x.sum() > 1000:
            x = x - 1
        elif (ids == 7).any():
            x = x * 2
        steps = 0
        while x.abs().max() > 4 and steps < 20:
            x = x / 2
            steps = steps + 1
        for row in range(x.shape[0]):
            x = x + self.layer(x)[row]
        if x.isnan().any():
            x = torch.zeros_like(x)
        return x


class NeverThere(nn.Module):
    """Arms that no input reaches: each is then run by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if (x * x).sum() < -1:
                x = layer(x).relu()
            x = x + 1
        return x


class Endless(nn.Module):
    """Eager does not come back where nothing is left to add up."""

    def forward(self, x: Tensor) -> Tensor:
        while x.sum() < 100:
            x = x + x.abs()
        return x


def encoder(layers: int = 24, width: int = 128) -> Given:
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return model.eval(), (torch.randn(2, 16, width),), {}, ({0: "batch", 1: "length"},)


def _built(build: Callable[[], tuple[nn.Module, tuple[Any, ...], Any]]) -> Given:
    model, args, shapes = build()
    return model, args, {}, shapes


def _zoo(name: str) -> Given:
    from benchmarks.zoo import models as zoo_models

    subject: Subject = zoo_models.build(name)
    return subject.model, *subject.inputs, subject.dynamic_shapes


MODELS: dict[str, Callable[[], Given]] = {
    "tiny_mlp": partial(_built, tiny_mlp),
    "ways": lambda: (Ways().eval(), (torch.randn(3, 8), torch.arange(3)), {}, ({0: "rows"}, None)),
    "never_there": lambda: (NeverThere().eval(), (torch.randn(2, 32),), {}, ({0: "rows"},)),
    "endless": lambda: (Endless().eval(), (torch.rand(3, 4),), {}, ({0: "rows"},)),
    "decoder_6_free": partial(_built, partial(decoder, 6, True)),
    "decoder_24_free": partial(_built, partial(decoder, 24, True)),
    "encoder_24": encoder,
    "resnet50": partial(_built, resnet50),
    "bert": partial(_zoo, "bert"),
    "gpt2": partial(_zoo, "gpt2"),
    "t5": partial(_zoo, "t5"),
    "vit": partial(_zoo, "vit"),
}


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor for one export without its check, and for the check, in this process and in the worker;
    how much was compared; how often a worker started."""

    name: str
    export: float
    check: float
    inputs: int
    workers: int

    @property
    def ratio(self) -> float:
        return self.check / self.export


def measure(name: str, *, folder: Path, phase: children.Phase) -> tuple[Cost, Cost]:
    """Runs in the child. The first export of the process, which starts the worker and warms torch up, with nothing
    remembered of its calls; and the cheapest of a few others."""
    os.environ["TRUEPORT_CACHE"] = str(folder)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, kwargs, shapes = MODELS[name]()
    costs = []
    for _ in range(1 + _AGAIN):
        phase("export")
        costs.append(_exported(name, model, args, kwargs, shapes))
    return costs[0], min(costs[1:], key=lambda cost: cost.check)


def _exported(name: str, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Cost:
    import trueport
    from trueport.run import Run
    from trueport.verify.runtime.sandbox import shared_worker

    here = there = 0.0
    verify = Run._verify

    def timed(*given: Any) -> Any:
        nonlocal here, there
        own, workers = time.process_time(), _of_worker(shared_worker().pid)
        found = verify(*given)
        here, there = time.process_time() - own, _of_worker(shared_worker().pid) - workers
        return found

    began = time.process_time()
    with mock.patch.object(Run, "_verify", timed):
        report = trueport.export(model, args, kwargs=kwargs, dynamic_shapes=shapes).report
    export = time.process_time() - began - here
    return Cost(name, export, here + there, len(report.checks), shared_worker().generation)


def _of_worker(pid: int | None) -> float:
    """Seconds of the processor that a process has had, all its threads together; none where there is no /proc."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
