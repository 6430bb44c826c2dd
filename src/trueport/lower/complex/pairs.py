"""Operators that may be called on pairs as they are, with their axes and sizes adjusted: one node instead of two.

They move elements, or work on each part alone. Where a call does not allow it (a real operand among complex ones, no
axes where an operator would then mix the parts), `parts.py` calls the operator on each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueport.graph.regions import Control, Node
from trueport.lower.complex.twins import Twins, is_complex
from trueport.lower.table import name_of, of_complex


@dataclass(frozen=True)
class _OnPairs:
    """How the arguments of an operator change when it is called on the twins.

    Positions of arguments: `axes` hold one axis or several, `sizes` the sizes of the result, `order` a permutation.
    """

    axes: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    makes_axis: bool = False
    needs_axes: bool = False
    """Without axes, the operator would mix the parts (the sum of everything)."""
    joins: bool = False
    """The first argument holds several tensors, all of which must have pairs of one rank."""

    def adjusted(self, args: Sequence[Any], rank: int) -> list[Any] | None:
        changed = list(args)
        count = rank + self.makes_axis
        if count == 0 and self.axes:  # an axis of a number is that of a list of one, and no axis of its pair
            return None
        if self.needs_axes and not all(i < len(args) and args[i] not in (None, ()) for i in self.axes):
            return None
        for i in self.axes:
            if i < len(args):
                changed[i] = tuple(a % count for a in args[i]) if isinstance(args[i], tuple) else args[i] % count
        for i in self.sizes:
            changed[i] = (*args[i], 2)
        for i in self.order:
            changed[i] = (*(axis % rank for axis in args[i]), rank)
        return changed


def with_copies(names: Sequence[str]) -> list[str]:
    """The operators, and those of the same name that copy (`view`, `view_copy`)."""
    found = []
    for name in names:
        plain, dot, overload = name.partition(".")
        found += [name, f"{plain}_copy{dot}{overload}"]
    return found


_VIEWS = {
    "aten::alias": _OnPairs(),
    **dict.fromkeys(("aten::view", "aten::expand"), _OnPairs(sizes=(1,))),
    **dict.fromkeys(
        ("aten::select.int", "aten::slice.Tensor", "aten::unbind.int", "aten::narrow"), _OnPairs(axes=(1,))
    ),
    **dict.fromkeys(("aten::split.Tensor", "aten::split_with_sizes"), _OnPairs(axes=(2,))),
    **dict.fromkeys(("aten::squeeze.dim", "aten::squeeze.dims"), _OnPairs(axes=(1,), needs_axes=True)),
    "aten::unsqueeze": _OnPairs(axes=(1,), makes_axis=True),
    "aten::permute": _OnPairs(order=(1,)),
    "aten::transpose.int": _OnPairs(axes=(1, 2)),
}
ON_PAIRS: dict[str, _OnPairs] = {
    **{name: rule for view, rule in _VIEWS.items() for name in with_copies([view])},
    **dict.fromkeys(("aten::clone", "aten::detach", "aten::neg", "aten::contiguous"), _OnPairs()),
    **dict.fromkeys(("aten::reshape", "aten::_unsafe_view"), _OnPairs(sizes=(1,))),
    **dict.fromkeys(("aten::chunk", "aten::unsafe_chunk", "aten::unsafe_split.Tensor"), _OnPairs(axes=(2,))),
    "aten::unsafe_split_with_sizes": _OnPairs(axes=(2,)),
    "aten::index_select": _OnPairs(axes=(1,)),
    **dict.fromkeys(("aten::flip", "aten::sum.dim_IntList", "aten::mean.dim"), _OnPairs(axes=(1,), needs_axes=True)),
    "aten::roll": _OnPairs(axes=(2,), needs_axes=True),
    "aten::cat": _OnPairs(axes=(1,), joins=True),
    "aten::stack": _OnPairs(axes=(1,), makes_axis=True, joins=True),
}


def on_twins(node: Node, twins: Twins) -> Node | None:
    """The same call on real values, where the operator allows it."""
    if isinstance(node.op, Control):
        return None
    rule = ON_PAIRS.get(name_of(node.op))
    if rule is None or not all(is_complex(v) for v in node.outputs) or "dtype" in node.kwargs:
        return None
    given = node.args[0] if rule.joins else node.args[:1]
    ranks = {len(value.shape) if is_complex(value) else None for value in given}
    rank = ranks.pop() if len(ranks) == 1 else None
    args = None if rank is None else rule.adjusted(node.args, rank)
    if args is None:
        return None
    outputs = tuple(twins.everywhere(out) for out in node.outputs)
    return replace(node, args=tuple(twins.everywhere(arg) for arg in args), outputs=outputs)


of_complex(ON_PAIRS, by_parts=True)
