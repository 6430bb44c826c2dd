"""`timm:resnet50` and `torchvision:resnet50`: models that take a picture, as their libraries register them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.zoo.noise import add_noise
from trueport.zoo.plans import CallPlan, TensorPlan
from trueport.zoo.remaking import construction_of
from trueport.zoo.shrinking import DEGREES
from trueport.zoo.sizing import run, sized
from trueport.zoo.specimens import Specimen

CLASSES = 11
SIZES = (64, 96, 128)
FRAMES = 4
Try = tuple[str, Callable[[], Any], tuple[int, ...]]
"""How it is made, told and done, and a shape without the batch."""


def vision_specimen(library: str, name: str) -> Specimen:
    """The smallest picture and the fewest blocks that eager runs. A size that the model has by default comes last."""
    names, make = _library(library)
    if name not in names:
        raise usage_error(f"{library} has no model {name!r}", fix=close_to(name, names))
    failed = []
    for how, made, shape in _tries(library, name, make):
        try:
            torch.manual_seed(0)
            model = made().eval()
            add_noise(model)
            model.requires_grad_(False)
            plan = _plan(model, shape)
            run(model, plan.inputs(0))
        except Exception as wrong:  # noqa: BLE001 the next may do; the last reason is told
            failed.append(f"{how}, {shape}: {type(wrong).__name__}: {' '.join(str(wrong).split())[:160]}")
            continue
        return sized(model, plan, f"{name}, {how}, {shape}")
    raise usage_error(
        f"no small {library}:{name} runs in eager: {failed[-1]}",
        fix="write a function that makes the model, and name it: file.py:make",
        seen=failed,
    )


def _library(library: str) -> tuple[list[str], Callable[..., Any]]:
    try:
        found = importlib.import_module(library)
    except Exception as wrong:  # a build for another torch raises what it likes
        raise usage_error(f"{library} cannot be imported: {wrong}", fix=f"install it: pip install {library}") from wrong
    if library == "timm":
        return found.list_models(), found.create_model
    return found.models.list_models(), found.models.get_model


def _tries(library: str, name: str, make: Callable[..., Any]) -> Iterator[Try]:
    """The smallest first: made again from what its class is called with, then as the library makes it."""
    channels, *usual = _usual_shape(library, name)
    options: list[dict[str, Any]] = [{"num_classes": CLASSES}, {}]
    if library == "torchvision":
        without = {"weights": None, "weights_backbone": None}
        options = [{**given, **more} for given in options for more in (without, {"weights": None})]
    shapes: list[tuple[int, ...]] = []
    for size in SIZES:
        shapes.append((channels, size, size))
        if library == "torchvision":
            shapes.append((channels, FRAMES, size, size))
    for given in options:
        found = construction_of(partial(make, name, **given))
        if found is None:
            continue
        for degree in (*DEGREES, None):
            for shape in shapes:
                size_of = _sizes_of_pictures(found.arguments, shape)
                yield f"made smaller by {degree}", partial(found.again, degree, **size_of), shape
    for given in options:
        for shape in (*shapes, (channels, *usual)):
            yield f"{given}", partial(make, name, **given), shape
        if library == "torchvision":
            yield f"{given}", partial(make, name, **given), (channels, 16, *usual)


def _sizes_of_pictures(arguments: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """What a class wants to be told of the pictures beforehand."""
    *frames, height, width = shape[1:]
    told: dict[str, tuple[int, ...]] = {"temporal_size": tuple(frames)}
    told |= dict.fromkeys(("img_size", "image_size", "input_size", "spatial_size"), (height, width))
    return {
        name: size if isinstance(arguments[name], tuple) else size[0]
        for name, size in told.items()
        if name in arguments and size
    }


def _usual_shape(library: str, name: str) -> tuple[int, ...]:
    if library == "timm":
        default = importlib.import_module("timm").get_pretrained_cfg(name, allow_unregistered=True)
        if default:
            return tuple(default.input_size)
    return 3, 224, 224


def _plan(model: Any, shape: tuple[int, ...]) -> CallPlan:
    channels, *rest = shape
    names = ["height", "width"] if len(rest) == 2 else ["clips", "height", "width"]
    required = [
        name for name, each in inspect.signature(model.forward).parameters.items()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]  # fmt: skip
    argument = TensorPlan("float", ("batch", channels, *names))
    return CallPlan(dict.fromkeys(required, argument), {"batch": 2, **dict(zip(names, rest, strict=True))})
