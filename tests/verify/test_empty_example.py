"""An example whose result is empty was compared like any other; that it tells little is no reason to call it unsure."""

from __future__ import annotations

import torch

import trueport


def test_an_example_with_an_empty_result_is_checked() -> None:
    report = trueport.check(lambda x: x[x > 0], (-torch.ones(6),))
    assert report.verified
    assert [found.code for found in report.diagnostics] == []
