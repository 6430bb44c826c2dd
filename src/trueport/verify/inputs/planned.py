"""The work of a captured program at given sizes, without a run of it.

How the work grows with a free size is seen by counting it at two sizes. A run of eager at the larger one would do; but
where the graph has neither branches nor loops, it says itself which calls are made and on which shapes. Layers are
alike, so that few calls are distinct, and each of those is counted once, on tensors without memory.

Only the plan of the check follows from it: which inputs are too large to be tried. No verdict does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from trueport.capture.graph import Control, Graph, Node, Number, Size, Value
from trueport.decompositions.arguments import mapped
from trueport.torch_internals import OpOverload
from trueport.verify.inputs.work import Counted, Work, WorkAt


@dataclass(frozen=True, slots=True)
class _Tensor:
    dtype: torch.dtype
    shape: tuple[Size, ...]


_NOWHERE = torch.device("meta")
_Call = tuple[OpOverload, Any, tuple[tuple[str, Any], ...]]
"""Of one operator: its arguments, and those that it was given by name."""


def work_at(graph: Graph) -> WorkAt | None:
    """None where what is computed depends on more than sizes."""
    calls: Counter[_Call] = Counter()
    for node in graph.root.nodes:
        if isinstance(node.op, Control):
            return None
        calls[_call(node)] += 1

    def at(sizes: Mapping[str, int]) -> Work | None:
        known = {symbol: sizes[free.name] for symbol, free in graph.size_symbols.items()}
        there = _Sizes({symbol: sympy.sympify(each) for symbol, each in {**graph.examples, **known}.items()})
        try:
            made = [(mapped(args, there.argument), mapped(named, there.argument)) for _, args, named in calls]
            with torch.no_grad(), Counted() as counted:
                for ((op, _, _), counted.times), (args, named) in zip(calls.items(), made, strict=True):
                    op(*args, **dict(named))
        except Exception:  # noqa: BLE001  a size that the data give, or an operator that needs to see them
            return None
        return counted.work

    return at


def _call(node: Node) -> _Call:
    assert isinstance(node.op, OpOverload)
    return (node.op, _hashable(node.args), tuple((name, _hashable(value)) for name, value in node.kwargs.items()))


def _hashable(argument: Any) -> Any:
    if isinstance(argument, Value):
        return _Tensor(argument.dtype, argument.shape)
    return tuple(map(_hashable, argument)) if isinstance(argument, tuple | list) else argument


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What each symbol is, and the expressions that were worked out already."""

    symbols: Mapping[sympy.Basic, Any]
    _found: dict[sympy.Basic, sympy.Basic] = field(default_factory=dict)

    def of(self, expr: sympy.Basic) -> sympy.Basic:
        if expr not in self._found:
            self._found[expr] = expr.xreplace(self.symbols).doit()
        return self._found[expr]

    def argument(self, argument: Any) -> Any:
        if isinstance(argument, Number):
            return argument.kind(self.of(argument.expr))
        if isinstance(argument, _Tensor):
            shape = [size if isinstance(size, int) else int(self.of(size)) for size in argument.shape]
            return torch.empty(shape, dtype=argument.dtype, device=_NOWHERE)
        return _NOWHERE if isinstance(argument, torch.device) else argument
