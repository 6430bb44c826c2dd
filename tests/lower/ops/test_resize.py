"""Resizing in every mode, by size and by scale, with the coordinates that eager uses, on images of any size."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import trueport
from tests.lower.ops.faithful import faithful, operators

IMAGE = ({0, 2, 3},)
SMOOTH = ("bilinear", "bicubic")
ALL = ("nearest", "nearest-exact", *SMOOTH)


def image():
    return torch.randn(2, 3, 6, 7)


@pytest.mark.parametrize("mode", ALL)
def test_by_a_scale(mode):
    def forward(x):
        return [F.interpolate(x, scale_factor=scale, mode=mode) for scale in (2.0, 3, 0.5, 1.5, 1.7, 1.05)]

    faithful(forward, image(), free=IMAGE)


@pytest.mark.parametrize("mode", ALL)
def test_to_a_size(mode):
    def forward(x):
        sizes = (1, 1), (4, 9), (13, 3), (x.shape[2] * 2 + 1, x.shape[3] // 2 + 1)
        return [F.interpolate(x, size=size, mode=mode) for size in sizes]

    faithful(forward, image(), free=IMAGE)


@pytest.mark.parametrize("mode", SMOOTH)
def test_with_aligned_corners(mode):
    def forward(x):
        ways = {"size": (9, 1)}, {"size": (x.shape[3], 4)}, {"scale_factor": 1.7}
        return [F.interpolate(x, mode=mode, align_corners=True, **how) for how in ways]

    faithful(forward, image(), free=IMAGE)


@pytest.mark.parametrize("mode", SMOOTH)
def test_with_antialiasing(mode):
    def forward(x):
        ways = {"size": (3, 4)}, {"size": (9, 2)}, {"scale_factor": 0.5}, {"scale_factor": 1.3}
        aligned = F.interpolate(x, size=(4, 2), mode=mode, antialias=True, align_corners=True)
        return [*(F.interpolate(x, mode=mode, antialias=True, **how) for how in ways), aligned]

    # Eager itself repeats the first row of a result that is one pixel wide, so the width is not free here.
    faithful(forward, image(), free=({0, 2},))


def test_a_scale_that_is_only_used_to_find_the_size():
    def forward(x):
        return F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)

    faithful(forward, image(), free=IMAGE)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_a_sequence_of_any_length(mode):
    def forward(x):
        return [
            F.interpolate(x, mode=mode, **how) for how in ({"size": 5}, {"scale_factor": 2.0}, {"scale_factor": 0.7})
        ]

    faithful(forward, torch.randn(2, 3, 9), free=({0, 2},))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "trilinear"])
def test_a_volume_of_any_size(mode):
    def forward(x):
        ways = {"size": (2, 3, 5)}, {"scale_factor": 2.0}, {"scale_factor": 0.7}
        return [F.interpolate(x, mode=mode, **how) for how in ways]

    faithful(forward, torch.randn(2, 2, 4, 5, 6), free=({0, 2, 4},))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_in_the_dtype_of_the_tensor(dtype):
    def forward(x):
        return [F.interpolate(x, size=(5, 9), mode=mode) for mode in ALL]

    faithful(forward, image().to(dtype), free=IMAGE)


@pytest.mark.parametrize("antialias", [False, True], ids=["plain", "antialiased"])
@pytest.mark.parametrize("mode", SMOOTH)
def test_bytes_are_eagers_to_the_last(mode, antialias):
    """Eager's weights are whole numbers there, and each axis is rounded by itself."""

    def forward(x):
        ways = {"size": (3, 4)}, {"size": (13, x.shape[3])}, {"scale_factor": 0.7}, {"scale_factor": 1.1}
        ways += ({"size": (9, 5), "align_corners": True}, {"size": (x.shape[2] * 2 - 1, 4)})
        return [F.interpolate(x, mode=mode, antialias=antialias, **how) for how in ways]

    for channels in (1, 3, 5):
        x = torch.randint(0, 256, (2, channels, 6, 8), generator=torch.Generator().manual_seed(0))
        faithful(forward, x.to(torch.uint8), free=IMAGE)


def test_the_nearest_pixel_is_eagers_for_sizes_where_divisions_round():
    # 1/41 in float32 times 41 is less than 1: eager repeats the first of these pixels 42 times.
    faithful(lambda x: F.interpolate(x, scale_factor=41, mode="nearest"), torch.randn(1, 1, 3, 3), free=({3},))
    faithful(lambda x: F.interpolate(x, size=(61, 109), mode="nearest"), torch.randn(1, 1, 7, 11), free=({2, 3},))


