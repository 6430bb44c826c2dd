"""A refusal that is raised deep inside an operator, and told as a diagnostic where the trace ends (failures.py)."""

from __future__ import annotations


class CannotBeCarried(Exception):
    """A call that the trace cannot go on from; says what to write instead."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix
