"""Outputs that are sequences of tensors: compared item by item, in files of anybody's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from onnx import helper
from torch import nn

import trueport
from tests.verify.onnx_models import FLOAT, INT64, port, write
from trueport.load.values import LeafKind
from trueport.verify.judging.compare import DifferenceKind, judge, tolerance_for
from trueport.verify.judging.yardstick import rejudged
from trueport.verify.runtime.open_lists import fits, readings
from trueport.verify.runtime.sandbox import Port
from trueport.verify.runtime.tensors import from_torch

FREE = {"x": {0: "n"}}


class Doubled(nn.Module):
    def forward(self, x):
        return [row * 2 for row in x]


class Pairs(nn.Module):
    def forward(self, x):
        return x.sum(), [(row, row.sum() * 2) for row in x if row.sum() > 0]


class Numbers(nn.Module):
    def forward(self, x):
        return (x > 0).sum(1).tolist()


class TwoLists(nn.Module):
    def forward(self, x):
        return [row * 2 for row in x], [row[:1] for row in x]


def in_parts(path: Path, factor: float = 2.0, keep: int = 0) -> Path:
    """A file whose output is a sequence of the rows of factor * x, the first `keep` of them left out."""
    nodes = [
        helper.make_node("Mul", ["x", "factor"], ["whole"]),
        helper.make_node("Slice", ["whole", "from", "to"], ["kept"]),
        helper.make_node("SplitToSequence", ["kept"], ["rows"], axis=0, keepdims=0),
    ]
    constants = {"factor": (FLOAT, [], [factor]), "from": (INT64, [1], [keep]), "to": (INT64, [1], [1 << 40])}
    rows = helper.make_tensor_sequence_value_info("rows", FLOAT, [3])
    return write(path, nodes, [port("x")], [rows], constants)


@pytest.mark.parametrize("model", [Doubled(), Pairs(), Numbers(), TwoLists()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_our_own_files_on_examples_of_any_length(model, count, tmp_path):
    """Also where the example gives an empty list, or as many items as the file has outputs."""
    path = tmp_path / "m.onnx"
    trueport.export(model, (torch.randn(3, 3),), path, dynamic_shapes=FREE)
    report = trueport.verify(path, model, (torch.rand(count, 3),), dynamic_shapes=FREE)
    if isinstance(model, Pairs) and count == 0:
        assert [found.code for found in report.errors] == ["TP803"]  # nothing tells what an item would be
    else:
        assert report.verified


def test_a_file_of_somebody_elses(tmp_path):
    report = trueport.verify(in_parts(tmp_path / "m.onnx"), Doubled(), (torch.rand(2, 3),))
    assert report.verified
    assert len({check.sizes["batch"] for check in report.checks}) > 2


def test_a_wrong_item_is_named_and_shown(tmp_path):
    report = trueport.verify(
        in_parts(tmp_path / "m.onnx", factor=2.5), Doubled(), (torch.rand(2, 3),), counterexample=tmp_path / "kept"
    )
    (found,) = report.errors
    assert found.code == "TP805"
    assert re.match(r"item [01] of output `rows` differs from eager by", found.message)
    shown = subprocess.run(
        [sys.executable, tmp_path / "kept" / "show_difference.py"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("rows\n  eager [array([")
    assert "ONNX  [array([" in shown.stdout


def test_a_missing_item_is_told(tmp_path):
    report = trueport.verify(in_parts(tmp_path / "m.onnx", keep=1), Doubled(), (torch.rand(3, 3),))
    assert report.errors[0].code == "TP803"
    assert "a sequence of 1, eager gives a sequence of 2" in report.errors[0].message


class Exponentials(nn.Module):
    def forward(self, x):
        out = []
        for row in x:
            y = row * 2
            out.append(y.exp())
        return out


def test_a_wrong_translation_is_followed_into_the_loop_that_fills_the_list():
    def a_little_more(op, self):
        return op.Exp(op.Mul(self, 1.01))

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(
            Exponentials(),
            (torch.randn(3, 2),),
            dynamic_shapes=FREE,
            custom_translation_table={torch.ops.aten.exp.default: a_little_more},
        )
    found = next(found for found in refused.value.diagnostics if found.is_error)
    assert (found.code, found.where.line) == ("TP805", Exponentials.forward.__code__.co_firstlineno + 4)
    assert found.message.startswith("item 0 of output `output` differs")
    assert "begins at `aten.exp.default`, in round 1 of its loop" in found.seen
    assert any(fact.startswith("smallest: x = [[") for fact in found.seen)


class TestComparison:
    def test_count_shape_dtype_and_values_of_each_item(self):
        right = [torch.tensor([1.0, 2.0]), torch.tensor([[3.0]])]

        def said(*items):
            difference = judge(right, tuple(map(from_torch, items))).difference
            return difference and (difference.kind, difference.item)

        assert said(*right) is None
        assert said(right[0]) == (DifferenceKind.STRUCTURE, None)
        assert said(right[0], torch.tensor([3.0])) == (DifferenceKind.SHAPE, 1)
        assert said(right[0].double(), right[1]) == (DifferenceKind.DTYPE, 0)
        assert said(right[0], right[1] + 1) == (DifferenceKind.VALUES, 1)

    def test_eagers_own_error_is_allowed_to_each_item(self):
        truth = [torch.full((4,), 1.0, dtype=torch.float64), torch.full((2,), 5.0, dtype=torch.float64)]
        off = [(item + 1e-4).float() for item in truth]  # as far as eager is off
        got = tuple(from_torch(item.float()) for item in truth)
        tolerance = tolerance_for(torch.float32)
        assert judge(off, got, tolerance).difference is not None
        again = rejudged([off], [truth], [got], [tolerance], [False])
        assert again.verdicts[0].difference is None or again.excuse
        assert rejudged([off], [truth], [got], [tolerance], [True]).verdicts[0].difference is not None


class TestReadings:
    def test_from_single_items_to_lists_of_pairs(self):
        one = torch.zeros(2)
        returned = [(one, 1), (one, 2)]
        told = [[type(leaf.value) for leaf in leaves] for leaves, _ in readings(returned)]
        assert told[:3] == [[torch.Tensor, int] * 2, [torch.Tensor, int] * 2, [list, list]]

    def test_the_structure_takes_lists_of_other_lengths(self):
        one = torch.zeros(2)
        *_, (leaves, structure) = readings({"a": [one, one]})
        assert [leaf.name for leaf in leaves] == ["a"]
        assert structure.flatten({"a": [one, one, one]}) == [[one, one, one]]
        assert structure.flatten({"a": []}) == [[]]
        assert structure.build([[one]])["a"] == [one]

    def test_an_empty_list_is_taken_for_one_of_tensors(self):
        *_, (leaves, _) = readings([])
        assert [(leaf.kind, leaf.value) for leaf in leaves] == [(LeafKind.TENSOR, [])]

    def test_a_sequence_holds_tensors_and_a_tensor_of_one_axis_numbers(self):
        sequence, numbers = Port("y", "seq(tensor(float))", ()), Port("y", "tensor(int64)", ("n",))
        assert fits(sequence, [torch.zeros(1)])
        assert not fits(sequence, torch.zeros(1))
        assert not fits(sequence, [1, 2])
        assert fits(numbers, [1, 2])
        assert not fits(Port("y", "tensor(int64)", ("n", 2)), [1, 2])


class Noisy(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return [row + self.scale * torch.randn_like(row) for row in x]


def test_random_lists_are_compared_by_their_distribution(tmp_path):
    path, args = tmp_path / "m.onnx", (torch.zeros(2, 3),)
    program = trueport.export(Noisy(), args, path, dynamic_shapes=FREE, random="onnx")
    assert program.report.verified
    report = trueport.verify(path, Noisy(3.0), args, dynamic_shapes=FREE)
    (found,) = (found for found in report.errors if found.code == "TP811")
    assert "of output `output[0]`" in found.message
