"""Which module is running while the trace goes on, and by which of its calls."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from trueport.capture import limits
from trueport.capture.recording.memory import value_of
from trueport.capture.recording.tracer import Tracer
from trueport.capture.values.disagreement import Disagreement
from trueport.graph.regions import ModuleCall, Value
from trueport.torch_internals import FunctionalTensor, inside_functional, saying_exporting


@contextlib.contextmanager
def module_calls(model: torch.nn.Module, tracer: Tracer, noted: list[ModuleCall] | None) -> Iterator[None]:
    """Keeps `tracer.places` at the running submodule, on this thread only; and with `noted`, what each was given.

    A scripted submodule runs as it would outside an export; torch's own detour for that case passes `self` twice.
    """
    paths = {id(module): path for path, module in reversed(list(model.named_modules(remove_duplicate=False)))}
    thread = threading.get_ident()
    places, outer = tracer.places, list[tuple[str, tuple[int, ...], contextlib.ExitStack]]()

    def enter(module: torch.nn.Module, args: Any) -> None:
        if threading.get_ident() == thread:
            for given in args:
                if isinstance(given, Disagreement):
                    _handed_over(given, module, tracer)
            around = contextlib.ExitStack()
            outer.append((places.module, places.call, around))
            if noted is not None and module is not model:
                noted.append(ModuleCall(paths.get(id(module), places.module), type(module), places.here()))
                places.call = (*places.call, len(noted) - 1)
            places.module = paths.get(id(module), places.module)
            if isinstance(module, torch.jit.ScriptModule):
                around.enter_context(saying_exporting(False))

    def leave(module: torch.nn.Module, args: Any, *rest: Any) -> None:
        """`rest` is what it was given by name, and what it returned; after an error, only the latter."""
        if threading.get_ident() == thread and outer:
            if noted is not None and module is not model and len(rest) == 2 and places.call:
                call = noted[places.call[-1]]
                for names, found in (
                    (call.given, _arguments(module, args, rest[0])),
                    (call.returned, _tensors("output", rest[1])),
                ):
                    for value, name in found:
                        names.setdefault(value, name)
            places.module, places.call, around = outer.pop()
            around.close()

    hooks = [
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(leave, with_kwargs=noted is not None, always_call=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        while outer:
            outer.pop()[-1].close()


def _handed_over(given: Disagreement, module: torch.nn.Module, tracer: Tracer) -> None:
    """A submodule is given something that may be None: only rewritten code can ask whether it is."""
    code = getattr(type(module).forward, "__code__", None)
    if code is None or tracer.places.is_foreign(code):
        given.complain()
    else:
        tracer.demand.require_code(code, tracer.places.here())


def _arguments(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[Value, str]]:
    """The tensors that a module was given, by the names that its forward has for them."""
    try:
        bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs)
    except (TypeError, ValueError):  # a forward without a signature, or one that a hook of the user's calls otherwise
        return
    for name, given in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            for key, each in given.items():
                yield from _tensors(key, each)
        else:
            yield from _tensors(name, given)


def _tensors(name: str, held: Any, depth: int = 0) -> Iterator[tuple[Value, str]]:
    """A name is all that is wanted: what is no plain list, dict or tensor is passed over."""
    if isinstance(held, FunctionalTensor):
        value = value_of(inside_functional(held))
        if value is not None:
            yield value, name
    elif depth < limits.DEPTH_OF_ARGUMENTS and _is_short(held):
        for key, each in held.items() if isinstance(held, dict) else enumerate(held):
            if not isinstance(key, str | int):
                continue
            within = isinstance(key, str) and name == "output"
            yield from _tensors(str(key) if within else f"{name}_{key}", each, depth + 1)


def _is_short(held: Any) -> bool:
    return isinstance(held, tuple | list | dict) and len(held) <= limits.ITEMS_OF_AN_ARGUMENT
