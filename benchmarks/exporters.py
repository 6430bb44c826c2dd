"""The three exporters behind one signature, and what their errors say about the user's line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.leaves import flatten, named_arguments, named_leaves


@dataclass(frozen=True)
class Request:
    """One call of an exporter."""

    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any
    path: Path
    verify: bool = True


def _trueport(request: Request, optimize: bool = True) -> None:
    import trueport

    trueport.export(
        request.model,
        request.args,
        str(request.path),
        kwargs=request.kwargs,
        dynamic_shapes=request.dynamic_shapes,
        verify=request.verify,
        optimize=optimize,
    )


def _without_passes(request: Request) -> None:
    _trueport(request, optimize=False)


def _dynamo(request: Request) -> None:
    torch.onnx.export(
        request.model,
        request.args,
        str(request.path),
        kwargs=request.kwargs,
        dynamic_shapes=request.dynamic_shapes,
        dynamo=True,
        verbose=False,
    )


def _legacy(request: Request) -> None:
    names, axes = legacy_axes(request)
    torch.onnx.export(
        request.model,
        request.args,
        str(request.path),
        kwargs=request.kwargs,
        input_names=names,
        dynamic_axes=axes,
        dynamo=False,
        verbose=False,
    )


WITHOUT_PASSES = "without passes"
OURS = ("trueport", WITHOUT_PASSES)
EXPORTERS: Mapping[str, Callable[[Request], None]] = {
    "trueport": _trueport,
    WITHOUT_PASSES: _without_passes,
    "dynamo": _dynamo,
    "legacy": _legacy,
}
TITLES = {
    "trueport": "trueport",
    WITHOUT_PASSES: "trueport, without passes",
    "dynamo": "torch.onnx dynamo=True",
    "legacy": "torch.onnx dynamo=False",
}
PEERS = ("dynamo", "legacy")


def trueport_exists() -> bool:
    """Whether there is a trueport to measure beside the peers. One that is there and does not import must show."""
    return find_spec("trueport") is not None and find_spec("trueport.api") is not None


def legacy_axes(request: Request) -> tuple[list[str], dict[str, list[int]]]:
    """`dynamic_shapes` in the words of the old exporter: a name per tensor, and the free axes by name."""
    arguments = dict(named_arguments(request.model, request.args, request.kwargs))
    declared = request.dynamic_shapes or {}
    if not isinstance(declared, Mapping):
        declared = dict(zip(arguments, declared, strict=False))
    leaves = named_leaves(request.model, request.args, request.kwargs)
    names: list[str] = []
    free: dict[str, list[int]] = {}
    for (name, leaf), axes in zip(leaves, _per_leaf(arguments, declared), strict=True):
        if isinstance(leaf, torch.Tensor):
            names.append(name)
            if isinstance(axes, Mapping):
                free[name] = [axis for axis, size in axes.items() if size is not None]
    return names, free


def _per_leaf(value: Any, declared: Any) -> list[Any]:
    """What `declared` says for each leaf of `value`, in the order of `flatten`."""
    if isinstance(value, Mapping):
        inner = [declared.get(key) if isinstance(declared, Mapping) else None for key in value]
        return [axes for part, says in zip(value.values(), inner, strict=True) for axes in _per_leaf(part, says)]
    if isinstance(value, list | tuple):
        inner = list(declared) if isinstance(declared, list | tuple) else [None] * len(value)
        return [axes for part, says in zip(value, inner, strict=True) for axes in _per_leaf(part, says)]
    return [declared] * len(flatten(value))


@dataclass(frozen=True)
class Refusal:
    """What an exporter's error told the user. `at` is `file:line` in the user's own files, or empty."""

    at: str
    code: str
    message: str
    on_purpose: bool = True
    """False for a crash of ours: anything but an ExportError, or a TP9xx (a fault of trueport's own)."""


def read_refusal(exporter: str, error: BaseException, own_files: str, has_own_lines: bool) -> Refusal:
    """`own_files` is the user's file, or a folder of them. `has_own_lines` is False for a model put together from
    library modules only (`nn.Sequential(nn.Linear)`): there a coded finding that names the module is all one can ask.
    """
    if exporter not in OURS:
        chain = list(_causes(error))
        text = "\n".join(map(str, chain))
        return Refusal(_line_in_text(text, own_files), "", f"{type(chain[-1]).__name__}: {_first_line(chain[-1])}")
    import trueport

    if not isinstance(error, trueport.ExportError):
        return Refusal("", "", f"{type(error).__name__}: {_first_line(error)}", on_purpose=False)
    ours = [found for found in error.diagnostics if found.code.startswith("TP9")]
    if ours:
        return Refusal("", ours[0].code, ours[0].message, on_purpose=False)
    errors = [found for found in error.diagnostics if found.is_error] or list(error.diagnostics)
    for found in errors:
        if found.where and _is_inside(found.where.file, own_files):
            return Refusal(f"{_short(found.where.file)}:{found.where.line}", found.code, found.message)
    if not errors:
        return Refusal("", "", "an ExportError without diagnostics")
    first = errors[0]
    module = first.place.module if first.place else ""
    at = f"module {module}" if module and not has_own_lines else ""
    return Refusal(at, first.code, first.message)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """It and what caused it; their words count, not their tracebacks: a stack is not an explanation."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _line_in_text(text: str, own_files: str) -> str:
    own = re.escape(own_files.rstrip("/"))
    found = re.search(rf'({own}[^\s":]*)(?:", line |:)(\d+)', text)
    return f"{_short(found[1])}:{found[2]}" if found else ""


def _is_inside(file: str, own_files: str) -> bool:
    real, own = os.path.realpath(file), os.path.realpath(own_files)
    return real == own or real.startswith(own.rstrip("/") + "/")


def _short(file: str) -> str:
    return "/".join(Path(file).parts[-2:])


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else ""
