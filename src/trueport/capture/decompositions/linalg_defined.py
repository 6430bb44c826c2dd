"""Linear algebra that torch says by taking single elements of an axis, which a free size need not have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from trueport.torch_internals import OpOverload

aten = torch.ops.aten


def _cond(a: torch.Tensor, p: float | str | None = None) -> torch.Tensor:
    """The largest by the smallest singular value, or the product of two norms."""
    if p in (None, 2, -2):
        values = torch.linalg.svdvals(a)
        # Beside a value that changes neither, so that a matrix without elements has the condition 0, as in eager.
        most, least = torch.amax(F.pad(values, (0, 1)), -1), torch.amin(F.pad(values, (0, 1), value=math.inf), -1)
        return torch.div(least, most) if p == -2 else torch.div(most, least)
    inverse, info = torch.linalg.inv_ex(a)
    inverse = inverse.masked_fill((info > 0)[..., None, None], float("inf"))
    return torch.mul(torch.linalg.matrix_norm(a, p), torch.linalg.matrix_norm(inverse, p))


LINEAR_ALGEBRA: dict[OpOverload, Callable[..., Any]] = {
    aten.linalg_cond.default: _cond,
    aten.linalg_cond.p_str: _cond,
}
