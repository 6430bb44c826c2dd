"""What a forward raises while it is traced, and eager did not raise on the example."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

import trueport
from trueport.diagnostics.base import Diagnostic

X = torch.ones(3, 4)


class Stop(BaseException):
    """As libraries have them, to get past every `except Exception`."""


class Raising(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            raise Stop("enough")  # <- here
        return x * 2


class InAHelper(nn.Module):
    def ended(self, x):
        raise Stop  # <- here

    def forward(self, x):
        return self.ended(x) if torch.compiler.is_exporting() else x


class InALoop(nn.Module):
    def forward(self, x):
        for row in x:
            if row.sum() > 100:
                raise Stop("enough")  # <- here
        return x * 2


class Ending(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            sys.exit(3)  # <- here
        return x * 2


class Interrupted(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            raise KeyboardInterrupt
        return x


def refused(model: nn.Module) -> Diagnostic:
    (found,) = trueport.check(model, (X,), dynamic_shapes={"x": {0: "n"}}).errors
    return found


def marked_line(model: nn.Module) -> int:
    lines = open(__file__).read().splitlines()
    first = next(at for at, line in enumerate(lines, 1) if line.startswith(f"class {type(model).__name__}("))
    return next(at for at, line in enumerate(lines[first:], first + 1) if line.endswith("# <- here"))


@pytest.mark.parametrize("model", [Raising(), InAHelper(), InALoop()], ids=lambda model: type(model).__name__)
def test_an_error_that_is_no_exception_is_told_at_its_line(model: nn.Module) -> None:
    found = refused(model)
    assert (found.code, found.where and found.where.line) == ("TP204", marked_line(model))
    assert found.message.startswith("`Stop` is raised here")
    assert "derive Stop from Exception" in found.fix


def test_what_it_says_is_shown() -> None:
    assert refused(Raising()).seen == ("enough",)
    assert refused(InAHelper()).seen == ()


def test_the_end_of_the_process_keeps_its_words() -> None:
    found = refused(Ending())
    assert (found.code, found.where and found.where.line) == ("TP204", marked_line(Ending()))
    assert "the process is ended here" in found.message


def test_an_interruption_is_nobodys_finding() -> None:
    with pytest.raises(KeyboardInterrupt):
        trueport.check(Interrupted(), (X,))
