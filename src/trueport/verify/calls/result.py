"""What the calls of a model, each by itself, have shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trueport.diagnostics.base import Diagnostic


@dataclass(frozen=True, slots=True)
class CallsChecked:
    """Counts of distinct calls, and what there is to say of some."""

    distinct: int = 0
    equal: int = 0
    """Those that gave what eager gives, on every finite operand that was tried."""
    remembered: int = 0
    """Those of them that an earlier check had shown, with the same versions."""
    runs: int = 0
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Operators that could not be run by themselves, each with the reason."""
    by_design: tuple[str, ...] = ()
    """Where runtime and eager differ on NaN or infinity only."""
    findings: tuple[Diagnostic, ...] = ()
