"""What the rewriter says of a construct that it leaves alone."""

from __future__ import annotations


class Unsupported(Exception):
    """A construct that is not rewritten: its name, its line, and what to write instead."""

    def __init__(self, construct: str, line: int, instead: str) -> None:
        super().__init__(f"{construct} at line {line}")
        self.construct, self.line, self.instead = construct, line, instead
