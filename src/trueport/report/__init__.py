"""What trueport tells people and programs: the report as data, and its renderings. Never imports torch."""

from trueport.report.model import (
    SUFFIXES,
    CallsSummary,
    CheckedInput,
    DecisionSummary,
    PassSummary,
    Report,
    SizeSummary,
    TensorSummary,
    Verdict,
    Way,
)

__all__ = [
    "SUFFIXES",
    "CallsSummary",
    "CheckedInput",
    "DecisionSummary",
    "PassSummary",
    "Report",
    "SizeSummary",
    "TensorSummary",
    "Verdict",
    "Way",
]
