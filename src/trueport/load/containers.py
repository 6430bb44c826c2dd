"""How each kind of Python container is opened into its parts and made again from new ones.

One class is one kind of container. A container is made in two steps, `shell` and `fill`, so that a part may refer back
to the container that holds it; what cannot exist before its parts (a tuple, a slice) has no shell. Nothing here ever
writes to an object of the user's.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from trueport.load.values import OPEN_NAMESPACES, attributes_of


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step from a container to a part: as the user writes it (`["ids"]`), and its word in a name (`ids`)."""

    path: str
    word: str

    @classmethod
    def item(cls, key: object) -> PathStep:
        return cls(f'["{key}"]' if isinstance(key, str) else f"[{key!r}]", str(key))

    @classmethod
    def attribute(cls, name: str) -> PathStep:
        return cls(f".{name}", name)


class Mismatch(Exception):
    """An object does not have the shape of the container it was compared with; the text says how."""


@dataclass(frozen=True)
class Container:
    """A kind of container with everything about it that is not a part."""

    cls: type

    def steps(self) -> list[PathStep]:
        raise NotImplementedError

    def open(self, value: object) -> list[object]:
        """The parts of another object of this same shape, in the order of `steps`."""
        raise NotImplementedError

    def shell(self) -> object | None:
        return None

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        raise NotImplementedError

    def describe(self) -> dict[str, object]:
        return {"type": type_name(self.cls)}

    def expect_type(self, value: object) -> None:
        if kind_of_container(value) is not self.cls:
            raise Mismatch(f"a {type_name(self.cls)} is expected here, got a {type_name(type(value))}")


def kind_of_container(value: object) -> type:
    """Its type; a list that a trace follows counts as the list that the user wrote."""
    kind: type = value.stands_for if hasattr(type(value), "stands_for") else type(value)  # type: ignore[attr-defined]
    return kind


def type_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


@dataclass(frozen=True)
class Items(Container):
    """list, tuple, torch.Size, deque and subclasses of list and tuple without field names."""

    length: int
    maxlen: int | None = None

    @classmethod
    def of(cls, value: Sequence[object]) -> Items:
        return cls(kind_of_container(value), len(value), value.maxlen if isinstance(value, deque) else None)

    def steps(self) -> list[PathStep]:
        return [PathStep.item(i) for i in range(self.length)]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        parts = list(cast(Sequence[object], value))
        if len(parts) != self.length:
            raise Mismatch(f"{self.length} items are expected here, got {len(parts)}")
        return parts

    def shell(self) -> object | None:
        if issubclass(self.cls, list):
            cls: Any = self.cls
            return cast(object, cls.__new__(cls))
        return deque(maxlen=self.maxlen) if issubclass(self.cls, deque) else None

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        if isinstance(shell, list):
            list.extend(shell, parts)
            return shell
        if isinstance(shell, deque):
            shell.extend(parts)
            return shell
        if self.cls is torch.Size:
            # Sizes that are being traced are symbols or tensors, which a torch.Size may refuse; a tuple acts the same.
            plain = all(isinstance(part, (int, torch.SymInt)) for part in parts)
            return torch.Size(cast(Sequence[int], parts)) if plain else tuple(parts)
        return tuple.__new__(self.cls, parts)


