"""Dtypes that the runtime has no kernel for are computed in wider ones, and it is told."""

from __future__ import annotations

import pytest
import torch

from tests.lower.through_onnx import check, graph_of, model_of
from trueport.diagnostics.base import Severity
from trueport.lower.lower import lower

SMALL = {
    "bool": (torch.randn(4, 4) > 0),
    "uint8": torch.randint(0, 9, (4, 4), dtype=torch.uint8),
    "int8": torch.randint(-9, 9, (4, 4), dtype=torch.int8),
    "int16": torch.randint(-9, 9, (4, 4), dtype=torch.int16),
    "int32": torch.randint(-9, 9, (4, 4), dtype=torch.int32),
}


@pytest.mark.parametrize("x", SMALL.values(), ids=SMALL)
def test_what_moves_and_chooses(x):
    def forward(x):
        moved = x.tril(), x.nonzero(), x.flip(0), x.repeat(2, 1), x.roll(1), torch.cat([x, x]), x[:, None]
        return *moved, torch.where(x > 0, x, x.t()), x.masked_fill(x > 0, 0), x.max(), x.sum(), x.unique()

    check(forward, (x,))


@pytest.mark.parametrize("x", [x for x in SMALL.values() if x.dtype is not torch.bool], ids=lambda x: str(x.dtype))
def test_arithmetic_of_small_integers_wraps_as_eager_does(x):
    check(lambda x: (x + 1, x * 100, x // 2, x % 3, x.clamp(0, 3), x.relu(), x & 3, x > 2, x.float() / 255), (x,))


def test_bfloat16_is_computed_in_float32_and_rounded_back():
    def forward(x, y):
        mixed = x @ y.t(), x + y, x * 2, x.softmax(0), x.sum(0), torch.where(x > y, x, y), x.clamp(-1, 1), x[0]
        return *(out.float() for out in mixed), x > y

    x, y = torch.randn(3, 4).bfloat16(), torch.randn(3, 4).bfloat16()
    check(forward, (x, y), rtol=1e-2, atol=1e-2)
    (note,) = lower(graph_of(lambda x, y: x @ y.t(), (x, y))).diagnostics
    assert note.code == "TP502"
    assert note.weight is Severity.NOTE
    assert "float32" in note.message
    assert note.where.file == __file__


def test_float16_is_left_to_the_runtime():
    model = model_of(lambda x: (x + 1).relu(), (torch.randn(3).half(),))
    assert "Cast" not in [node.op_type for node in model.graph]
    check(lambda x: ((x + 1).relu(), x @ x, x.softmax(0)), (torch.randn(3).half(),), rtol=1e-2, atol=1e-2)


def test_losing_digits_is_a_warning():
    """ONNX Runtime transposes convolutions in float32 only; a kernel of open size leaves no other way."""
    inputs = (torch.randn(1, 2, 5).double(), torch.randn(2, 2, 3).double())
    graph = graph_of(lambda x, kernel: torch.nn.functional.conv_transpose1d(x, kernel), inputs, free={1: {2: "k"}})
    (note,) = lower(graph).diagnostics
    assert note.weight is Severity.WARNING


def test_a_model_of_float32_is_not_touched():
    lowered = lower(graph_of(torch.nn.Linear(3, 3), (torch.randn(2, 3),)))
    assert lowered.diagnostics == ()
    assert [node.op_type for node in lowered.model.graph] == ["Gemm"]
