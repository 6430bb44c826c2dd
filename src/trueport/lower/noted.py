"""What a model's file has no place for, as metadata of the model and of its nodes: the structure of the arguments, the
line that a node comes from.

While a model is being made, the file stands there as Python knows it; before anything is written it is replaced by a
path that says nothing about the machine (`SourceRoots`).
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping

import onnx_ir as ir

from trueport.capture.graph import Graph
from trueport.load.job import Job
from trueport.source import Place, SourceRoots, Where

SOURCE, MODULE, OP = "trueport.source", "trueport.module", "trueport.op"


def noted_place(notes: MutableMapping[str, str]) -> Place | None:
    """The place of a node of ours."""
    file, _, line = notes.get(SOURCE, "").rpartition(":")
    return Place((Where(file, int(line)),), notes.get(MODULE, "")) if line.isdecimal() else None


def note_place(notes: MutableMapping[str, str], roots: SourceRoots | None) -> None:
    """Write the file relative to its root; without `roots`, leave the line out."""
    place = noted_place(notes)
    if roots is None:
        notes.pop(SOURCE, None)
    elif place is not None and place.where is not None:
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
    for part in (model.graph, *(function.graph for function in model.functions.values())):
        for node in part.all_nodes():
            note_place(node.metadata_props, roots)
