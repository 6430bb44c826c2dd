"""`library:name`, and who makes it."""

from __future__ import annotations

import re

from trueport.zoo.specimens import Specimen

LIBRARIES = ("transformers", "timm", "torchvision")


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
