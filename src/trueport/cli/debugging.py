"""What `--debug` shows besides tracebacks: why traces were begun anew, and whether every graph is a legal one."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from trueport.source import visible

_LOGGER = "trueport.capture"
VALIDATE = "TRUEPORT_VALIDATE"
"""Named here as well as in graph/validate.py, which imports torch."""


class _Printable(logging.Formatter):
    """Names of files and functions are written by others."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


@contextlib.contextmanager
def debugging() -> Iterator[None]:
    """The log of capture goes to stderr, and graphs are held against the spec."""
    logger, handler = logging.getLogger(_LOGGER), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("%(name)s: %(message)s"))
    level, given = logger.level, os.environ.get(VALIDATE)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    os.environ.setdefault(VALIDATE, "1")
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        if given is None:
            os.environ.pop(VALIDATE, None)
