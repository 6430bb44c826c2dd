"""A model with faults of several stages: all are told in one run, each at its line, none twice."""

from __future__ import annotations

import torch
from torch import nn

import trueport


class Hurried(nn.Module):
    def forward(self, x):
        noisy = x + torch.randn_like(x)  # examine finds this one
        loud = torch.from_numpy(noisy.numpy() * 2)  # and the trace stops here
        return {"y": loud}


class Sparse(nn.Module):
    def forward(self, x):
        return x.to_sparse()  # refused as a result, and as an operator: once is enough


def errors(model: nn.Module) -> list[tuple[str, int]]:
    report = trueport.check(model, (torch.randn(3, 4),))
    return [(f.code, f.where.line - type(model).forward.__code__.co_firstlineno) for f in report.diagnostics if f.where]


def test_what_eager_shows_and_what_the_trace_finds_are_told_together() -> None:
    assert errors(Hurried()) == [("TP004", 1), ("TP204", 2)]


def test_one_line_has_one_error() -> None:
    assert errors(Sparse()) == [("TP202", 1)]
