"""What trueport finds, as data: a base class, one rule per file, and the registry that discovers them."""

from trueport.diagnostics.base import Diagnostic, Severity

__all__ = ["Diagnostic", "Severity"]
