"""torchvision's operators. Where torchvision is not installed they are defined here as its documentation says, in plain
loops: the translations are found by name, and a reading of their own is what they should be compared with.
"""

from __future__ import annotations

import importlib.util
import math

import pytest
import torch
from torch import nn

import trueport

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio) -> (Tensor, Tensor)",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
)


def nms(dets, scores, iou_threshold):
    kept: list[int] = []
    for i in torch.sort(scores, descending=True, stable=True).indices.tolist():
        if all(overlap(dets[i].tolist(), dets[j].tolist()) <= iou_threshold for j in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def overlap(a, b):
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / both if both else 0.0


def between(plane, y, x):
    """The value of a picture between its points; outside there is nothing."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    dy, dx = (0.0 if top == height - 1 else y - top), (0.0 if left == width - 1 else x - left)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = plane[top, left] * (1 - dx) + plane[top, right] * dx
    lower = plane[bottom, left] * (1 - dx) + plane[bottom, right] * dx
    return float(upper * (1 - dy) + lower * dy)


def roi_align(input, rois, scale, rows, columns, sampling_ratio, aligned):
    return _aligned(input, rois, scale, rows, columns, sampling_ratio, aligned, lambda c, i, j: c, input.shape[1])


def ps_roi_align(input, rois, scale, rows, columns, sampling_ratio):
    channels = input.shape[1] // (rows * columns)
    own = _aligned(
        input, rois, scale, rows, columns, sampling_ratio, True, lambda c, i, j: (c * rows + i) * columns + j, channels
    )
    return own, torch.zeros_like(own, dtype=torch.int32)


def _aligned(input, rois, scale, rows, columns, sampling_ratio, aligned, channel, channels):
    result = torch.zeros(len(rois), channels, rows, columns)
    shift = 0.5 if aligned else 0.0
    for k, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (corner * scale - shift for corner in corners)
        height, width = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1.0), max(x2 - x1, 1.0))
        if height < 0 or width < 0:
            raise ValueError("a region of negative size")
        tall = sampling_ratio if sampling_ratio > 0 else math.ceil(height / rows)
        wide = sampling_ratio if sampling_ratio > 0 else math.ceil(width / columns)
        for c in range(channels):
            for i in range(rows):
                for j in range(columns):
                    plane = input[int(image), channel(c, i, j)]
                    ys = [y1 + (i + (a + 0.5) / tall) * height / rows for a in range(tall)]
                    xs = [x1 + (j + (b + 0.5) / wide) * width / columns for b in range(wide)]
                    points = [between(plane, y, x) for y in ys for x in xs]
                    result[k, c, i, j] = sum(points) / max(len(points), 1)
    return result


def _rounded(value):
    """As C rounds: halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def roi_pool(input, rois, scale, rows, columns):
    result = torch.zeros(len(rois), input.shape[1], rows, columns)
    for k, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (_rounded(corner * scale) for corner in corners)
        height, width = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i in range(rows):
            for j in range(columns):
                top, bottom = y1 + i * height // rows, y1 - (-(i + 1) * height // rows)
                left, right = x1 + j * width // columns, x1 - (-(j + 1) * width // columns)
                cell = input[int(image), :, max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
                if cell[0].numel():
                    result[k, :, i, j] = cell.amax((1, 2))
    return result, torch.zeros_like(result, dtype=torch.int32)


def deform_conv2d(x, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask):
    batch, channels = x.shape[:2]
    outs, _, kh, kw = weight.shape
    height, width = offset.shape[2:]
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))  # beyond the edge the values fade to nothing over one step
    result = bias.reshape(1, -1, 1, 1).repeat(batch, 1, height, width)
    for n in range(batch):
        for row in range(height):
            for column in range(width):
                taken = torch.zeros(channels, kh, kw)
                for c in range(channels):
                    group = c // (channels // offset_groups)
                    for a in range(kh):
                        for b in range(kw):
                            at = (group * kh + a) * kw + b
                            y = row * sh - ph + a * dh + float(offset[n, 2 * at, row, column])
                            z = column * sw - pw + b * dw + float(offset[n, 2 * at + 1, row, column])
                            inside = -1 < y < x.shape[2] and -1 < z < x.shape[3]
                            value = between(padded[n, c], y + 1, z + 1) if inside else 0.0
                            taken[c, a, b] = value * (float(mask[n, at, row, column]) if use_mask else 1.0)
                for out in range(outs):
                    group = out // (outs // groups)
                    share = taken[group * weight.shape[1] : (group + 1) * weight.shape[1]]
                    result[n, out, row, column] += (share * weight[out]).sum()
    return result


def _sizes_of_regions(input, rois, scale, rows, columns, *rest):
    return input.new_empty(rois.shape[0], input.shape[1], rows, columns)


def _sizes_of_shares(input, rois, scale, rows, columns, *rest):
    sizes = rois.shape[0], input.shape[1] // (rows * columns), rows, columns
    return input.new_empty(sizes), input.new_empty(sizes, dtype=torch.int32)


