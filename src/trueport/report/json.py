"""Plain data as JSON. Keys are the attribute names of the dataclasses, so that one description serves both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from trueport.diagnostics.base import Diagnostic

SCHEMA = 1
"""Raised when a key changes its meaning or goes away; new keys do not raise it."""


def dumped(content: object) -> str:
    """Indented JSON in which letters stand as they are, and what is not printable as `\\u202e`. Such characters stand
    in strings only, where JSON has this escape for all of them."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """The same value made of dicts, lists, strings and numbers."""
    if isinstance(value, Diagnostic):
        return {"code": value.code, "title": value.title, **_fields(value), "severity": value.weight.value}
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)  # JSON has no NaN or infinity
    return value


def _fields(value: Any) -> dict[str, Any]:
    return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.metadata.get("json", True)}
