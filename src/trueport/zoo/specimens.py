"""A model that is made from its name, with inputs and free sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Specimen:
    """What `export` takes, and calls at other sizes to hold the file against."""

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any
    more: Sequence[Call] = field(default_factory=tuple)
    how: str = ""
    """The class, and what it was made with."""
