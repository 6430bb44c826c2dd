"""One model of `benchmarks.generation`, in a process of its own."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch.export import Dim

import trueport.generation
from benchmarks.generation_models import VOCABULARY, made
from trueport.errors import ExportError
from trueport.generation.eager import Prompts, generate
from trueport.generation.watch import noted

PAST, SOURCE, STEPS = 256, 64, 24


@dataclass(frozen=True)
class Row:
    """What one model came to; times are of one step each, in milliseconds."""

    model: str
    seconds: float
    tokens: str
    worst: float
    ties: int
    anew: str
    eager: float
    cached: float
    cacheless: float
    failed: str = ""


def measure(name: str, *, folder: Path, phase: Callable[[str], None]) -> Row:
    torch.set_num_threads(1)
    model, given = made(name)
    prompts = Prompts(model, given)
    phase("export")
    began = time.perf_counter()
    try:
        done = trueport.generation.export(model, folder / "out", inputs=given)
    except ExportError as refused:
        return Row(name, time.perf_counter() - began, "", 0, 0, "", 0, 0, 0, str(refused).splitlines()[0])
    seconds = time.perf_counter() - began
    phase("measure")
    runs = done.proof.runs if done.proof else ()
    tokens = ", ".join(f"{run.rows} × {run.tokens} ({'+'.join(map(str, run.pieces))})" for run in runs)
    if done.proof and done.proof.one_piece_only:
        tokens += ", in pieces refused, as by eager" if done.proof.refused else ", in pieces not: nor does eager"
    anew = sorted({step for run in runs for step in run.anew})
    inputs = prompts.make(1, PAST, SOURCE)
    return Row(
        name,
        seconds,
        tokens,
        max(run.worst for run in runs),
        sum(len(run.ties) for run in runs),
        ", ".join(map(str, anew)),
        _eager(model, inputs),
        _cached(folder / "out", inputs),
        _cacheless(model, prompts.make(2, 7, 6), inputs, folder),
    )


def _eager(model: Any, inputs: Mapping[str, torch.Tensor]) -> float:
    """One token by the model's own forward, with its own cache, inside `generate()`."""
    times: list[float] = []
    with noted(model, lambda _: times.append(-time.process_time()), lambda *_: _end(times)):
        generate(model, dict(inputs), STEPS + 1)
    return _best(times[1:])


def _end(times: list[float]) -> None:
    times[-1] += time.process_time()


def _cached(folder: Path, inputs: Mapping[str, torch.Tensor]) -> float:
    """One token by the exported step, whose states stay with the runtime."""
    encodes = (folder / "encoder_model.onnx").exists()
    arrays = {key: value.numpy() for key, value in inputs.items()}
    states: dict[str, Any] = {}
    if encodes:
        encoder = _session(folder / "encoder_model.onnx")
        names = [output.name for output in encoder.get_outputs()]
        feeds = {value.name: _value(arrays[value.name]) for value in encoder.get_inputs()}
        found = dict(zip(names, encoder.run_with_ort_values(names, feeds), strict=True))
        states = {name.replace("present", "past_key_values"): value for name, value in found.items() if "." in name}
    session = _session(folder / ("decoder_model.onnx" if encodes else "model.onnx"))
    for value in session.get_inputs():
        if value.name.startswith("past_") and value.name not in states:
            shape = [{"batch": 1, "past": 0}.get(size, size) for size in value.shape]
            states[value.name] = _value(np.zeros(shape, np.float32))
    taken = {value.name: value.shape for value in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    new = arrays["decoder_input_ids" if encodes else "input_ids"]
    mask = np.ones_like(new)
    times = []
    for _ in range(STEPS + 1):
        given = {
            "input_ids": new,
            "attention_mask": mask[:, -new.shape[1] :] if taken.get("attention_mask", [])[1:] == ["sequence"] else mask,
            "position_ids": (mask.cumsum(1) - 1)[:, -new.shape[1] :],
            "encoder_attention_mask": arrays.get("attention_mask"),
        }
        feeds = {name: _value(given[name]) for name in taken if name not in states} | states
        began = time.process_time()
        found = dict(zip(names, session.run_with_ort_values(names, feeds), strict=True))
        times.append(time.process_time() - began)
        for name in states:
            present = name.replace("past_key_values", "present").replace("past_", "present_")
            states[name] = found.get(present, states[name])
        new = found["logits"].numpy()[:, -1:].argmax(-1)
        mask = np.concatenate([mask, np.ones_like(new)], 1)
    return _best(times[1:])


class _WithoutCache(torch.nn.Module):
    """The whole text at each token, as a model is exported without its cache."""

    def __init__(self, model: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(**dict(zip(self.names, given, strict=True)), use_cache=False).logits
        return logits


def _cacheless(
    model: Any, example: Mapping[str, torch.Tensor], inputs: Mapping[str, torch.Tensor], folder: Path
) -> float:
    text = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    batch, sequence, source = Dim("batch", min=1), Dim("sequence", min=1), Dim("source", min=1)
    shapes = tuple(
        {0: batch} if value.is_floating_point() else {0: batch, 1: sequence if len(value[0]) == PAST else source}
        for name, value in inputs.items()
    )
    names, file = tuple(inputs), folder / "whole.onnx"
    ranges = {name: (0, VOCABULARY - 1) for name in names if name.endswith("input_ids")}
    ranges |= {name: (0, 1) for name in names if name.endswith("mask")}
    trueport.export(
        _WithoutCache(model, names), tuple(example.values()), file,
        dynamic_shapes=shapes, input_names=names, value_ranges=ranges,
    )  # fmt: skip
    session = _session(file)
    arrays = {name: value.numpy() for name, value in inputs.items()}
    times = []
    for _ in range(STEPS):
        began = time.process_time()
        logits = session.run(None, {value.name: arrays[value.name] for value in session.get_inputs()})[0]
        times.append(time.process_time() - began)
        arrays[text] = np.concatenate([arrays[text], logits[:, -1:].argmax(-1)], 1)
        if text == "input_ids":
            arrays["attention_mask"] = np.ones_like(arrays[text])
    return _best(times)


def genai(name: str, *, folder: Path, phase: Callable[[str], None]) -> str:
    """The same 32 tokens from ONNX Runtime GenAI; where it lies outside the environment, TRUEPORT_GENAI says."""
    model, given = made(name)
    try:
        trueport.generation.export(model, folder / "out", inputs=given, verify=False)
    except ExportError:
        return "-"
    if not (folder / "out" / "genai_config.json").exists():
        return "no config for such states"
    if place := os.environ.get("TRUEPORT_GENAI"):
        sys.path.append(place)
    try:
        library: Any = importlib.import_module("onnxruntime_genai")
    except ImportError:
        return "not installed"
    inputs = Prompts(model, given).make(1, 7)
    expected = generate(model, inputs, 32).tokens[0].tolist()
    loaded = library.Model(str(folder / "out"))
    settings = library.GeneratorParams(loaded)
    settings.set_search_options(max_length=39, min_length=39, do_sample=False)
    generator = library.Generator(loaded, settings)
    generator.append_tokens(inputs["input_ids"].numpy().astype(np.int32))
    found: list[int] = []
    while len(found) < 32 and not generator.is_done():
        generator.generate_next_token()
        found.append(int(generator.get_next_tokens()[0]))
    equal = next((i for i, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), len(found))
    return "32 equal" if equal == 32 else f"{equal} equal, then {'other' if equal < len(found) else 'it ended'}"


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _value(array: Any) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


def _best(times: list[float]) -> float:
    """The processor's time, and the least: others may be at work on the machine."""
    return 1000 * min(times)
