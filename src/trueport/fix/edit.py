"""An edit of the user's source: a span and what to write there instead. Everything around it stays letter by letter.

source = SourceFile.read(path)
edits = [source.replace(node, "x.shape[0]")]
print(unified_diff([Change(source, applied(source, edits))]))
"""

from __future__ import annotations

import ast
import difflib
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Located = ast.expr | ast.stmt | ast.arg | ast.keyword


class EditsOverlap(ValueError):
    """Two edits want the same letters, so that they cannot both be made."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Write `text` in place of the letters from `start` to `end` (offsets in the text of the file)."""

    path: Path
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SourceFile:
    """A Python file as it is on disk: its text with its own line ends, and how it was encoded."""

    path: Path
    text: str
    encoding: str = "utf-8"

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Raises OSError or SyntaxError (an unknown encoding) where the file cannot be read as Python."""
        path = path.resolve()
        content = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return cls(path, content.decode(encoding), encoding)

    @property
    def content(self) -> bytes:
        return self.text.encode(self.encoding)

    @property
    def newline(self) -> str:
        found = re.search(r"\r\n|\n|\r", self.text)
        return found[0] if found else "\n"

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        """Start and text of each line, by the line ends that Python itself counts."""
        pieces = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", self.text)
        starts, at = [], 0
        for piece in pieces:
            starts.append((at, piece))
            at += len(piece)
        return starts

    def offset(self, line: int, column: int) -> int:
        """Where a place of the syntax tree is in the text: its columns count bytes of UTF-8."""
        if line > len(self._lines):
            return len(self.text)
        start, text = self._lines[line - 1]
        return start + len(text.encode()[:column].decode(errors="ignore"))

    def line_start(self, line: int) -> int:
        return self.offset(line, 0)

    def line_at(self, offset: int) -> int:
        return len(re.findall(r"\r\n|\n|\r", self.text[:offset])) + 1

    def indent(self, line: int) -> str:
        """The white space before the first letter of a line."""
        text = self._lines[line - 1][1] if line <= len(self._lines) else ""
        return text[: len(text) - len(text.lstrip(" \t"))]

    def span(self, node: Located) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def text_of(self, node: Located) -> str:
        """A node as the user wrote it."""
        start, end = self.span(node)
        return self.text[start:end]

    def replace(self, node: Located, text: str) -> Edit:
        return Edit(self.path, *self.span(node), text)

    def insert(self, offset: int, text: str) -> Edit:
        return Edit(self.path, offset, offset, text)


def applied(source: SourceFile, edits: Iterable[Edit]) -> SourceFile:
    """The file after the edits that are meant for it. The same edit twice is one. Raises EditsOverlap."""
    mine = sorted({edit for edit in edits if edit.path == source.path})
    for one, other in itertools.pairwise(mine):
        if other.start < one.end:
            raise EditsOverlap(f"{source.path.name}: two edits at line {source.line_at(other.start)}")
    text = source.text
    for edit in reversed(mine):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return SourceFile(source.path, text, source.encoding)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after."""

    before: SourceFile
    after: SourceFile


def unified_diff(changes: Sequence[FileChange], folder: Path | None = None) -> str:
    """What `git diff` would show; paths are told from `folder` where they are below it. '' where nothing changes."""
    return "".join(_diff(change, folder or Path.cwd()) for change in changes if change.before.text != change.after.text)


def _diff(change: FileChange, folder: Path) -> str:
    path = change.before.path
    name = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
    lines = difflib.unified_diff(_shown(change.before), _shown(change.after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _shown(source: SourceFile) -> list[str]:
    return io.StringIO(source.text, newline="").readlines() if source.newline == "\n" else _unix(source.text)


def _unix(text: str) -> list[str]:
    return re.sub(r"\r\n|\r", "\n", text).splitlines(keepends=True)
