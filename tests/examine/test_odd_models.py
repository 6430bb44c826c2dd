"""Models and outputs that are no plain nn.Module and no plain tensor: each is exported, or refused in words."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import trueport


def found(model: object, *args: object) -> list[tuple[str, str]]:
    report = trueport.check(model, args)
    return [(finding.code, finding.message) for finding in report.diagnostics if finding.is_error]


def line_of(model: nn.Module, *args: object) -> int | None:
    (finding,) = [f for f in trueport.check(model, args).diagnostics if f.is_error]
    return finding.where.line if finding.where else None


class Deciding(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x


class Counting(nn.Module):
    def forward(self, x):
        while x.sum() < 10:
            x = x + 1.0
        return x


class Asking(nn.Module):
    """Decides, but by no value: what kind of tensor it is, and a number that is written down."""

    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x):
        for i in range(3):
            x = x + i
        if x.dim() == 2 and x.is_floating_point():
            x = self.drop(self.fc(x))
        return x


class Nested(nn.Module):
    def forward(self, x):
        return torch.nested.nested_tensor([x[0], x[1, :2]])


class Lazily(nn.Module):
    def forward(self, x):
        return (row * 2 for row in x)


class Leaving(nn.Module):
    def forward(self, x):
        raise SystemExit(3)


def read_again(model: nn.Module) -> torch.jit.ScriptModule:
    """Scripted and read from a file: of that, nobody knows the Python."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(model), file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize(("model", "what"), [(Deciding(), "branch"), (Counting(), "loop")])
def test_a_scripted_module_that_decides_by_a_value_is_refused(model: nn.Module, what: str) -> None:
    """Its interpreter takes one way while it is traced: the graph would silently hold that way only."""
    assert not found(torch.jit.script(model), torch.ones(3, 4))
    ((code, message),) = found(read_again(model), torch.ones(3, 4))
    assert code == "TP107"
    assert f"a value decides a {what}" in message


def test_the_line_inside_a_scripted_part_is_named() -> None:
    model = nn.Sequential(nn.Identity(), read_again(Deciding()))
    assert line_of(model, torch.ones(3, 4)) == Deciding.forward.__code__.co_firstlineno + 1


@pytest.mark.parametrize("freeze", [False, True])
def test_a_scripted_module_that_decides_by_no_value_is_exported(freeze: bool) -> None:
    scripted = torch.jit.script(Asking().eval())
    assert not found(torch.jit.freeze(scripted) if freeze else scripted, torch.randn(3, 4))


def test_a_lazy_module_that_never_ran_has_no_weights() -> None:
    ((code, message),) = found(nn.Sequential(nn.LazyLinear(3)), torch.ones(2, 4))
    assert code == "TP001"
    assert "0 (LazyLinear)" in message


def test_a_lazy_module_that_ran_once_is_like_any_other() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    model(torch.ones(2, 4))
    assert not found(model, torch.ones(2, 4))


@pytest.mark.parametrize(("model", "word"), [(Nested(), "nested"), (Lazily(), "generator")])
def test_an_output_that_no_graph_has_is_refused_where_it_is_returned(model: nn.Module, word: str) -> None:
    ((code, message),) = found(model, torch.ones(3, 4))
    assert code == "TP202"
    assert word in message
    assert line_of(model, torch.ones(3, 4)) == type(model).forward.__code__.co_firstlineno + 1


def test_a_model_that_ends_the_process_does_not_end_ours() -> None:
    ((code, message),) = found(Leaving(), torch.ones(3, 4))
    assert code == "TP002"
    assert "SystemExit" in message
