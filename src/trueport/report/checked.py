"""One input on which the exported model was compared with eager, as the report has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """How ONNX Runtime's answer compares with eager's on one input."""

    EQUAL = "equal"
    ALIKE = "alike"  # random results, distributed as eager's
    DIFFERENT = "different"
    FAILED = "failed"  # no answer: refused, hung, crashed


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """One input on which the exported model was compared with eager.

    `worst_error` is the largest difference over all outputs, None where there was nothing to subtract; `allowed` is the
    tolerance at that element.
    """

    sizes: Mapping[str, int]
    family: str
    verdict: Verdict
    worst_error: float | None = None
    allowed: float | None = None
    by_output: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By output, its largest difference, and what was allowed there."""

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{sizes}; {self.family}" if sizes else self.family
