"""`trueport.generation.export`: watch, plan, export each graph, prove that they generate, and write the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from trueport import progress
from trueport.api import export as export_graph
from trueport.diagnostics.spelling import option, told
from trueport.generation.eager import Prompts, generate, start_token
from trueport.generation.folder import copy_settings, refuse_folder, written
from trueport.generation.genai import genai_config
from trueport.generation.loading import loaded
from trueport.generation.lora import Adapters, AdapterSet
from trueport.generation.plan import (
    BATCH,
    PAST,
    SEQUENCE,
    SOURCE,
    TOTAL,
    StepInput,
    StepPlan,
    TensorRole,
    planned,
    source_ports,
)
from trueport.generation.proof import TOKENS, Proof, prove, refuse_short
from trueport.generation.running import Graphs, InTorch, Runtime
from trueport.generation.sharing import share_weights
from trueport.generation.step import Encode, Step
from trueport.generation.watch import Lengths, watched
from trueport.load.faults import refuse_checking, usage_error
from trueport.program import Program

_SEEN = ((2, 5, 6), (3, 7, 9))
"""Batch, prompt and source of the two runs that are watched: other lengths for other meanings."""
_TIMES_SEEN = 4
_EXAMPLE = {BATCH: 2, SEQUENCE: 3, PAST: 4, TOTAL: 7, SOURCE: 5}
_FROM_START = {PAST: 0, TOTAL: 3}
_FREE: dict[str, Any] = {
    BATCH: Dim(BATCH, min=1),
    SEQUENCE: Dim(SEQUENCE, min=1),
    PAST: Dim(PAST, min=0),
    SOURCE: Dim(SOURCE, min=1),
    TOTAL: TOTAL,
}


@dataclass(frozen=True)
class GenerationFolder:
    """What `trueport.generation.export` returns: where the files are, and what was compared."""

    folder: Path
    programs: Mapping[str, Program]
    """By file name."""
    proof: Proof | None
    """Texts that were generated on both sides, token by token; None where that was not asked for. Without adapters."""
    adapters: Mapping[str, Proof | None] = field(default_factory=dict)
    """The same with each adapter on, by its name; its file is `<name>.onnx_adapter`."""

    def lines(self) -> list[str]:
        """What was written and compared, for people."""
        found = []
        for name, program in self.programs.items():
            report = program.report
            checked = f"equal to eager on {len(report.checks)} inputs" if report.verified else "not verified"
            found.append(f"{self.folder / name}: {report.nodes} nodes, opset {report.opset}, {checked}")
        if any(program.report.verified for program in self.programs.values()):
            found.append(f"states were drawn up to {_TIMES_SEEN} times as large as generate() made them")
        if self.proof is None:
            return [*found, "generation was not compared with eager"]
        proofs = {"": self.proof, **{f", with {name}.onnx_adapter": proof for name, proof in self.adapters.items()}}
        for adapter, proof in proofs.items():
            found.append(f"greedy tokens of ONNX Runtime against generate() in eager{adapter}:")
            found += [f"  {line}" for line in proof.lines()] if proof is not None else []
        return found


def export(
    model: object,
    folder: str | os.PathLike[str],
    *,
    inputs: Mapping[str, torch.Tensor] | None = None,
    lora: Adapters | None = None,
    dtype: str = "auto",
    opset_version: int | None = None,
    verify: bool = True,
    overwrite: bool = False,
    tokens: int = TOKENS,
    seed: int = 0,
) -> GenerationFolder:
    """Export a model of `transformers` for generation, and prove that it generates the same tokens.

    `model` is the model itself, or a local folder with its config and safetensors, which is read in `dtype` ("auto": as
    stored); nothing is downloaded. A decoder becomes `model.onnx`, one graph for the prompt and for each next token; an
    encoder-decoder becomes `encoder_model.onnx` and `decoder_model.onnx`, which share one file of weights. `inputs` are
    an example of what `generate()` is given, where that is more than text.

    `lora` is a local folder of an adapter that peft wrote, or several by name; a model that peft made has its own. The
    weights of an adapter are inputs of the graph that may be left out, for the base alone, and lie in a file
    `<name>.onnx_adapter` for each. Tokens are compared with each adapter and without.

    Each graph goes through the ordinary check of `trueport.export`, and then so many greedy `tokens` are compared with
    those of `generate()` in eager. `verify=False` leaves both out. Raises ExportError, and writes nothing, where a
    graph cannot be exported or a token differs.
    """
    target = Path(os.path.abspath(folder))
    refuse_folder(target, overwrite)
    refuse_checking(seed)
    _refuse_inputs(inputs or {}, tokens)
    made, source = loaded(model, dtype, lora)
    if source is not None and source.resolve() == target.resolve():
        raise usage_error(f"{target} is where the model is read from", fix="choose another folder to write")
    adapters = AdapterSet.of(made)
    prompts = Prompts(made, inputs or {}, seed)
    if verify:
        refuse_short(prompts)
    progress.stage("watch")
    parts = _parts(made, prompts)
    programs = {
        part.file: export_graph(
            part.module,
            part.example(),
            dynamic_shapes=tuple({axis: _FREE[size] for axis, size in port.axes.items()} for port in part.ports),
            input_names=[port.name for port in part.ports],
            output_names=part.outputs,
            value_ranges=part.ranges(prompts),
            opset_version=opset_version,
            verify=verify,
            seed=seed,
            optimize="-fold,-constants" if adapters.names else True,  # an adapter's weights must stay what they are
        )
        for part in parts
    }
    with written(target, overwrite) as place:
        files = [_saved(program, place / name, adapters) for name, program in programs.items()]
        if len(files) > 1:
            share_weights(files)

        def proven(adapter: Path | None = None) -> Proof | None:
            opened = (Runtime(file, adapter) for file in files)
            graphs, before = (Graphs(parts[0].plan, *each) for each in (opened, map(_in_torch, parts)))
            return prove(graphs, before, prompts, tokens) if verify else None

        with adapters.on(None):
            proof = proven()
        with_each: dict[str, Proof | None] = {}
        for name in adapters.names:
            adapters.write(name, place / f"{name}.onnx_adapter")
            with adapters.on(name):
                with_each[name] = proven(place / f"{name}.onnx_adapter")
        copy_settings(made, source, place)
        if settings := genai_config(made, parts[0].plan, parts[0].file):
            (place / "genai_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    return GenerationFolder(target, programs, proof, with_each)


def _refuse_inputs(inputs: Mapping[str, torch.Tensor], tokens: int) -> None:
    if not isinstance(tokens, int) or tokens < 1:
        raise usage_error(
            f"tokens={tokens!r} compares nothing", fix=told("give 1 or more, or ", option("verify", False))
        )
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or len(value) == 0:
            raise usage_error(f"inputs[{name!r}] is no batch of tensors", fix="give what generate() takes: rows first")


def _saved(program: Program, path: Path, adapters: AdapterSet) -> Path:
    with adapters.as_inputs(program.model):
        return program.save(path, external_data=True)[0]


@dataclass(frozen=True)
class _Part:
    """One graph of the model."""

    file: str
    module: torch.nn.Module
    plan: StepPlan
    ports: Sequence[StepInput]
    outputs: list[str]

    def example(self) -> tuple[torch.Tensor, ...]:
        draw = torch.Generator().manual_seed(0)
        sizes = _EXAMPLE | _FROM_START if self.plan.from_start else _EXAMPLE
        return tuple(_example(port, draw, sizes) for port in self.ports)

    def runs(self) -> bool:
        """Whether eager takes several tokens after others."""
        try:
            with torch.no_grad():
                self.module(*self.example())
        except Exception:  # noqa: BLE001  whatever it raises, that is no step of the model's
            return False
        return True

    def ranges(self, prompts: Prompts) -> dict[str, tuple[float, float]]:
        """What the check draws from. A state comes from a step before, and not from a user: the largest that is drawn
        is some times what eager made while it was watched. Far beyond, the runtime's approximations show."""
        known = {TensorRole.TOKENS: prompts.vocabulary, TensorRole.MASK: 2, TensorRole.POSITIONS: prompts.positions}
        found: dict[str, tuple[float, float]] = {
            port.name: (0, end - 1) for port in self.ports if (end := known.get(port.role))
        }
        states = [port for port in self.ports if port.role is TensorRole.STATE]
        return found | {state.name: (-_TIMES_SEEN * _peak(state), _TIMES_SEEN * _peak(state)) for state in states}