def _sizes_of_pools(input, rois, scale, rows, columns):
    whole = _sizes_of_regions(input, rois, scale, rows, columns)
    return whole, whole.to(torch.int32)


FAKES = {
    "nms": lambda dets, scores, limit: dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64),
    "roi_align": _sizes_of_regions,
    "ps_roi_align": _sizes_of_shares,
    "roi_pool": _sizes_of_pools,
    "deform_conv2d": lambda x, weight, offset, *rest: x.new_empty(x.shape[0], weight.shape[0], *offset.shape[2:]),
}


@pytest.fixture(autouse=True, scope="module")
def vision():
    if importlib.util.find_spec("torchvision") is not None:
        import torchvision  # noqa: F401

        yield
        return
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
        name = schema.partition("(")[0]
        library.impl(name, globals()[name], "CPU")
        torch.library.register_fake(f"torchvision::{name}", FAKES[name], lib=library)
    yield
    library._destroy()


def ops():
    return torch.ops.torchvision


def boxes(count, size=16.0):
    first = torch.rand(count, 2, generator=torch.Generator().manual_seed(count)) * size
    return torch.cat([first, first + torch.rand(count, 2, generator=torch.Generator().manual_seed(1)) * size / 2], 1)


def in_first_image(b):
    return torch.cat([torch.zeros_like(b[:, :1]), b], 1)


def exported(function, *args, free=()):
    class Model(nn.Module):
        def forward(self, *given):
            return function(*given)

    shapes = tuple({0: "count"} if at in free else None for at in range(len(args)))
    return trueport.export(Model().eval(), args, dynamic_shapes=shapes if free else None)


def test_boxes_that_overlap_are_dropped():
    program = exported(lambda b, s: ops().nms(b, s, 0.3), boxes(12), torch.rand(12), free=(0, 1))
    for count in (1, 5, 30):
        b, s = boxes(count), torch.rand(count)
        assert program(b, s).tolist() == nms(b, s, 0.3).tolist()


def test_a_box_with_its_corners_in_the_wrong_order_overlaps_with_nothing():
    b = torch.tensor([[0.0, 0, 4, 4], [4, 4, 0, 0], [0, 0, 4, 4], [4, 0, 0, 4]])
    program = exported(lambda b, s: ops().nms(b, s, 0.5), b, torch.tensor([0.9, 0.8, 0.7, 0.6]))
    assert program(b, torch.tensor([0.9, 0.8, 0.7, 0.6])).tolist() == [0, 1, 3]


@pytest.mark.parametrize(("sampling", "aligned"), [(2, True), (0, False), (-1, True)])
def test_regions_are_averaged(sampling, aligned):
    x, b = torch.rand(1, 2, 9, 10), boxes(3)
    program = exported(
        lambda x, b: ops().roi_align(x, in_first_image(b), 0.5, 2, 3, sampling, aligned), x, b, free=(1,)
    )
    torch.testing.assert_close(program(x, b), roi_align(x, in_first_image(b), 0.5, 2, 3, sampling, aligned))


def test_every_cell_has_channels_of_its_own():
    x, b = torch.rand(1, 8, 9, 10), boxes(3)
    program = exported(lambda x, b: ops().ps_roi_align(x, in_first_image(b), 0.5, 2, 2, 2)[0], x, b)
    torch.testing.assert_close(program(x, b), ps_roi_align(x, in_first_image(b), 0.5, 2, 2, 2)[0])


def test_the_largest_of_each_cell():
    x, b = torch.rand(1, 2, 9, 10), boxes(3)
    program = exported(lambda x, b: ops().roi_pool(x, in_first_image(b), 0.5, 2, 2)[0], x, b)
    torch.testing.assert_close(program(x, b), roi_pool(x, in_first_image(b), 0.5, 2, 2)[0])


def test_the_indices_kept_for_the_gradient_are_refused():
    with pytest.raises(trueport.ExportError, match=r"TP402.*for the gradient"):
        exported(lambda x, b: ops().roi_pool(x, in_first_image(b), 0.5, 2, 2)[1], torch.rand(1, 2, 9, 10), boxes(3))


@pytest.mark.parametrize("masked", [True, False])
def test_a_convolution_that_looks_elsewhere(masked):
    torch.manual_seed(0)
    x, weight, bias = torch.rand(1, 4, 4, 5), torch.rand(4, 2, 2, 2), torch.rand(4)
    offset, mask = torch.randn(1, 16, 3, 4), torch.rand(1, 8, 3, 4)
    rest = (1, 1, 0, 0, 1, 1, 2, 2, masked)
    program = exported(
        lambda x, offset, mask: ops().deform_conv2d(x, weight, offset, mask, bias, *rest), x, offset, mask
    )
    expected = deform_conv2d(x, weight, offset, mask, bias, *rest)
    torch.testing.assert_close(program(x, offset, mask), expected)
