"""From the arguments of `trueport.export` to a Job: the leaves, what they are called, which of their sizes are free."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import AdditionalInputs, ShapesCollection

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp009_taken_as import TakenAs
from trueport.diagnostics.rules.tp201_input_type import InputType
from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.diagnostics.spelling import option, told
from trueport.load.containers import PathStep, type_name
from trueport.load.faults import close_to, is_text, usage_error
from trueport.load.job import Job, Leaf
from trueport.load.size_specs import count_leaves
from trueport.load.sizes import Argument, SizeBook, arguments_of, is_free, read_dynamic_axes, read_dynamic_shapes
from trueport.load.structures import FoundLeaf, flatten_call
from trueport.load.unwrap import FunctionModule, signature_of, unwrapped
from trueport.load.values import LeafKind

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def make_job(
    model: object,
    args: object = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: object = None,
    dynamic_axes: Mapping[str, object] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    constants: str | Iterable[str] = (),
    value_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Job:
    """Understand a request. Raises UsageError where it cannot be understood.

    `args` is the tuple of positional arguments; anything else is taken as the one argument. A dict at its end may be
    keyword arguments (`_keywords_at_the_end`); any other is an argument like any other. `constants` names numbers (by
    input name, path or parameter) that become part of the model, and any other object that is to be kept as it is.
    """
    taken = unwrapped(model)
    module, notes = taken.module, list(taken.diagnostics)
    positional = args if type(args) is tuple else () if args is None else (args,)
    by_keyword = _keywords_at_the_end(module, positional) if not kwargs else None
    if by_keyword is not None:
        positional, kwargs = positional[:-1], by_keyword
        if kwargs:
            names = ", ".join(kwargs)
            notes.append(TakenAs(message=f"the dict at the end of args is taken as keyword arguments: {names}"))
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        collected: Any = dynamic_shapes
        dynamic_shapes = collected.dynamic_shapes(module, positional, dict(kwargs or {}))
    steps, by_name = _bind(module, positional, dict(kwargs or {}))
    found, call = flatten_call(list(zip(steps, positional, strict=True)), by_name)
    arguments = arguments_of(call.tree)

    kept = _named_leaves(constants, found, arguments, "constants")
    found = [dataclasses.replace(leaf, kind=LeafKind.CONSTANT) if i in kept else leaf for i, leaf in enumerate(found)]
    found = _rename(found, input_names)
    _check_output_names(output_names, found)

    if dynamic_shapes is not None and dynamic_axes:
        raise usage_error("both dynamic_shapes and dynamic_axes were given", fix="keep dynamic_shapes alone")
    if dynamic_axes:
        entries = read_dynamic_axes(dynamic_axes, found, output_names or ())
    else:
        entries = read_dynamic_shapes(dynamic_shapes, arguments, found)
    ranges = {
        i: value_range
        for name, value_range in (value_ranges or {}).items()
        for i in _named_leaves(name, found, arguments, "value_ranges")
    }
    book = SizeBook(entries)
    leaves = tuple(
        Leaf(
            leaf.name,
            leaf.kind,
            leaf.value,
            leaf.path,
            book.axes(leaf, entry),
            ranges.get(i),
            is_free(entry),
            leaf.inside_object and i not in kept,
        )
        for i, (leaf, entry) in enumerate(zip(found, entries, strict=True))
    )
    book.check_formulas()
    diagnostics = tuple(notes) + _cannot_be_given(found, kept) + _numbers_inside_objects(found, kept, arguments)
    return Job(module, leaves, call, tuple(output_names) if output_names else None, diagnostics)


def _keywords_at_the_end(module: torch.nn.Module, args: tuple[object, ...]) -> dict[str, object] | None:
    """The keyword arguments that a dict at the end of `args` is to `torch.onnx.export`; None where it is none.

    It is one where it fits no parameter by its place, or where its keys are parameters that have no value yet.
    """
    last = args[-1] if args else None
    signature = signature_of(module)
    if not isinstance(last, dict) or not all(isinstance(key, str) for key in last) or signature is None:
        return None
    try:
        bound = signature.bind_partial(*args[:-1])
        signature.bind(*args[:-1], **last)
    except TypeError:
        return None
    waiting = {name for name, each in signature.parameters.items() if each.kind not in _VARIADIC} - set(bound.arguments)
    if last and waiting.issuperset(last):
        return dict(last)
    try:
        signature.bind(*args)
    except TypeError:
        return dict(last)
    return None


def _bind(
    module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[list[PathStep], dict[str, object]]:
    """A step (how the user writes it) per positional argument, and the keyword arguments in the signature's order."""
    signature = signature_of(module)
    if signature is None:
        return [PathStep(f"input_{i}", f"input_{i}") for i in range(len(args))], kwargs
    try:
        signature.bind(*args, **kwargs)
    except TypeError as wrong:
        raise usage_error(
            f"the example arguments do not fit {_called(module)}: {wrong}",
            seen=[
                f"{_called(module)}{signature}",
                f"got {len(args)} positional, by name: {', '.join(kwargs) or 'none'}",
            ],
        ) from None
    steps: list[PathStep] = []
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = range(len(args) - len(steps))
            steps += [PathStep(f"{parameter.name}[{i}]", f"{parameter.name}_{i}") for i in rest]
        elif len(steps) < len(args):
            steps.append(PathStep(parameter.name, parameter.name))
    order = {name: i for i, name in enumerate(signature.parameters)}
    by_name = dict(sorted(kwargs.items(), key=lambda item: order.get(item[0], len(order))))
    return steps, by_name


