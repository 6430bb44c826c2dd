"""`make demo` is the first thing that a newcomer runs: it must end well, refusal at the end included."""

from __future__ import annotations

import pytest

from examples import demo


def test_the_demo_ends_well(capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    shown = capfd.readouterr().out
    assert shown.count("faithful ") == 2
    assert "error[TP204]" in shown
