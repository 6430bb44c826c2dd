"""ONNX files with something changed, given to `verify`: what is called faithful is compared again by other means."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from benchmarks.soak.models import MUTATED, example, made

_PATIENCE = 120.0
_SIZES = (0, 1, 2, 3, 5, 9)


def run(count: int, seed: int, folder: Path) -> dict[str, Any]:
    import trueport

    originals = {}
    for name, entry in MUTATED.items():
        path = folder / "original.onnx"
        trueport.export(made(entry), (example(*entry[1]),), path, dynamic_shapes=({0: "n"},), overwrite=True)
        originals[name] = path.read_bytes()
    random_ = random.Random(seed)
    verdicts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    wrong: list[str] = []
    faithful = 0
    for at in range(count):
        name = random_.choice(list(MUTATED))
        mutation = random_.choice(MUTATIONS)
        content = mutation(random_, originals[name])
        kinds[mutation.__name__.strip("_")] += 1
        path = folder / "mutated.onnx"
        path.write_bytes(content)
        said = _in_a_process(lambda: _verdict(path, name), folder)
        verdicts[said] += 1
        if said == "faithful":
            faithful += 1
            compared = _in_a_process(lambda: _independently(path, name, seed), folder)
            if compared != "equal":
                wrong.append(f"file {at} ({name}, {mutation.__name__}): called faithful, and {compared}")
                (folder.parent / f"wrong_{at}.onnx").write_bytes(content)
        if said.startswith(("raised", "ended")):
            wrong.append(f"file {at} ({name}, {mutation.__name__}): {said}")
            (folder.parent / f"wrong_{at}.onnx").write_bytes(content)
        if at % 25 == 24:
            print(f"mutated: {at + 1}/{count} {dict(verdicts)}", flush=True)
    return {"files": count, "seed": seed, "mutations": dict(kinds), "verdicts": dict(verdicts),
            "called faithful and compared again": faithful, "faults": wrong}  # fmt: skip


def _in_a_process(ask: Callable[[], str], folder: Path) -> str:
    """What a forked process answers: a file may crash it."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            answer.write_text(json.dumps(ask()))
        finally:
            os._exit(0)
    until = time.monotonic() + _PATIENCE
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"ended: no answer within {_PATIENCE:.0f} s"
        time.sleep(0.01)
    if not answer.exists():
        return f"ended: status {ended[1]}"
    return str(json.loads(answer.read_text()))


def _verdict(path: Path, name: str) -> str:
    import trueport

    entry = MUTATED[name]
    try:
        report = trueport.verify(path, made(entry), (example(*entry[1]),), dynamic_shapes=({0: "n"},))
    except trueport.ExportError as refused:
        return "refused: " + refused.diagnostics[0].code
    except Exception as failure:  # noqa: BLE001  raw errors are what is looked for
        return f"raised {type(failure).__name__}: {failure}"
    if report.ok and report.verified:
        return "faithful"
    codes = sorted({found.code for found in report.diagnostics if found.is_error})
    if "TP901" in codes:
        return "raised TP901: " + next(found.message for found in report.diagnostics if found.code == "TP901")
    return "found: " + " ".join(codes) if codes else "nothing compared"


def _independently(path: Path, name: str, seed: int) -> str:
    """onnxruntime and eager side by side, on inputs of our own drawing, with numpy's comparison."""
    import onnxruntime

    entry = MUTATED[name]
    model, draw = made(entry), np.random.default_rng(seed + 1)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0].name
    compared = 0
    for size in _SIZES:
        for scale in (0.01, 1.0, 30.0):
            for shift in (0.0, -1.0, 1.0):
                shape = (size, *entry[1][1:])
                array = (draw.standard_normal(shape) * scale + shift).astype(np.float32)
                try:
                    with torch.no_grad():
                        right = model(torch.from_numpy(array)).numpy()
                except Exception:  # noqa: BLE001  eager refuses this input
                    continue
                (got,) = session.run(None, {given: array})
                if got.shape != right.shape or got.dtype != right.dtype:
                    return f"differs: {got.dtype}{got.shape} for {right.dtype}{right.shape}"
                if not np.allclose(got, right, rtol=1e-3, atol=1e-3, equal_nan=True):
                    return f"differs by {np.abs(got - right).max()} at size {size}, scale {scale}, shift {shift}"
                compared += 1
    return "equal" if compared >= 20 else f"only {compared} inputs could be compared"


# --- mutations: of bytes


