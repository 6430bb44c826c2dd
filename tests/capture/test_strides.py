"""`as_strided` reads memory: carried where a tensor is all of its memory, and otherwise refused at its line."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import trueport
from tests.capture.helpers import assert_captured, assert_same
from tests.lower.ops.faithful import faithful
from tests.lower.through_onnx import check
from trueport.verify.replay import replay


def test_windows_of_an_input_and_of_what_was_computed():
    def forward(x):
        doubled = x * 2
        return x.as_strided((3, 2), (1, 2)), doubled.as_strided((2, 3), (3, 1), 1)

    faithful(forward, torch.randn(4, 3))


def test_writing_through_strides():
    def forward(x):
        x = x + 1
        x.as_strided((2, 2), (4, 1)).mul_(3)
        return x

    faithful(forward, torch.randn(3, 4))


def test_what_lies_behind_a_view_is_refused():
    def forward(x):
        return x[1:].as_strided((2, 2), (1, 1), 0)

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(forward, (torch.randn(4, 3),))
    found = refused.value.diagnostics[0]
    assert "memory behind a view" in found.message
    assert found.where.line == inspect.getsourcelines(forward)[1] + 1


def test_overlapping_chunks_of_what_was_padded_and_reshaped():
    """Longformer: a view of all of a tensor has the same memory. Of no chunks, eager makes a tensor of size -1."""

    def forward(x):
        rows = x.shape[0]
        x = F.pad(x, (0, 0, 0, -rows % 4)).view(-1, 4, 3).unsqueeze(0)
        size, stride = list(x.size()), list(x.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        return x.as_strided(size, stride)

    faithful(forward, torch.randn(8, 3), free=({0},))


def test_axes_in_another_order_fill_the_same_memory():
    """Longformer's heads: the strides of a transposed tensor say where its memory lies, and it is all there."""

    def forward(x):
        batch, rows, width = x.shape
        turned = x.transpose(0, 1)
        every_other = turned.as_strided((rows // 2, batch, width), (2 * turned.stride(0), *turned.stride()[1:]))
        heads = turned.view(rows, batch, 2, width // 2).permute(1, 2, 0, 3).reshape(batch * 2, rows, width // 2)
        return every_other, heads.as_strided((heads.shape[0], rows // 2, 2), (heads.stride(0), heads.stride(1), 1))

    faithful(forward, torch.randn(2, 6, 4), free=({0, 1},))


def test_a_part_under_other_sizes_is_refused_as_well():
    def forward(x):
        return x[1:].view(-1).as_strided((2, 2), (1, 1), 0)

    with pytest.raises(trueport.ExportError, match="memory behind a view"):
        trueport.export(forward, (torch.randn(4, 3),))


def test_replay_looks_at_values_and_not_at_strides():
    """A round of a loop may be given a tensor with other strides than the trace's; `view` then refused it."""

    class Flat(nn.Module):
        def forward(self, x):
            return x.view(6)

    graph = assert_captured(Flat(), (torch.randn(2, 3),), [])
    turned = torch.randn(3, 2).t()
    assert_same(replay(graph, {"x": turned})["output"], turned.reshape(6))


class Pixels(nn.Module):
    """As state space models for pictures are written: what is normed over the channels is a row of pixels, and back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(2, 4, 3, stride=4, padding=1)
        self.mix = nn.Conv1d(4, 6, 1)

    def forward(self, x):
        x = F.relu(self.stem(x), inplace=True)
        batch, _, height, width = x.shape
        x = F.layer_norm(x.permute(0, 2, 3, 1), (4,)).permute(0, 3, 1, 2)
        return self.mix(x.flatten(2)).reshape(batch, -1, height, width)


def test_a_picture_of_one_pixel_freezes_no_size():
    """Its strides are those of any layout: that a row is a view of it says nothing of larger pictures."""
    more = [(torch.randn(batch, 2, height, width),) for batch, height, width in ((1, 9, 4), (3, 5, 17), (2, 8, 8))]
    check(Pixels().eval(), (torch.randn(2, 2, 4, 4),), *more, free={0: {0: "b", 2: "h", 3: "w"}})


def test_where_a_write_would_reach_the_picture_of_one_pixel_only_it_is_told():
    """Eager's `reshape` is a view of one pixel, and a copy of more: no one graph gives both."""

    class Written(Pixels):
        def forward(self, x):
            x = self.stem(x).permute(0, 2, 3, 1).contiguous()
            row = x.permute(0, 3, 1, 2).reshape(x.shape[0], -1)
            row += 1
            return x, row

    with pytest.raises(trueport.ExportError, match="TP805"):
        trueport.export(Written().eval(), (torch.randn(2, 2, 4, 4),), dynamic_shapes=({2: "h", 3: "w"},))


def windows_of_a_picture(x):
    columns = F.unfold(x, (2, 2), stride=(2, 2))
    columns = columns.reshape(x.shape[0], 8, 4, -1) * 2
    count = columns.shape[-1]
    return F.fold(columns.reshape(x.shape[0], 32, count), x.shape[2:], (2, 2), stride=(2, 2))


def packed(x):
    height, width = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
    return F.pixel_unshuffle(x[:, :, :height, :width], 2).flatten(2) + 1


def normed(x):
    return F.group_norm(x[:, :, ::2, ::2].transpose(2, 3), 2).flatten(2).transpose(1, 2).reshape(x.shape[0], -1, 4)


def weighed(x):
    small = F.conv2d(x, torch.ones(8, 8, 2, 2) / 8, stride=2)
    height, width = small.shape[2:]
    pixels = small.flatten(2)
    mixed = pixels @ pixels.softmax(-1).transpose(1, 2) @ pixels
    return F.conv2d(mixed.reshape(x.shape[0], 8, height, width), torch.ones(8, 1, 3, 3), padding=1, groups=8)


def waved(x):
    steps = x.flatten(2)[:, :, ::4]
    return (steps + torch.sin(torch.ones(1, 8, 1) * steps)).flatten(1).reshape(x.shape[0], 8, -1)


@pytest.mark.parametrize("forward", [windows_of_a_picture, packed, normed, weighed, waved])
def test_an_example_whose_steps_leave_one_pixel_does_not_make_it_a_rule(forward):
    sizes = {2: torch.export.Dim("h", min=2, max=64), 3: torch.export.Dim("w", min=2, max=64)}
    torch.manual_seed(0)
    others = [(torch.randn(2, 8, *size),) for size in ((7, 4), (2, 9))]
    assert_captured(forward, (torch.randn(2, 8, 2, 2),), others, dynamic_shapes=(sizes,))
