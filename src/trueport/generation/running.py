"""The written graphs in ONNX Runtime, step by step as an application runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.rules.tp801_runtime_cannot_load import RuntimeCannotLoad
from trueport.diagnostics.rules.tp802_runtime_refuses_input import RuntimeRefusesInput
from trueport.errors import refusal
from trueport.examine.refusals import shortened
from trueport.generation.plan import BATCH, PAST, SEQUENCE, SOURCE, StepInput, StepPlan, TensorRole
from trueport.lower.dtypes import onnx_dtype
from trueport.program import as_array, as_bits
from trueport.verify.runtime.child import outputs_of
from trueport.verify.runtime.tensors import tensor_data, to_torch

Tensors = Mapping[str, torch.Tensor]
_REPORT = "please report it with the model"


def ort_value(tensor: torch.Tensor) -> Any:
    """A tensor as ONNX Runtime takes it."""
    import onnxruntime

    dtype = onnx_dtype(tensor.dtype)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(as_bits(as_array(tensor, dtype)), int(dtype))


class Runtime:
    """One ONNX file, opened; with the weights of an adapter, where there is a file of one."""

    def __init__(self, path: Path, adapter: Path | None = None) -> None:
        import onnxruntime

        self._library: Any = onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # it warns of each input that may be left out, and errors are raised as well
        self._name = path.name
        try:
            self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as why:  # the runtime has many kinds, which share no base
            raise refusal(RuntimeCannotLoad(message=f"{path.name}: {shortened(why)}", fix=_REPORT)) from why
        self._inputs = [value.name for value in self._session.get_inputs()]
        if adapter is not None:
            self._session = _Adapted(onnxruntime, self._session, adapter)

    def __call__(self, feeds: Tensors) -> dict[str, torch.Tensor]:
        given = {name: ort_value(feeds[name]) for name in self._inputs}
        try:
            found = outputs_of(self._library, self._session, given)
        except Exception as why:  # as above
            shown = ", ".join(f"{name} {list(feeds[name].shape)}" for name in self._inputs)
            message = f"{self._name}: {shortened(why)}"
            raise refusal(RuntimeRefusesInput(message=message, seen=(f"it was given {shown}",), fix=_REPORT)) from why
        return {output["name"]: to_torch(tensor_data(*output["tensors"][0])) for output in found}


class _Adapted:
    """A session that runs with an adapter."""

    def __init__(self, library: Any, session: Any, adapter: Path) -> None:
        self._session = session
        self._adapter = library.LoraAdapter()
        self._adapter.Load(str(adapter))
        self._options = library.RunOptions()
        self._options.add_active_adapter(self._adapter)

    def get_outputs(self) -> Any:
        return self._session.get_outputs()

    def run_with_ort_values(self, names: Sequence[str], feeds: Mapping[str, Any]) -> Any:
        return self._session.run_with_ort_values(names, feeds, self._options)


@dataclass(frozen=True)
class InTorch:
    """The same graph as it was before the export."""

    module: torch.nn.Module
    inputs: Sequence[str]
    outputs: Sequence[str]

    def __call__(self, feeds: Tensors) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            try:
                found = self.module(*(feeds[name].clone() for name in self.inputs))
            except Exception as why:  # whatever a model raises
                raise refusal(EagerRefuses(message=shortened(why))) from why
        return dict(zip(self.outputs, found, strict=True))


@dataclass(frozen=True)
class Graphs:
    """The graphs of one model: the step, and the encoder before it where there is one."""

    plan: StepPlan
    step: Runtime | InTorch
    encoder: Runtime | InTorch | None = None


class Decoding:
    """One text, or several of one length, on its way: the tokens so far and the states that go with them."""

    def __init__(self, graphs: Graphs, inputs: Tensors) -> None:
        self._graphs = graphs
        self._source = inputs.get("attention_mask")
        made = graphs.encoder(inputs) if graphs.encoder is not None else {}
        batch = len(next(iter(inputs.values())))
        self._states = {
            state.name: made[state.present] if state.of_the_source else _empty(state, batch)
            for state in graphs.plan.states
        }
        self._mask = torch.zeros(batch, 0, dtype=torch.int64)

    def step(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The logits of these new tokens, of which the mask leaves padding out."""
        self._mask = torch.cat([self._mask, mask], 1)
        plan, new = self._graphs.plan, tokens.shape[1]
        feeds = {port.name: self._fed(port, tokens, new) for port in plan.arguments.values()}
        found = self._graphs.step({**feeds, **self._states})
        self._states |= {state.name: found[state.present] for state in plan.own_states}
        return found["logits"]

    def _fed(self, port: StepInput, tokens: torch.Tensor, new: int) -> torch.Tensor:
        if port.role is TensorRole.TOKENS:
            return tokens
        if port.role is TensorRole.POSITIONS:
            positions = (self._mask.cumsum(-1) - 1).masked_fill(self._mask == 0, 0)
            rows = slice(None) if BATCH in port.axes.values() else slice(1)  # one for all, where none is padded
            return positions[rows, -new:]
        if SOURCE in port.axes.values():
            assert self._source is not None
            return self._source
        return self._mask[:, -new:] if SEQUENCE in port.axes.values() else self._mask


def _empty(state: StepInput, batch: int) -> torch.Tensor:
    """A state before the first token: of no length, or zeros."""
    return torch.zeros(state.shape({BATCH: batch, PAST: 0}), dtype=state.example.dtype)
