"""trueport carries a PyTorch model over to ONNX, and proves that what arrived is what left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueport.api import check, export
    from trueport.diagnostics.base import Diagnostic
    from trueport.errors import ExportError, TrueportError, UsageError
    from trueport.lower.table import op
    from trueport.program import Program
    from trueport.report import Report

__all__ = ["Diagnostic", "ExportError", "Program", "Report", "TrueportError", "UsageError", "check", "export", "op"]
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
