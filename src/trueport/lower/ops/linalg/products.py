"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.ops.create import filled
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Scalar = int | float | Number


@op("aten::linear")
def linear(op: Builder, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor

    One Gemm for a matrix. Otherwise a product with the transposed weight: the weight itself stays as the user has it.
    """
    if input.rank == 2 and weight.rank == 2 and input.element.is_floating_point():
        return op.Gemm(input, weight, bias, transB=1)
    product = op.MatMul(input, op.shared("transposed", weight.name, make=lambda: _transposed(op, weight)))
    return product if bias is None else op.Add(product, bias)


def _transposed(op: Builder, weight: Tensor) -> Tensor:
    return op.transpose(weight, list(reversed(range(weight.rank))))


@op("aten::addmm")
def addmm(op: Builder, self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    # The runtime's Gemm over nothing gives zeros, whatever is to be added.
    by_gemm = mat1.element.is_floating_point() and op.sizes.is_positive(mat1.known_sizes[1])
    if isinstance(alpha, Number) or isinstance(beta, Number) or not by_gemm:
        return _added(op, self, op.MatMul(mat1, mat2), beta, alpha)
    if mat1.element == ir.DataType.DOUBLE and not (_is_single(alpha) and _is_single(beta)):
        return _added(op, self, op.MatMul(mat1, mat2), beta, alpha)
    left, trans_a = _before_transposition(mat1)
    right, trans_b = _before_transposition(mat2)
    flags = {"transA": trans_a or None, "transB": trans_b or None}
    # What is multiplied by 0 is not looked at in eager, even if it is NaN.
    added = None if beta == 0 else self
    return op.Gemm(left, right, added, alpha=_unless_one(alpha), beta=_unless_one(beta), **flags)


def _is_single(factor: float) -> bool:
    """Whether a factor loses nothing as an attribute, which is of single precision."""
    return float(np.float32(factor)) == factor


def _before_transposition(x: Tensor) -> tuple[Tensor, int]:
    """The matrix that `x` is the transposition of, if it is one: Gemm transposes for nothing."""
    node = x.producer()
    if node is not None and node.op_type == "Transpose" and isinstance(node.inputs[0], Tensor):
        return node.inputs[0], 1
    return x, 0


def _unless_one(factor: float) -> float | None:
    return None if factor in (0, 1) else float(factor)


def _added(op: Builder, self: Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Tensor:
    if not product.element.is_floating_point() and isinstance(alpha, float) and isinstance(beta, float):
        alpha, beta = int(alpha), int(beta)
    if isinstance(alpha, Number) or alpha != 1:
        product = op.Mul(product, op.scalar(alpha, product.element))
    if not isinstance(beta, Number) and beta == 0:
        return product
    if isinstance(beta, Number) or beta != 1:
        self = op.Mul(self, op.scalar(beta, self.element))
    return op.Add(self, product)


@op("aten::baddbmm")
def baddbmm(
    op: Builder, self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    return _added(op, self, product(op, batch1, batch2), beta, alpha)


@op("aten::addbmm")
def addbmm(op: Builder, self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    if self.element.is_floating_point():
        total = op.ReduceSum(product(op, batch1, batch2), op.ints(0), keepdims=0)
    else:  # of which the runtime would add the products in double (faulty_kernels.py): one longer product
        batch, rows, length = batch1.known_sizes
        left = op.reshape(op.transpose(batch1, [1, 0, 2]), (rows, batch * length))
        total = product(op, left, op.reshape(batch2, (batch * length, batch2.known_sizes[2])))
    return _added(op, self, total, beta, alpha)


@op("aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot", "aten::linalg_matmul")
def matmul(op: Builder, self: Tensor, other: Tensor, **_options: Any) -> Tensor:
    """matmul(Tensor self, Tensor other) -> Tensor"""
    if self.known_sizes[-1] == 0:
        # The runtime joins a transposition with the product, and leaves what a sum over nothing should be to chance.
        return filled(op, op.result.shape, 0, op.result.dtype)
    return product(op, self, other)


def product(op: Builder, left: Tensor, right: Tensor) -> Tensor:
    """A product that also holds where there is nothing to add up. There the runtime broadcasts wrongly and leaves the
    result to chance, so an open length is made one longer, by zeros; but not where an empty result follows from it.

    A vector on the right is a matrix of one column: the runtime joins a transposition of the left side with the
    product, and then reads a vector wrongly.
    """
    if right.rank == 1 and left.rank > 1:
        column = op.Unsqueeze(right, op.ints(1))
        column.settle((*right.known_sizes, 1))
        return op.Squeeze(product(op, left, column), op.ints(-1))
    length = left.known_sizes[-1]
    is_plain = left.rank == right.rank == 2 or op.sizes.is_positive(length) or length in op.result.shape
    if is_plain:
        return product_apart(op, left, right)
    return op.MatMul(_longer(op, left, left.rank - 1), _longer(op, right, max(right.rank - 2, 0)))


def product_apart(op: Builder, left: Tensor, right: Tensor) -> Tensor:
    """A product that the runtime does not join with a transposition of its batch, where one of them may be empty: of
    what comes of it (FusedMatMul with transBatchA) the process dies then. One axis more keeps the two apart."""
    moved = [_moves_batch(x) and x.rank > 2 for x in (left, right)]
    if not any(moved) or all(op.sizes.is_positive(size) for x in (left, right) for size in x.known_sizes):
        return op.MatMul(left, right)
    apart = [op.Unsqueeze(x, op.ints(0)) if moves else x for x, moves in zip((left, right), moved, strict=True)]
    return op.Squeeze(op.MatMul(*apart), op.ints(0))


def _moves_batch(x: ir.Value) -> bool:
    """Whether the first axis was another before: a transposition, behind others and scalings, which are joined too."""
    node = x.producer()
    if node is None or node.op_type not in ("Transpose", "Mul", "Div"):
        return False
    if node.op_type == "Transpose" and node.attributes["perm"].as_ints()[0] != 0:
        return True
    return any(each is not None and _moves_batch(each) for each in node.inputs)


def _longer(op: Builder, x: Tensor, axis: int) -> Tensor:
    pads = [0] * (2 * x.rank)
    pads[x.rank + axis] = 1
    return op.Pad(x, op.ints(*pads))


@op("aten::cross")
def cross(op: Builder, self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """cross(Tensor self, Tensor other, int? dim=None) -> Tensor; unnamed, the first axis of size 3"""
    return linalg_cross(op, self, other, dim=op.result.shape.index(3) if dim is None else dim)


@op("aten::linalg_cross")
def linalg_cross(op: Builder, self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor"""
    rank = len(op.result.shape)
    axis = dim % rank - rank

    def turned(x: Tensor, *order: int) -> Tensor:
        return op.Gather(x, op.ints(*order), axis=axis)

    first = op.Mul(turned(self, 1, 2, 0), turned(other, 2, 0, 1))
    return op.Sub(first, op.Mul(turned(self, 2, 0, 1), turned(other, 1, 2, 0)))
