"""From an ONNX file to an `Inspection`."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.inspection.found import (
    DataFile,
    FileFunction,
    FilePort,
    FileWeight,
    GraphInside,
    Inspection,
    LineCount,
    NamedSize,
    OperatorCount,
    SubgraphNode,
)

_LARGEST = 2 << 30
"""What protobuf can read in one piece."""
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_LIBRARY = re.compile(r"(^|[/\\])(site-packages|dist-packages|stdlib)[/\\]torch[/\\]")
_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def inspect_file(path: Path) -> Inspection:
    """Read a file. Raises UsageError where it is no model that can be read."""
    model, size = _model_at(path)
    nodes = list(_every_node(model))
    weights = list(_weights(model))
    return Inspection(
        file=str(path),
        bytes=size,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        ir_version=model.ir_version,
        opsets={known.domain or "ai.onnx": known.version for known in model.opset_import},
        inputs=tuple(_port(given) for given in model.graph.input if given.name not in _initialised(model)),
        outputs=tuple(_port(out) for out in model.graph.output),
        sizes=tuple(_sizes(model)),
        nodes=len(nodes),
        operators=_counted(nodes),
        lines=tuple(_lines(nodes)),
        weights=tuple(sorted(weights, key=lambda weight: (-weight.bytes, weight.name))),
        control_flow=tuple(found for part in (model.graph, *model.functions) for found in _control_flow(part.node)),
        functions=tuple(_functions(model, nodes)),
        data_files=tuple(_data_files(path, weights)),
        passes=_passes(model),
        metadata=tuple(entry.key for entry in model.metadata_props),
    )


def _model_at(path: Path) -> tuple[onnx.ModelProto, int]:
    def refused(why: str, fix: str) -> UsageError:
        return UsageError([UsageFault(message=f"{path} {why}", fix=fix)])

    if not path.is_file():
        raise refused("is no file", "name an ONNX file")
    try:
        size = path.stat().st_size
        if size >= _LARGEST:
            raise refused(
                f"has {size:,} bytes, and protobuf reads no message of 2 GB or more",
                "write it with its weights in a file beside it: trueport export --external-data",
            )
        content = path.read_bytes()
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}", "name a file that you may read") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise refused("is no ONNX file, or is cut off", "name an ONNX file") from None
    if not model.HasField("graph") or not model.opset_import:
        raise refused("holds no model: there is no graph in it, or no opset", "name an ONNX file")
    return model, size


# --- nodes


def _subgraphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{number}]", graph


def _inside(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """These, and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for _, graph in _subgraphs(node):
            yield from _inside(graph.node)


