"""Solutions of linear systems, and inverses."""

from __future__ import annotations

from typing import Any

from trueport.lower.builder import Builder
from trueport.lower.ops.axes import broadcast
from trueport.lower.ops.linalg.elimination import as_if_regular, broadcast_solution, eliminated, pivots_of, solution
from trueport.lower.ops.linalg.matrices import (
    INT32,
    batch_of,
    identities,
    sized,
    stacked,
    unstacked,
)
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


@op("aten::_linalg_solve_ex")
def solve_ex(op: Builder, A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)
    -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)
    """
    batch = batch_of(A)
    a = stacked(op, A)
    factors = eliminated(op, a, A.element)
    if not op.wants(1, 2, 3):
        factors = as_if_regular(op, factors, a, A.element)
    b, is_vector = _right_side(op, A, B)
    wanted = broadcast(batch, batch_of(b))
    x = broadcast_solution(op, factors, batch, b, wanted, left)
    result = op.Squeeze(x, op.ints(x.rank - 1)) if is_vector else x
    lu = unstacked(op, factors.lu, batch)
    return result, lu, pivots_of(op, factors, batch), op.cast(unstacked(op, factors.info, batch), INT32)


def _right_side(op: Builder, A: Tensor, B: Tensor) -> tuple[Tensor, bool]:
    """B as matrices. Where it may be a batch of vectors too, the rank of the result tells what eager took it for."""
    if B.rank == 1 or (B.rank == A.rank - 1 and len(op.result.shape) == B.rank):
        column = op.Unsqueeze(B, op.ints(B.rank))
        return sized(column, *B.known_sizes, 1), True
    return B, False


@op("aten::linalg_inv_ex")
def inverse(op: Builder, A: Tensor, *, check_errors: bool = False) -> Any:
    """linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"""
    a, batch = stacked(op, A), batch_of(A)
    factors = eliminated(op, a, A.element)
    if not op.wants(1):
        factors = as_if_regular(op, factors, a, A.element)
    total, n = a.known_sizes[:2]
    x = solution(op, factors, identities(op, total, n))
    return unstacked(op, x, batch), op.cast(unstacked(op, factors.info, batch), INT32)
