"""GELU as people write it is one operator; what only looks like it stays."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.lower.through_onnx import check
from trueport.optimise.names import NAMES

X = torch.linspace(-6, 6, 48).reshape(2, 3, 8)
ENDS = torch.tensor([0.0, -0.0, 1e-30, -1e30, 1e13, math.inf, math.nan, 3e38])
ROOT = math.sqrt(2 / math.pi)
Function = Callable[[torch.Tensor], torch.Tensor]

BY_HAND: dict[str, Function] = {
    "quotient": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "half of the bracket": lambda x: x * (0.5 * (1 + torch.erf(x * math.sqrt(0.5)))),
    "halved": lambda x: (x / 2) * (1 + torch.erf(x / 2**0.5)),
    "of a product": lambda x: (lambda y: y * 0.5 * (1.0 + torch.erf(y / math.sqrt(2.0))))(x * x),
    "tanh": lambda x: 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * torch.pow(x, 3.0)))),
    "tanh, a product": lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
    "tanh, x in front": lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))),
}


@pytest.mark.parametrize("function", BY_HAND.values(), ids=BY_HAND)
def test_it_is_one_operator(function: Function) -> None:
    model = check(function, (X,), (X[:0],), (ENDS.reshape(1, 1, 8),), free={0: {0: "b", 1: "s"}}, passes=NAMES)
    assert [node.op_type for node in model.graph if node.op_type != "Mul"] == ["Gelu"]
    older = check(function, (X,), opset=19, passes=NAMES)
    assert "Gelu" not in {node.op_type for node in older.graph}


OTHERS: dict[str, Function] = {
    "half behind": lambda x: x * (torch.erf(x * 0.7071067811865476) + 1) * 0.5,
    "another root": lambda x: x * 0.5 * (1.0 + torch.erf(x / 1.4142)),
    "another cubic": lambda x: 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.0447 * x**3))),
    "another power": lambda x: 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * x**2))),
    "not halved": lambda x: x * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "of something else": lambda x: x * 0.5 * (1.0 + torch.erf((x + 1) / math.sqrt(2.0))),
    "minus": lambda x: x * 0.5 * (1.0 - torch.erf(x / math.sqrt(2.0))),
    "two": lambda x: x * 0.5 * (2.0 + torch.erf(x / math.sqrt(2.0))),
    "double": lambda x: x.double() * 0.5 * (1.0 + torch.erf(x.double() / math.sqrt(2.0))),
}


@pytest.mark.parametrize("function", OTHERS.values(), ids=OTHERS)
def test_what_only_looks_like_it_stays(function: Function) -> None:
    model = check(
        function, (X,), (ENDS.reshape(1, 1, 8),), free={0: {0: "b", 1: "s"}}, passes=NAMES, rtol=1e-4, atol=1e-5
    )
    assert "Gelu" not in {node.op_type for node in model.graph}
