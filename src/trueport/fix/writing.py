"""Writing changed files: whole or not at all, and never over something that the user did meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.fix.edit import FileChange


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed library or to Python itself, which are not the user's to edit."""
    places = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    in_packages = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(in_packages) or any(path.resolve().is_relative_to(place) for place in places)


def write_changes(changes: Sequence[FileChange]) -> tuple[Path, ...]:
    """Write every changed file, or none. Raises UsageError where one is not the user's, or is not as it was read."""
    changed = [change for change in changes if change.before.text != change.after.text]
    for change in changed:
        _refuse(change)
    with contextlib.ExitStack() as staged:
        ready = [(staged.enter_context(_beside(change)), change) for change in changed]
        for new, change in ready:
            _refuse(change)  # the last moment at which another editor can be noticed
            os.replace(new, change.before.path)
    return tuple(change.before.path for change in changed)


def _refuse(change: FileChange) -> None:
    path = change.before.path
    if is_installed(path):
        raise _fault(f"{path} belongs to an installed library and is not edited", "copy the code into your project")
    try:
        content = path.read_bytes()
    except OSError as failure:
        raise _fault(f"{path} cannot be read any more: {failure.strerror}", "run the fix again") from failure
    if content != change.before.content:
        raise _fault(f"{path} was changed while the fix was tried; it was left as it is", "run the fix again")


@contextlib.contextmanager
def _beside(change: FileChange) -> Iterator[Path]:
    """The new content in a file of its own in the same folder, with the old one's permissions; gone afterwards."""
    path = change.before.path
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    except OSError as failure:
        raise _fault(f"{path.parent} cannot be written: {failure.strerror}", "apply the diff by hand") from failure
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(change.after.content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, new)
        yield new
    except OSError as failure:
        raise _fault(f"{path} cannot be written: {failure.strerror}", "apply the diff by hand") from failure
    finally:
        new.unlink(missing_ok=True)


def _fault(message: str, fix: str) -> UsageError:
    return UsageError([UsageFault(message=message, fix=fix)])