def test_a_scale_that_leaves_an_axis_or_doubles_it():
    """Eager's kernel for small images copies such an axis, or doubles each pixel; that for larger ones does not, and
    neither do those for sequences and volumes."""
    scales = (1.05, 1.1, 2.05)

    def forward(x):
        return [F.interpolate(x, scale_factor=scale, mode="nearest") for scale in scales]

    for height, width in ((9, 8), (100, 5), (127, 2), (200, 4)):
        faithful(forward, torch.randn(1, 3, height, width), free=({2},))
        faithful(forward, torch.randn(1, 3, height, width))
    faithful(forward, torch.randn(1, 3, 9), free=({2},))
    faithful(forward, torch.randn(1, 2, 9, 4, 3), free=({2},))


def test_one_node_where_onnx_has_it():
    doubled = faithful(lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), image(), free=IMAGE)
    assert operators(doubled) == ["Resize"]
    filled = faithful(lambda x: F.interpolate(x, size=(9, 9), mode="bilinear"), image(), free=({2, 3},))
    assert operators(filled) == ["Resize"]


def test_between_transpositions_that_the_runtime_moves():
    """Its optimiser takes the sizes of a `Resize` for those of all axes."""

    def forward(x):
        pixels = torch.relu(x.permute(0, 3, 1, 2))
        return [F.interpolate(pixels, size=(8, 8), mode=mode).permute(0, 2, 3, 1) + 1 for mode in ALL]

    faithful(forward, torch.randn(2, 16, 16, 3), free=({0},))
    faithful(
        lambda x: F.interpolate(x.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1) * 2,
        torch.randn(2, 5, 4, 3),
        free=({0, 1},),
    )


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_at_the_places_of_a_grid(mode):
    def forward(x, grid):
        return [
            F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=align)
            for padding in ("zeros", "border", "reflection")
            for align in (True, False)
        ]

    faithful(forward, image(), torch.rand(2, 4, 5, 2) * 3 - 1.5, free=({0, 2, 3}, {0, 1}))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_at_places_that_are_nowhere_or_far_away(mode, padding):
    """A width of 1 makes the places not a number; and the runtime's integers overflow for those far outside."""

    def forward(x, grid):
        return F.grid_sample(x, grid / (x.shape[-1] - 1), mode=mode, padding_mode=padding, align_corners=True)

    args = torch.randn(1, 2, 3, 4), torch.randn(1, 3, 4, 2)
    program = trueport.export(forward, args, dynamic_shapes=({3: "w"}, {2: "w"}), verify=False)
    for width, scale in ((4, 1.0), (1, 1.0), (4, 1e10)):
        given = torch.randn(1, 2, 3, width), torch.randn(1, 3, width, 2) * scale
        torch.testing.assert_close(program(*given), forward(*given), equal_nan=True, rtol=1e-4, atol=1e-4)


def test_at_the_places_of_a_grid_in_a_volume():
    def forward(x, grid):
        return F.grid_sample(x, grid, align_corners=False)

    faithful(forward, torch.randn(2, 3, 4, 5, 6), torch.rand(2, 2, 3, 4, 3) * 2 - 1, free=({0}, {0, 2}))


@pytest.mark.parametrize("align", [True, False])
def test_a_spatial_transformer(align):
    def forward(x, theta):
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=align), align_corners=align)

    faithful(forward, image(), torch.randn(2, 2, 3), free=({0, 2, 3}, {0}))


def test_no_places_to_look_at():
    """Of an empty tensor, the runtime does not reduce an axis that is counted from the end."""

    def forward(picture, places, wanted):
        kept = torch.where(wanted > 0)[0]
        return F.grid_sample(picture, places[kept][None, :, None], align_corners=False)[0, :, :, 0].t()

    faithful(forward, torch.randn(1, 3, 5, 5), torch.rand(4, 2), torch.randn(4), free=(None, {0}, {0}))


def test_a_large_picture_made_smaller():
    """The places between pixels are rounded by both, more so far from the corner: the call was accused (CrossViT)."""
    faithful(lambda x: F.interpolate(x, (224, 224), mode="bicubic", align_corners=False), torch.randn(1, 3, 240, 240))
