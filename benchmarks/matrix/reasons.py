"""Why a verdict differs between releases, where we know more than what the test said."""

from __future__ import annotations

import re

REASONS: tuple[tuple[str, str, str, str], ...] = ()
"""Setting, part and name, as regular expressions that must match whole, and the reason."""


def reason_for(setting: str, part: str, name: str) -> str:
    for of_setting, of_part, of_name, why in REASONS:
        asked = ((of_setting, setting), (of_part, part), (of_name, name))
        if all(re.fullmatch(pattern, given, re.DOTALL) for pattern, given in asked):
            return why
    return ""
