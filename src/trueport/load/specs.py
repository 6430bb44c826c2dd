"""Example inputs for the command line: from the texts after `-i` and `--dim` to arguments, free sizes and ranges."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.load.nested import hints_of, put_together, refuse_overlaps, root_of
from trueport.load.spec_sizes import Range, SpecSizes
from trueport.load.spec_text import InputSpec, read_spec
from trueport.load.spec_values import draw, given_value
from trueport.load.unwrap import FunctionModule, signature_of

_SEED = 0
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class ParsedInputs:
    """Everything that `make_job` needs to know of the inputs."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: dict[str, dict[int, Any]] | None
    value_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)


def parse_inputs(
    specs: Sequence[str], dims: Mapping[str, Range] | None = None, model: torch.nn.Module | None = None
) -> ParsedInputs:
    """Make the arguments that the specs describe. The seed is fixed: the same specs give the same example."""
    signature = signature_of(model) if model is not None else None
    read = [read_spec(text, list(signature.parameters) if signature else ()) for text in specs]
    named = _by_parameter(read, signature)
    refuse_overlaps(named)
    values, free, ranges = made(named, dims or {})
    whole, path_of = put_together(values, _annotations(model))
    args, kwargs = _as_call(whole, signature)
    shapes = {path_of[name]: axes for name, axes in free.items()}
    return ParsedInputs(args, kwargs, shapes or None, {path_of[name]: each for name, each in ranges.items()})


def _annotations(model: torch.nn.Module | None) -> dict[str, Any]:
    if model is None or isinstance(model, torch.jit.ScriptModule):
        return {}
    return hints_of(model.function if isinstance(model, FunctionModule) else type(model).forward)


Made = tuple[dict[str, Any], dict[str, dict[int, Any]], dict[str, tuple[float, float]]]


def made(named: Mapping[str, InputSpec], dims: Mapping[str, Range]) -> Made:
    """The values that the specs describe, their free axes and the ranges of their values, each by path."""
    loaded = {path: given_value(spec, path) for path, spec in named.items() if spec.value is not None}
    sizes = SpecSizes(dims)
    for path, spec in named.items():
        sizes.learn(spec, loaded.get(path))
    sizes.check_ranges()
    generator = torch.Generator().manual_seed(_SEED)
    values = {
        path: loaded[path] if path in loaded else draw(spec, sizes.lengths(spec), generator)
        for path, spec in named.items()
    }
    free = {path: axes for path, spec in named.items() if (axes := sizes.free_axes(spec))}
    ranges = {path: spec.value_range for path, spec in named.items() if spec.value_range is not None}
    return values, free, ranges


def _by_parameter(specs: Sequence[InputSpec], signature: inspect.Signature | None) -> dict[str, InputSpec]:
    """Each spec under the path of the argument that it fills: its own name, or the next parameter that has none."""
    parameters = list(signature.parameters.values()) if signature else []
    takes_any_name = signature is None or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    fillable = [p.name for p in parameters if p.kind not in _VARIADIC]
    named: dict[str, InputSpec] = {}
    for spec in specs:
        if spec.name is None:
            continue
        root = root_of(spec.name)
        if root not in fillable and not takes_any_name:
            raise usage_error(f"-i {spec.text}: forward has no parameter {root!r}", fix=close_to(root, fillable))
        if spec.name in named:
            raise usage_error(f"-i says twice what {spec.name} is")
        named[spec.name] = spec
    roots = set(map(root_of, named))
    places = _next_places(parameters, roots)
    for spec in specs:
        if spec.name is None:
            place = next(places, None)
            if place is None:
                raise usage_error(f"-i {spec.text}: forward has only {len(fillable)} parameters", seen=fillable)
            named[place] = spec
    missing = [
        p.name
        for p in parameters
        if p.name not in roots
        and p.name not in named
        and p.default is inspect.Parameter.empty
        and p.kind not in _VARIADIC
    ]
    if missing:
        example = " ".join(f"-i {name}:2x3" for name in missing)
        raise usage_error(
            f"forward needs {', '.join(missing)}, and no example of it was given",
            fix=f"{example} (with the right sizes), or an example_inputs() in the file",
        )
    return named


def _next_places(parameters: Sequence[inspect.Parameter], taken: Collection[str]) -> Iterator[str]:
    """Parameters without a spec, in order; then the items of *args, or numbered inputs where nothing is known."""
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            yield from (f"{parameter.name}[{i}]" for i in itertools.count())
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD and parameter.name not in taken:
            yield parameter.name
    if not parameters:
        yield from (f"input_{i}" for i in itertools.count())


def _as_call(values: dict[str, Any], signature: inspect.Signature | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional as far as the parameters follow each other without a gap, the rest by name."""
    if signature is None:
        return tuple(values.values()), {}
    rest = dict(values)
    args: list[Any] = []
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args += [rest.pop(path) for path in list(rest) if path.startswith(f"{parameter.name}[")]
        if (
            parameter.kind
            not in (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
            or parameter.name not in rest
        ):
            break
        args.append(rest.pop(parameter.name))
    return tuple(args), rest
