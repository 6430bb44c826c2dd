"""Places for what is needed for a while only, and the end of those that a killed process left.

A process that is killed removes nothing. So each place is locked by its process while it is in use, and the kernel ends
the lock with the process, however that ends: whoever can lock a place later knows that nobody uses it any more. (The
number of a process would be less: another may have it by now, or it counts in another container.)
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import re
import secrets
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_FOLDER, _FILE = "trueport-work-", ".trueport-"
_OURS = re.compile(rf"{_FOLDER}[a-z0-9_]{{8}}|{re.escape(_FILE)}[0-9a-f]{{16}}\.tmp")
_PR_SET_PDEATHSIG = 1
_LONG_AGO = 7 * 24 * 3600.0
"""Seconds after which nobody can be at work, where locks say nothing (some network folders have none)."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that is in its place, as it was written: another process may replace it at any time."""

    path: Path
    size: int
    sha256: str


class Hashing:
    """A file to write to, and what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest, self._size = file, hashlib.sha256(), 0

    def write(self, data: memoryview | bytes, /) -> int:
        self._digest.update(data)
        self._size += memoryview(data).nbytes
        return self._file.write(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def written(self, path: Path) -> Written:
        return Written(path, self._size, self.sha256)


@contextlib.contextmanager
def folder(place: Path | None = None) -> Iterator[Path]:
    """A new folder, among the temporary ones or in another place; gone afterwards, with all that is in it, unless it
    was moved to where it belongs."""
    home = Path(tempfile.gettempdir()) if place is None else place
    _clear_once(home)
    while True:
        made = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=home))
        lock = _locked(made)
        if lock is not _TAKEN:
            break
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        _unlock(lock)


@contextlib.contextmanager
def file_in(place: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file in a folder, to be written and then moved to where it belongs; gone afterwards if it was not."""
    while True:
        path = place / f"{_FILE}{secrets.token_hex(8)}.tmp"
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b")
        if _lock(file.fileno(), path) is not _TAKEN:
            break
        file.close()
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def second_name(file: Path) -> Iterator[None]:
    """Meanwhile the file is also known by a temporary name, which stays behind if this process is killed."""
    mark = file.with_name(f"{_FILE}{secrets.token_hex(8)}.tmp")
    with contextlib.suppress(OSError):  # it is gone, or a file has one name only here
        os.link(file, mark)
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def end_with(parent: int) -> None:
    """Have this process asked to end (SIGTERM) when the one that started it is gone, whatever it is doing then."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def alone_in(place: Path) -> Iterator[None]:
    """No other process of ours is in here for the same folder. Where folders cannot be locked, nobody waits."""
    descriptor = None
    try:
        with contextlib.suppress(OSError):
            descriptor = os.open(place, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        _unlock(descriptor)


def clear(place: Path, before: Callable[[Path], None] = lambda _: None) -> list[Path]:
    """Remove what processes of this user left in a folder when they were killed; `before` sees each one first."""
    removed = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not _OURS.fullmatch(entry.name):
                continue
            with contextlib.suppress(OSError):  # gone meanwhile, or not ours to remove
                if _clear_one(Path(entry.path), before):
                    removed.append(Path(entry.path))
    return removed


@functools.cache
def _clear_once(place: Path) -> None:
    clear(place)


def _clear_one(path: Path, before: Callable[[Path], None]) -> bool:
    found = path.lstat()
    is_folder = stat.S_ISDIR(found.st_mode)
    if found.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(found.st_mode)):
        return False
    lock = _locked(path)
    if lock is _TAKEN or (lock is None and time.time() - found.st_mtime < _LONG_AGO):
        return False
    try:
        before(path)
        shutil.rmtree(path) if is_folder else path.unlink()
    finally:
        _unlock(lock)
    return True


_TAKEN = -1
"""In place of a lock: another process has it."""


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock, `_TAKEN`, or None where nothing can be locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return _TAKEN  # somebody took it for a leftover, and it is gone
    except OSError:
        return None
    if (lock := _lock(descriptor, path)) != descriptor:
        os.close(descriptor)
    return lock


def _lock(descriptor: int, path: Path) -> int | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _TAKEN
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    return _TAKEN  # somebody took it for a leftover before it was locked


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
