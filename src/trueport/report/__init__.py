"""What trueport tells people and programs: the report as data, and its renderings. Never imports torch."""

from trueport.report.model import SUFFIXES, CheckedInput, Report, SizeSummary, TensorSummary, Verdict

__all__ = ["SUFFIXES", "CheckedInput", "Report", "SizeSummary", "TensorSummary", "Verdict"]
