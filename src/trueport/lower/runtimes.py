"""What each release of ONNX Runtime loads.

Measured, not read: a model of one `Identity` was loaded in the last wheel of each minor release, with every opset and
every IR version. The tables of its documentation name opsets that a release then refuses.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loads:
    """The newest opset and IR version that a runtime loads."""

    opset: int
    ir_version: int


MEASURED: dict[tuple[int, int], Loads] = {
    (1, 15): Loads(18, 9),
    (1, 16): Loads(19, 9),
    (1, 17): Loads(20, 9),
    (1, 18): Loads(21, 10),
    (1, 19): Loads(21, 10),
    (1, 20): Loads(21, 10),
    (1, 21): Loads(22, 10),
    (1, 22): Loads(22, 10),
    (1, 23): Loads(23, 11),
    (1, 24): Loads(25, 13),
    (1, 25): Loads(26, 13),
    (1, 31): Loads(26, 13),
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
