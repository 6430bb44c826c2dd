"""From whatever the user calls a model to the nn.Module that is to be exported."""

from __future__ import annotations

import functools
import inspect
import os
import types
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp009_taken_as import TakenAs
from trueport.load.faults import usage_error
from trueport.torch_internals import before_compile, is_sharded


class FunctionModule(torch.nn.Module):
    """A plain function as a module.

    The modules that the function reaches (through its closure, its globals, `partial` or its own object) become
    submodules under the names that the function knows them by, so that weights keep a readable name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        for name, module in _modules_within(function):
            if not hasattr(self, name):
                self.add_module(name, module)
        self.function = function
        self.training = any(module.training for module in self.children())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@dataclass(frozen=True)
class Unwrapped:
    """The module that is to be exported, and what had to be done to come to it."""

    module: torch.nn.Module
    diagnostics: tuple[Diagnostic, ...] = ()


def unwrap(model: object) -> torch.nn.Module:
    """The module behind `model`: a module, a function or other callable, an exported program or a `.pt2` file."""
    return unwrapped(model).module


def unwrapped(model: object) -> Unwrapped:
    """The same, with a note where it is not the object that the user gave."""
    if isinstance(model, (str, os.PathLike)):
        return _of_program(load_program(Path(model)))
    if isinstance(model, torch.export.ExportedProgram):
        return _of_program(model)
    if isinstance(model, type):
        raise usage_error(
            f"the model is the class {model.__name__}, not a model", fix=f"pass an instance: {model.__name__}()"
        )
    wrappers, inner = _look_through(model)
    if isinstance(inner, torch.nn.Module):
        _refuse_shards(inner)
        note = TakenAs(message=f"the model is taken out of {', '.join(wrappers)}: {type(inner).__name__} is exported")
        return Unwrapped(inner, (note,) if wrappers else ())
    if callable(inner):
        return Unwrapped(FunctionModule(inner))
    if isinstance(inner, dict):
        raise usage_error(
            "the model is a dict of weights, which does not say what is computed with them",
            fix="make the module first, then model.load_state_dict(weights)",
        )
    raise usage_error(f"a {type(model).__name__} is not a model: it cannot be called")


def signature_of(model: torch.nn.Module) -> inspect.Signature | None:
    """The parameters of `forward` as the user wrote them; None where they cannot be known."""
    if isinstance(model, torch.jit.ScriptModule):
        return _script_signature(model)
    target = model.function if isinstance(model, FunctionModule) else model.forward
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):  # a builtin without a text signature
        return None


def _look_through(model: object) -> tuple[list[str], object]:
    """What there is inside wrappers that compute nothing of their own, and the names of the wrappers."""
    wrappers: list[str] = []
    while True:
        inner = before_compile(model)
        if inner is not model:
            wrappers.append("torch.compile")
        if isinstance(inner, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            wrappers.append(type(inner).__name__)
            inner = inner.module
        if isinstance(inner, types.MethodType) and isinstance(inner.__self__, torch.nn.Module):
            # `model.forward` is the model; another method of it is a function of its own
            inner = inner.__self__ if inner.__name__ in ("forward", "__call__", "_wrapped_call_impl") else inner
        if inner is model:
            return wrappers, model
        model = inner


def _of_program(program: torch.export.ExportedProgram) -> Unwrapped:
    """A program that torch.export has captured: what it froze is frozen in what is made of it."""
    note = TakenAs(
        message="the model is an ExportedProgram: its module is exported, with all that torch.export decided",
        seen=("a branch or a size that torch.export fixed stays fixed, and no check against the program can show it",),
        fix="pass the original nn.Module, to have its branches, loops and sizes checked, too",
    )
    return Unwrapped(program.module(), (note,))


def _refuse_shards(model: torch.nn.Module) -> None:
    """Weights that are spread over several processes are not here to be written."""
    if not is_sharded(model):
        return
    raise usage_error(
        f"the weights of {type(model).__name__} are sharded (FSDP, DTensor): this process holds a part of them",
        fix="gather them (torch.distributed.checkpoint.state_dict.get_model_state_dict with full_state_dict=True) and "
        "load them into a plain module of the same class, then export that",
    )


def load_program(path: Path) -> torch.export.ExportedProgram:
    """The program in a `.pt2` file."""
    if path.suffix != ".pt2":
        raise usage_error(
            f"{path} is not a model that can be read: only .pt2 files (torch.export.save) hold a program",
            fix="make the module in Python and pass it, or pass a .pt2 file",
        )
    if not path.is_file():
        raise usage_error(f"there is no file {path}")
    if not zipfile.is_zipfile(path):  # asked first, because torch logs a traceback of its own
        raise usage_error(f"{path} is no .pt2 file: it is not an archive", fix="save it with torch.export.save")
    try:
        return torch.export.load(path)
    except (RuntimeError, ValueError, KeyError, OSError, AssertionError) as wrong:
        raise usage_error(f"{path} cannot be read as a .pt2 file: {wrong}") from wrong


def _script_signature(model: torch.jit.ScriptModule) -> inspect.Signature | None:
    forward: Any = getattr(model, "forward", None)
    schema = getattr(forward, "schema", None)
    if schema is None:
        return None
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
        )
        for argument in schema.arguments[1:]  # the first is the module, whatever its author calls it
    ]
    return inspect.Signature(parameters)


def _modules_within(function: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """Modules that `function` can reach by a name."""
    if isinstance(function, functools.partial):
        yield from _modules_within(function.func)
        yield from _only_modules({f"arg{i}": value for i, value in enumerate(function.args)})
        yield from _only_modules(function.keywords)
    elif isinstance(function, types.MethodType):
        owner = function.__self__
        yield from _only_modules({"model": owner} if isinstance(owner, torch.nn.Module) else vars(owner))
        yield from _modules_within(function.__func__)
    elif isinstance(function, types.FunctionType):
        bound = inspect.getclosurevars(function)
        yield from _only_modules(bound.nonlocals)
        yield from _only_modules(bound.globals)
        if hasattr(function, "__wrapped__"):
            yield from _modules_within(function.__wrapped__)
    elif isinstance(function, torch.nn.Module):
        yield "model", function
    elif hasattr(function, "__dict__"):
        yield from _only_modules(vars(function))


def _only_modules(named: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    return ((name, value) for name, value in named.items() if isinstance(value, torch.nn.Module))
