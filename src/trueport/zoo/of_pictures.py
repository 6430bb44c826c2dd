"""`timm:resnet50` and `torchvision:resnet50`: models that take a picture, as their libraries register them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.zoo.noise import add_noise
from trueport.zoo.plans import CallPlan, TensorPlan
from trueport.zoo.sizing import run, sized
from trueport.zoo.specimens import Specimen

CLASSES = 11
SIZES = (64, 96, 128)
FRAMES = 4


def vision_specimen(library: str, name: str) -> Specimen:
    """The smallest picture and the fewest blocks that eager runs. A size that the model has by default comes last."""
    names, make = _library(library)
    if name not in names:
        raise usage_error(f"{library} has no model {name!r}", fix=close_to(name, names))
    failed = []
    for given, shape in _tries(library, name):
        try:
            torch.manual_seed(0)
            model = make(name, **given).eval()
            add_noise(model)
            model.requires_grad_(False)
            plan = _plan(model, shape)
            run(model, plan.inputs(0))
        except Exception as wrong:  # noqa: BLE001 the next may do; the last reason is told
            failed.append(f"{given}, {shape}: {type(wrong).__name__}: {' '.join(str(wrong).split())[:160]}")
            continue
        return sized(model, plan, f"{name}{given}, {shape}")
    raise usage_error(
        f"no small {library}:{name} runs in eager: {failed[-1]}",
        fix="write a function that makes the model, and name it: file.py:make",
        seen=failed,
    )


def _library(library: str) -> tuple[list[str], Callable[..., Any]]:
    found = importlib.import_module(library)
    if library == "timm":
        return found.list_models(), found.create_model
    return found.models.list_models(), found.models.get_model


def _tries(library: str, name: str) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """What to give the constructor, and a shape without the batch."""
    if library == "timm":
        default = importlib.import_module("timm").get_pretrained_cfg(name, allow_unregistered=True)
        channels, *rest = default.input_size if default else (3, 224, 224)
        for fewer in ({"depth": 2}, {"depths": (2, 2, 2, 2)}, {}):
            for size in SIZES:
                yield {"num_classes": CLASSES, **fewer, "img_size": size}, (channels, size, size)
                yield {"num_classes": CLASSES, **fewer}, (channels, size, size)
        yield {"num_classes": CLASSES}, (channels, *rest)
        yield {}, (channels, *rest)
        return
    without = {"weights": None, "weights_backbone": None}
    for given in ({"num_classes": CLASSES}, {}):
        for more in (without, {"weights": None}):
            for size in (*SIZES, 224):
                yield {**given, **more}, (3, size, size)
                yield {**given, **more}, (3, FRAMES, size, size)
            yield {**given, **more}, (3, 16, 224, 224)


def _plan(model: Any, shape: tuple[int, ...]) -> CallPlan:
    channels, *rest = shape
    names = ["height", "width"] if len(rest) == 2 else ["clips", "height", "width"]
    required = [
        name for name, each in inspect.signature(model.forward).parameters.items()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]  # fmt: skip
    argument = TensorPlan("float", ("batch", channels, *names))
    return CallPlan(dict.fromkeys(required, argument), {"batch": 2, **dict(zip(names, rest, strict=True))})
