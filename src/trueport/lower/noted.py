"""What a model's file has no place for, as metadata of the model and of its nodes: the structure of the arguments, the
line that a node comes from.

While a model is being made, the file stands there as Python knows it; before anything is written it is replaced by a
path that says nothing about the machine (`SourceRoots`). Beside our own notes are those that torch's exporter makes,
under its names and in its form, and nodes are called by the module that they belong to: tools know to read both.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence

import onnx_ir as ir
import torch

from trueport.graph.regions import Graph
from trueport.load.job import Job
from trueport.load.unwrap import FunctionModule
from trueport.source import Place, SourceRoots, Where

SOURCE, MODULE, OP = "trueport.source", "trueport.module", "trueport.op"
STACK, SCOPES, CLASSES = (f"pkg.torch.onnx.{name}" for name in ("stack_trace", "name_scopes", "class_hierarchy"))
CALL = "trueport.call"
"""The calls of modules that a node belongs to, `3.17`, as numbers of `Graph.calls`; `3.17*` where others may want the
same node. Noted only where functions are to be made of them (`functions/`), and in no file."""
_FRAME = re.compile(r'^File "([^"\n]+)"(, line \d+, in .*)$', re.MULTILINE)
_NOT_IN_A_NAME = re.compile(r"[^\w.-]", re.ASCII)


def note_shared(node: ir.Node) -> None:
    """The node was made for one call of a module, and now others read it that would have made their own."""
    if (call := node.metadata_props.get(CALL)) is not None:
        node.metadata_props[CALL] = f"{call.rstrip('*')}*"


def note_joined(node: ir.Node, joined: Sequence[ir.Node]) -> None:
    """The node does what several did. It has the line of the first, and belongs to the module around all of them."""
    notes = node.metadata_props
    notes.update(joined[0].metadata_props)
    for key in (MODULE, CALL):
        paths = [each.metadata_props.get(key, "").rstrip("*").split(".") for each in joined]
        common = ".".join(parts[0] for parts in itertools.takewhile(_are_equal, zip(*paths, strict=False)))
        notes.pop(key, None)
        if common:
            notes[key] = common


def _are_equal(parts: Sequence[str]) -> bool:
    return len(set(parts)) == 1


def noted_place(notes: MutableMapping[str, str]) -> Place | None:
    """The place of a node of ours."""
    file, _, line = notes.get(SOURCE, "").rpartition(":")
    return Place((Where(file, int(line)),), notes.get(MODULE, "")) if line.isdecimal() else None


def stack_trace(place: Place) -> str:
    """The user's own frames from `forward` to the line, as torch writes them. Without the lines' texts: those are the
    model's source, and the file may go to others.
    """
    frames = [call for call in (*place.callers, place.where) if call is not None]
    own = [call for call in frames if not call.is_library] or frames[-1:]
    written = (f'File "{call.file}", line {call.line}, in {call.function.rpartition(".")[2]}' for call in own)
    return "\n".join(frame for frame in written if _FRAME.match(frame))


def note_place(notes: MutableMapping[str, str], roots: SourceRoots | None) -> None:
    """Write the file relative to its root; without `roots`, leave the line out."""
    place = noted_place(notes)
    if roots is None:
        notes.pop(SOURCE, None)
        notes.pop(STACK, None)
        return
    if STACK in notes:
        notes[STACK] = _FRAME.sub(lambda frame: f'File "{roots.note(frame[1])}"{frame[2]}', notes[STACK])
    if place is not None and place.where is not None:
        notes[SOURCE] = f"{roots.note(place.where.file)}:{place.where.line}"


def describe(model: ir.Model, graph: Graph, job: Job, version: str, roots: SourceRoots | None) -> None:
    """Keep in the model the structure of its arguments and results, and the lines that its nodes come from. Without
    `roots`, nothing of the source: no lines, and no values of arguments. `version` is ours.
    """
    model.producer_version = version
    model.metadata_props["trueport.arguments"] = json.dumps(job.call.describe())
    model.metadata_props["trueport.results"] = json.dumps(graph.returns.describe())
    if roots is not None:
        model.metadata_props["trueport.constants"] = json.dumps(job.constants)
    scopes = Scopes(job.model)
    used: Counter[str] = Counter()
    for node in every_node(model):
        note_place(node.metadata_props, roots)
        scopes.note(node, classes=roots is not None)
        node.name = _unused(scopes.name(node), used)


def notes_of(op: str, place: Place) -> dict[str, str]:
    """What is noted of a node that computes `op` for a line of the user's."""
    found = {OP: op}
    if place.where is not None:
        found[SOURCE] = str(place.where)
        found[STACK] = stack_trace(place)
    if place.module:
        found[MODULE] = place.module
    if place.call:
        found[CALL] = ".".join(map(str, place.call))
    return found