def _called(module: torch.nn.Module) -> str:
    if isinstance(module, FunctionModule):
        return str(getattr(module.function, "__name__", type(module.function).__name__))
    return f"{type(module).__name__}.forward"


def _named_leaves(
    names: str | Iterable[str], found: Sequence[FoundLeaf], arguments: Sequence[Argument], option: str
) -> set[int]:
    """The leaves that are meant by input names, paths or parameter names (all leaves of that parameter)."""
    chosen: set[int] = set()
    for name in [names] if isinstance(names, str) else names:
        exact = {i for i, leaf in enumerate(found) if name in (leaf.name, leaf.path)}
        whole = {
            argument.first + i
            for argument in arguments
            if name in (argument.name, argument.path)
            for i in range(count_leaves(argument.tree))
            if not isinstance(found[argument.first + i].value, torch.Tensor) or count_leaves(argument.tree) == 1
        }
        if not exact and not whole:
            known = [leaf.name for leaf in found]
            raise usage_error(f"{option} names {name!r}, which is no argument", fix=close_to(name, known))
        chosen |= exact or whole
    return chosen


def _rename(found: list[FoundLeaf], names: Sequence[str] | None) -> list[FoundLeaf]:
    if not names:
        return found
    inputs = [i for i, leaf in enumerate(found) if leaf.kind is not LeafKind.CONSTANT]
    if len(names) > len(inputs):
        shown = ", ".join(found[i].name for i in inputs)
        raise usage_error(f"input_names has {len(names)} names for {len(inputs)} inputs ({shown})")
    renamed = list(found)
    for i, name in zip(inputs, names, strict=False):
        renamed[i] = dataclasses.replace(found[i], name=str(name))
    taken: dict[str, str] = {}
    for i in inputs:
        name, path = renamed[i].name, renamed[i].path
        if not name:
            raise usage_error(f"input_names gives {path} an empty name")
        if not is_text(name):
            raise usage_error(f"input_names calls {path} {name!r}, which is no text", fix="give it a name in UTF-8")
        if name in taken:
            raise usage_error(f"input_names calls both {taken[name]} and {path} {name!r}", fix="give each its own name")
        taken[name] = path
    return renamed


def _check_output_names(names: Sequence[str] | None, found: Sequence[FoundLeaf]) -> None:
    inputs = {leaf.name for leaf in found if leaf.kind is not LeafKind.CONSTANT}
    for i, name in enumerate(names or ()):
        if not name or not is_text(name):
            raise usage_error(f"output_names has {name!r}, which is no name", fix="give it a name in UTF-8")
        if name in (names or ())[:i]:
            raise usage_error(f"output_names has {name!r} twice")
        if name in inputs:
            raise usage_error(f"output_names has {name!r}, which is the name of an input", fix="rename one of them")


