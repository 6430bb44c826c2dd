"""Why a verdict differs between releases, where we know more than what the test said."""

from __future__ import annotations

import re

REASONS: tuple[tuple[str, str, str, str], ...] = (
    (
        r"torch 2\.1[245],.*",
        "canary",
        r".*\.(guard_or_false|statically_known_true|sym_and)",
        "Added to the contract after this row was measured; the wheel has it.",
    ),
    (
        ".*, lowest",
        "tests",
        r".*\[TP601\]",
        "The text of the snapshot names the newest opset that the installed onnx has: 25 here, 26 with the lock.",
    ),
    (r"torch 2\.1[45],.*", "operators", r"(cholesky|qr) \d", "OpInfo of this release has no such operator."),
    (
        r"torch 2\.12,.*",
        "operators",
        r"(native_group_norm|nn\.functional\.linear_cross_entropy) \d",
        "OpInfo of this release has no such operator.",
    ),
)
"""Setting, part and name, as regular expressions that must match whole, and the reason."""


def reason_for(setting: str, part: str, name: str) -> str:
    for of_setting, of_part, of_name, why in REASONS:
        asked = ((of_setting, setting), (of_part, part), (of_name, name))
        if all(re.fullmatch(pattern, given, re.DOTALL) for pattern, given in asked):
            return why
    return ""
