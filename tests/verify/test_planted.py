"""Wrong translations, planted one by one: each is found, and the line at which the difference begins is the right."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import trueport
from tests.verify import planted_models as models
from trueport.verify.runtime.sandbox import Limits

ATEN = torch.ops.aten

# Operator, and what stands for it: plausible mistakes, such as a wrong axis, a forgotten operand, or a sign.
PLANTED: dict[type[torch.nn.Module], tuple[Any, Callable[..., Any]]] = {
    models.Sigmoid: (ATEN.sigmoid.default, lambda op, x: op.Tanh(x)),
    models.Relu: (ATEN.relu.default, lambda op, x: x),
    models.AddInArm: (ATEN.add.Tensor, lambda op, x, y, alpha=1: op.Sub(x, y)),
    models.MulInLoop: (ATEN.mul.Tensor, lambda op, x, y: op.Add(x, y)),
    models.Softmax: (ATEN.softmax.int, lambda op, x, dim, dtype=None: op.Softmax(x, axis=0)),
    models.Mean: (ATEN.mean.dim, lambda op, x, dim, keepdim=False, dtype=None: op.ReduceSum(x, op.ints(1), keepdims=0)),
    models.Gelu: (ATEN.gelu.default, lambda op, x, approximate="none": op.Gelu(x, approximate="tanh")),
    models.LayerNorm: (
        ATEN.layer_norm.default,
        lambda op, x, shape, weight, bias, eps=1e-5, cudnn=True: op.LayerNormalization(x, weight, bias, epsilon=0.1),
    ),
    models.LinearInElse: (ATEN.linear.default, lambda op, x, w, b=None: op.Gemm(x, w, transB=1)),
    models.Conv: (
        ATEN.conv1d.default,
        lambda op, x, w, b, stride, pad, *rest: op.Conv(x, op.Neg(w), b, pads=[1, 1]),
    ),
    models.Embedding: (ATEN.embedding.default, lambda op, w, ids, *rest: op.Neg(op.Gather(w, ids))),
    models.Cat: (ATEN.cat.default, lambda op, parts, dim=0: op.Concat(*reversed(parts), axis=0)),
    models.Where: (ATEN.where.self, lambda op, test, x, y: op.Where(test, y, x)),
    models.CumsumInLoop: (ATEN.cumsum.default, lambda op, x, dim, dtype=None: op.CumSum(x, dim, reverse=1)),
    models.FloorInNestedArm: (ATEN.floor.default, lambda op, x: op.Ceil(x)),
    models.ClampInLoopArm: (ATEN.clamp.default, lambda op, x, low=None, high=None: op.Min(x, high)),
    models.Argmax: (
        ATEN.argmax.default,
        lambda op, x, dim=None, keepdim=False: op.ArgMin(x, axis=1, keepdims=0),
    ),
    models.Gather: (
        ATEN.gather.default,
        lambda op, x, dim, at, sparse_grad=False: op.GatherElements(x, at, axis=0),
    ),
    models.ExpInWhile: (ATEN.exp.default, lambda op, x: op.Add(x, 1.0)),
    models.Permute: (ATEN.permute.default, lambda op, x, dims: op.Reshape(x, op.ints(4, 3))),
    models.Slice: (
        ATEN.slice.Tensor,
        lambda op, x, dim=0, start=None, end=None, step=1: op.Slice(x, op.ints(0), op.ints(-1), op.ints(0)),
    ),
    models.TernarySqrt: (ATEN.sqrt.default, lambda op, x: op.Log(x)),
}

FOUND = ("TP803", "TP804", "TP805")

ARGUMENTS: dict[type[torch.nn.Module], tuple[Any, ...]] = {
    models.MulInLoop: (torch.rand(3), 4),
    models.Embedding: (torch.tensor([[1, 2], [3, 4]]),),
    models.Gather: (torch.randn(3, 4), torch.tensor([[0, 1], [2, 0], [1, 1]])),
    models.Conv: (torch.randn(1, 2, 5),),
    models.CumsumInLoop: (torch.rand(3),),
}


def arguments(model: type[torch.nn.Module]) -> tuple[Any, ...]:
    torch.manual_seed(0)
    return ARGUMENTS.get(model) or (torch.randn(3, 4),)


def marked_line(model: type[torch.nn.Module]) -> int:
    source, first = inspect.getsourcelines(model)
    return first + next(at for at, line in enumerate(source) if "# <-" in line)


@pytest.mark.parametrize("model", list(PLANTED), ids=lambda model: model.__name__)
def test_a_planted_fault_is_found_and_its_line_is_named(model: type[torch.nn.Module]) -> None:
    operator, wrong = PLANTED[model]
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(model().eval(), arguments(model), custom_translation_table={operator: wrong})
    finding = refused.value.diagnostics[0]
    assert finding.code in FOUND, finding
    assert finding.where is not None
    assert finding.where.line == marked_line(model), finding


def test_the_counterexample_of_an_export_has_the_model_beside_it(tmp_path: Path) -> None:
    """Nothing was written, so without it there would be nothing to run."""
    operator, wrong = PLANTED[models.Sigmoid]
    shown, model = tmp_path / "shown", models.Sigmoid().eval()
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(
            model, arguments(models.Sigmoid), custom_translation_table={operator: wrong}, counterexample=shown
        )
    told = next(fact for fact in refused.value.diagnostics[0].seen if fact.startswith("to see it: python "))
    moved = shown.rename(tmp_path / "moved")  # the script finds what it needs beside itself
    assert told.endswith("shown/show_difference.py")
    done = subprocess.run([sys.executable, moved / "show_difference.py"], capture_output=True, text=True, check=True)
    assert "eager" in done.stdout
    assert "ONNX" in done.stdout


def test_without_the_fault_they_are_all_faithful() -> None:
    """Otherwise the test above would show nothing."""
    for model in (models.AddInArm, models.CumsumInLoop, models.ClampInLoopArm, models.ExpInWhile):
        assert trueport.check(model().eval(), arguments(model)).verified, model


def test_there_are_twenty_of_them_and_some_are_inside_arms_and_loops() -> None:
    assert len(PLANTED) >= 20
    assert sum("Arm" in model.__name__ or "Else" in model.__name__ for model in PLANTED) >= 3
    assert sum("Loop" in model.__name__ or "While" in model.__name__ for model in PLANTED) >= 3


def test_a_fault_that_makes_a_loop_endless_is_followed_to_its_line_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """`exclusive` leaves out the last row, so the sum that the loop waits for is never reached."""
    quick = Limits(run_seconds=0.5)
    for room in ("check", "exported"):
        monkeypatch.setattr(f"trueport.verify.{room}.limits_for", lambda job: quick)
    endless = {ATEN.cumsum.default: lambda op, x, dim, dtype=None: op.CumSum(x, dim, exclusive=1)}
    model = models.CumsumInLoop
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(model().eval(), arguments(model), custom_translation_table=endless)
    finding = refused.value.diagnostics[0]
    assert finding.code == "TP806"
    assert finding.where is not None
    assert finding.where.line == marked_line(model)
