"""`file.py:attr` or `package.module:attr`: finds the model that the command line names.

A target is a name and is never evaluated. The file that it names is imported, as running it would.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from trueport.errors import UsageError
from trueport.load.faults import close_to, usage_error
from trueport.load.stack import user_calls
from trueport.load.unwrap import load_program, unwrap
from trueport.load.weights import load_weights
from trueport.source import Place, Where

__all__ = ["Target", "load_target", "load_weights"]

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """A model that was named on the command line."""

    model: torch.nn.Module
    where: str
    given: object
    """The same as the file has it: compiled, wrapped, or an exported program."""
    given_inputs: object = None
    """What the file calls `example_inputs`, not yet asked."""

    @property
    def with_weights(self) -> object:
        """What to export once weights are loaded into `model`: an exported program knows nothing of them."""
        return self.given if isinstance(self.given, torch.nn.Module) else self.model

    @cached_property
    def example_inputs(self) -> Call | None:
        """(args, kwargs) from the file's `example_inputs`; None where the file has none."""
        given = self.given_inputs
        if callable(given):
            given = _run(given, "example_inputs()")
        return None if given is None else as_call(given)


def as_call(given: object) -> Call:
    """(args, kwargs) from a tuple of arguments, a dict of named ones, a pair of both, or the one argument itself."""
    if isinstance(given, dict):
        return (), dict(given)
    if type(given) is tuple:
        if len(given) == 2 and type(given[0]) is tuple and type(given[1]) is dict:
            return given[0], given[1]
        return given, {}
    return (given,), {}


def load_target(target: str) -> Target:
    """The model behind `target`. Raises UsageError, with the user's line where the user's code raised."""
    if target.endswith(".pt2"):
        program = load_program(Path(target))
        return Target(unwrap(program), target, program, program.example_inputs)
    place, attribute = _split(target)
    module = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
    found = _only_model(module, place) if attribute is None else _find(module, attribute, place)
    name = attribute or getattr(found, "__name__", type(found).__name__)
    made = _make(found, f"{place}:{name}")
    return Target(unwrap(made), f"{place}:{name}", made, getattr(module, "example_inputs", None))


def _split(target: str) -> tuple[str, str | None]:
    match = re.fullmatch(r"(.+?\.py|[\w.]+?)(?::(.*))?", target, flags=re.DOTALL)
    if match is None:
        raise usage_error(f"{target!r} is not a target", fix="write file.py:Net or package.module:Net")
    place, attribute = match.group(1), match.group(2)
    if attribute is not None and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", attribute):
        name = re.match(r"\w*", attribute)
        factory = f"make_{name[0].lower()}" if name and name[0] else "make_model"
        raise usage_error(
            f"{attribute!r} is not a name; targets are never evaluated",
            fix=f"write a function in {place}, `def {factory}(): return {attribute}`, and name it: {place}:{factory}",
        )
    return place, attribute or None


def _import_file(path: Path) -> ModuleType:
    """Import a file by its path, as part of its package if it lies in one (so that `from .blocks import` works)."""
    if not path.is_file():
        raise usage_error(f"there is no file {path}")
    path = path.resolve()
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # stays: a model may import its neighbours when it is called
    name = ".".join(names)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if len(names) > 1:
        return _import_module(name)
    name = f"{name}_target" if known is not None else name  # a file may be called like a module that is loaded
    spec = importlib.util.spec_from_file_location(name, path)
    loader = spec.loader if spec is not None else None
    if spec is None or loader is None:
        raise usage_error(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up there
    try:
        _run(lambda: loader.exec_module(module), f"importing {path.name}")
    except UsageError:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    module: ModuleType = _run(lambda: importlib.import_module(name), f"importing {name}")
    return module


def _find(module: ModuleType, attribute: str, place: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name, value in vars(module).items() if _may_be_model(value) and not name.startswith("_")]
            raise usage_error(f"{place} has no {attribute!r}", fix=close_to(attribute, names))
        found = getattr(found, part)
    return found


def _only_model(module: ModuleType, place: str) -> Any:
    """The one module class or instance of a file, when there is exactly one."""
    candidates = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, torch.nn.Module)
        or (isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__)
    }
    if len(candidates) == 1:
        return next(iter(candidates.values()))
    if not candidates:
        raise usage_error(f"{place} has no nn.Module", fix=f"name a function that makes one: {place}:make_model")
    raise usage_error(
        f"{place} has several models: {', '.join(candidates)}", fix=f"name one: {place}:{list(candidates)[-1]}"
    )


def _may_be_model(value: object) -> bool:
    is_class = isinstance(value, type) and issubclass(value, torch.nn.Module)
    return is_class or isinstance(value, torch.nn.Module) or inspect.isfunction(value)


def _make(found: Any, name: str) -> Any:
    if isinstance(found, torch.nn.Module) or not callable(found):
        return found
    is_class = isinstance(found, type)
    if is_class and not issubclass(found, torch.nn.Module):
        raise usage_error(f"{name} is a class, but not an nn.Module")
    needed = _required_parameters(found)
    if needed and is_class:
        place, _, attribute = name.rpartition(":")
        raise usage_error(
            f"{name} cannot be made without arguments: it needs {', '.join(needed)}",
            fix=f"write `def make(): return {attribute}({needed[0]}=...)` in {place}, and name {place}:make",
        )
    if needed:  # a function of tensors is a model itself
        return found
    made = _run(found, f"making {name}")
    if not callable(made):
        raise usage_error(f"{name}() gives a {type(made).__name__}, not a model", fix="return the model from it")
    # A model that we made has never been anybody's to train; what a function returns is as its author left it.
    return made.eval() if is_class else made


def _required_parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in variadic]


def _run(function: Any, doing: str) -> Any:
    """Call into the user's file; whatever it raises becomes a UsageError at the user's line."""
    try:
        return function()
    except UsageError:
        raise
    except SyntaxError as wrong:
        at = Where(wrong.filename, wrong.lineno or 1, column=wrong.offset) if wrong.filename else None
        raise usage_error(f"{doing} failed: {wrong.msg}", place=Place((at,)) if at else None) from wrong
    except KeyboardInterrupt:
        raise
    except BaseException as wrong:
        calls = user_calls(wrong)
        raise usage_error(
            f"{doing} failed: {type(wrong).__name__}: {wrong}", place=Place(calls) if calls else None
        ) from wrong
