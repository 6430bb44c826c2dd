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
    from trueport.sweeping import sweep

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
    "sweep",
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
    "sweep": "trueport.sweeping",
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used: `trueport --help` and `explain` must not wait for torch."""
    import contextlib
    import importlib

    from trueport.garbage import importing

    if name in ("verify", "generation"):
        return importlib.import_module(f"trueport.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'trueport' has no attribute {name!r}")
    with contextlib.nullcontext() if _HOMES[name] in sys.modules else importing():
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _CallableRoom(types.ModuleType):
    """The folder `trueport.verify`, which is also the function of that name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from trueport.api import verify

        return verify(*args, **kwargs)


class _Package(types.ModuleType):
    """A function and a folder may not have one name: whatever is imported from the folder, the import system puts its
    module where the function was. So that module can be called.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "verify" and isinstance(value, types.ModuleType):
            value.__class__ = _CallableRoom
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
