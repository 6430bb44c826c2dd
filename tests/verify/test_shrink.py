"""The smallest input that still fails, and how it is shown."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import torch

from tests.verify.onnx_models import BATCH, job, leaf, scaled
from trueport.load.job import sizes_in
from trueport.verify.faults.evidence import DATA, ComparedCall, Evidence
from trueport.verify.faults.shrink import in_words, smallest
from trueport.verify.inputs.moves import Candidate
from trueport.verify.inputs.sizes import groups_of
from trueport.verify.runtime.tensors import from_torch


def least(still_fails, *leaves, units=1000):
    work = job(*leaves)
    values = tuple(each.value for each in leaves)
    sizes = sizes_in(leaves, values)
    assert still_fails(values)
    return smallest(work, groups_of(work.free_sizes, sizes), Candidate(values, sizes), still_fails, lambda _: 1, units)


def test_sizes_come_down_and_values_become_zero():
    found = least(lambda v: v[0].shape[0] >= 3, leaf("x", torch.randn(17, 3), {0: BATCH}))
    assert found.sizes == {"batch": 3}
    assert not found.values[0].any()


def test_only_the_elements_that_matter_remain():
    x = torch.randn(4, 4)
    x[2, 1] = 3.7
    found = least(lambda v: bool(v[0][2, 1] > 0.5), leaf("x", x))
    assert found.values[0].nonzero().tolist() == [[2, 1]]
    assert float(found.values[0][2, 1]) == 1.0


def test_numbers_and_integers_and_masks():
    found = least(
        lambda v: v[0] >= 5 and int(v[1].max()) >= 3 and bool(v[2].any()),
        leaf("n", 40),
        leaf("ids", torch.tensor([9, 2, 8])),
        leaf("mask", torch.ones(6, dtype=torch.bool)),
    )
    assert 5 <= found.values[0] < 40
    assert int((found.values[1] != 0).sum()) == 1
    assert int(found.values[2].sum()) == 1


def test_a_declared_range_is_kept():
    found = least(lambda v: True, leaf("ids", torch.tensor([5, 7]), value_range=(4, 9)))
    assert int(found.values[0].min()) >= 4


def test_no_time_no_change():
    x = torch.randn(3)
    assert least(lambda v: True, leaf("x", x), units=0).values[0] is x


def test_words():
    leaves = [leaf("x", torch.zeros(1, 2)), leaf("n", 3), leaf("big", torch.zeros(40)), leaf("one", torch.eye(8))]
    values = [torch.tensor([[0.0, 0.25]]), 3, torch.zeros(40), torch.zeros(8, 8)]
    values[3][1, 2] = 5
    assert in_words(leaves, values) == (
        "x = [[0, 0.25]], n = 3, big = float32[40], all 0, one = float32[8, 8], zero but at [1, 2]: 5"
    )


def test_the_script_shows_the_difference(tmp_path):
    path = scaled(tmp_path / "m.onnx", 3.0)
    x = torch.tensor([[1.0, 2.0, 3.0]])
    told = Evidence(tmp_path / "shown").kept(path, ComparedCall({"x": from_torch(x)}, [2 * x]), ["y"])
    script = tmp_path / "shown" / "show_difference.py"
    assert told.words == f"to see it: python {script}"
    assert len(script.read_text().splitlines()) <= 10
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert "eager array([[2., 4., 6.]]" in printed
    assert "ONNX  array([[3., 6., 9.]]" in printed
    saved = np.load(tmp_path / "shown" / DATA)
    assert saved["in.x"].tolist() == x.tolist()
