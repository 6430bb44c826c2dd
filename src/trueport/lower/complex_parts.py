"""Operators that treat the two parts of complex numbers alike and apart: each is called on the real parts, then on the
imaginary ones, and the results are put together.

They move elements, drop them or add them up. Where such an operator takes a value to put somewhere, which may be a real
one, the imaginary part of it is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.graph import Control, Node, Number, Value
from trueport.lower.complex_numbers import Complex, is_complex
from trueport.lower.table import name_of
from trueport.lower.tensor import Tensor

if TYPE_CHECKING:
    from trueport.lower.lower import Lowering

_VALUES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("aten::gather", "aten::take", "aten::take_along_dim", "aten::masked_select"), ()),
    **dict.fromkeys(("aten::repeat", "aten::tile", "aten::unfold", "aten::tril", "aten::triu", "aten::diag_embed"), ()),
    **dict.fromkeys(("aten::squeeze", "aten::roll", "aten::cumsum", "aten::sum", "aten::mean", "aten::trace"), ()),
    **dict.fromkeys(("aten::sum.dim_IntList", "aten::mean.dim", "aten::flip", "aten::diagonal", "aten::diag"), ()),
    **dict.fromkeys(("aten::as_strided", "aten::nansum", "aten::flatten.using_ints", "aten::t", "aten::embedding"), ()),
    **dict.fromkeys(("aten::index.Tensor", "aten::_unsafe_index.Tensor", "aten::numpy_T", "aten::unflatten.int"), ()),
    **dict.fromkeys(("aten::repeat_interleave.self_int", "aten::repeat_interleave.self_Tensor"), ()),
    **dict.fromkeys(("aten::reflection_pad1d", "aten::reflection_pad2d", "aten::replication_pad1d"), ()),
    **dict.fromkeys(("aten::replication_pad2d", "aten::_pad_circular"), ()),
    **dict.fromkeys(("aten::copy", "aten::slice_scatter", "aten::select_scatter", "aten::diagonal_scatter"), (1,)),
    **dict.fromkeys(("aten::index_put", "aten::_unsafe_index_put", "aten::masked_fill.Scalar"), (2,)),
    **dict.fromkeys(("aten::masked_fill.Tensor", "aten::masked_scatter", "aten::constant_pad_nd"), (2,)),
    **dict.fromkeys(("aten::fill.Scalar", "aten::fill.Tensor"), (1,)),
    **dict.fromkeys(("aten::scatter.src", "aten::scatter.value", "aten::scatter_add", "aten::index_add"), (3,)),
    **dict.fromkeys(("aten::index_copy", "aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor"), (3,)),
    "aten::pad": (3,),
}
"""By operator: the positions of the arguments that are values to put somewhere."""


def by_parts(lowering: Lowering, node: Node) -> list[Tensor] | None:
    """The results of a call, complex ones as pairs; None where the operator does not keep the parts apart."""
    if isinstance(node.op, Control) or (values := _VALUES.get(name_of(node.op))) is None:
        return None
    reals, imaginaries = (_part(lowering, node, values, imaginary) for imaginary in (False, True))
    return [_joined(lowering, *parts) for parts in zip(reals, imaginaries, strict=True)]


def _part(lowering: Lowering, node: Node, values: Sequence[int], imaginary: bool) -> list[Tensor]:
    args = tuple(_argument(lowering, arg, imaginary, i in values) for i, arg in enumerate(node.args))
    kwargs = {name: _argument(lowering, arg, imaginary, False) for name, arg in node.kwargs.items()}
    outputs = tuple(Value(out.dtype.to_real(), out.shape) if isinstance(out, Value) else out for out in node.outputs)
    real = replace(node, args=args, kwargs=kwargs, outputs=outputs)
    with lowering.op.translating(real):
        lowering.node(real)
    return [lowering.tensor(out) for out in outputs]


def _argument(lowering: Lowering, arg: Any, imaginary: bool, is_value: bool) -> Any:
    if is_complex(arg):
        return lowering.part(arg, imaginary)
    if isinstance(arg, torch.dtype) and arg.is_complex:
        return arg.to_real()
    if isinstance(arg, complex):
        return arg.imag if imaginary else arg.real
    if isinstance(arg, list | tuple):
        return tuple(_argument(lowering, item, imaginary, is_value) for item in arg)
    if is_value and imaginary and isinstance(arg, Value):
        return lowering.zeros_like(arg)
    return 0.0 if is_value and imaginary and isinstance(arg, Number | int | float) else arg


def _joined(lowering: Lowering, real: Tensor, imaginary: Tensor) -> Tensor:
    op = lowering.op
    return Complex.joined(op, real, imaginary).pairs
