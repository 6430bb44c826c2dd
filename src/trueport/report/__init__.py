"""What trueport tells people and programs: the report as data, and its renderings. Never imports torch."""

from trueport.report.checked import CheckedInput, Verdict
from trueport.report.graph import GraphSummary, NodeSummary
from trueport.report.model import (
    SUFFIXES,
    CallsSummary,
    DecisionSummary,
    PassSummary,
    Report,
    SizeSummary,
    TensorSummary,
    Way,
)

__all__ = [
    "SUFFIXES",
    "CallsSummary",
    "CheckedInput",
    "DecisionSummary",
    "GraphSummary",
    "NodeSummary",
    "PassSummary",
    "Report",
    "SizeSummary",
    "TensorSummary",
    "Verdict",
    "Way",
]
