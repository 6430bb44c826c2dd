"""Which sizes of a plan move is asked of eager; then the example is made, and calls at other sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch

from trueport.zoo.plans import CallPlan
from trueport.zoo.shrinking import POSITIONS
from trueport.zoo.specimens import Specimen


def sized(model: Any, plan: CallPlan, how: str) -> Specimen:
    """Which sizes move is asked of eager."""
    limits: dict[str, tuple[int, int]] = {}
    steps: dict[str, int] = {}
    for name in plan.free:
        size = plan.sizes[name]
        if name in ("height", "width", "clips"):
            step = next(
                (
                    step
                    for step in (1, 32)
                    if _moves(model, plan, name, (size + 2 * step, size + 3 * step, size + step))
                ),
                0,
            )
            limits[name] = (size, 4 * size)
        elif name in ("frames", "samples"):
            step = next((step for step in (1, 8) if _moves(model, plan, name, (size + step, size + 5 * step))), 0)
            limits[name] = (size, 4 * size)
        elif name == "batch":
            step = int(_moves(model, plan, name, (1, 3)))
            limits[name] = (1, 1024)
        else:
            low = plan.least.get(name, 1)
            step = next((step for step in (1, 4) if _moves(model, plan, name, (size + step, size + 3 * step))), 0)
            low = next((each for each in (low, 2, 4) if each <= size and _moves(model, plan, name, (each,))), size)
            limits[name] = (low, POSITIONS) if size + 3 * step < POSITIONS else (low, size + 3 * step)
        if step == 0:
            plan = plan.fixed(name)
        elif step > 1:
            steps[name] = step
    first, more = plan.inputs(0), []
    for seed, sizes in enumerate(_variants(plan, steps, limits), start=1):
        call = plan.inputs(seed, sizes, padded=seed % 2 == 0)
        with contextlib.suppress(Exception):
            run(model, call)
            more.append(((), call))
    return Specimen(model, (), first, plan.dynamic_shapes(steps, limits), more, how)


def _variants(plan: CallPlan, steps: Mapping[str, int], limits: Mapping[str, tuple[int, int]]) -> list[dict[str, int]]:
    free = plan.free

    def at(batch: int, times: Mapping[str, int]) -> dict[str, int]:
        sizes = {
            name: min(plan.sizes[name] + times.get(name, 1) * steps.get(name, 1), limits[name][1]) for name in free
        }
        return sizes | ({"batch": batch} if "batch" in free else {})

    return [
        {},
        at(1, {}),
        at(3, {"width": 2, "sequence": 3, "target": 2, "frames": 3}),
        at(2, {"height": 3, "width": 0, "sequence": 5, "samples": 17}),
        {name: limits[name][0] if name in ("sequence", "target") else plan.sizes[name] for name in free},
    ]


def _moves(model: Any, plan: CallPlan, name: str, sizes: tuple[int, ...]) -> bool:
    try:
        for size in sizes:
            run(model, plan.inputs(1, {name: size}))
    except Exception:  # noqa: BLE001 eager's no, whatever its words
        return False
    return True


def run(model: Any, inputs: Mapping[str, Any]) -> Any:
    with torch.no_grad():
        return model(**inputs)
