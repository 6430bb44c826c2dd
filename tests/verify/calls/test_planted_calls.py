"""Wrong translations that no drawn input of the whole model reaches: each is found at its call, at its line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import trueport
from trueport.diagnostics.base import Diagnostic
from trueport.lower.complex import numbers

A = torch.ops.aten
FLOAT, INT32, INT64 = 1, 6, 7


class Divides(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x // 7  # here


class Relu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)  # here


class Rounds(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x)  # here


class Clips(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x, min=0.0)  # here


class Argmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=1)  # here


class Gathers(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, index)  # here


class AtLeast(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x >= 1.0  # here


class Masked(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores.masked_fill(~mask, -1e9)
        return torch.softmax(scores, -1)  # here


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 1)  # here


def floor_through_float32(op: Any, x: Any, y: Any) -> Any:
    return op.Cast(op.Floor(op.Div(op.Cast(x, to=FLOAT), op.Cast(y, to=FLOAT))), to=INT64)


def relu_through_int32(op: Any, x: Any) -> Any:
    return op.Cast(op.Relu(op.Cast(op.Cast(x, to=INT32), to=FLOAT)), to=INT64)


def round_half_up(op: Any, x: Any) -> Any:
    return op.Floor(op.Add(x, 0.5))


def clip_to_a_thousand_thousand(op: Any, x: Any, least: Any = None, most: Any = None) -> Any:
    return op.Min(op.Max(x, 0.0), 65000.0)


def argmax_last(op: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    return op.ArgMax(x, axis=dim, keepdims=int(keepdim), select_last_index=1)


def one_before_the_last(op: Any, x: Any, dim: int, index: Any) -> Any:
    last = op.Sub(op.Gather(op.Shape(x), dim), 2)
    return op.Gather(x, op.Min(index, last), axis=dim)


def more_than(op: Any, x: Any, other: Any) -> Any:
    return op.Greater(x, other)


def softmax_of_nothing_is_zero(op: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    return op.Where(op.Less(x, -1e8), 0.0, op.Softmax(x, axis=dim))


def sum_of_64(op: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    import numpy as np

    short = op.Slice(x, np.array([0]), np.array([64]), np.array([1]))
    rest = op.Slice(x, np.array([64]), np.array([2**31]), np.array([1]))
    return op.Concat(op.CumSum(short, 1), op.CumSum(rest, 1), axis=1)


PLANTED: list[tuple[nn.Module, tuple[torch.Tensor, ...], Any, Callable[..., Any], str]] = [
    (Divides(), (torch.arange(9),), A.floor_divide.default, floor_through_float32, "floor_divide"),
    (Relu(), (torch.arange(9) - 4,), A.relu.default, relu_through_int32, "relu"),
    (Rounds(), (torch.rand(7) + 0.01,), A.round.default, round_half_up, "round"),
    (Clips(), (torch.randn(7),), A.clamp.default, clip_to_a_thousand_thousand, "clamp"),
    (Argmax(), (torch.randn(3, 5),), A.argmax.default, argmax_last, "argmax"),
    (Gathers(), (torch.randn(4, 2), torch.tensor([0, 1])), A.index_select.default, one_before_the_last, "index_select"),
    (AtLeast(), (torch.randn(7),), A.ge.Scalar, more_than, "ge"),
    (
        Masked(),
        (torch.randn(2, 8), torch.ones(2, 8, dtype=torch.bool)),
        A.softmax.int,
        softmax_of_nothing_is_zero,
        "softmax",
    ),
    (Rows(), (torch.randn(3, 5),), A.cumsum.default, sum_of_64, "cumsum"),
]


@pytest.fixture(autouse=True)
def _only_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole model is compared on the example alone, so that what is found here is found at the call."""
    monkeypatch.setattr("trueport.verify.check.draw", lambda *_, **__: iter(()))


def found_at_the_call(
    model: nn.Module, args: tuple[torch.Tensor, ...], table: dict[Any, Callable[..., Any]], **shapes: Any
) -> list[Diagnostic]:
    report = trueport.check(model.eval(), args, custom_translation_table=table, **shapes)
    return [found for found in report.diagnostics if found.code == "TP812"]


@pytest.mark.parametrize(("model", "args", "op", "translation", "name"), PLANTED, ids=[each[-1] for each in PLANTED])
def test_a_planted_fault_is_found_at_its_line(
    model: nn.Module, args: tuple[torch.Tensor, ...], op: Any, translation: Callable[..., Any], name: str
) -> None:
    (found,) = found_at_the_call(model, args, {op: translation})
    lines, first = inspect.getsourcelines(type(model))
    at = first + next(number for number, line in enumerate(lines) if "# here" in line)
    assert found.is_error
    assert found.where is not None
    assert found.where.line == at
    assert name in found.message
    assert any("operands:" in fact for fact in found.seen)


class Conjugates(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.view_as_complex(x).conj_physical())


def conjugate_up_to_four(op: Any, z: Any) -> Any:
    """Beyond four the sign stays."""
    turned = op.Mul(z.pairs, op.const([1, -1], z.pairs.element))
    return replace(z, pairs=op.Where(op.Greater(op.Abs(z.pairs), op.const(4.0, z.pairs.element)), z.pairs, turned))


def test_a_planted_fault_of_complex_numbers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEPORT_CACHE", "off")
    assert not found_at_the_call(Conjugates(), (torch.rand(3, 2),), {})
    monkeypatch.setitem(numbers._TRANSLATIONS, "aten::conj_physical", conjugate_up_to_four)
    (found,) = found_at_the_call(Conjugates(), (torch.rand(3, 2),), {})
    assert found.is_error
    assert "conj_physical" in found.message


RIGHT = [each[:2] for each in PLANTED if each[-1] not in ("floor_divide", "relu")]


class Convolves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.AvgPool2d(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).mean((2, 3)))


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.layer(self.table(ids))


ORDINARY: list[tuple[nn.Module, tuple[torch.Tensor, ...]]] = [
    *RIGHT,
    (Convolves(), (torch.randn(2, 3, 8, 8),)),
    (Attends(), (torch.randint(20, (2, 7)),)),
]


@pytest.mark.parametrize(("model", "args"), ORDINARY, ids=[type(model).__name__ for model, _ in ORDINARY])
def test_right_translations_have_no_finding(model: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
    report = trueport.check(model.eval(), args)
    assert not [found for found in report.diagnostics if found.code == "TP812"], report.diagnostics
    assert report.calls is not None
    assert report.calls.equal == report.calls.distinct > 0
