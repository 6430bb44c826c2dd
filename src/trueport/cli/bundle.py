"""What goes along with the report of a bug of ours: a text file that the user can read before sending it."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trueport.diagnostics.base import Diagnostic
from trueport.report.text import diagnostic_text
from trueport.report.versions import PACKAGES, installed_versions

_PACKAGES = (*PACKAGES, "numpy", "sympy", "transformers")


def write_bundle(found: Sequence[Diagnostic], traces: Sequence[str]) -> Path | None:
    """Write the bundle to the temporary folder; None where even that is not possible."""
    sections = {
        "command": shlex.join(sys.argv),
        "versions": "\n".join(f"{name} {version}" for name, version in installed_versions(_PACKAGES).items()),
        "machine": f"Python {platform.python_version()}, {platform.platform()}",
        "findings": "\n\n".join(diagnostic_text(one) for one in found),
        "traceback": "\n".join(traces) or "(none)",
    }
    text = "\n\n".join(f"== {head}\n{body.rstrip()}" for head, body in sections.items())
    try:
        handle, name = tempfile.mkstemp(prefix="trueport-bug-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"A bug of trueport. Nothing of the model's weights or inputs is in this file.\n\n{text}\n")
    except OSError:
        return None
    return Path(name)
