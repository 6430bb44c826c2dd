"""What each release of ONNX Runtime loads, and which opset is written for it.

Measured, not read: a model of one `Identity` was loaded in the last wheel of each minor release, with every opset and
every IR version. The tables of its documentation name opsets that a release then refuses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError


@dataclass(frozen=True, slots=True)
class Loads:
    """The newest opset and IR version that a runtime loads.

    A runtime may load an opset and lack kernels of it: those of one operator end with the version before. `complete` is
    the newest opset of which it computes all that translations write (`python -m benchmarks.opsets --kernels`). 1.15
    cannot be asked for its kernels, and is taken to have those of what it loads.
    """

    opset: int
    ir_version: int
    complete: int


MEASURED: dict[tuple[int, int], Loads] = {
    (1, 15): Loads(18, 9, 18),
    (1, 16): Loads(19, 9, 19),
    (1, 17): Loads(20, 9, 20),
    (1, 18): Loads(21, 10, 21),
    (1, 19): Loads(21, 10, 21),
    (1, 20): Loads(21, 10, 21),
    (1, 21): Loads(22, 10, 21),
    (1, 22): Loads(22, 10, 21),
    (1, 23): Loads(23, 11, 21),
    (1, 24): Loads(25, 13, 21),
    (1, 25): Loads(26, 13, 21),
    (1, 31): Loads(26, 13, 21),
}
"""By minor release; one that is not listed loads what the last listed before it does."""


def loaded_by(release: tuple[int, int]) -> Loads | None:
    """What a release of ONNX Runtime loads; None for one that is older than all that were measured."""
    known = [listed for listed in sorted(MEASURED) if listed <= release]
    return MEASURED[known[-1]] if known else None


def first_release_for(opset: int, ir_version: int) -> tuple[int, int] | None:
    """The oldest measured release that loads such a model."""
    fitting = (r for r, loads in sorted(MEASURED.items()) if loads.opset >= opset and loads.ir_version >= ir_version)
    return next(fitting, None)


@dataclass(frozen=True, slots=True)
class TargetRuntime:
    """Where a model will run: a release of ONNX Runtime, or a runtime that is known by its opset."""

    release: tuple[int, int] | None = None
    opset: int | None = None

    def __str__(self) -> str:
        return f"opset {self.opset}" if self.release is None else f"onnxruntime {'.'.join(map(str, self.release))}"


def parse_target(text: str) -> TargetRuntime:
    """`onnxruntime==1.17`, `onnxruntime` (the release that is installed) or `opset==19`. Raises UsageError."""
    name, _, number = (part.strip() for part in text.partition("=="))
    if name in ("onnxruntime", "ort"):
        if not number and "==" not in text:
            number = metadata.version("onnxruntime")
        if match := re.fullmatch(r"(\d+)\.(\d+)(\..*)?", number):
            return TargetRuntime(release=(int(match[1]), int(match[2])))
    if name == "opset" and number.isdecimal():
        return TargetRuntime(opset=int(number))
    message, fix = f"the target {text} is not understood", "write onnxruntime==1.17, onnxruntime or opset==19"
    raise UsageError([UsageFault(message=message, fix=fix)])
