"""The numbers of a grid, as tensors, say sizes and places: `for t, h, w in grid:` of vision-language models."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import assert_kept_alive

CALLS = {
    "making": lambda x, t, h: (
        torch.zeros(t, h).shape[0] + torch.ones(size=(t, 2)).sum() + torch.full((t,), h).sum() + torch.eye(t).sum()
    ),
    "like another": lambda x, t, h: x.new_ones(t, h).sum() + x.new_full((t,), h).sum(),
    "repeating": lambda x, t, h: x.repeat(t, 1, h).sum() + x.tile((t,)).sum() + x.expand(t, -1, -1).sum(),
    "laying out": lambda x, t, h: (
        x.reshape(h, -1).sum(0)[0] + x.view((t, -1)).sum(0)[1] + x.unflatten(1, (h, -1))[0, -1, 0, 0]
    ),
    "places": lambda x, t, h: x.select(1, t).sum() + x[0, 0].topk(t).values.sum() + x[0].triu(h).sum(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_rows_of_a_grid(call):
    """Where the row lies in memory is known only when the model runs: torch cannot read it in C++ (TP901)."""

    def model(x, grid):
        total = x.sum() * 0
        for row in grid:
            t, h = row
            total = total * 3 + call(x, t, h)
        return total

    x = torch.randn(1, 4, 3)
    grids = [torch.tensor(grid) for grid in ([[1, 2], [2, 2]], [[2, 1]], [[2, 2], [1, 1], [1, 2]])]
    grids.append(torch.zeros(0, 2, dtype=torch.long))
    assert_kept_alive(model, (x, grids[0]), [(x, grid) for grid in grids], dynamic_shapes=(None, {0: "pictures"}))
