"""What trueport tells people and programs: the report as data, and its renderings. Never imports torch."""

from trueport.report.graph import GraphSummary, NodeSummary
from trueport.report.model import (
    SUFFIXES,
    CallsSummary,
    CheckedInput,
    DecisionSummary,
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
    "GraphSummary",
    "NodeSummary",
    "Report",
    "SizeSummary",
    "TensorSummary",
    "Verdict",
    "Way",
]
