"""Which calls were equal before, on disk.

One small file for each call, named by what it is and by the versions of everything that has a part in its answer: our
own lowering and this room, torch, ONNX Runtime, the processor. Only agreement is kept. Files may be deleted
at any moment; one that does not hold what it should is written anew; each appears whole or not at all, so that any
number of processes may read and write.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from trueport.installed import installed

_SOURCES = (
    "lower",
    "verify/calls",
    "verify/runtime/child.py",
    "verify/judging/compare.py",
    "verify/runtime/onnx_program.py",
    "verify/runtime/sandbox.py",
)
_PACKAGES = ("torch", "onnxruntime", "onnx-ir", "onnx")
OFF = "off"


@dataclass(frozen=True)
class Memory:
    """What is remembered in a folder; None: nothing, and nothing is written."""

    folder: Path | None

    def agreed(self, signature: str) -> str | None:
        """What there is to say of a call that was equal (where it differs by design, or nothing); None if it is not
        known to be."""
        if self.folder is None:
            return None
        try:
            content = json.loads(self._file(signature).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(content, dict) or content.get("call") != signature:
            return None
        told = content.get("by_design")
        return told if isinstance(told, str) else None

    def keep(self, signature: str, by_design: str) -> None:
        """That it was equal. A folder that cannot be written to is none."""
        if self.folder is None:
            return
        text = json.dumps({"call": signature, "by_design": by_design})
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".new")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(name, self._file(signature))
            except OSError:
                with suppress(OSError):
                    os.unlink(name)

    def _file(self, signature: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(signature.encode()).hexdigest()[:32]}.json"


def memory_of(environment: Mapping[str, str] | None = None) -> Memory:
    """In the user's folder for caches, or in TRUEPORT_CACHE, which may say `off`."""
    found = os.environ if environment is None else environment
    asked = found.get("TRUEPORT_CACHE", "")
    if asked.lower() == OFF:
        return Memory(None)
    if asked:
        base = Path(asked)
    elif found.get("XDG_CACHE_HOME"):
        base = Path(found["XDG_CACHE_HOME"], "trueport")
    else:
        home = found.get("HOME") or found.get("USERPROFILE")
        if not home:
            return Memory(None)
        base = Path(home, ".cache", "trueport")
    return Memory(base / "calls" / versions())


@functools.cache
def versions() -> str:
    """A name for everything that could make the same call give another answer."""
    parts = [platform.machine(), torch.backends.cpu.get_cpu_capability()]
    parts += [f"{name} {version}" for name in _PACKAGES if (version := installed(name)) is not None]
    digest = hashlib.sha256("\n".join(parts).encode())
    room = Path(__file__).parents[2]
    for source in _SOURCES:
        path = room / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(room).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:20]
