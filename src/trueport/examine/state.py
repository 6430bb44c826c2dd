"""What a model keeps between calls: seen before a call, compared after it, and put back.

Buffers and tensors in plain attributes are copied before a call, so that any write is found by its value (`x.data.add_`
does not touch the version counter) and undone. Parameters are copied only in small models: copying them would double
the memory of a large one for the sake of what no sane model does; there a write is found by the version counter.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any

import torch

from trueport.load.values import attributes_of
from trueport.torch_internals import outside_all_modes, write_count

SMALL_ENOUGH_TO_COPY = 32 * 2**20
"""Bytes of parameters up to which they are copied before a call."""

# torch's own bookkeeping, not the state of the model
_BOOKKEEPING = frozenset({"_is_full_backward_hook", "_compiled_call_impl", "_non_persistent_buffers_set"})
_HOOKS = re.compile(r"_(forward|backward|state_dict|load_state_dict)_.*hooks|\w+_hooks$")
_REGISTRIES = frozenset({"_parameters", "_buffers", "_modules"})
_PLAIN = (int, float, bool, str, bytes, type(None))


class _Cell:
    """Something that can be written: the attributes of an object, or the items of a list, dict, set or deque.

    `name` is what a written entry is called by: the container itself, or a prefix (ending in a dot) of the attribute.
    """

    def __init__(self, name: str, items: Any) -> None:
        self.name = name
        self.items = items
        self.before: Any = dict(items) if isinstance(items, dict) else list(items)

    def written(self) -> list[str]:
        now, before = self.items, self.before
        if _Untouched((self,))():
            return []
        if not isinstance(now, dict):
            return [] if _same_items(list(now), before) else [self.name]
        changed = [k for k in {**before, **now} if k not in before or k not in now or not _same(now[k], before[k])]
        by_entry = not self.name or self.name.endswith(".")
        return [f"{self.name}{key}" if by_entry else self.name for key in changed]

    def put_back(self) -> None:
        if not self.written():
            return
        self.items.clear()
        if isinstance(self.items, (dict, set)):
            self.items.update(self.before)
        else:
            self.items.extend(self.before)


@dataclass(frozen=True)
class StateTensor:
    """A tensor that the model owns. `copy` is None for parameters of a large model."""

    name: str
    tensor: torch.Tensor
    kind: str
    version: int | None
    copy: torch.Tensor | None

    def was_written(self) -> bool:
        if self.version is not None and write_count(self.tensor) != self.version:
            return True
        return self.copy is not None and not _same_values(self.tensor, self.copy)

    def put_back(self) -> StateTensor:
        """Undo a write, as far as there is a copy. The result counts from the present version on."""
        if self.copy is None or not self.was_written():
            return self
        if self.tensor.shape == self.copy.shape and not self.tensor.is_inference():
            with torch.no_grad():
                self.tensor.copy_(self.copy)
        else:
            self.tensor.data = self.copy.clone()
        return dataclasses.replace(self, version=write_count(self.tensor))


class Snapshot:
    """The state of a model at one moment."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._cells: list[_Cell] = []
        self.tensors: list[StateTensor] = []
        self._seen: set[int] = set()
        sizes = {id(p): p.numel() * p.element_size() for p in model.parameters() if not p.is_meta}
        self._copy_parameters = sum(sizes.values()) <= SMALL_ENOUGH_TO_COPY
        for path, module in model.named_modules():
            self._module(module, f"{path}." if path else "")
        self._untouched = _Untouched(self._cells)
        copied = self._copy_parameters
        self._gradients = [(p, p.grad.clone() if p.grad is not None and copied else p.grad) for p in model.parameters()]

    def written(self) -> tuple[str, ...]:
        """Names of the attributes, buffers and parameters that differ from what they were."""
        names: list[str] = []
        if not _unwritten(self.tensors):
            names += [tensor.name for tensor in self.tensors if tensor.was_written()]
        if not self._untouched():
            names += [name for cell in self._cells for name in cell.written()]
        return tuple(dict.fromkeys(name for name in names if name.rpartition(".")[2] not in _BOOKKEEPING))

    def is_written(self, closely: bool = True) -> bool:
        """Whether anything may have been written. A mode that watches the model does not see the question.

        Not `closely`, parameters are only asked how often they were written, which `weight.data.add_()` does not count:
        for who makes many calls, and asks closely after the last. To compare them all takes as long as many a call.
        """
        with outside_all_modes():
            return not (self._untouched() and _unwritten(self.tensors, closely))

    def countable(self) -> dict[str, Any]:
        """What is now in plain attributes, and how long the lists and dicts are: what a count of the calls shows in."""
        found: dict[str, Any] = {}
        for cell in self._cells:
            if cell.name and not cell.name.endswith("."):
                found[cell.name] = len(cell.items)
            elif isinstance(cell.items, dict):
                plain = {key: value for key, value in cell.items.items() if isinstance(value, _PLAIN)}
                found.update({f"{cell.name}{key}": value for key, value in plain.items()})
        return found

    def lost(self) -> tuple[str, ...]:
        """Parameters that were written and of which no copy was made."""
        return tuple(tensor.name for tensor in self.tensors if tensor.copy is None and tensor.was_written())

    def put_back(self) -> None:
        """Make the model what it was. A mode that watches the model does not see it."""
        with outside_all_modes():
            if not self._untouched():
                for cell in self._cells:
                    cell.put_back()
            self.put_back_gradients()
            if not _unwritten(self.tensors):
                self.tensors = [tensor.put_back() for tensor in self.tensors]

    def put_back_gradients(self) -> None:
        """What `backward()` in forward adds to them; no call reads them, so they count as nothing written."""
        for parameter, before in self._gradients:
            if parameter.grad is not before:
                parameter.grad = before.clone() if before is not None and self._copy_parameters else before

    def shares_memory(self, tensor: torch.Tensor) -> bool:
        """Whether `tensor` is a view of something that the model owns."""
        storage = _storage(tensor)
        return storage is not None and any(_storage(state.tensor) == storage for state in self.tensors)

    def _module(self, module: torch.nn.Module, prefix: str) -> None:
        self._seen.add(id(module))
        if isinstance(module, torch.jit.ScriptModule):  # its attributes live in C++; its tensors can be seen
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                self._look(tensor, prefix + name, "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer")
            return
        attributes = vars(module)
        self._cells.append(_Cell(prefix, attributes))
        for name, value in attributes.items():
            if name in _REGISTRIES and isinstance(value, dict):
                self._cells.append(_Cell(prefix, value))
                for key, held in value.items():
                    self._look(held, prefix + key, name.strip("_").removesuffix("s"))
            elif not _HOOKS.match(name):
                self._look(value, prefix + name, "attribute")

    def _look(self, value: Any, name: str, kind: str) -> None:
        """Follow what the user's own objects and containers hold; other modules are looked at on their own."""
        if isinstance(value, (*_PLAIN, torch.nn.Module)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            copied = kind != "parameter" or self._copy_parameters
            copy = value.detach().clone() if copied and not value.is_meta else None
            self.tensors.append(StateTensor(name, value, kind, write_count(value), copy))
        elif isinstance(value, dict):
            self._cells.append(_Cell(name, value))
            for key, item in value.items():
                self._look(item, f"{name}[{key!r}]", "attribute")
        elif isinstance(value, (list, deque, set)):
            self._cells.append(_Cell(name, value))
            for i, item in enumerate(value):
                self._look(item, f"{name}[{i}]", "attribute")
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                self._look(item, f"{name}[{i}]", "attribute")
        elif attributes_of(value) and hasattr(value, "__dict__"):
            self._cells.append(_Cell(f"{name}.", vars(value)))
            for key, item in vars(value).items():
                self._look(item, f"{name}.{key}", "attribute")


class _Untouched:
    """Whether cells hold what they held. That is the answer after nearly every call, and a model has thousands of
    cells: so all of them in one go, against lists that were made once."""

    def __init__(self, cells: Sequence[_Cell]) -> None:
        self._now = [cell.items for cell in cells]
        self._held = [items for items in self._now if isinstance(items, dict)]
        self._lengths = [len(cell.before) for cell in cells]
        self._entries = list(chain.from_iterable(cell.before for cell in cells))
        self._values = list(_values(cell.before for cell in cells if isinstance(cell.items, dict)))

    def __call__(self) -> bool:
        return (
            list(map(len, self._now)) == self._lengths
            and all(map(is_, chain.from_iterable(self._now), self._entries))
            and all(map(is_, _values(self._held), self._values))
        )


def _values(dicts: Iterable[dict[Any, Any]]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, dicts))


def _unwritten(tensors: Sequence[StateTensor], closely: bool = True) -> bool:
    """The same for tensors; one that holds a NaN is looked at more closely."""
    return all(each.version is None or write_count(each.tensor) == each.version for each in tensors) and all(
        each.copy is None
        or (not closely and each.kind == "parameter")
        or (each.tensor.dtype is each.copy.dtype and torch.equal(each.tensor, each.copy))
        for each in tensors
    )


def _same_items(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(map(_same, now, before))


def _same(now: Any, before: Any) -> bool:
    """The same object, or an equal plain value: `self.scale = 0.5` at each call writes nothing."""
    return now is before or (type(now) is type(before) and isinstance(now, _PLAIN) and now == before)


def _same_values(now: torch.Tensor, before: torch.Tensor) -> bool:
    if now.shape != before.shape or now.dtype != before.dtype:
        return False
    if torch.equal(now, before):
        return True
    if now.layout is not torch.strided or now.is_quantized or not (now.is_floating_point() or now.is_complex()):
        return False
    return bool(((now == before) | ((now != now) & (before != before))).all())  # a NaN that stayed one


def _storage(tensor: torch.Tensor) -> int | None:
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_nested:
        return None
    return tensor.untyped_storage().data_ptr() or None
