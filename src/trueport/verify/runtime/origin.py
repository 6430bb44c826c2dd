"""From the runtime's complaint to the user's line: the node that it names, and the place that the file notes on it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport.lower.passes.kernels import newest_opset_with
from trueport.source import Place, Where
from trueport.torch_internals import TORCH_FOLDER
from trueport.verify.runtime.tensors import element_name

# The ways in which onnxruntime 1.2x names a node, and, where the node has no name, its operator.
_NODE = re.compile(r"""Name:'([^']+)'|node with name '([^']+)'|In Node, \("([^"]+)"|[Nn]ode:? ?\(([^)]+)\)""")
_OPERATOR = re.compile(r"implementation for (\w+)\(|running (\w+) node|operator \((\w+)\)|Op \((\w+)\)")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


_Placed = tuple[onnx.FunctionProto | None, onnx.NodeProto]
"""A node, and the function that it is in, if any."""
_MOST_NODES = 1 << 20
"""Of a model whose functions are written out: a few that call each other twice over would have no end."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a message of the runtime is about. Either may be unknown."""

    place: Place | None = None
    facts: tuple[str, ...] = ()
    """The operator, its opset, and the dtypes that it is given."""


def origin_of(path: Path, complaint: str) -> Origin:
    """Where the node that a message speaks of comes from; nothing where it names none, or several might be meant."""
    model = model_at(path)
    if model is None:
        return Origin()
    nodes: list[_Placed] = [(None, node) for node in _nodes(model)]
    nodes += [(function, node) for function in model.functions for node in _inside(function.node)]
    for pattern, meant in ((_NODE, _by_name), (_OPERATOR, _by_operator)):
        for match in pattern.finditer(complaint):
            wanted = next(group for group in match.groups() if group)
            found = [each for each in nodes if meant(model, *each, wanted)]
            places = {place for _, node in found if (place := _place(node))}
            if len(found) == 1 or len(places) == 1:
                facts = {_described(model, *each) for each in found}
                return Origin(places.pop() if places else None, tuple(facts) if len(facts) == 1 else ())
    return Origin()


def is_ours(path: Path) -> bool:
    """Whether the file says that trueport wrote it, which promises every size that was declared."""
    model = model_at(path)
    return model is not None and any(each.key.startswith("trueport.") for each in model.metadata_props)


def made_at(path: Path, output: str) -> Place | None:
    """Where an output of the model comes from: the nearest node before it whose place the file notes."""
    model = model_at(path)
    if model is None:
        return None
    return _made_in(model, model.graph.node, output) if _nodes_written_out(model) is not None else None


def _made_in(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], output: str) -> Place | None:
    makers = {name: node for node in nodes for name in node.output}
    pending, seen = [output], set()
    while pending:
        name = pending.pop(0)
        node = makers.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        called, at = _called(model, node), list(node.output).index(name)
        inside = None if called is None else _made_in(model, called.node, "".join(called.output[at : at + 1]))
        if (place := inside or _place(node)) is not None:
            return place
        pending += node.input
    return None


def _called(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.FunctionProto | None:
    """The function of the model that a node calls."""
    return next((each for each in model.functions if (each.domain, each.name) == (node.domain, node.op_type)), None)


def _described(model: onnx.ModelProto, function: onnx.FunctionProto | None, node: onnx.NodeProto) -> str:
    """`BitShift of opset 20, given int32 and int32`."""
    opset = next((known.version for known in model.opset_import if known.domain == node.domain), None)
    of = f"{node.domain} " if node.domain else ""
    version = f"of {of}opset {opset}" if opset is not None else f"of {node.domain}, which the file does not import"
    dtypes = _dtypes(model) if function is None else {}  # its inputs have other dtypes in other calls
    given = [dtypes[name] for name in node.input if name in dtypes]
    older = newest_opset_with(node.op_type, opset) if opset is not None and not node.domain else None
    known = "" if older is None else f"; this runtime has it as of opset {older}, and not of newer ones"
    return f"the operator is {node.op_type} {version}" + (f", given {' and '.join(given)}" if given else "") + known


def _dtypes(model: onnx.ModelProto) -> dict[str, str]:
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError):  # else what the file says by itself
        model = onnx.shape_inference.infer_shapes(model)
    found: dict[str, str] = {}
    for graph in graphs_of(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
                found[value.name] = element_name(value.type.tensor_type.elem_type)
        found |= {weight.name: element_name(weight.data_type) for weight in graph.initializer}
    return found


def _by_name(model: onnx.ModelProto, function: onnx.FunctionProto | None, node: onnx.NodeProto, wanted: str) -> bool:
    """As the file calls it, or as the runtime does that has written out a function: `_inlfunc_Block_/fc/MatMul`."""
    if function is None or not node.name:
        return node.name == wanted
    match = re.fullmatch(rf"_inlfunc_{re.escape(function.name)}(?:_token_\d+)?_(.+)", wanted, flags=re.DOTALL)
    return match is not None and match[1] == node.name


def _by_operator(
    model: onnx.ModelProto, function: onnx.FunctionProto | None, node: onnx.NodeProto, wanted: str
) -> bool:
    """The operator itself, or a call of a function that holds it."""
    if node.op_type == wanted:
        return function is None or _place(node) is not None
    called = _called(model, node)
    return called is not None and any(inner.op_type == wanted and _place(inner) is None for inner in called.node)


def written_out(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without functions: what they compute stands where they were called. A model in which one calls itself,
    or that would have no end of nodes, stays as it is: no runtime takes it."""
    if not model.functions or _nodes_written_out(model) is None:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError):  # a foreign file may hold anything
        return model


def _nodes_written_out(model: onnx.ModelProto) -> int | None:
    """How many nodes a model has with its functions written out; None where that has no end."""
    functions = {(each.domain, each.name): each for each in model.functions}
    sizes: dict[tuple[str, str], int | None] = {}

    def total(nodes: Iterable[onnx.NodeProto]) -> int | None:
        count = 0
        for node in _inside(nodes):
            key = node.domain, node.op_type
            if key not in functions:
                count += 1
                continue
            if key not in sizes:
                sizes[key] = None  # until it is known: one that calls itself never is
                sizes[key] = total(functions[key].node)
            inside = sizes[key]
            if inside is None or (count := count + inside) > _MOST_NODES:
                return None
        return count

    return total(model.graph.node)


def model_at(path: Path) -> onnx.ModelProto | None:
    """A file without its external data, whatever its name ends in; None where it is no model."""
    try:
        return onnx.load(path, "protobuf", load_external_data=False)
    except (OSError, DecodeError):
        return None


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those inside its nodes."""
    yield model.graph
    for node in _nodes(model):
        yield from subgraphs_of(node)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from _inside(model.graph.node)


def _inside(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        for graph in subgraphs_of(node):
            pending.extend(graph.node)


def subgraphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _place(node: onnx.NodeProto) -> Place | None:
    """As we note it, or as torch's own exporter does. Nothing is read there: `SourceRoots` says what may be."""
    notes = {entry.key: entry.value for entry in node.metadata_props}
    file, _, line = notes.get("trueport.source", "").rpartition(":")
    if line.isdecimal():
        return Place((Where(file, int(line), readable=False),), notes.get("trueport.module", ""))
    noted = _FRAME.findall(notes.get("pkg.torch.onnx.stack_trace", ""))
    frames = [frame for frame in noted if not frame[0].startswith(("<", TORCH_FOLDER))]
    if not frames:
        return None
    return Place(tuple(Where(file, int(line), function, readable=False) for file, line, function in frames))