def within(notes: MutableMapping[str, str], path: str, stack: str) -> None:
    """Leave only what is so in every call of a module: what lies inside of it. `path` and `stack` are the module's."""
    module = notes.pop(MODULE, "")
    if inner := _inner(module, path):
        notes[MODULE] = inner
    if STACK in notes:
        notes[STACK] = notes[STACK].removeprefix(f"{stack}\n")
    if SCOPES in notes:
        scopes: list[str] = ast.literal_eval(notes[SCOPES])
        if path in scopes[:-1]:
            cut = scopes.index(path)
            notes[SCOPES] = repr(["", *(_inner(each, path) for each in scopes[cut + 1 : -1]), scopes[-1]])
            if CLASSES in notes:
                notes[CLASSES] = repr(ast.literal_eval(notes[CLASSES])[cut:])


def _inner(module: str, path: str) -> str:
    return module.removeprefix(path).removeprefix(".") if module == path or module.startswith(f"{path}.") else module


def every_node(model: ir.Model) -> Iterator[ir.Node]:
    for part in (model.graph, *(function.graph for function in model.functions.values())):
        yield from part.all_nodes()


def _unused(wanted: str, used: Counter[str]) -> str:
    """`/fc/Add`, then `/fc/Add_1`."""
    name = wanted
    while used[name]:
        name = f"{wanted}_{used[wanted]}"
        used[wanted] += 1
    used[name] += 1
    return name


class Scopes:
    """The modules around a node, by the path that is noted on it."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._modules = dict(model.named_modules(remove_duplicate=False))
        self._around: Callable[[str], tuple[str, ...]] = functools.cache(self._found)

    def _found(self, path: str) -> tuple[str, ...]:
        """Of `layers.0.attn`: the model, `layers.0`, `layers.0.attn`. A list of modules is none that was called."""
        parts = path.split(".") if path else []
        paths = ["", *(".".join(parts[: end + 1]) for end in range(len(parts)))]
        return tuple(each for each in paths if each == path or not isinstance(self._modules.get(each), _CONTAINERS))

    def name(self, node: ir.Node) -> str:
        """`/layers.0/attn/MatMul`."""
        return f"{self.prefix(node.metadata_props.get(MODULE, ''))}/{_NOT_IN_A_NAME.sub('_', node.op_type)}"

    def prefix(self, path: str) -> str:
        """`/layers.0/attn` of `layers.0.attn`."""
        around = self._around(path)
        inside = [inner[len(outer) + bool(outer) :] for outer, inner in itertools.pairwise(around)]
        return "".join(f"/{_NOT_IN_A_NAME.sub('_', part)}" for part in inside)

    def note(self, node: ir.Node, classes: bool) -> None:
        """Paths and classes of the modules around, outermost first, and at last the node and what it computes."""
        notes = node.metadata_props
        if OP not in notes:
            return
        around = self._around(notes.get(MODULE, ""))
        notes[SCOPES] = repr([*around, node.outputs[0].name if node.outputs else node.op_type])
        if classes:
            notes[CLASSES] = repr([*(_class_of(self._modules.get(path)) for path in around), notes[OP]])


_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict)


def _class_of(module: torch.nn.Module | None) -> str:
    named = module.function if isinstance(module, FunctionModule) else type(module)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__name__)}"
