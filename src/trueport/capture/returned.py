"""What forward returned, as the outputs of the graph.

A list whose length is known only when the model runs is one output for each leaf of its items: an ONNX sequence of
tensors, or, of Python numbers, one tensor of them. The structure puts them together again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import torch

from trueport.capture.containers.dicts import first_open_dict
from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.rows import Column, NotAlike, Rows
from trueport.capture.containers.sequences import StandIn
from trueport.capture.recording.tracer import Tracer
from trueport.capture.values.disagreement import refuse_unsure
from trueport.capture.values.maybe import unless_empty
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp104_open_length import OpenLength
from trueport.diagnostics.rules.tp109_sequence_output import SequenceOutput
from trueport.diagnostics.rules.tp202_output_type import OutputType
from trueport.errors import ExportError, refusal
from trueport.examine.counting import is_counted, right_for_one_call
from trueport.graph.regions import GraphOutput, OpenItems, Switch, is_carried
from trueport.load.job import Job
from trueport.load.structures import FoundLeaf, Structure, StructureMismatch, flatten
from trueport.load.trees import Repeated
from trueport.source import Place
from trueport.torch_internals.symbolic import is_symbolic

_UNREADABLE = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
"""Dtypes of which ONNX Runtime hands a tensor over, and no sequence."""


def outputs_of(tracer: Tracer, returned: Any) -> tuple[list[GraphOutput], Structure]:
    """One output per leaf of what forward returned. Raises ExportError where something there can be no output."""
    returned = unless_empty(returned, tracer.symbols.assume)
    if (open_dict := first_open_dict(returned)) is not None:
        open_dict.why.complain()
    leaves, structure = flatten(returned, "output", root_in_names=False, open_list=lambda obj: _opened(tracer, obj))
    _refuse_unknown(leaves)
    outputs = [GraphOutput(leaf.name, _output_value(tracer, leaf)) for leaf in leaves]
    if not any(is_carried(output.value) for output in outputs):
        raise refusal(OutputType(message="forward returns no tensor and no number", fix="return what it computes"))
    return outputs, structure


def told_of(outputs: list[GraphOutput]) -> Iterator[Diagnostic]:
    """Whoever runs the model has to know which of its outputs are no tensors, or hold what was a list."""
    by_place: dict[Place | None, list[GraphOutput]] = {}
    for output in outputs:
        if isinstance(output.value, OpenItems):
            by_place.setdefault(output.value.place, []).append(output)
    for place, of_it in by_place.items():
        sequences = [f"`{output.name}`" for output in of_it if output.value.number is None]
        tensors = [f"`{output.name}`" for output in of_it if output.value.number is not None]
        told = [f"the sequence{'s' * (len(sequences) > 1)} of tensors {', '.join(sequences)}"] if sequences else []
        told += [f"the tensor{'s' * (len(tensors) > 1)} {', '.join(tensors)}"] if tensors else []
        yield SequenceOutput(
            message="forward returns a list whose length is known only when the model runs; in the ONNX model it is "
            + " and ".join(told),
            place=place,
            label="leaves the length open",
            facts={"outputs": ", ".join(output.name for output in of_it)},
        )


def counted(job: Job, after: Any) -> Iterator[Diagnostic]:
    """Refuse numbers of an object among the arguments that the call counts up (the length of a sliding window): the
    next call brings another number, and the file would be right for this one only. `after` are the arguments, as the
    call has left them."""
    try:
        values = job.call.flatten(after)
    except StructureMismatch:  # the object has other parts now; those that it had are not told apart
        return
    pairs = zip(job.leaves, values, strict=True)
    if counters := [(leaf, value) for leaf, value in pairs if not leaf.is_input and is_counted(leaf, value)]:
        yield right_for_one_call(counters)


def _refuse_unknown(leaves: list[FoundLeaf]) -> None:
    unknown = [leaf for leaf in leaves if not leaf.known]
    refuse_unsure(*(leaf.value for leaf in unknown))
    if unknown:
        raise ExportError(
            OutputType(
                message=f"forward returns a {type(leaf.value).__name__} at {leaf.path}, which no ONNX value can be"
            )
            for leaf in unknown
        )
    for leaf in leaves:
        if isinstance(leaf.value, StandIn):
            _refuse(leaf.value.stands_for, "its items stand among others in what forward returns")


def _output_value(tracer: Tracer, leaf: FoundLeaf) -> Any:
    value = leaf.value
    if leaf.inside_object and isinstance(value, (bool, int)):
        return Switch(value)
    if isinstance(value, torch.Tensor):
        return tracer.value_read(value)
    return tracer.symbols.number_of(value) if is_symbolic(value) else value


# --- lists of open length


def _opened(tracer: Tracer, obj: Any) -> tuple[Repeated, list[object]] | None:
    return _columns(tracer, obj, obj.stands_for) if is_open(obj) else None


def _columns(tracer: Tracer, items: TracedList, cls: type) -> tuple[Repeated, list[object]]:
    items.place = items.place or _made_at(tracer, items)
    try:
        rows = items.held.rows()
    except NotAlike:
        _refuse(items, "its items are of different kinds, or of sizes that differ in a way that this cannot follow")
    shape = rows.shape
    if all(column.fixed for column in shape.columns):
        _refuse(items, "its items are no tensors and no numbers, so that nothing tells how many there are")
    found: list[object] = []
    for column, tensors in rows.columns():
        if column.dtype in _UNREADABLE:
            name = str(column.dtype).removeprefix("torch.")
            _refuse(items, f"its items are {name}, of which ONNX Runtime hands over no sequence")
        found.append(column.fixed[0] if column.fixed else _items(tracer, items, rows, column, tensors))
    return Repeated(cls, shape.structure.tree, len(shape.columns)), found


def _items(
    tracer: Tracer, items: TracedList, rows: Rows, column: Column, tensors: tuple[torch.Tensor, ...]
) -> OpenItems:
    place = items.place
    read = partial(tracer.value_read, place=place)
    if (cut := rows.whole_and_lengths()) is not None:
        tensor, axis, lengths = cut
        return OpenItems(read(tensor), axis, read(lengths), place=place)
    values = [read(tensor) for tensor in tensors]
    if not column.is_packed:
        return OpenItems(values[0], number=column.number, place=place)
    sizes = tuple(None if size is None else tracer.symbols.size(size) for size in column.sizes)
    return OpenItems(values[0], column.along, table=values[1], sizes=sizes, place=place)


def _made_at(tracer: Tracer, items: TracedList) -> Place | None:
    """The line that made the items, where nobody noted which left their number open."""
    rows = next(part for part in items.held.parts if isinstance(part, Rows))
    return tracer.constants.place_of(tracer.value_read(rows.tensors[0]))


def _refuse(items: TracedList, why: str) -> NoReturn:
    raise refusal(
        OpenLength(
            message=f"forward returns a list whose length is known only when the model runs, and {why}",
            place=items.place,
            label="leaves the length open",
            fix="return one tensor: torch.stack(items) or torch.cat(items)",
        )
    )
