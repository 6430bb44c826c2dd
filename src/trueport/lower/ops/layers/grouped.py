"""Matrix products in groups of rows: mixtures of experts, where each expert multiplies its own rows."""

from __future__ import annotations

import torch

from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


@op("transformers::grouped_mm_fallback")
def grouped_mm_fallback(op: Builder, input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor

    Rows up to offs[0] are multiplied by weight[0], then those up to offs[1] by weight[1], and so on; rows that no
    group owns are zero.
    """
    groups, _, width = weight.known_sizes
    if not isinstance(groups, int):
        raise NotImplementedError("the number of groups depends on a free size")
    ends = op.cast(offs, torch.int64)
    starts = op.Concat(op.ints(0), op.Slice(ends, op.ints(0), op.ints(-1), op.ints(0)), axis=0)
    last = op.Slice(ends, op.ints(-1), op.ints(2**31 - 1), op.ints(0))
    rows = op.shape([input.known_sizes[0]])
    lengths = op.Concat(op.Sub(ends, starts), op.Sub(rows, last), axis=0)
    *owned, rest = op.many("Split", groups + 1, input, lengths, axis=0)
    experts = op.many("Split", groups, weight, axis=0, num_outputs=groups)
    products = [op.MatMul(part, op.Squeeze(expert, op.ints(0))) for part, expert in zip(owned, experts, strict=True)]
    nobody = op.Expand(op.const(0.0, op.result.dtype), op.Concat(op.Shape(rest, end=1), op.shape([width]), axis=0))
    return op.Concat(*products, nobody, axis=0)


@op("aten::_grouped_mm")
def grouped_mm(
    op: Builder,
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None)
    -> Tensor
    """
    if offs is None:
        product = op.MatMul(self, mat2)
    elif self.rank == 2 and mat2.rank == 3:
        product = grouped_mm_fallback(op, self, mat2, offs)
    else:
        raise NotImplementedError("groups along the columns or the inner axis")
    return product if bias is None else op.Add(product, bias)
