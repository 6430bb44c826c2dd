"""Which opsets and file versions are written, and which runtimes load them."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

import trueport
from trueport.lower.opsets import LOWEST, highest, highest_ir_version, ir_version_for
from trueport.lower.runtimes import MEASURED, first_release_for, loaded_by


@pytest.mark.parametrize(("opset", "version"), [(18, 8), (20, 9), (21, 10)])
def test_the_file_is_no_newer_than_its_opset_needs(tmp_path, opset: int, version: int) -> None:
    """A runtime that has the opset must be able to open the file: IR 10 is what keeps most old runtimes out."""
    trueport.export(nn.Linear(2, 2).eval(), (torch.ones(1, 2),), tmp_path / "m.onnx", opset_version=opset)
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == version
    assert model.graph.node[0].metadata_props, "the user's line survives in older files too"


def test_the_installed_runtime_loads_all_that_is_written() -> None:
    assert ir_version_for(highest()) <= highest_ir_version()
    assert LOWEST < highest()


def test_newer_releases_load_no_less_than_older_ones() -> None:
    rows = [(loads.opset, loads.ir_version) for _, loads in sorted(MEASURED.items())]
    assert rows == sorted(rows)


def test_a_release_between_two_measured_ones_is_taken_for_the_older() -> None:
    assert loaded_by((1, 28)) == MEASURED[(1, 25)]
    assert loaded_by((1, 14)) is None


def test_the_first_release_that_loads_a_model() -> None:
    assert first_release_for(20, 9) == (1, 17)
    assert first_release_for(20, 10) == (1, 18)
    assert first_release_for(99, 9) is None
