"""Operators that treat the two parts of complex numbers alike and apart: each is called on the real parts, then on the
imaginary ones, and the results are put together.

They move elements, drop them or add them up. What such an operator is given to move or to put somewhere may be a real
value, of which the imaginary part is 0. Those that ask which elements are zero are called once, on the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from trueport.graph.regions import Control, Node, Number, Value
from trueport.lower.complex.numbers import Complex
from trueport.lower.complex.pairs import ON_PAIRS, with_copies
from trueport.lower.complex.twins import is_complex
from trueport.lower.table import name_of, of_complex
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk

_VIEWS = (
    *("aten::squeeze", "aten::unfold", "aten::diagonal", "aten::as_strided", "aten::t"),
    *("aten::flatten.using_ints", "aten::numpy_T", "aten::unflatten.int"),
)
_MOVES = (
    *("aten::gather", "aten::take", "aten::take_along_dim", "aten::masked_select", "aten::embedding"),
    *("aten::index.Tensor", "aten::_unsafe_index.Tensor", "aten::repeat", "aten::tile", "aten::roll", "aten::flip"),
    *("aten::repeat_interleave.self_int", "aten::repeat_interleave.self_Tensor", "aten::tril", "aten::triu"),
    *("aten::diag", "aten::diag_embed", "aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"),
    *("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d", "aten::_pad_circular"),
    *("aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle", "aten::im2col", "aten::col2im"),
)
_SUMS = ("aten::sum", "aten::mean", "aten::cumsum", "aten::nansum", "aten::trace")
_PLACES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*with_copies(_VIEWS), *_MOVES, *_SUMS, *ON_PAIRS), ()),
    **dict.fromkeys(("aten::copy", "aten::slice_scatter", "aten::select_scatter", "aten::diagonal_scatter"), (1,)),
    **dict.fromkeys(("aten::as_strided_scatter", "aten::fill.Scalar", "aten::fill.Tensor"), (1,)),
    **dict.fromkeys(("aten::index_put", "aten::_unsafe_index_put", "aten::masked_fill.Scalar", "aten::put"), (2,)),
    **dict.fromkeys(("aten::masked_fill.Tensor", "aten::masked_scatter", "aten::constant_pad_nd"), (2,)),
    **dict.fromkeys(("aten::scatter.src", "aten::scatter.value", "aten::scatter_add", "aten::index_add"), (3,)),
    **dict.fromkeys(("aten::index_copy", "aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor"), (3,)),
    **dict.fromkeys(("aten::scatter.reduce", "aten::scatter.value_reduce", "aten::scatter_reduce.two"), (3,)),
    "aten::pad": (3,),
}
"""By operator: the positions of the arguments, beside the first, that are values to put somewhere."""
_ADDING = {"add", "sum", "mean"}
"""Of the ways in which `scatter` puts values together, those that keep the parts apart."""
_TRUTH = {
    *(f"aten::logical_{name}" for name in ("and", "or", "xor", "not")),
    *(f"aten::{name}{axes}" for name in ("all", "any") for axes in ("", ".dim", ".dims")),
    *("aten::nonzero", "aten::nonzero_numpy", "aten::nonzero_static", "aten::argwhere", "aten::is_nonzero"),
    *("aten::count_nonzero", "aten::count_nonzero.dim_IntList"),
}
"""Operators that ask of each element whether it is zero, and nothing else."""

of_complex(_PLACES, by_parts=True)
of_complex(_TRUTH, by_parts=True)


def by_parts(lowering: Walk, node: Node) -> list[Tensor] | None:
    """The results of a call, complex ones as pairs; None where the operator does not keep the parts apart."""
    if isinstance(node.op, Control) or (places := _PLACES.get(name_of(node.op))) is None:
        return None
    if {"reduce", "aten::scatter_reduce.two"} & {*node.kwargs, name_of(node.op)} and not _adds(node):
        return None
    values = (0, *places)
    reals = _part(lowering, node, values, imaginary=False)
    if not any(is_complex(out) for out in node.outputs):  # into a real dtype: eager drops the imaginary part
        return reals
    imaginaries = _part(lowering, node, values, imaginary=True)
    return [Complex.joined(lowering.op, *parts).pairs for parts in zip(reals, imaginaries, strict=True)]


def _adds(node: Node) -> bool:
    return bool(_ADDING & {arg for arg in (*node.args, *node.kwargs.values()) if isinstance(arg, str)})


def by_truth(lowering: Walk, node: Node) -> Node | None:
    """The same call on bools that say which elements are not zero; None where the operator asks for more."""
    if isinstance(node.op, Control) or name_of(node.op) not in _TRUTH:
        return None
    args = tuple(lowering.truth(arg) if isinstance(arg, Value) and is_complex(arg) else arg for arg in node.args)
    return replace(node, args=args)


def _part(lowering: Walk, node: Node, values: Sequence[int], imaginary: bool) -> list[Tensor]:
    args = tuple(_argument(lowering, arg, imaginary, i in values) for i, arg in enumerate(node.args))
    kwargs = {name: _argument(lowering, arg, imaginary, False) for name, arg in node.kwargs.items()}
    outputs = tuple(Value(out.dtype.to_real(), out.shape) if isinstance(out, Value) else out for out in node.outputs)
    real = replace(node, args=args, kwargs=kwargs, outputs=outputs)
    with lowering.op.translating(real):
        lowering.node(real)
    return [lowering.tensor(out) for out in outputs]


def _argument(lowering: Walk, arg: Any, imaginary: bool, is_value: bool) -> Any:
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
