"""LoRA adapters of `peft`: named inputs of the graph, and a file for each adapter beside it.

A graph is exported with one adapter in it, as eager runs it, and checked so. In the file that is written the weights of
the adapter are inputs that may be left out: zeros stand in for them, and the model is its base. ONNX Runtime gives
them the weights of an `.onnx_adapter` file where a run asks for one. Weights of the base are what they were.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from trueport.diagnostics.rules.tp206_generate_unknown import GenerateUnknown
from trueport.errors import refusal
from trueport.generation.running import ort_value
from trueport.load.faults import usage_error

Adapters = str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]]
"""Folders that peft wrote, by the name that each adapter is to have."""

_DEFAULT = "default"
_OF_AN_ADAPTER = r"(?P<layer>.*\.)?(?P<kind>lora_(?:embedding_)?[AB])\.{}(?P<part>\.weight)?"
_SECOND = ("lora_B", "lora_embedding_B")
"""Of the two factors, the one that takes the scale."""


def with_adapters(model: object, folders: Adapters | None) -> Any:
    """The model of transformers itself, with the adapters in it: those of the folders, and those that it has."""
    if folders is not None:
        named = folders if isinstance(folders, Mapping) else {_DEFAULT: folders}
        model = _read(model, {name: Path(folder) for name, folder in named.items()})
    base = getattr(model, "get_base_model", None)
    return base() if base is not None and hasattr(model, "peft_config") else model


def _read(model: Any, folders: Mapping[str, Path]) -> Any:
    try:
        peft: Any = importlib.import_module("peft")
    except ImportError:
        raise usage_error("adapters need peft, which is not installed", fix="pip install 'trueport[lora]'") from None
    for name, folder in folders.items():
        if not (folder / "adapter_config.json").is_file():
            fix = "name a local folder that peft wrote: adapter_config.json and safetensors"
            raise usage_error(f"{folder} has no adapter_config.json", fix=fix)
        if not (folder / "adapter_model.safetensors").is_file():
            raise usage_error(f"{folder} has no adapter_model.safetensors", fix="save it as safetensors")
        if isinstance(model, peft.PeftModel):
            model.load_adapter(folder, name, is_trainable=False)
        else:
            model = peft.PeftModel.from_pretrained(model, folder, adapter_name=name, is_trainable=False)
    model.set_adapter(next(iter(folders)))
    return model.eval()


@dataclass(frozen=True)
class AdapterSet:
    """The LoRA adapters in a model, all of which fit the one that is on."""

    model: Any
    names: tuple[str, ...]
    active: str

    @classmethod
    def of(cls, model: Any) -> AdapterSet:
        """Most models have none. Raises ExportError for adapters that are no plain LoRA."""
        layers = _layers(model)
        if not layers:
            return cls(model, (), "")
        active = {name for layer in layers for name in layer.active_adapters}
        if model.config.is_encoder_decoder:
            raise _unknown(
                "the adapters of an encoder and its decoder belong to two graphs", "merge them: merge_adapter()"
            )
        if len(active) != 1 or any(layer.merged or layer.disable_adapters for layer in layers):
            raise _unknown("one adapter must be on, and none merged into the weights", "model.set_adapter(name)")
        found = cls(model, tuple(dict.fromkeys(name for layer in layers for name in layer.scaling)), active.pop())
        if odd := [name for name in found.names if not re.fullmatch(r"\w[\w.-]*", name)]:
            raise _unknown(f"the adapter {odd[0]!r} cannot be the name of a file", "give it another name")
        shapes = {name: {port: w.shape for port, w in found.weights(name).items()} for name in found.names}
        for name in found.names:
            own = {parameter for parameter, _ in model.named_parameters() if f".{name}" in parameter}
            if len(own) != len(shapes[name]):
                raise _unknown(
                    f"the adapter {name!r} has more than two factors a layer (DoRA, a bias)", "use plain LoRA"
                )
            if shapes[name] != shapes[found.active]:
                message = (
                    f"the adapters {found.active!r} and {name!r} have other layers or ranks, which no one graph has"
                )
                raise _unknown(message, "export a model for each")
        return found

    def parameters(self, name: str) -> dict[str, str]:
        """The inputs of the graph that stand for the weights of an adapter, by the names of those in the model."""
        if name not in self.names:
            return {}
        pattern = re.compile(_OF_AN_ADAPTER.format(re.escape(name)))
        found = ((parameter, pattern.fullmatch(parameter)) for parameter, _ in self.model.named_parameters())
        return {parameter: f"{m['layer'] or ''}{m['kind']}{m['part'] or ''}" for parameter, m in found if m}

    def weights(self, name: str) -> dict[str, torch.Tensor]:
        """By input. A graph has the scale of the adapter it was exported with; another's is made up for."""
        tensors, scales = dict(self.model.named_parameters()), self._scales()
        found = {}
        for parameter, port in self.parameters(name).items():
            layer, _, kind = port.removesuffix(".weight").rpartition(".")
            times = scales[layer][name] / scales[layer][self.active] if kind in _SECOND else 1.0
            weight = tensors[parameter].detach()
            found[port] = weight if times == 1.0 else weight * times
        return found

    def _scales(self) -> dict[str, Mapping[str, float]]:
        return {name: module.scaling for name, module in self.model.named_modules() if hasattr(module, "lora_A")}

    @contextlib.contextmanager
    def on(self, name: str | None) -> Iterator[None]:
        """Meanwhile this adapter is on in eager; None: the base alone is."""
        layers = _layers(self.model)
        for layer in layers:
            layer.enable_adapters(name is not None)
            if name is not None:
                layer.set_adapter([name], inference_mode=True)
        try:
            yield
        finally:
            for layer in layers:
                layer.enable_adapters(True)
                layer.set_adapter([self.active], inference_mode=True)

    @contextlib.contextmanager
    def as_inputs(self, model: ir.Model) -> Iterator[None]:
        """Meanwhile the weights of the active adapter are inputs of this model, with zeros to be left out by."""
        graph = model.graph
        ports = self.parameters(self.active)
        named = {port: graph.initializers.get(_held(graph, name)) for name, port in ports.items()}
        if lost := [port for port, value in named.items() if value is None]:
            raise _unknown(f"{lost[0]} is no weight of the graph by itself", "please report it with the model")
        before = {
            port: (value, value.name or port, value.const_value) for port, value in named.items() if value is not None
        }
        for port, (value, old, weight) in before.items():
            assert weight is not None
            del graph.initializers[old]
            value.name = port
            value.const_value = ir.Tensor(weight.numpy() * 0, dtype=weight.dtype, name=port)
            graph.initializers[port] = value
            graph.inputs.append(value)
        try:
            yield
        finally:
            for port, (value, old, weight) in before.items():
                graph.inputs.remove(value)
                del graph.initializers[port]
                value.name, value.const_value = old, weight
                graph.initializers[old] = value

    def write(self, name: str, path: Path) -> None:
        """The file of an adapter."""
        runtime: Any = importlib.import_module("onnxruntime")
        file = runtime.AdapterFormat()
        file.set_adapter_version(1)
        file.set_model_version(1)
        weights = {port: weight.contiguous() for port, weight in self.weights(name).items()}
        file.set_parameters({port: ort_value(weight) for port, weight in weights.items()})  # which only look at them
        file.export_adapter(str(path))


def _held(graph: ir.Graph, name: str) -> str:
    """What a weight is called in a graph, where the model stands inside a module of ours (`Step.model`)."""
    return next((held for held in (f"model.{name}", name) if held in graph.initializers), name)


def _layers(model: Any) -> list[Any]:
    """The layers of peft's that hold factors; its own classes need not be imported to be known."""
    return [module for module in model.modules() if hasattr(module, "lora_A") and hasattr(module, "scaling")]


def _unknown(message: str, fix: str) -> Exception:
    return refusal(GenerateUnknown(message=message, fix=fix))
