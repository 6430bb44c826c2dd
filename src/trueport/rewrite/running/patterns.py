"""What the patterns of `match` ask of their subject (see `matches.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MATCH_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""`case int(n)` binds the subject itself."""


class Patterns(ABC):
    """The part of the runtime that takes apart."""

    @staticmethod
    @abstractmethod
    def traced(function: Callable[..., Any]) -> Callable[..., Any]: ...

    @staticmethod
    def bound(_value: Any) -> bool:
        """A pattern that only gives its subject a name."""
        return True

    def is_sequence(self, subject: Any, length: int, or_longer: bool = False) -> Any:
        if not isinstance(subject, Sequence) or isinstance(subject, str | bytes | bytearray):
            return False
        found = self.traced(len)(subject)
        return found >= length if or_longer else found == length

    def between(self, subject: Any, before: int, behind: int) -> Any:
        """What `*rest` is bound to."""
        return self.traced(list)(subject[before : -behind if behind else None])

    @staticmethod
    def is_mapping(subject: Any) -> bool:
        return isinstance(subject, Mapping)

    def without(self, subject: Any, *keys: Any) -> Any:
        """What `**rest` is bound to."""
        rest = self.traced(dict)(subject)
        for key in keys:
            del rest[key]
        return rest

    def is_instance(self, subject: Any, kind: Any) -> Any:
        return self.traced(isinstance)(subject, kind)

    def has_attribute(self, subject: Any, name: str) -> Any:
        return self.traced(hasattr)(subject, name)

    @staticmethod
    def positional(subject: Any, kind: type, place: int) -> Any:
        """What `Point(a, b)` and `int(n)` take apart."""
        if kind in _MATCH_THEMSELVES:
            return subject
        names: Sequence[str] = getattr(kind, "__match_args__", ())
        return getattr(subject, names[place])