def _flipped_bits(random_: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.choice([1, 1, 2, 8])):
        changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
    return bytes(changed)


def _cut(random_: random.Random, content: bytes) -> bytes:
    return content[: random_.randrange(len(content))]


def _overwritten(random_: random.Random, content: bytes) -> bytes:
    at, length = random_.randrange(len(content)), random_.choice([1, 4, 16])
    return content[:at] + random_.randbytes(length) + content[at + length :]


def _inserted(random_: random.Random, content: bytes) -> bytes:
    at = random_.randrange(len(content))
    return content[:at] + random_.randbytes(random_.choice([1, 2, 9])) + content[at:]


# --- of the structure


def _structure(change: Callable[[random.Random, onnx.ModelProto], None]) -> Callable[[random.Random, bytes], bytes]:
    def mutation(random_: random.Random, content: bytes) -> bytes:
        model = onnx.ModelProto.FromString(content)
        change(random_, model)
        return bytes(model.SerializeToString())

    mutation.__name__ = change.__name__
    return mutation


def _node(random_: random.Random, model: onnx.ModelProto) -> onnx.NodeProto:
    return random_.choice(model.graph.node)


@_structure
def _another_weight(random_: random.Random, model: onnx.ModelProto) -> None:
    tensors = [tensor for tensor in model.graph.initializer if tensor.dims or tensor.raw_data]
    if not tensors:
        return
    tensor = random_.choice(tensors)
    array = numpy_helper.to_array(tensor).copy()
    if array.size:
        at = random_.randrange(array.size)
        array.flat[at] = array.flat[at] + random_.choice([1, -1, 2]) if array.dtype != bool else not array.flat[at]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@_structure
def _inputs_swapped(random_: random.Random, model: onnx.ModelProto) -> None:
    node = _node(random_, model)
    inputs = list(reversed(node.input))
    del node.input[:]
    node.input.extend(inputs)


@_structure
def _node_dropped(random_: random.Random, model: onnx.ModelProto) -> None:
    model.graph.node.remove(_node(random_, model))


@_structure
def _another_operator(random_: random.Random, model: onnx.ModelProto) -> None:
    node = _node(random_, model)
    swaps = {"Add": "Sub", "Sub": "Add", "Mul": "Add", "Relu": "Abs", "Tanh": "Sigmoid", "Gemm": "MatMul"}
    node.op_type = swaps.get(node.op_type, random_.choice(["Identity", "Neg", "Relu", "Nonsense"]))


@_structure
def _another_attribute(random_: random.Random, model: onnx.ModelProto) -> None:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = random_.choice(attributes)
    if attribute.ints:
        attribute.ints[random_.randrange(len(attribute.ints))] += random_.choice([-1, 1])
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f += random_.choice([-0.5, 0.5])
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i += random_.choice([-1, 1])
    else:
        attribute.name += "_"


@_structure
def _another_edge(random_: random.Random, model: onnx.ModelProto) -> None:
    names = [name for node in model.graph.node for name in (*node.input, *node.output) if name]
    node = _node(random_, model)
    if node.input:
        node.input[random_.randrange(len(node.input))] = random_.choice([*names, "nobody"])


@_structure
def _another_declaration(random_: random.Random, model: onnx.ModelProto) -> None:
    value = random_.choice([*model.graph.input, *model.graph.output])
    declared = value.type.tensor_type
    if random_.random() < 0.5 and declared.shape.dim:
        declared.shape.dim[random_.randrange(len(declared.shape.dim))].dim_value = random_.choice([1, 2, 7])
    else:
        declared.elem_type = random_.choice([onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64, 99])


@_structure
def _another_version(random_: random.Random, model: onnx.ModelProto) -> None:
    if random_.random() < 0.5:
        model.opset_import[0].version = random_.choice([1, 7, 13, 18, 21, 99])
    else:
        model.ir_version = random_.choice([0, 3, 8, 99])


@_structure
def _another_name(random_: random.Random, model: onnx.ModelProto) -> None:
    """Of an input or output, or the metadata: the same model."""
    if random_.random() < 0.5:
        model.metadata_props.add(key="trueport.source", value="../../etc/passwd:1")
    else:
        model.graph.name = "\x1b[31m\n"


MUTATIONS = [
    _flipped_bits, _flipped_bits, _cut, _overwritten, _inserted,
    _another_weight, _another_weight, _inputs_swapped, _node_dropped, _another_operator, _another_attribute,
    _another_edge, _another_declaration, _another_version, _another_name,
]  # fmt: skip
