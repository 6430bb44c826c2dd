"""Chains of branches that are too deep for a file are written as several, one after the other."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch

import trueport
from benchmarks.growth_run import elifs, exits, imported, returns
from tests.lower.through_onnx import model_of, run
from trueport.lower.scope import DEEPEST

FREE = {0: {0: "n"}}


def depth(graph: ir.Graph) -> int:
    inner = [a.value for node in graph for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH]
    return max((1 + depth(each) for each in inner), default=0)


def check(text: str, folder: Path, inputs: list[torch.Tensor]) -> ir.Model:
    """The same as eager on all inputs, in a file that can be read."""
    model = imported(text, folder, "chain").Net().eval()
    lowered = model_of(model, inputs[:1], FREE)
    assert depth(lowered.graph) <= DEEPEST
    onnx.load_from_string(ir.to_proto(lowered).SerializeToString())
    for x in inputs:
        expected = model(x.clone())
        got = run(lowered, [x])
        assert len(got) == 1 and got[0].numpy().tolist() == expected.tolist()
    return lowered


def waits(model: ir.Model) -> bool:
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    return any("waits" in (out.name or "") for node in nodes for out in node.outputs)


def test_every_arm_of_a_long_chain_is_reached(tmp_path: Path) -> None:
    inputs = [torch.tensor([i - 0.5, 0.0, 0.0]) for i in (0, 1, 7, 8, 9, 15, 16, 17, 33, 62, 63, 64)]
    assert waits(check(elifs(64), tmp_path, inputs))


def test_early_returns(tmp_path: Path) -> None:
    assert waits(check(returns(45), tmp_path, [torch.tensor([i - 0.5, 0.0]) for i in (0, 1, 8, 9, 16, 17, 43, 44, 45)]))


def test_break_and_continue(tmp_path: Path) -> None:
    torch.manual_seed(0)
    inputs = [
        torch.tensor([0.5, 1.5, 20.5, -1.0, 3.5]),
        torch.full((9,), 23.5),
        *(30 * torch.rand(7) for _ in range(5)),
    ]
    assert waits(check(exits(24), tmp_path, [x.round() for x in inputs]))


def test_a_chain_that_fits_is_written_as_it_is(tmp_path: Path) -> None:
    model = check(elifs(26), tmp_path, [torch.tensor([i - 0.5, 0.0]) for i in (0, 1, 20, 30)])
    assert not waits(model) and depth(model.graph) == 26


def test_branches_in_the_arm_that_holds(tmp_path: Path) -> None:
    nested = "".join(f"{'    ' * (i + 2)}if s > {i}:\n" for i in range(40))
    text = (
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        s, y = x.sum(), x\n"
        f"{nested}{'    ' * 42}y = x * 2\n        return y\n"
    )
    assert waits(check(text, tmp_path, [torch.tensor([float(i), 0.0]) for i in (0, 1, 7, 8, 9, 16, 17, 39, 40, 41)]))


def narrowing(count: int) -> str:
    """Each level makes values and sizes that the levels below read, and a test that fails where an earlier one held."""
    steps = "".join(
        f"""
        if kept.shape[0] == 0:
            return x[:1] * {i}
        if kept[0] > {i + 30}:
            return kept + first.sum() + many
        kept = kept[kept > {i}]
        first, many = (kept[:2] * 2, many + int((kept > 5).sum())) if kept.shape[0] > 1 else (first, many)
"""
        for i in range(count)
    )
    return (
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        kept, first, many = x, x, 0\n"
        f"{steps}        return kept * many + first.sum()\n"
    )


def test_what_is_made_on_the_way_is_handed_on(tmp_path: Path) -> None:
    inputs = [
        torch.tensor([float(v) for v in values])
        for values in ([3, 1, 2], [9, 40, 41], [1], [50, 2], [39, 3, 20, 30], [25, 26, 27, 29], [2, 60, 70, 11, 90])
    ]
    assert waits(check(narrowing(15), tmp_path, inputs))


@pytest.mark.parametrize("verify", [True, False])
def test_what_cannot_be_written_flat_is_refused_at_its_line(tmp_path: Path, verify: bool) -> None:
    text = """
def left(x, level):
    if x.sum() > level:
        x = right(x, level + 1) * 2
    return x

def right(x, level):
    if x.max() > level and level < 40:
        x = left(x, level + 1) + 1
    return x

class Net(torch.nn.Module):
    def forward(self, x):
        return left(x, 0)
"""
    file = tmp_path / "net.onnx"
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(imported(text, tmp_path, "deep").Net(), (torch.ones(3),), file, verify=verify)
    errors = [each for each in refused.value.diagnostics if each.is_error]
    assert {each.code for each in errors} == {"TP110"}
    assert errors[0].place is not None and errors[0].place.where is not None
    assert errors[0].place.where.file == str(tmp_path / "deep.py") and errors[0].place.where.line in (4, 9)
    assert not file.exists()


@pytest.mark.parametrize(("arms", "code"), [(128, "TP110"), (300, "TP107")])
def test_what_python_cannot_call_is_refused(tmp_path: Path, arms: int, code: str) -> None:
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(imported(elifs(arms), tmp_path, "long").Net(), (torch.ones(3),), verify=False)
    (found,) = [each for each in refused.value.diagnostics if each.is_error]
    assert found.code == code
    assert found.place is not None and found.place.where is not None and found.place.where.file.endswith("long.py")
