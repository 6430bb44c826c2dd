"""trueport carries a PyTorch model over to ONNX, and proves that what arrived is what left."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueport.api import check, export, verify
    from trueport.diagnostics.base import Diagnostic
    from trueport.errors import ExportError, TrueportError, UsageError
    from trueport.lower.table import op
    from trueport.program import Program
    from trueport.report import Report

__all__ = [
    "Diagnostic",
    "ExportError",
    "Program",
    "Report",
    "TrueportError",
    "UsageError",
    "check",
    "export",
    "op",
    "verify",
]
__version__ = "0.1.0"

_HOMES = {
    "Diagnostic": "trueport.diagnostics.base",
    "ExportError": "trueport.errors",
    "Program": "trueport.program",
    "Report": "trueport.report",
    "TrueportError": "trueport.errors",
    "UsageError": "trueport.errors",
    "check": "trueport.api",
    "export": "trueport.api",
    "op": "trueport.lower.table",
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used: `trueport --help` and `explain` must not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trueport' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(types.ModuleType):
    """`trueport.verify` is the function, although a folder of that name exists too: the import system would put the
    folder's module in its place as soon as anything in it is imported. Importing from the folder works as ever.
    """

    @property
    def verify(self) -> Any:
        from trueport.api import verify

        return verify

    @verify.setter
    def verify(self, module: types.ModuleType) -> None:
        """What the import system does after importing the folder; the function stays."""


sys.modules[__name__].__class__ = _Package
