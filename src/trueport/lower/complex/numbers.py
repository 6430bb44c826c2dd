"""Complex tensors inside a model, carried as pairs of real numbers: no runtime computes with ONNX's complex types.

A captured value of a complex dtype has a twin, a real value with one more axis of 2 at the end (real, imaginary), and
only the twin has a tensor. A call that meets complex values is then lowered in one of these ways:

1. Operators that move elements or work on each part alone (views, joins, sums) are called on the twins, with their
   axes and sizes adjusted (`pairs.py`).
2. Operators registered with `@complex_op` get and give `Complex`.
3. Operators that keep the parts apart are called twice (`parts.py`).
4. Operators that ask which elements are zero are called on the answer (`parts.py`).

Capture keeps an operator whole only where one of these is known (`table.is_leaf`); torch's own definition of any other
is traced instead. What has none of that is a finding.

The inputs and outputs of the model, and what branches and loops yield, are the twins; for the former, a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp403_complex_value import ComplexValue
from trueport.diagnostics.rules.tp404_complex_as_pairs import ComplexAsPairs
from trueport.graph.regions import Control, Graph, Node, Number, Value
from trueport.lower.builder import Builder
from trueport.lower.complex.twins import is_complex
from trueport.lower.dtypes import parts_dtype
from trueport.lower.table import name_of, of_complex, op
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Complex:
    """A complex operand of a translation: `pairs` is real, its last axis is (real, imaginary)."""

    pairs: Tensor

    @property
    def rank(self) -> int:
        """The number of axes that eager sees."""
        return self.pairs.rank - 1

    def parts(self, op: Builder) -> tuple[Tensor, Tensor]:
        """The two parts, each with a last axis of 1, so that they broadcast like the pairs."""
        real, imaginary = op.many("Split", 2, self.pairs, op.ints(1, 1), axis=-1)
        return real, imaginary

    @staticmethod
    def joined(op: Builder, real: Tensor, imaginary: Tensor) -> Complex:
        """From the two parts, of one shape."""
        return Complex(op.Concat(*(op.Unsqueeze(part, op.ints(-1)) for part in (real, imaginary)), axis=-1))

    def real(self, op: Builder) -> Tensor:
        return self._part(op, 0)

    def imaginary(self, op: Builder) -> Tensor:
        return self._part(op, 1)

    def is_not_zero(self, op: Builder) -> Tensor:
        """A bool for each number, as eager says it: of NaN too."""
        is_zero = op.Equal(self.pairs, op.const(0, self.pairs.element))
        both = op.And(*(op.Gather(is_zero, op.const(part), axis=-1) for part in (0, 1)))
        found = op.Not(both)
        found.settle(None if self.pairs.sizes is None else self.pairs.sizes[:-1])
        return found

    def _part(self, op: Builder, which: int) -> Tensor:
        part = op.Gather(self.pairs, op.const(which), axis=-1)
        part.settle(None if self.pairs.sizes is None else self.pairs.sizes[:-1])
        return part


_TRANSLATIONS: dict[str, Callable[..., Any]] = {}


def complex_op(*names: str) -> Callable[[F], F]:
    """Register what an operator does where one of its operands or results is complex."""

    def register(function: F) -> F:
        _TRANSLATIONS.update(dict.fromkeys(names, function))
        of_complex(names)
        return function

    return register


def complex_only(*names: str) -> Callable[[F], F]:
    """The same for an operator that nobody calls without complex numbers."""

    def register(function: F) -> F:
        return complex_op(*names)(op(*names)(function))

    return register


def meets_complex(node: Node) -> bool:
    """Whether an operand or a result of the call is complex."""
    return any(is_complex(value) for value in node.outputs) or _holds_complex([*node.args, *node.kwargs.values()])


def _holds_complex(args: Sequence[Any]) -> bool:
    return any(_holds_complex(arg) if isinstance(arg, list | tuple) else is_complex(arg) for arg in args)


def translate_complex(lowering: Walk, node: Node) -> Sequence[Any] | None:
    """The results of a call by its complex translation; None where there is none."""
    function = None if isinstance(node.op, Control) else _TRANSLATIONS.get(name_of(node.op))
    if function is None:
        return None
    dtype = parts_dtype(node, [arg for arg in node.args if isinstance(arg, Value)])
    args = [_operand(lowering, arg, dtype) for arg in node.args]
    kwargs = {name: _operand(lowering, arg, dtype) for name, arg in node.kwargs.items()}
    result = function(lowering.op, *args, **kwargs)
    results = result if isinstance(result, tuple | list) else [result]
    return [item.pairs if isinstance(item, Complex) else item for item in results]


def _operand(lowering: Walk, arg: Any, dtype: torch.dtype | None) -> Any:
    """An argument as complex translations take it; with parts of a dtype, if one is named."""
    if is_complex(arg):
        pairs = lowering.tensor(arg)
        return Complex(pairs if dtype is None else lowering.op.cast(pairs, dtype))
    if isinstance(arg, list | tuple):
        return [_operand(lowering, item, dtype) for item in arg]
    return lowering.argument(arg)


def not_carried(node: Node) -> Diagnostic:
    return ComplexValue(
        message=f"`{node.op}` is not carried for complex numbers",
        place=node.place,
        label=f"{node.op} of complex numbers",
        fix="write it with the real and the imaginary part: torch.view_as_real(z)",
    )


def at_the_ends(graph: Graph) -> list[Diagnostic]:
    """Complex inputs and outputs of the model are pairs there: whoever runs it has to know."""
    ends = [("input", given.name, given.value) for given in graph.inputs]
    ends += [("output", out.name, out.value) for out in graph.outputs]
    return [
        ComplexAsPairs(
            message=f"the {what} `{name}` is complex; in the ONNX model it is {_spelt(value)}, the last axis holding "
            "the real and the imaginary part"
        )
        for what, name, value in ends
        if is_complex(value)
    ]


def _spelt(value: Value | Number) -> str:
    assert isinstance(value, Value)
    real = str(value.dtype.to_real()).removeprefix("torch.")
    return f"{real} with {len(value.shape) + 1} axes"
