"""How a place in the user's source is noted in the exported file, and how such a note is read again.

Noted is a path that says nothing about the machine: relative to the project (the nearest folder above the file with a
pyproject.toml or a .git), or else to the working folder; a file of an installed library begins with `site-packages/`,
one of Python's own with `stdlib/`. So the same project gives the same file wherever it lies.

A note is never believed: anybody may have written the file. It leads to a line of source only where that is a Python
file below one of the model's own roots. All other notes are shown as they stand, and nothing is read.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from trueport.source.place import Place, Where

INSTALLED, STANDARD = "site-packages", "stdlib"
_PACKAGES = tuple(dict.fromkeys(sysconfig.get_path(which) for which in ("purelib", "platlib")))
_STDLIB = sysconfig.get_path("stdlib")
_MARKS = ("pyproject.toml", ".git")


def project_of(file: str) -> str:
    """The folder that notes about this file are relative to, where nobody names another."""
    path = Path(os.path.abspath(file))
    for folder in path.parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return str(folder)
    if path.is_relative_to(here := Path.cwd()):
        return str(here)
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:  # so that a package keeps its name
        folder = folder.parent
    return str(folder)


@dataclass(frozen=True)
class SourceRoots:
    """The folders that the source of a model lies in. `chosen` is the one that the user named, if any."""

    chosen: str | None = None
    folders: tuple[str, ...] = ()
    _noted: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What was noted by us, and for which file."""
    _notes: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The other way round: a model has thousands of nodes, and few files."""

    @classmethod
    def of(cls, files: Iterable[str], chosen: str | None = None) -> SourceRoots:
        """Of a model whose classes and functions lie in these files; of one that lies in none, the working folder."""
        own = [file for file in files if not file.startswith("<") and not Where(file, 1).is_library]
        named = [] if chosen is None else [os.path.abspath(chosen)]
        return cls(named[0] if named else None, tuple(dict.fromkeys([*named, *map(project_of, own)])) or (os.getcwd(),))

    def note(self, file: str) -> str:
        """What stands in the exported file for this one."""
        if file not in self._notes:
            self._notes[file] = self._relative(file)
            self._noted.setdefault(self._notes[file], file)
        return self._notes[file]

    def find(self, noted: str) -> str | None:
        """The file that a note means; None where there is none that may be read."""
        if noted in self._noted:
            return self._noted[noted]
        if "\0" in noted or not noted.endswith(".py"):
            return None
        for name, folders in ((INSTALLED, _PACKAGES), (STANDARD, (_STDLIB,)), ("", self.folders)):
            prefix = f"{name}/" if name else ""
            if os.path.isabs(noted):
                inside = [noted]
            elif noted.startswith(prefix):
                inside = [os.path.join(folder, *noted.removeprefix(prefix).split("/")) for folder in folders]
            else:
                continue
            for path in inside:
                if any(_is_below(path, folder) for folder in folders) and os.path.isfile(path):
                    return path
        return None

    def read(self, place: Place) -> Place:
        """A place that was taken from a file, with the lines that may be read."""
        return replace(place, calls=tuple(self._where(call) for call in place.calls))

    def _where(self, call: Where) -> Where:
        found = None if call.readable else self.find(call.file)
        return call if found is None else replace(call, file=found, readable=True)

    def _relative(self, file: str) -> str:
        if file.startswith("<"):  # a cell of a notebook, or code without a file
            return file
        path = os.path.abspath(file)
        roots = [(root, f"{INSTALLED}/") for root in _PACKAGES] + [(_STDLIB, f"{STANDARD}/")]
        if self.chosen is not None:
            roots.insert(0, (self.chosen, ""))
        for root, prefix in (*roots, (project_of(path), "")):
            if Path(path).is_relative_to(root):
                return prefix + Path(path).relative_to(root).as_posix()
        return os.path.basename(path)


def _is_below(path: str, folder: str) -> bool:
    """Links are followed first: one that leads out of the folder is not below it."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False
