"""`F.interpolate` by a factor that is a number argument of the model."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.control_flow.kept_alive import assert_kept_alive, refused

PICTURE = torch.arange(60.0).reshape(1, 2, 6, 5).sin()
OTHERS = [(PICTURE, factor) for factor in (1.0, 0.5, 1.7, 3.0, 0.34)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "nearest-exact"},
        {"mode": "bilinear"},
        {"mode": "bilinear", "align_corners": True},
        {"mode": "bilinear", "recompute_scale_factor": True},
        {"recompute_scale_factor": True},
        {"mode": "bicubic"},
        {"mode": "bicubic", "align_corners": True},
    ],
    ids=str,
)
def test_every_place_is_torchs(options):
    def model(x, factor):
        return F.interpolate(x, scale_factor=factor, **options)

    assert_kept_alive(model, (PICTURE, 2.0), OTHERS)


def test_a_factor_of_one_axis():
    assert_kept_alive(lambda x, f: F.interpolate(x, scale_factor=(f, 2.0), mode="bilinear"), (PICTURE, 2.0), OTHERS)


def test_other_modes_are_refused():
    def model(x, factor):
        return F.interpolate(x, scale_factor=factor, mode="bicubic", antialias=True)

    assert refused(model, (PICTURE, 2.0)).code == "TP401"


def test_a_table_of_positions_that_is_fitted_to_the_picture():
    """DINO's `interpolate_pos_encoding`: the factor follows from a free size."""
    table = torch.randn(1, 3, 4, 4)

    def model(x):
        rows, columns = x.shape[2] // 4 + 0.1, x.shape[3] // 4 + 0.1
        return F.interpolate(table, scale_factor=(rows / 4, columns / 4), mode="bicubic")

    free = torch.export.Dim("rows", min=4), torch.export.Dim("columns", min=4)
    sizes = [(16, 24), (8, 8), (32, 4), (17, 19)]
    others = [(torch.randn(1, 3, *size),) for size in sizes]
    assert_kept_alive(model, (torch.randn(1, 3, 16, 16),), others, dynamic_shapes=({2: free[0], 3: free[1]},))
