"""Views that rounds of a loop put into a list, while they write what the views show.

    for t in range(n):
        z[t] = step(z[t])
        out.append(z[t])        each round writes a row of its own: nobody writes it again
        z += 1                  this one changes what earlier rounds put into the list

A list of open length holds values and no views. The first is let through, and of the second the list is out of date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
import torch

from trueport.capture.graph import Node, Number, Region, Value

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer

aten = torch.ops.aten

_OTHER_AXES = (aten.unsqueeze.default, aten.squeeze.dim)
"""The same row, under another number of axes."""


@dataclass(frozen=True)
class OpenRound:
    """A round that is being traced: its region, its number, and the point in the trace at which it began."""

    region: Region
    iteration: sympy.Symbol
    mark: int

    def is_own_row(self, tracer: Tracer, view: torch.Tensor) -> bool:
        """Whether a view is a row that no other round has, of a tensor of which this round writes nothing else."""
        wrapper = tracer.adopt_all(view)
        shown, base = self._maker(tracer.value(wrapper)), tracer.value(tracer.writes.base(wrapper))
        while shown is not None and shown.op in _OTHER_AXES:
            shown = self._maker(shown.args[0])
        if shown is None or shown.op is not aten.select.int or not self._differs(tracer, _index(shown.args[1:])):
            return False
        while (made := self._maker(base)) is not None:
            if made.op is not aten.select_scatter.default or _index(made.args[2:]) != _index(shown.args[1:]):
                return False
            base = made.args[0]
        return True

    def _maker(self, value: Value) -> Node | None:
        return next((node for node in reversed(self.region.nodes) if value in node.outputs), None)

    def _differs(self, tracer: Tracer, index: Any) -> bool:
        """Whether an index is another one in each round."""
        if index is None:
            return False
        step = sympy.expand(index.subs(self.iteration, self.iteration + 1) - index)
        others = index.free_symbols - {self.iteration}
        varies = any(tracer.symbols.shapes.made_since(symbol, self.mark) for symbol in others)
        return bool(step.is_number and step != 0 and not varies)


def _index(args: tuple[Any, ...]) -> sympy.Expr | None:
    """The traced number by which a row is taken along the first axis."""
    axis, index = args[:2]
    return index.expr if axis == 0 and isinstance(index, Number) else None
