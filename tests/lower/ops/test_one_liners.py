"""What NumPy users write in a line, many of them in one model, with every size free that eager lets be another."""

from __future__ import annotations

import torch
from torch.export import Dim
from torch.nn import functional as F

import trueport

PICTURE = {0: "n", 2: Dim("h", min=5), 3: Dim("w", min=5)}


def same(forward, example, free, *others):
    """Exported, which includes a check on drawn inputs, and equal on inputs of other sizes."""
    program = trueport.export(forward, example, dynamic_shapes=free)
    for given in others:
        for ours, theirs in zip(program(*given), forward(*given), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_reading_by_slices_and_masks():
    def forward(x, rows, columns):
        plain = (
            x[None, :, None, ..., None],
            x[..., -1],
            x[:, -3:, ::2],
            x[-3:-1, 1:-1],
            x[1::3, :-1:2],
            x.flip(0, -1)[1:],
        )
        masked = x[rows], x[rows, 0], x[:, columns, 1:3], x[None, rows, ..., None], x[..., None, :][:, columns]
        return *plain, *masked, x[True], x[[0, -1]][:, [1, 0, 1]]

    least = {0: Dim("a", min=2), 1: Dim("b", min=2), 2: Dim("c", min=2)}
    free = (least, {0: least[0]}, {0: least[1]})

    def inputs(*sizes):
        return torch.randn(*sizes), torch.randn(sizes[0]) > 0, torch.randn(sizes[1]) > 0

    same(forward, inputs(4, 5, 6), free, inputs(2, 3, 7))


def test_reading_by_tables_of_indices():
    def forward(x, i, j):
        together = x[i, j], x[i, :, j], x[i[:, None], j], x[1, i, 2:], x[:, None, i], x[i, None, j], x[:, j - 4]
        return *together, x.take(i), x.gather(1, i.view(1, -1, 1).expand(x.shape[0], -1, x.shape[2]))

    def inputs(count):
        return torch.randn(4, 4, 4), torch.randint(0, 4, (count,)), torch.randint(0, 4, (count,))

    same(forward, inputs(3), (None, {0: "k"}, {0: "k"}), inputs(7), inputs(1))


def test_writing():
    def forward(x, rows, at, values):
        a, b, c, d, e, f = (x.clone() for _ in range(6))
        a[rows] = 0
        b[rows, 1:3] = 7.0
        c[:, 1:3] = values
        d[::2] = -1
        d[1::2, :, 0] += x[1::2, :, 0]
        e[at] = values
        e[-1] = e[0]
        f[rows] *= 2
        f[..., None, 0:2] = values[:2]
        added = x.index_put((at,), values, accumulate=True)
        return a, b, c, d, e, f, added, x.index_put((rows,), torch.tensor(2.0), accumulate=True)

    least = {0: Dim("a", min=4), 1: Dim("b", min=3), 2: Dim("c", min=2)}
    free = (least, {0: least[0]}, {0: "k"}, {0: least[2]})

    def inputs(at, *sizes):
        return torch.randn(*sizes), torch.randn(sizes[0]) > 0, torch.tensor(at), torch.randn(sizes[2])

    same(forward, inputs([2, 0], 4, 5, 6), free, inputs([1, 3, 0], 5, 3, 2))


def test_scattering_in_all_ways():
    def forward(x, at, source):
        ways = [(way, keep) for way in ("sum", "prod", "mean", "amax", "amin") for keep in (True, False)]
        return *(x.scatter_reduce(1, at, source, way, include_self=keep) for way, keep in ways), x.scatter(1, at, 3.0)

    free = ({0: "a"}, {0: "a", 1: "k"}, {0: "a", 1: "k"})

    def inputs(rows, count):
        return torch.randn(rows, 5), torch.randint(0, 5, (rows, count)), torch.randn(rows, count)

    same(forward, inputs(4, 7), free, inputs(2, 3))


def test_padding_and_pooling():
    def forward(x):
        modes = ("constant", "reflect", "replicate", "circular")
        padded = [F.pad(x, pads, mode) for mode in modes for pads in ((1, 2, 0, 3), (-1, 2, 1, -2))]
        pooled = [pool(x, 3, 2, 1, ceil_mode=ceil) for pool in (F.max_pool2d, F.avg_pool2d) for ceil in (True, False)]
        values, at = F.max_pool2d(x, 2, 2, return_indices=True)
        outside = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        return *padded, *pooled, outside, F.max_unpool2d(values, at, 2, 2, output_size=x.shape)

    same(forward, (torch.randn(2, 3, 7, 8),), (PICTURE,), (torch.randn(1, 3, 5, 9),), (torch.randn(3, 3, 8, 6),))


def test_resizing_and_sampling():
    def forward(x, grid):
        smooth = [
            F.interpolate(x, mode=mode, align_corners=corners, **size)
            for mode in ("bilinear", "bicubic")
            for corners in (True, False)
            for size in ({"size": (5, 11)}, {"scale_factor": (1.7, 0.6)})
        ]
        others = [F.interpolate(x, size=grid.shape[1:3], mode=mode) for mode in ("nearest", "nearest-exact", "area")]
        modes = [(mode, edge) for mode in ("bilinear", "nearest") for edge in ("zeros", "border", "reflection")]
        return *smooth, *others, *(F.grid_sample(x, grid, mode, edge, align_corners=False) for mode, edge in modes)

    free = (PICTURE, {0: "n", 1: Dim("p", min=1), 2: Dim("q", min=1)})

    def inputs(n, h, w, p, q):
        return torch.randn(n, 3, h, w), torch.randn(n, p, q, 2)

    same(forward, inputs(2, 7, 8, 4, 5), free, inputs(1, 9, 5, 2, 3))
