"""What trueport finds, as data: a base class, one rule per file, and the registry that discovers them."""

from trueport.diagnostics.base import Diagnostic, Label, Severity

__all__ = ["Diagnostic", "Label", "Severity"]