@dataclass(frozen=True)
class Fields(Container):
    """Tuples whose items have names: named tuples, PackedSequence, and torch's own results such as `x.max(dim=1)`."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, value: tuple[object, ...]) -> Fields | None:
        kind = type(value)
        names = getattr(kind, "_fields", None)
        if names is None and hasattr(kind, "n_sequence_fields"):  # a struct sequence, such as torch.return_types.max
            names = getattr(kind, "__match_args__", None)
        if isinstance(names, tuple) and len(names) == len(value):
            return cls(kind, names)
        return None

    def steps(self) -> list[PathStep]:
        return [PathStep.attribute(name) for name in self.names]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        return list(cast(tuple[object, ...], value))

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        if hasattr(self.cls, "_fields"):
            return tuple.__new__(self.cls, parts)
        return self.cls(parts)


@dataclass(frozen=True)
class Keys(Container):
    """dict and its subclasses, UserDict, and mappings that are dataclasses too (transformers' ModelOutput)."""

    keys: tuple[object, ...]
    factory: Callable[[], object] | None = None
    held: dict[str, object] = field(default_factory=dict, compare=False)
    """Attributes that such an object keeps beside its items."""

    @classmethod
    def of(cls, value: dict[Any, object] | UserDict[Any, object]) -> Keys:
        keys = tuple(value.keys())
        factory = value.default_factory if isinstance(value, defaultdict) else None
        beside = {k: v for k, v in getattr(value, "__dict__", {}).items() if k not in keys and k != "data"}
        return cls(kind_of_container(value), keys, factory, {} if hasattr(type(value), "stands_for") else beside)

    @property
    def items_are_attributes(self) -> bool:
        return dataclasses.is_dataclass(self.cls)

    def steps(self) -> list[PathStep]:
        return [PathStep.attribute(str(k)) if self.items_are_attributes else PathStep.item(k) for k in self.keys]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        mapping = cast(dict[object, object], value)
        missing = [key for key in self.keys if key not in mapping]
        extra = [key for key in mapping if key not in self.keys]
        if missing or extra:
            lacks = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
            also = [f"has also {', '.join(map(repr, extra))}"] if extra else []
            wanted = ", ".join(map(repr, self.keys)) or "(none)"
            raise Mismatch(f"the keys {wanted} are expected here; it {' and '.join(lacks + also)}")
        return [mapping[key] for key in self.keys]

    def shell(self) -> object:
        cls: Any = self.cls
        new: object = cls.__new__(cls)
        if isinstance(new, UserDict):
            new.data = {}
        if isinstance(new, defaultdict):
            new.default_factory = self.factory
        if self.held:
            vars(new).update(self.held)
        return new

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        base = OrderedDict if isinstance(shell, OrderedDict) else dict
        target = cast(dict[object, object], shell.data if isinstance(shell, UserDict) else shell)
        for key, part in zip(self.keys, parts, strict=True):
            base.__setitem__(target, key, part)
            if self.items_are_attributes:
                vars(shell)[str(key)] = part
        return shell

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "keys": [key if isinstance(key, str) else repr(key) for key in self.keys]}


@dataclass(frozen=True)
class Attributes(Container):
    """A dataclass, or any object of the user's own class: its attributes are its parts."""

    names: tuple[str, ...]
    held: dict[str, object] = field(default_factory=dict, compare=False)

    @classmethod
    def of_dataclass(cls, value: Any) -> Attributes | None:
        found = attributes_of(value)
        if found is None:
            return None
        names = tuple(f.name for f in dataclasses.fields(value) if f.name in found)
        return cls(type(value), names, {k: v for k, v in found.items() if k not in names})

    def steps(self) -> list[PathStep]:
        return [PathStep.attribute(name) for name in self.names]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        found = attributes_of(value) or {}
        missing = [name for name in self.names if name not in found]
        extra = [name for name in found if name not in self.names and name not in self.held]
        if missing or extra:
            wrong = f"no attribute {missing[0]!r}" if missing else f"a new attribute {extra[0]!r}"
            raise Mismatch(f"this {type_name(self.cls)} has {wrong}")
        return [found[name] for name in self.names]

    def shell(self) -> object:
        new = self.cls() if issubclass(self.cls, OPEN_NAMESPACES) else object.__new__(self.cls)
        for name, value in self.held.items():
            object.__setattr__(new, name, value)
        return new

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        for name, part in zip(self.names, parts, strict=True):
            object.__setattr__(shell, name, part)  # past a frozen dataclass, and past setters that would act
        return shell

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "attributes": list(self.names)}


@dataclass(frozen=True)
class Slice(Container):
    """slice(start, stop, step)."""

    def steps(self) -> list[PathStep]:
        return [PathStep.attribute(name) for name in ("start", "stop", "step")]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        assert isinstance(value, slice)
        return [value.start, value.stop, value.step]

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        return slice(*parts)


@dataclass(frozen=True)
class Registered(Container):
    """A class that the user registered with torch's pytree: the user has said what its parts are."""

    context: Any
    count: int
    take_apart: Callable[[Any], tuple[list[Any], Any]] = field(compare=False)
    put_together: Callable[[Any, Any], Any] = field(compare=False)

    def steps(self) -> list[PathStep]:
        return [PathStep.item(i) for i in range(self.count)]

    def open(self, value: object) -> list[object]:
        self.expect_type(value)
        parts, context = self.take_apart(value)
        if context != self.context or len(parts) != self.count:
            raise Mismatch(f"this {type_name(self.cls)} holds other parts than the one of the example")
        return list(parts)

    def fill(self, shell: object | None, parts: Sequence[object]) -> object:
        return cast(object, self.put_together(list(parts), self.context))
