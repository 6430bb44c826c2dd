"""What an export or a check found out, as plain data: no tensors, no torch, nothing that cannot be written as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.report.checked import CheckedInput as CheckedInput
from trueport.report.checked import Verdict as Verdict
from trueport.report.graph import GraphSummary
from trueport.report.json import SCHEMA, dumped, plain
from trueport.source import Where

SUFFIXES = (".txt", ".json", ".html")
"""How a report can be saved."""


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """An input or an output of the exported model. `shape` holds numbers and the names of free sizes, as text."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    is_sequence: bool = False
    """Whether it is a sequence of any number of such tensors."""

    def __str__(self) -> str:
        tensor = f"{self.dtype}[{', '.join(self.shape)}]"
        return f"{self.name}: sequence of {tensor}" if self.is_sequence else f"{self.name}: {tensor}"


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """A size that stays free in the exported model, and the range in which it may move."""

    name: str
    minimum: int = 0
    maximum: int | None = None

    def __str__(self) -> str:
        return f"{self.name} = {self.minimum}..{'' if self.maximum is None else self.maximum}"


@dataclass(frozen=True, slots=True)
class Way:
    """One way that a branch or a loop can go, and on how many of the compared inputs it went that way."""

    name: str
    inputs: int


@dataclass(frozen=True, slots=True)
class DecisionSummary:
    """A branch or a loop of the user's code that is kept alive, and which of its ways were compared with eager."""

    where: Where
    kind: str
    text: str
    """What decides, as it is written."""
    ways: tuple[Way, ...]

    @property
    def unreached(self) -> tuple[str, ...]:
        return tuple(way.name for way in self.ways if not way.inputs)

    def __str__(self) -> str:
        ways = ", ".join(f"{way.name} on {way.inputs or 'none'}" for way in self.ways)
        return f"{Path(self.where.file).name}:{self.where.line} `{self.text}`: {ways}"


@dataclass(frozen=True, slots=True)
class CallsSummary:
    """The distinct calls of the model, each run by itself on edge operands of its dtypes."""

    distinct: int
    equal: int
    """Those that gave what eager gives, on every finite operand that was tried."""
    remembered: int
    """Those of them that an earlier check had shown, with the same versions."""
    runs: int
    not_run: Mapping[str, str]
    """Operators that were not run by themselves, each with the reason."""
    by_design: tuple[str, ...]
    """Where runtime and eager differ on NaN or infinity only."""

    def __str__(self) -> str:
        known = f" ({self.remembered} remembered)" if self.remembered else ""
        text = f"{self.distinct} distinct, {self.equal} equal on edge operands{known}"
        if not self.not_run:
            return text
        reasons: dict[str, list[str]] = {}
        for operator, reason in self.not_run.items():
            reasons.setdefault(reason, []).append(operator)
        told = "; ".join(f"{', '.join(sorted(named))} ({reason})" for reason, named in reasons.items())
        return f"{text}, not run: {told}"


@dataclass(frozen=True, slots=True)
class PassSummary:
    """What one pass over the ONNX model did."""

    name: str
    changes: int
    nodes_removed: int
    """Fewer nodes after it; below 0 where it left more."""

    def __str__(self) -> str:
        return f"{self.name}: {self.changes} changes, {self.nodes_removed} nodes fewer"


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything there is to tell about one export. Reads from top to bottom as a user would ask."""

    model: str
    path: str | None = None
    """Where the model was written; None when nothing was."""
    opset: int | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    inputs: tuple[TensorSummary, ...] = ()
    outputs: tuple[TensorSummary, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Results that are neither tensors nor numbers, with their value as text: ONNX has no place for them."""
    free_sizes: tuple[SizeSummary, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    """Arguments that became part of the model, with their value as text."""
    assumptions: tuple[str, ...] = ()
    nodes: int | None = None
    functions: Mapping[str, int] = field(default_factory=dict)
    """The functions of the ONNX model that stand for modules, and how many nodes call each."""
    passes: tuple[PassSummary, ...] = ()
    """The passes that ran over the ONNX model, in their order; none with `optimize=False`."""
    calls: CallsSummary | None = None
    """None where the file is not of our making: then nothing is known of its calls."""
    checks: tuple[CheckedInput, ...] = ()
    decisions: tuple[DecisionSummary, ...] = ()
    """The branches and loops that decide when the model runs."""
    searched: int = 0
    """Inputs that were tried in eager alone, to find those that go another way."""
    refused_by_eager: int = 0
    undecided: tuple[str, ...] = ()
    """Inputs on which rounding alone may explain the difference, each with the reason: they prove nothing."""
    endless: int = 0
    """Inputs on which a loop of eager's made more rounds than a run of the check may."""
    partly: str = ""
    """Why less was decided than usually is: the clock ended the check, or rounding decides on the example itself."""
    tolerances: Mapping[str, str] = field(default_factory=dict)
    """By output, how far a float may be off."""
    compared_with: str = "eager"
    """What the file was compared with: eager PyTorch, or another file."""
    budget: str = ""
    """How far a file may be off from the one that it was made of, where that is more than rounding."""
    seed: int | None = None
    verified: bool = False
    """Whether the model was run and compared; False with `verify=False`, and when an earlier stage stopped."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    graph: GraphSummary | None = field(default=None, repr=False, metadata={"json": False})
    """The exported graph, for the page. Not in the JSON: programs read the model itself."""

    @property
    def ok(self) -> bool:
        """No error was found. Says nothing of inputs that were not tried: see `verified` and `checks`."""
        return not self.errors

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.WARNING)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.NOTE)

    def _of(self, weight: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.weight is weight)

    def text(self) -> str:
        """The report as a terminal shows it, without colour."""
        from trueport.report.text import report_text

        return report_text(self)

    def to_json(self) -> str:
        """The report for other programs; the keys are those of this class."""
        return dumped({"schema": SCHEMA, "ok": self.ok, **plain(self)})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report; the suffix says how: `.txt`, `.json` or `.html` (one file, opens offline)."""
        target = Path(path)
        match target.suffix.lower():
            case ".txt":
                content = self.text()
            case ".json":
                content = self.to_json()
            case ".html":
                from trueport.report.html import report_html

                content = report_html(self)
            case _:
                raise ValueError(f"cannot write a report as {target.name!r}: use one of {', '.join(SUFFIXES)}")
        target.write_text(content + "\n", encoding="utf-8", errors="backslashreplace")

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from trueport.report.html import report_fragment

        return report_fragment(self)
