"""Two processes that write to one path: in the end there is one of two models, with its own weights, and no more."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn

import trueport


def run(count: int, seed: int, folder: Path) -> dict[str, Any]:
    random_ = random.Random(seed)
    programs = [_program(value) for value in (1.0, 2.0, 3.0)]
    path = folder / "net.onnx"
    mixed: list[str] = []
    wins = [0, 0, 0]
    for at in range(count):
        pair = random_.sample(range(3), 2)
        external = [random_.random() < 0.8 for _ in pair]
        pids = [_save(programs[which], path, out, random_.uniform(0, 0.03)) for which, out in zip(pair, external)]
        ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        try:
            winner = _whose(path)
            wins[winner] += 1
            if winner not in pair:
                mixed.append(f"race {at}: the model of neither")
        except Exception as failure:  # noqa: BLE001
            mixed.append(f"race {at}: {failure}")
        if any(ended):
            mixed.append(f"race {at}: ended with {ended}")
        files = sorted(file.name for file in folder.iterdir())
        if len(files) > 2:
            mixed.append(f"race {at}: {files}")
        if at % 50 == 49:
            print(f"races: {at + 1}/{count} {wins}", flush=True)
    return {"races": count, "seed": seed, "won by": wins, "mixed or broken": mixed, "faults": mixed}


def _program(value: float) -> trueport.Program:
    """Answers with `value` alone if its graph has its own weights: the graph knows what they sum up to."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(512, 512, bias=False)
            nn.init.constant_(self.layer.weight, value)

        def forward(self, x):
            return self.layer(x) - 511 * value

    return trueport.export(Net().eval(), (torch.ones(2, 512),), verify=False)


def _save(program: trueport.Program, path: Path, external: bool, pause: float) -> int:
    pid = os.fork()
    if pid == 0:
        ended = 1
        try:
            time.sleep(pause)
            program.save(path, external_data=external, overwrite=True)
            ended = 0
        finally:
            os._exit(ended)
    return pid


def _whose(path: Path) -> int:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: np.ones((2, 512), np.float32)})
    value = float(got.flat[0])
    if not (got == value).all() or value not in (1.0, 2.0, 3.0):
        raise ValueError(f"mixed: it answers {value}")
    return int(value) - 1