def _every_node(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from _inside(model.graph.node)
    for function in model.functions:
        yield from _inside(function.node)


def _operator(node: onnx.NodeProto) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _counted(nodes: Iterable[onnx.NodeProto]) -> tuple[OperatorCount, ...]:
    counts = Counter(_operator(node) for node in nodes)
    return tuple(
        OperatorCount(name, count) for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )


def _notes(node: onnx.NodeProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def _line(notes: Mapping[str, str]) -> str:
    """As we note it, or the innermost line that torch's exporter notes and that is not torch's own; else nothing."""
    if noted := notes.get("trueport.source"):
        return noted
    frames = [
        f"{file}:{line}"
        for file, line in _FRAME.findall(notes.get("pkg.torch.onnx.stack_trace", ""))
        if not file.startswith("<") and not _LIBRARY.search(file)
    ]
    return frames[-1] if frames else ""


def _lines(nodes: Iterable[onnx.NodeProto]) -> Iterator[LineCount]:
    """In the order of the file, where each line comes first."""
    found: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        if line := _line(_notes(node)):
            found.setdefault(line, []).append(node)
    for line, of_it in found.items():
        yield LineCount(line, len(of_it), _counted(of_it))


def _control_flow(nodes: Iterable[onnx.NodeProto]) -> Iterator[SubgraphNode]:
    for node in nodes:
        bodies = tuple(
            GraphInside(name, sum(1 for _ in _inside(graph.node)), tuple(_control_flow(graph.node)))
            for name, graph in _subgraphs(node)
        )
        if bodies:
            notes = _notes(node)
            yield SubgraphNode(_operator(node), node.name, _line(notes), notes.get("trueport.module", ""), bodies)


def _functions(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> Iterator[FileFunction]:
    calls = Counter((node.domain, node.op_type) for node in nodes)
    for function in model.functions:
        yield FileFunction(
            f"{function.domain}::{function.name}",
            len(function.input),
            len(function.output),
            sum(1 for _ in _inside(function.node)),
            calls[function.domain, function.name],
        )


# --- inputs, outputs, sizes


def _initialised(model: onnx.ModelProto) -> set[str]:
    """Up to IR version 3, each weight is an input as well."""
    return {weight.name for weight in model.graph.initializer}


def _port(given: onnx.ValueInfoProto) -> FilePort:
    text, tensor = _type(given.type)
    if tensor is None or not tensor.HasField("shape"):
        return FilePort(given.name, text, None)
    return FilePort(given.name, text, tuple(_axis(dim) for dim in tensor.shape.dim))


def _type(kind: onnx.TypeProto) -> tuple[str, onnx.TypeProto.Tensor | None]:
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return _dtype(kind.tensor_type.elem_type), kind.tensor_type
    if which == "sequence_type":
        return f"sequence of {_type(kind.sequence_type.elem_type)[0]}", None
    if which == "optional_type":
        return f"optional {_type(kind.optional_type.elem_type)[0]}", None
    return (which or "unknown").removesuffix("_type"), None


def _dtype(number: int) -> str:
    try:
        name = str(onnx.TensorProto.DataType.Name(number)).lower()
        return {"float": "float32", "double": "float64"}.get(name, name)
    except ValueError:
        return f"type {number}"


def _axis(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    which = dim.WhichOneof("value")
    if which == "dim_value":
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def _sizes(model: onnx.ModelProto) -> Iterator[NamedSize]:
    """Names first, then formulas; each in the order in which inputs and outputs have them."""
    axes: dict[str, list[str]] = {}
    for given in (*model.graph.input, *model.graph.output):
        for number, size in enumerate(_port(given).shape or ()):
            if isinstance(size, str):
                axes.setdefault(size, []).append(f"{given.name}.{number}")
    for text in sorted(axes, key=lambda text: not text.isidentifier()):
        yield NamedSize(text, not text.isidentifier(), tuple(axes[text]))


# --- weights


def _weights(model: onnx.ModelProto) -> Iterator[FileWeight]:
    """Of the graph and of those inside its nodes, also where a `Constant` holds one."""
    graphs = [model.graph, *(graph for node in _every_node(model) for _, graph in _subgraphs(node))]
    tensors = [(tensor.name, tensor) for graph in graphs for tensor in graph.initializer]
    tensors += [(sparse.values.name, sparse.values) for graph in graphs for sparse in graph.sparse_initializer]
    for node in _every_node(model):
        if node.op_type == "Constant":
            tensors += [(node.output[0] if node.output else "", a.t) for a in node.attribute if a.HasField("t")]
    for name, tensor in tensors:
        yield _weight(name, tensor)


def _weight(name: str, tensor: onnx.TensorProto) -> FileWeight:
    outside = {entry.key: entry.value for entry in tensor.external_data}
    is_outside = tensor.data_location == onnx.TensorProto.EXTERNAL
    length = outside.get("length", "")
    if is_outside and length.isascii() and length.isdecimal() and len(length) < 19:
        size = int(length)
    elif tensor.raw_data:
        size = len(tensor.raw_data)
    else:
        size = _bytes(tensor)
    file = outside.get("location", "") if is_outside else None
    return FileWeight(name, _dtype(tensor.data_type), tuple(tensor.dims), size, file)


def _bytes(tensor: onnx.TensorProto) -> int:
    """As many as its dtype and its sizes say."""
    if tensor.string_data:
        return sum(map(len, tensor.string_data))
    elements = math.prod(tensor.dims)
    try:
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        bits: int = _BITS.get(name) or onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
    except (ValueError, KeyError, TypeError):
        return 0
    return int(max(0, elements * bits + 7) // 8)


def _data_files(path: Path, weights: Iterable[FileWeight]) -> Iterator[DataFile]:
    found: dict[str, list[int]] = {}
    for weight in weights:
        if weight.file is not None:
            found.setdefault(weight.file, []).append(weight.bytes)
    folder = Path(os.path.realpath(path.parent))
    for location, sizes in found.items():
        beside = _beside(folder, location)
        size = beside.stat().st_size if beside is not None and beside.is_file() else None
        yield DataFile(location, len(sizes), sum(sizes), outside=beside is None, bytes=size)


def _beside(folder: Path, location: str) -> Path | None:
    """Where a file is that a model names; None where that is not in the model's folder, by `..`, a link or a root."""
    try:
        meant = Path(os.path.realpath(folder / location.replace("\\", "/")))
    except (OSError, ValueError):  # a NUL, or a name that is too long
        return None
    return meant if meant.is_relative_to(folder) and meant != folder else None


def _passes(model: onnx.ModelProto) -> dict[str, int]:
    """What trueport notes of its own passes."""
    noted = next((entry.value for entry in model.metadata_props if entry.key == "trueport.passes"), "{}")
    try:
        found = json.loads(noted)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: count for name, count in found.items() if type(count) is int}
