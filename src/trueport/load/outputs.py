"""Whether something can be written where the user wants it, asked before any work is done for it. Needs no torch."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from trueport.diagnostics.spelling import option, told
from trueport.load.faults import usage_error


def refuse_output(path: Path, overwrite: bool, what: str = "model.onnx") -> None:
    """Raise UsageError where `path` cannot be written, or exists and is not to be replaced."""
    try:
        _refuse(path, overwrite, what)
    except (OSError, ValueError) as wrong:  # the name is too long, or no name at all
        raise _cannot(path, wrong) from None


def refuse_without_room(folder: Path, size: int, whatfor: str, fix: str) -> None:
    """Raise UsageError where the disk has less room than is certainly needed."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise usage_error(f"{folder} has {_readable(free)} left, and {whatfor} needs {_readable(size)}", fix=fix)


def _refuse(path: Path, overwrite: bool, what: str) -> None:
    if not path.name or path.is_dir():
        raise usage_error(f"{path} is a folder", fix=f"name a file in it: {path / what}")
    if not path.parent.is_dir():
        exists = path.parent.exists()
        raise usage_error(
            f"the folder of {path} {'is a file' if exists else 'does not exist'}",
            fix="choose another path" if exists else f"mkdir -p {path.parent}",
        )
    if path.exists():
        if not overwrite:
            fix = told("pass ", option("overwrite", True), " to replace it, or choose another path")
            raise usage_error(f"{path} already exists", fix=fix)
        if not path.is_file():
            raise usage_error(f"{path} is no regular file, and is not replaced", fix="choose another path")
    if not os.access(path.parent, os.W_OK):
        raise usage_error(f"the folder {path.parent} cannot be written to", fix="choose another path")
    # Quotas, read-only disks, full ones and folders that are none of the disk's: only trying tells.
    probe = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        probe.write_bytes(b"\0")
    finally:
        probe.unlink(missing_ok=True)


def _cannot(path: Path, wrong: Exception) -> Exception:
    why = (wrong.strerror if isinstance(wrong, OSError) else None) or wrong
    return usage_error(f"cannot write {path}: {why}", fix="choose another path")


def _readable(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
