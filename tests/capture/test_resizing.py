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
        return F.interpolate(x, scale_factor=factor, mode="bicubic")

    assert refused(model, (PICTURE, 2.0)).code == "TP401"
