"""The ONNX value that translations work with: an `ir.Value` that knows its sizes and has Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import onnx_ir as ir
import sympy
import torch

from trueport.graph.regions import Size
from trueport.lower.scope import Scope

Operand = Any
"""What may stand for an ONNX input: a Tensor, a Python number, a Number, a list of them, or None."""


class Tensor(ir.Value):
    """A value of the ONNX graph under construction.

    `sizes` are the sizes that eager gives, as integers or expressions; None for a value inside a translation, of which
    only the dtype is known. `scope` is where a node of ours makes it; None for inputs and weights. The operators are
    those that onnxscript's functions use on their values.
    """

    __slots__ = ("builder", "scope", "sizes")

    def __init__(
        self,
        builder: Emitter,
        name: str,
        dtype: ir.DataType | None = None,
        sizes: tuple[Size, ...] | None = None,
    ) -> None:
        super().__init__(name=name, type=None if dtype is None else ir.TensorType(dtype))
        self.builder = builder
        self.scope: Scope | None = None
        self.sizes: tuple[Size, ...] | None = None
        self.settle(sizes)

    def settle(self, sizes: tuple[Size, ...] | None) -> None:
        """Say what the sizes are, to translations and in the model."""
        if sizes is not None:
            self.sizes = sizes
            self.shape = self.builder.sizes.declared(sizes)

    def __bool__(self) -> bool:
        raise TypeError(f"a translation asked whether {self.name} is true, which is known only when the model runs")

    @property
    def rank(self) -> int:
        if self.sizes is not None:
            return len(self.sizes)
        if self.shape is not None:
            return len(self.shape)
        raise ValueError(f"the rank of {self.name} is not known")

    @property
    def known_sizes(self) -> tuple[Size, ...]:
        if self.sizes is None:
            raise ValueError(f"the sizes of {self.name} are not known")
        return self.sizes

    @property
    def element(self) -> ir.DataType:
        """The dtype, where there must be one."""
        if self.dtype is None:
            raise ValueError(f"the dtype of {self.name} is not known")
        return self.dtype

    def __neg__(self) -> Tensor:
        return self.builder.Neg(self)

    def __add__(self, other: Operand) -> Tensor:
        return self.builder.Add(self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self.builder.Add(other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return self.builder.Sub(self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self.builder.Sub(other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return self.builder.Mul(self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self.builder.Mul(other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.builder.Div(self, other)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.builder.MatMul(self, other)

    def __pow__(self, other: Operand) -> Tensor:
        return self.builder.Pow(self, other)

    def __mod__(self, other: Operand) -> Tensor:
        return self.builder.Mod(self, other, fmod=int(self.element.is_floating_point()))

    def __lt__(self, other: Operand) -> Tensor:
        return self.builder.Less(self, other)

    def __le__(self, other: Operand) -> Tensor:
        return self.builder.LessOrEqual(self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return self.builder.Greater(self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return self.builder.GreaterOrEqual(self, other)

    def __rand__(self, other: Operand) -> Tensor:
        return self.builder.And(other, self)


class SizeArithmetic(Protocol):
    """What is asked of `Sizes` by those whom it asks itself."""

    def declared(self, sizes: Sequence[Size]) -> ir.Shape: ...

    def part(self, expr: sympy.Basic) -> Tensor: ...

    def constant(self, value: float, dtype: ir.DataType) -> Tensor: ...

    def is_natural(self, expr: sympy.Basic) -> bool: ...


class Emitter(Protocol):
    """What is asked of `Builder` by those whom it asks itself: size arithmetic, exact functions, tensors."""

    scope: Scope
    never_nan: set[Tensor]

    @property
    def sizes(self) -> SizeArithmetic: ...

    def around(self, scope: Scope) -> AbstractContextManager[None]: ...

    def for_all(self) -> AbstractContextManager[None]: ...

    def const(self, value: Any, dtype: ir.DataType | torch.dtype | None = None) -> Tensor: ...

    def ints(self, *values: int) -> Tensor: ...

    def cast(self, x: Tensor, dtype: ir.DataType | torch.dtype) -> Tensor: ...

    def many(self, name: str, count: int, *inputs: Operand, **attributes: Any) -> tuple[Tensor, ...]: ...

    def shared(self, *key: Hashable, make: Callable[[], Tensor]) -> Tensor: ...

    def __getattr__(self, name: str) -> Callable[..., Tensor]: ...
