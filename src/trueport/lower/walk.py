"""What a walk over a graph offers to those whom it asks: control flow, sequences, complex numbers."""

from __future__ import annotations

from typing import Any, Protocol

import onnx_ir as ir

from trueport.graph.regions import Node, Number, Region, Value
from trueport.lower.builder import Builder
from trueport.lower.complex.twins import Twins
from trueport.lower.tensor import Tensor


class Walk(Protocol):
    """`Lowering`, which says what each of these does."""

    op: Builder
    twins: Twins

    def bind(self, value: Value | Number, tensor: Tensor) -> None: ...

    def tensor(self, value: Any, dtype: ir.DataType | None = None) -> Tensor: ...

    def argument(self, arg: Any) -> Any: ...

    def run(self, region: Region) -> None: ...

    def node(self, node: Node) -> None: ...

    def part(self, value: Value, imaginary: bool) -> Value: ...

    def truth(self, value: Value) -> Value: ...

    def zeros_like(self, value: Value) -> Value: ...
