"""What `generate()` calls the model with, found by watching it: no table of architectures has to be kept.

Two short runs are watched, with other batches and other lengths. What an axis of an argument or of a state stands for
follows from how long it was in three calls: the first and the second of one run, and the first of the other. An axis of
lengths 2, 2, 3 is the batch; one of 5, 6, 7 is as long as all tokens so far.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from trueport.diagnostics.rules.tp206_generate_unknown import GenerateUnknown
from trueport.errors import ExportError, refusal
from trueport.load.structures import FoundLeaf, Structure, flatten

Axes = Mapping[int, str]
"""What each free axis of a tensor stands for: the name of a size, or a formula of sizes."""


def unknown(message: str) -> ExportError:
    """Of what the calls of `generate()` do not tell."""
    fix = "export a step of your own with trueport.export: a module that takes the cache as tensors, or has none"
    return refusal(GenerateUnknown(message=message, fix=fix))


@dataclass(frozen=True)
class ForwardCall:
    """One call of forward: its arguments, and the states as the call left them."""

    arguments: Mapping[str, Any]
    cache_name: str
    """The argument that is the cache; empty where there is none."""
    leaves: Sequence[FoundLeaf]
    structure: Structure
    of_modules: tuple[str, ...]
    """The attributes of modules that the call left as states: `model.layers.0.conv_state`."""


@dataclass(frozen=True)
class ModuleStates:
    """Tensors among the attributes of a model's modules that calls of forward leave for the next call."""

    model: Any
    names: tuple[str, ...]

    def now(self) -> dict[str, Any]:
        return {name: getattr(*self._of(name)) for name in self.names}

    def put(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(*self._of(name), value)

    def _of(self, name: str) -> tuple[Any, str]:
        path, _, attribute = name.rpartition(".")
        return self.model.get_submodule(path), attribute


def held(cache: Any, of_modules: Mapping[str, Any]) -> Any:
    """The states of a call in one structure: the cache alone, where no module keeps any."""
    return {"cache": cache, "modules": dict(of_modules)} if of_modules else cache


@contextlib.contextmanager
def watched(model: Any) -> Iterator[list[ForwardCall]]:
    """Meanwhile each call of the model's forward is noted, with a cache that keeps every token."""
    calls: list[ForwardCall] = []
    known: dict[str, tuple[torch.Tensor, int]] = {}

    def after(given: Mapping[str, Any], result: Any) -> None:
        changed = [name for name, now in _in_modules(model).items() if not _is_same(now, known.get(name))]
        name, cache = _cache_among(given, result, bool(changed))
        if name in result:  # then the cache is all: a rotary embedding renews its buffers by what it was given
            changed = []
        leaves, structure = flatten(held(cache, ModuleStates(model, tuple(changed)).now()), name or "states")
        copies = [replace(leaf, value=_copied(leaf.value)) for leaf in leaves]
        calls.append(ForwardCall(given, name, copies, structure, tuple(changed)))

    def before(given: Mapping[str, Any]) -> None:
        known.clear()
        known.update(_in_modules(model))
        for value in given.values():
            keep_all(value)

    with noted(model, before, after):
        yield calls


@contextlib.contextmanager
def noted(
    model: Any, before: Callable[[Mapping[str, Any]], None], after: Callable[[Mapping[str, Any], Any], None]
) -> Iterator[None]:
    """Meanwhile each call of the model's forward is told: its arguments, and then these with its result."""
    inner = model.forward

    @functools.wraps(inner)
    def forward(*args: Any, **kwargs: Any) -> Any:
        before(kwargs)
        given = {name: _copied(value) for name, value in kwargs.items()}
        result = inner(*args, **kwargs)
        after(given, result)
        return result

    own = vars(model).get("forward")
    model.forward = forward
    try:
        yield
    finally:
        del model.forward
        if own is not None:
            model.forward = own


def keep_all(cache: Any) -> None:
    """Have the layers of an empty cache keep every token.

    transformers drops what has left a sliding window. Then the length of the cache no longer tells how many tokens
    there were, and the layers differ in it. The mask leaves the same tokens out, so the answers are the same, and other
    tools expect files like that. The proof compares with `generate()` and its own, shorter cache.
    """
    for part in ("self_attention_cache", "cross_attention_cache"):
        if hasattr(cache, part):
            keep_all(getattr(cache, part))
    layers = getattr(cache, "layers", None)
    if isinstance(layers, list):
        caches: Any = importlib.import_module("transformers.cache_utils")
        for i, layer in enumerate(layers):
            if getattr(layer, "is_sliding", False) is True and not layer.is_initialized:
                layers[i] = caches.DynamicLayer()


def _in_modules(model: Any) -> dict[str, tuple[torch.Tensor, int]]:
    """The tensors that are attributes of modules and no parameters, with how often each was written."""
    return {
        f"{path}.{name}".lstrip("."): (value, value._version)
        for path, module in model.named_modules()
        for name, value in {**vars(module), **module._buffers}.items()
        if isinstance(value, torch.Tensor)
    }


def _is_same(now: tuple[torch.Tensor, int], before: tuple[torch.Tensor, int] | None) -> bool:
    return before is not None and now[0] is before[0] and now[1] == before[1]


def _cache_among(given: Mapping[str, Any], result: Any, others: bool) -> tuple[str, Any]:
    """The argument that comes back in the result, and is no tensor; or else one that the call filled. With `others`,
    states that lie elsewhere, there need not be any."""
    objects = {
        name: value
        for name, value in given.items()
        if hasattr(value, "__dict__") and not isinstance(value, torch.Tensor)
    }
    for name, value in objects.items():
        if type(result.get(name)) is type(value):
            return name, result[name]
    for name, value in objects.items():
        if name not in result and any(isinstance(leaf.value, torch.Tensor) for leaf in flatten(value, name)[0]):
            return name, value
    if others:
        return "", None
    message = f"generate() gives forward no cache that comes back in its result ({', '.join(given)})"
    raise unknown(message)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


@dataclass(frozen=True)
class Lengths:
    """How long an axis of each meaning was in the calls that are compared."""

    of: Mapping[str, tuple[int, ...]]

    def axes(self, what: str, seen: Sequence[torch.Tensor | None]) -> dict[int, str]:
        """The free axes of a tensor, by its shapes in these calls; None where a call had none."""
        shapes = [(i, tensor.shape) for i, tensor in enumerate(seen) if tensor is not None]
        if len({len(shape) for _, shape in shapes}) > 1:
            raise unknown(f"{what} has another number of axes at each step of generate()")
        found: dict[int, str] = {}
        for axis in range(len(shapes[0][1])):
            lengths = [(i, shape[axis]) for i, shape in shapes]
            if len({length for _, length in lengths}) == 1:
                continue
            fitting = [name for name, known in self.of.items() if all(known[i] == length for i, length in lengths)]
            if not fitting:
                shown = ", ".join(str(length) for _, length in lengths)
                message = f"axis {axis} of {what} was {shown} long in the calls of generate() that were watched"
                raise unknown(f"{message}: neither the batch nor a count of tokens")
            found[axis] = fitting[0]
        return found
