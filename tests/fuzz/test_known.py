"""Programs that the last run of the fuzzer found and that are not mended yet, whole: each is expected to fail.

They are judged without the check that an export ends with; it is what refuses such a model for a user.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.outcome import judge

KNOWN = {
    "wrong_9402_1385": "what a lambda's ternary gives may be the very tensor that it was given; a write to it does not"
    " reach that tensor, in a match whose other case returns",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xfail(reason=why, strict=True)) for name, why in KNOWN.items()]
)
def test_programs_that_are_not_mended_yet(name: str) -> None:
    outcome = judge((Path(__file__).parent / "known" / f"{name}.txt").read_text())
    assert not outcome.verdict.is_bug, outcome.detail
