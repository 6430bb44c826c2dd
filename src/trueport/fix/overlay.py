"""The copy that a fix is tried on: files that this process reads with other content than is on disk.

A copy beside the original would litter the user's folder, and a copy of the folder would have to be of the whole
project. Here the edited module is imported under its own path, so that its neighbours, its package and the data that
lie beside it are found as the original finds them. For a process that does nothing else: it cannot be undone.
"""

from __future__ import annotations

import io
import linecache
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from trueport.fix.edit import SourceFile


def install(files: Mapping[str, SourceFile]) -> None:
    """From now on, importing or showing one of these files finds the content that is given here."""
    contents = {str(Path(path)): source for path, source in files.items()}
    get_data, path_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def given_data(self: SourceFileLoader, path: str) -> bytes:
        source = contents.get(str(path))
        return get_data(self, path) if source is None else source.content

    def given_stats(self: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if str(path) in contents:  # no date, no bytecode: neither is the original's read nor ours written in its place
            raise OSError(f"{path} is not as on disk")
        return path_stats(self, path)

    SourceFileLoader.get_data = given_data  # type: ignore[method-assign,assignment]
    SourceFileLoader.path_stats = given_stats  # type: ignore[method-assign]
    for path, source in contents.items():
        lines = io.StringIO(source.text, newline=None).readlines()
        linecache.cache[path] = (len(source.text), None, lines, path)