def _in_torch(part: _Part) -> InTorch:
    return InTorch(part.module, [port.name for port in part.ports], part.outputs)


def _example(port: StepInput, draw: torch.Generator, sizes: Mapping[str, int]) -> torch.Tensor:
    shape = port.shape(sizes)
    if port.role is TensorRole.MASK:
        return (torch.arange(shape[1]) >= torch.arange(shape[0])[:, None]).to(port.example.dtype)
    if port.role is TensorRole.POSITIONS:
        return torch.arange(sizes[PAST], sizes[TOTAL]).expand(shape).clone()
    if port.role is TensorRole.TOKENS:
        return torch.randint(int(port.example.max()) + 1, shape, generator=draw)
    drawn = torch.randn(shape, generator=draw)
    if port.role is TensorRole.STATE:
        drawn = drawn.clamp(-_TIMES_SEEN, _TIMES_SEEN) * _peak(port)
    return drawn.to(port.example.dtype)


def _peak(state: StepInput) -> float:
    """The largest number in a state that eager made."""
    return float(state.example.abs().max()) or 1.0


def _parts(model: Any, prompts: Prompts) -> list[_Part]:
    """The graphs of a model, the step first."""
    runs, calls = [], []
    for batch, length, source in _SEEN:
        inputs = prompts.make(batch, length, source)
        with watched(model) as seen:
            generate(model, inputs, 2)
        runs.append(inputs)
        calls.append(seen)
    (one, prompt, text), (two, longer, long_text) = _SEEN
    lengths = Lengths(
        {
            BATCH: (one, one, two),
            SEQUENCE: (prompt, 1, longer),
            TOTAL: (prompt, prompt + 1, longer),
            PAST: (prompt, prompt + 1, longer),
            SOURCE: (text, text, long_text),
        }
    )
    plan = planned([calls[0][0], calls[0][1], calls[1][0]], lengths)
    outputs = ["logits", *(state.present for state in plan.own_states)]
    if plan.encoded is None:
        part = _Part("model.onnx", Step(model, plan), plan, plan.ports, outputs)
        if plan.recurrent and plan.grows and not part.runs():
            plan = replace(plan, from_start=True)
            part = replace(part, module=Step(model, plan), plan=plan)
        return [part]
    ports = source_ports([runs[0], runs[0], runs[1]], lengths)
    made = ["last_hidden_state", *(state.present for state in plan.states if state.of_the_source)]
    encode = Encode(model, plan, tuple(ports), start_token(model))
    return [
        _Part("decoder_model.onnx", Step(model, plan), plan, plan.ports, outputs),
        _Part("encoder_model.onnx", encode, plan, tuple(ports.values()), made),
    ]
