"""Operators that yield Python numbers, and those that only check something."""

from __future__ import annotations

from trueport.lower.builder import Builder
from trueport.lower.table import dropped, op
from trueport.lower.tensor import Tensor

dropped(
    "aten::_assert_async",
    "aten::_assert_async.msg",
    "aten::_assert_scalar",
    "aten::_assert_tensor_metadata",
    "aten::_functional_assert_async.msg",
    "aten::_linalg_check_errors",
    "aten::_functional_assert_scalar",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
    "aten::_functional_sym_constrain_range",
    "aten::_functional_sym_constrain_range_for_size",
)


@op("aten::_local_scalar_dense", "aten::item")
def item(op: Builder, self: Tensor) -> Tensor:
    """_local_scalar_dense(Tensor self) -> Scalar"""
    return self if self.rank == 0 else op.Reshape(self, op.shape(()))
