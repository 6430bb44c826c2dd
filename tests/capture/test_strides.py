"""`as_strided` reads memory: carried where a tensor is all of its memory, and otherwise refused at its line."""

from __future__ import annotations

import inspect

import pytest
import torch

import trueport
from tests.lower.ops.faithful import faithful


def test_windows_of_an_input_and_of_what_was_computed():
    def forward(x):
        doubled = x * 2
        return x.as_strided((3, 2), (1, 2)), doubled.as_strided((2, 3), (3, 1), 1)

    faithful(forward, torch.randn(4, 3))


def test_writing_through_strides():
    def forward(x):
        x = x + 1
        x.as_strided((2, 2), (4, 1)).mul_(3)
        return x

    faithful(forward, torch.randn(3, 4))


def test_what_lies_behind_a_view_is_refused():
    def forward(x):
        return x[1:].as_strided((2, 2), (1, 1), 0)

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(forward, (torch.randn(4, 3),))
    found = refused.value.diagnostics[0]
    assert "memory behind a view" in found.message
    assert found.where.line == inspect.getsourcelines(forward)[1] + 1
