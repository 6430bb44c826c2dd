"""Which version of a package is installed. Read from its metadata, so that nothing is imported for it."""

from __future__ import annotations

import functools
import importlib.metadata


@functools.cache
def installed(package: str) -> str | None:
    """None where there is none. Remembered: to read it takes a millisecond, and several rooms ask."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
