"""Queries, keys and values of one thing are one product; what only looks like it stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

import trueport
from tests.lower.through_onnx import check
from trueport.optimise.names import NAMES

FREE = {0: {0: "b", 1: "s"}}


class Attention(nn.Module):
    """As people write it. `heads` are of queries, keys and values."""

    def __init__(self, heads: Sequence[int] = (4, 2, 2), biases: Sequence[bool] = (True, True, True)) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(8, 4 * n, bias) for n, bias in zip(heads, biases, strict=True))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(part(x).view(*x.shape[:2], part.out_features // 4, 4).transpose(1, 2) for part in self.parts)


def given(batch: int, length: int) -> tuple[Tensor]:
    return (torch.randn(batch, length, 8, generator=torch.Generator().manual_seed(batch + length)),)


OTHERS = [given(1, 1), given(0, 3), given(2, 0)]


def written(model: nn.Module, opset: int = 20) -> list[str]:
    made = check(model, given(2, 3), *OTHERS, free=FREE, passes=NAMES, opset=opset, rtol=1e-5, atol=1e-6)
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize("opset", [13, 20])
def test_1_and_2_one_product_one_transposition(opset: int) -> None:
    assert written(Attention(), opset)[:5] == ["MatMul", "Add", "Reshape", "Transpose", "Split"]
    assert written(Attention(biases=[False] * 3), opset)[:4] == ["MatMul", "Reshape", "Transpose", "Split"]


class Scores(Attention):
    """Keys are turned once more, and queries are read twice before they are turned."""

    def __init__(self, twice: bool) -> None:
        super().__init__()
        self.twice = twice

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = (part(x).view(*x.shape[:2], part.out_features // 4, 4) for part in self.parts)
        q = q + q.mean(dim=-1, keepdim=True) if self.twice else q
        return q.transpose(1, 2) * 2, k.permute(0, 2, 3, 1) * 2, v.transpose(1, 2) * 2


def test_2_what_is_turned_further_is_turned_behind() -> None:
    assert written(Scores(twice=False)).count("Transpose") == 2
    assert written(Scores(twice=True))[:4] == ["MatMul", "Add", "Reshape", "Split"]


class OfTwoThings(Attention):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return *super().forward(x)[:1], *(each[..., :2] for each in super().forward(x + 1)[1:2])


class Tied(Attention):
    """Keys and values have one weight: it is in the file once."""

    def __init__(self) -> None:
        super().__init__()
        self.parts[2].weight = self.parts[1].weight


class OtherWidths(Attention):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k, _ = (part(x) for part in self.parts)
        return q.view(*x.shape[:2], 4, 4), k.view(*x.shape[:2], 4, 2)


class Named(Attention):
    """The user sees what is multiplied, too."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k, _ = (part(x) for part in self.parts)
        return q, k, q.view(*x.shape[:2], 4, 4), k.view(*x.shape[:2], 2, 4)


@pytest.mark.parametrize("model", [OfTwoThings(), OtherWidths(), Named()], ids=lambda model: type(model).__name__)
def test_what_only_looks_like_it_stays(model: nn.Module) -> None:
    assert written(model).count("MatMul") == 2


def test_what_has_no_bias_or_a_shared_weight_is_left_out() -> None:
    assert written(Attention(biases=(True, False, True))).count("MatMul") == 2
    assert written(Tied()).count("MatMul") == 2


def test_weights_are_named_after_the_first_and_nodes_belong_to_the_module_around() -> None:
    program = trueport.export(Attention().eval(), given(2, 3), dynamic_shapes=({0: "b", 1: "s"},))
    assert program.report.ok, program.report
    joined = ["parts.0.bias.joined", "parts.0.weight.transposed.joined"]
    assert sorted(name for name in program.model.graph.initializers if name.startswith("parts")) == joined
    assert {node.metadata_props.get("trueport.module", "") for node in program.model.graph} <= {"", "parts"}
