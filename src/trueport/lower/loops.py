"""`Loop`s that a translation writes itself: an algorithm that goes round until it is done.

total, = loop(op, times, [start], lambda i, states: [op.Add(states[0], op.Gather(x, i, axis=0))])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from trueport.lower.subgraphs import made_here
from trueport.lower.tensor import Tensor

if TYPE_CHECKING:
    from trueport.lower.builder import Builder

Round = Callable[[Tensor, list[Tensor]], Sequence[Tensor]]
"""(number of the round, the states before it) -> the states after it."""


def loop(op: Builder, times: Tensor, states: Sequence[Tensor], body: Round) -> list[Tensor]:
    """The states after `times` rounds."""
    return _loop(op, times, states, lambda i, before: (None, body(i, before)))


def loop_while(
    op: Builder,
    at_most: int | Tensor,
    states: Sequence[Tensor],
    body: Callable[[Tensor, list[Tensor]], tuple[Tensor, Sequence[Tensor]]],
) -> list[Tensor]:
    """The same; `body` says first whether to go on, as a 0-d bool."""
    times = at_most if isinstance(at_most, Tensor) else op.const(at_most)
    return _loop(op, times, states, body)


def _loop(
    op: Builder,
    times: Tensor,
    states: Sequence[Tensor],
    body: Callable[[Tensor, list[Tensor]], tuple[Tensor | None, Sequence[Tensor]]],
) -> list[Tensor]:
    going = op.const(True)
    with op.inside():
        here = Tensor(op, op.new_name("round"), ir.DataType.INT64, ())
        goes_on = Tensor(op, op.new_name("going"), ir.DataType.BOOL, ())
        before = [Tensor(op, op.new_name("state"), x.element, x.sizes) for x in states]
        verdict, after = body(here, list(before))
        for x, first in zip(after, states, strict=True):
            if x.shape is None:
                x.settle(first.sizes)
        outputs = made_here(op, [goes_on if verdict is None else verdict, *after])
        outputs[0].settle(())
        graph = ir.Graph([here, goes_on, *before], outputs, nodes=op.scope.nodes, name=op.new_name("rounds"))
    last = [Tensor(op, op.new_name("Loop"), x.element, x.sizes) for x in states]
    op.append("Loop", [times, going, *states], [ir.AttrGraph("body", graph)], last)
    return last
