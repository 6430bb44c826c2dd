"""A model that is made from its name, with inputs and free sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Call = tuple[tuple[Any, ...], dict[str, Any]]
LIBRARIES = ("transformers", "timm", "torchvision")


@dataclass(frozen=True)
class Specimen:
    """What `export` takes, and calls at other sizes to hold the file against."""

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any
    more: Sequence[Call] = field(default_factory=tuple)
    how: str = ""
    """The class and what was tried before it ran."""


def is_named(target: str) -> bool:
    """Whether a target is `library:name` of a library that we make models of."""
    return re.fullmatch(rf"({'|'.join(LIBRARIES)}):[\w.\-]+", target) is not None


def build(target: str) -> Specimen:
    """Raises UsageError where the library has no such model, or eager does not run it."""
    library, _, name = target.partition(":")
    if library == "transformers":
        from trueport.zoo.of_transformers import specimen

        return specimen(name)
    from trueport.zoo.of_pictures import vision_specimen

    return vision_specimen(library, name)
