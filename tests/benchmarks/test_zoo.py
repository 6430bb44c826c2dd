"""The harness of the zoo: who is in it, what a second look at a difference says, and what the page tells."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from benchmarks.judge import Judgement, Subject, Verdict
from benchmarks.sweep_scaling import COMING_BACK, simulate
from benchmarks.zoo.names import SKIPPED, folders_without_model, of_transformers
from benchmarks.zoo.page import page
from benchmarks.zoo.run import ZooRow, _only_rounding


def test_every_folder_of_transformers_is_in_it() -> None:
    named = of_transformers()
    assert len(named) == len(set(named)) > 350 and "transformers:llama" in named
    assert len(SKIPPED) == len(set(SKIPPED)) == 51
    assert "llama" not in folders_without_model() and "byt5" in folders_without_model()


OPSET = [helper.make_opsetid("", 18)]


class Sum(nn.Module):
    """Large numbers that cancel: what is left is rounding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1e6).sum(-1) - 1e6 * x.shape[-1]


def written(folder: Path, factor: float) -> Path:
    """The same sum times a factor, with the terms added first: another way to round."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "factor"], ["y"]),
    ]
    weights = [
        helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
        helper.make_tensor("factor", TensorProto.FLOAT, [], [factor]),
    ]
    inputs, outputs = [value("x", TensorProto.FLOAT, ["n", 8])], [value("y", TensorProto.FLOAT, ["n"])]
    model = helper.make_model(
        helper.make_graph(nodes, "sum", inputs, outputs, weights), ir_version=9, opset_imports=OPSET
    )
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def test_rounding_is_no_difference_and_a_wrong_number_is_one(tmp_path: Path) -> None:
    more = [((torch.randn(5, 8),), {})]
    subject = Subject("sum", Sum(), ((torch.randn(3, 8),), {}), more, None, __file__)
    assert _only_rounding(subject, written(tmp_path, 1.0))
    assert not _only_rounding(subject, written(tmp_path, 3.0))


def test_the_page_tells_the_failures_first() -> None:
    good = ZooRow(Judgement(Verdict.FAITHFUL, cpu_seconds=1.0), how="A, 0.1M", inputs=6, eager_ms=2.0, onnx_ms=1.0)
    bad = ZooRow(Judgement(Verdict.DIAGNOSED, "a size | is frozen", "b/b.py:3", "TP301"))
    wrong = ZooRow(Judgement(Verdict.SILENT, "input 2: differs"), verified="TP805 differs", confirmed="")
    none = ZooRow(None, "no small transformers:c runs in eager: <ValueError>")
    found = {
        "transformers:a": {"trueport": good, "dynamo": wrong},
        "transformers:b": {"trueport": bad},
        "transformers:c": {"trueport": none},
    }
    text = page(found, {"transformers": ["transformers:a", "transformers:b", "transformers:c", "transformers:d"]})
    counts = next(line for line in text.splitlines() if "one of each model folder" in line)
    assert [cell.strip() for cell in counts.split("|")[2:-1]] == "4|2|1|2|1|1|0|0|0|0|50.0 %".split("|")
    assert text.index("b/b.py:3") < text.index("A, 0.1M") and "a size / is frozen" in text
    assert "1 of them" in text and "1 silent" in text and "&lt;ValueError>" in text


@pytest.mark.parametrize(("service", "losses"), [(0.0, 0.0), (0.01, 0.0), (0.0, 0.05)])
def test_the_simulation_loses_nothing(service: float, losses: float) -> None:
    done = simulate([10.0], 1000, 20, losses, service)
    assert done.useful == pytest.approx(10_000)
    ideal = 10_000 / 20
    begun_anew = (done.lost + 2 * losses * 1000 * COMING_BACK) / 20 + 3 * (COMING_BACK + 10.0) * (losses > 0)
    assert ideal <= done.makespan <= ideal + 1000 * service + 1.0 + begun_anew
    assert (done.lost > 0) == (losses > 0)
