"""What can be said of a model and its inputs before it is run: its mode, its devices, the kinds of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch.nn.parameter import is_lazy

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.rules.tp003_training_mode import TrainingMode
from trueport.diagnostics.rules.tp005_wrong_device import WrongDevice
from trueport.diagnostics.rules.tp201_input_type import InputType
from trueport.examine.state import Snapshot
from trueport.load.faults import is_text
from trueport.load.job import Job

_DROPS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)
_NORMALISES_BY_BATCH = (
    torch.nn.BatchNorm1d,
    torch.nn.BatchNorm2d,
    torch.nn.BatchNorm3d,
    torch.nn.SyncBatchNorm,
)
_NORMALISES_BY_INSTANCE = (torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d)
_NAMED = 5


def training_mode(model: torch.nn.Module, random: bool = False) -> Iterator[Diagnostic]:
    """Parts in training mode that act differently there. Where random results are meant, dropout is."""
    found = [
        f"{path or 'the model itself'} ({type(module).__name__})"
        for path, module in model.named_modules()
        if getattr(module, "training", False)  # frozen TorchScript has no mode
        and _acts_differently_in_training(module)
        and not (random and isinstance(module, _DROPS))
    ]
    if found:
        yield TrainingMode(
            message=f"{_some(found)} {'is' if len(found) == 1 else 'are'} in training mode",
            fix="model.eval() before the export",
        )


def _acts_differently_in_training(module: torch.nn.Module) -> bool:
    if isinstance(module, _DROPS):
        return module.p > 0
    if isinstance(module, _NORMALISES_BY_BATCH):
        return True
    if isinstance(module, _NORMALISES_BY_INSTANCE):
        return module.track_running_stats
    if isinstance(module, torch.nn.RNNBase):
        return module.dropout > 0 and module.num_layers > 1
    if isinstance(module, torch.nn.MultiheadAttention):
        return bool(module.dropout > 0)
    return isinstance(module, torch.nn.RReLU)


def lazy_parameters(model: torch.nn.Module) -> Iterator[Diagnostic]:
    """Parameters of lazy modules, which are made when the model runs for the first time."""
    waiting = [
        f"{path or 'the model itself'} ({type(module).__name__})"
        for path, module in model.named_modules()
        if any(is_lazy(tensor) for tensor in (*module._parameters.values(), *module._buffers.values()))
    ]
    if waiting:
        yield UsageFault(
            message=f"{_some(waiting)} {_is_are(waiting)} lazy and has no weights yet: its first run makes them",
            fix="run model(*args) once, or load the weights, before the export",
        )


def wrong_device(job: Job, state: Snapshot) -> Iterator[Diagnostic]:
    """Anything that is not on the CPU, with its numbers there."""
    tensors = [(f"{owned.kind} {owned.name}", owned.tensor) for owned in state.tensors]
    tensors += [(f"input {leaf.path}", leaf.value) for leaf in job.leaves if isinstance(leaf.value, torch.Tensor)]
    elsewhere: dict[str, list[str]] = {}
    for name, tensor in tensors:
        if tensor.device.type != "cpu":
            elsewhere.setdefault(str(tensor.device), []).append(name)
    for device, names in elsewhere.items():
        inputs = all(name.startswith("input ") for name in names)
        plain = [name for name in names if name.startswith("attribute ")]
        if device == "meta":
            if inputs:
                fix = "give real example inputs"
            elif len(plain) == len(names):
                fix = 'make it on the CPU (device="cpu"), and register_buffer it, so that it is saved and moved'
            else:
                fix = 'model.to_empty(device="cpu"), then model.load_state_dict(weights)'
            message = f"{_some(names)} {_is_are(names)} on meta, which holds shapes but no numbers"
        else:
            fix = f"{names[0].removeprefix('input ')}.cpu()" if inputs else "model.cpu(), and the inputs with .cpu()"
            message = f"{_some(names)} {_is_are(names)} on {device}; export on the CPU"
        if plain and device != "meta":
            fix += f"; {_some(plain)} does not move with the model: use register_buffer"
        yield WrongDevice(message=message, fix=fix)


def input_kinds(job: Job) -> Iterator[Diagnostic]:
    """Tensors of a kind that ONNX inputs do not have."""
    for leaf in job.leaves:
        kind = unusual_kind(leaf.value)
        if kind is not None:
            yield InputType(
                message=f"{leaf.path} is a {kind[0]} tensor, and inputs of an ONNX model are dense",
                fix=leaf.path + kind[1],
            )


def weight_kinds(state: Snapshot) -> Iterator[Diagnostic]:
    """Tensors of the model of a kind that ONNX has no weights of."""
    for owned in state.tensors:
        if not is_text(owned.name):
            yield InputType(
                message=f"the {owned.kind} {owned.name!r} has a name that is no text, and names in ONNX are",
                fix="rename it: lone surrogates, as in a name that was read from undecodable bytes, cannot be written",
            )
        kind = unusual_kind(owned.tensor)
        if kind is not None and not owned.tensor.is_quantized:
            yield InputType(
                message=f"the {owned.kind} {owned.name} is a {kind[0]} tensor, and weights of an ONNX model are dense",
                fix=f"model.{owned.name} = model.{owned.name}{kind[1]}",
            )


def unusual_kind(value: object) -> tuple[str, str] | None:
    """The kind of a tensor that is not a plain block of numbers, and the call that makes it one."""
    if not isinstance(value, torch.Tensor):
        return None
    if value.is_nested:
        return "nested", ".to_padded_tensor(0.0)"
    if value.is_quantized:
        return "quantised", ".dequantize()"
    if value.layout is not torch.strided:
        return str(value.layout).removeprefix("torch."), ".to_dense()"
    return None


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def _is_are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
