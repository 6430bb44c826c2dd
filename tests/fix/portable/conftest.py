"""What `torch.compiler` learnt from the tests before, in the same process, is no part of these."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def a_compiler_that_met_nothing() -> None:
    torch.compiler.reset()