def _cannot_be_given(found: Sequence[FoundLeaf], kept: set[int]) -> tuple[Diagnostic, ...]:
    return tuple(
        InputType(
            message=f"{leaf.path} is a {type_name(type(leaf.value))}, which no model can be given", fix=_mend(leaf)
        )
        for i, leaf in enumerate(found)
        if not leaf.known and i not in kept
    )


def _mend(leaf: FoundLeaf) -> str:
    value: Any = leaf.value
    if isinstance(value, np.ndarray):
        return f"torch.from_numpy({leaf.path})"
    if isinstance(value, np.generic):
        return f"{leaf.path}.item()"
    if isinstance(value, complex):
        return f"torch.tensor({leaf.path})"
    return told(
        "take its tensors as arguments instead, or keep this very object in the model: ",
        option("constants", [leaf.name]),
    )


def _numbers_inside_objects(
    found: Sequence[FoundLeaf], kept: set[int], arguments: Sequence[Argument]
) -> tuple[Diagnostic, ...]:
    """Numbers among an object's attributes: settings or counters, so they are told and not guessed.

    1. An object that holds numbers and no tensor is nothing but those numbers: refused, unless listed in `constants`.
    2. A number beside tensors (the count of tokens in a cache) is kept, with a warning.
    3. A switch (a bool) is kept, with a note.
    """
    diagnostics: list[Diagnostic] = []
    counters: list[FoundLeaf] = []
    switches: list[FoundLeaf] = []
    for argument in arguments:
        places = range(argument.first, argument.first + count_leaves(argument.tree))
        inside = [found[i] for i in places if found[i].inside_object and i not in kept]
        numbers = [leaf for leaf in inside if leaf.kind is not LeafKind.TENSOR]
        counting = [leaf for leaf in numbers if not isinstance(leaf.value, bool)]
        switches += [leaf for leaf in numbers if isinstance(leaf.value, bool)]
        if counting and not any(leaf.kind is LeafKind.TENSOR for leaf in inside):
            diagnostics.append(
                InputType(
                    message=f"{argument.path} is an object that holds only numbers ({_values(counting)})",
                    fix=told(
                        "make its class a dataclass, and they are inputs; or keep them as they are: ",
                        option("constants", [argument.name]),
                    ),
                )
            )
        else:
            counters += counting
    return (*diagnostics, *_kept(counters, switches))


def with_counters(job: Job, counters: Sequence[Leaf]) -> Job:
    """The job with these numbers of objects as inputs, and not kept as in the example."""
    numbers = [leaf for leaf in job.leaves if leaf.inside_object and not leaf.is_input and leaf not in counters]
    switches = [leaf for leaf in numbers if isinstance(leaf.value, bool)]
    others = [finding for finding in job.diagnostics if not isinstance(finding, NumberFrozen)]
    taken = TakenAs(message=f"{_values(counters)}: an input and an output each, since the call counts them up")
    return job.with_counters(counters, (*others, *_kept([n for n in numbers if n not in switches], switches), taken))


def _kept(counters: Sequence[FoundLeaf | Leaf], switches: Sequence[FoundLeaf | Leaf]) -> Iterator[Diagnostic]:
    for group, severity in ((counters, Severity.WARNING), (switches, Severity.NOTE)):
        if group:
            yield NumberFrozen(
                message=f"{_values(group)}: kept as in the example",
                fix=told(
                    "make its class a dataclass to have its numbers as inputs, or confirm with ",
                    option("constants", ...),
                ),
                severity=severity,
            )


def _values(leaves: Sequence[FoundLeaf | Leaf]) -> str:
    shown = [f"{leaf.path} = {leaf.value!r}" for leaf in leaves[:4]]
    return ", ".join(shown) + (f" and {len(leaves) - 4} more" if len(leaves) > 4 else "")
