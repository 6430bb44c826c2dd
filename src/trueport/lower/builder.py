"""Emits ONNX nodes.

A `Builder` stands for the ONNX opset in a translation: `op.Add(x, 1)` appends a node to the current scope and returns
its output. Python numbers take the dtype of the tensors that they meet, as the schema demands; equal constants are one
node per scope; each output knows its dtype; each node carries the user's line, module path and ATen op.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy
import torch

from trueport.diagnostics.base import Diagnostic
from trueport.graph.regions import Control, Node, Number, Value
from trueport.lower.attributes import attribute
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.faulty_kernels import written_otherwise
from trueport.lower.forms import PLAIN, Asked, older_form
from trueport.lower.noted import CALL, notes_of
from trueport.lower.scope import DEEPEST, NestedTooDeep, Scope, Shelf
from trueport.lower.signature import SchemaSlot, Signature, signature_of
from trueport.lower.sizes import AnySize, Sizes
from trueport.lower.tensor import Operand, Tensor
from trueport.source import Place

_PLAIN: dict[type, ir.DataType] = {bool: ir.DataType.BOOL, int: ir.DataType.INT64, float: ir.DataType.FLOAT}
_DTYPE_ATTRIBUTES = ("to", "dtype")
_OUTPUT = "output"
"""What stands for the ATen call of nodes that only hand over what forward returned."""


_FLOAT8 = frozenset(
    (
        ir.DataType.FLOAT8E4M3FN,
        ir.DataType.FLOAT8E4M3FNUZ,
        ir.DataType.FLOAT8E5M2,
        ir.DataType.FLOAT8E5M2FNUZ,
    )
)


class Builder:
    """The ONNX graph under construction, one scope of it at a time."""

    def __init__(self, opset: int, taken_names: set[str] | None = None) -> None:
        self.opset = opset
        self.scope = Scope()
        self.sizes = Sizes(self)
        self.node: Node | None = None
        self.domains: dict[str, int] = {"": opset}
        self.functions: dict[ir.OperatorIdentifier, ir.Function] = {}
        self.notes: list[Diagnostic] = []
        """What translations have to say about the calls that they translated."""
        self.used: Container[object] | None = None
        """The captured values that something reads; None where nobody knows."""
        self.never_nan: set[Tensor] = set()
        """The inputs of the model, and what is known to be no NaN where those are none (nan.py)."""
        self._taken = taken_names if taken_names is not None else set()
        self._count = 0
        self._metadata: dict[str, str] = {}
        self._constants: Shelf[tuple[ir.DataType, tuple[int, ...], bytes], Tensor] = Shelf("constants")
        self._shared: Shelf[tuple[Hashable, ...], Tensor] = Shelf("shared by translations")

    # Where we are

    @contextlib.contextmanager
    def inside(self) -> Iterator[Scope]:
        """A subgraph: what is emitted meanwhile belongs to it, and is forgotten by the scopes around it."""
        outer = self.scope
        if outer.depth == DEEPEST:
            raise NestedTooDeep
        self.scope = Scope(outer)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextlib.contextmanager
    def around(self, scope: Scope) -> Iterator[None]:
        """What is emitted meanwhile belongs to this graph, which is one of those around the present one, or itself."""
        inner = self.scope
        self.scope = scope
        try:
            yield
        finally:
            self.scope = inner

    @contextlib.contextmanager
    def translating(self, node: Node) -> Iterator[None]:
        """Nodes emitted meanwhile come from this ATen call."""
        before, before_metadata = self.node, self._metadata
        self.node, self._metadata = node, _metadata(node)
        try:
            yield
        finally:
            self.node, self._metadata = before, before_metadata

    @contextlib.contextmanager
    def putting_out(self, place: Place | None) -> Iterator[None]:
        """Nodes emitted meanwhile make an output of what was left open at a line."""
        before, self._metadata = self._metadata, notes_of(_OUTPUT, place or Place())
        try:
            yield
        finally:
            self._metadata = before

    @contextlib.contextmanager
    def for_all(self) -> Iterator[None]:
        """Nodes emitted meanwhile are looked up again by whoever needs the same."""
        before = self._metadata
        if CALL in before:
            self._metadata = {**before, CALL: f"{before[CALL].rstrip('*')}*"}
        try:
            yield
        finally:
            self._metadata = before

    @property
    def result(self) -> Value:
        """The first tensor that eager gives for the call being translated: its dtype and its sizes."""
        for value in self.node.outputs if self.node else ():
            if isinstance(value, Value):
                return value
        raise ValueError("the call being translated gives no tensor")

    def wants(self, *results: int) -> bool:
        """Whether something reads one of these results of the call: what nobody reads need not be computed."""
        outputs = self.node.outputs if self.node else ()
        return self.used is None or any(i < len(outputs) and outputs[i] in self.used for i in results)

    def new_name(self, stem: str) -> str:
        while True:
            self._count += 1
            name = f"{stem}_{self._count}"
            if name not in self._taken:
                return name

    # Values that are not computed

    def const(self, value: Any, dtype: ir.DataType | torch.dtype | None = None) -> Tensor:
        """A constant of this scope: a number, a nested list of numbers, or a numpy array."""
        if isinstance(dtype, torch.dtype):
            dtype = onnx_dtype(dtype)
        if dtype is None:
            dtype = ir.DataType.from_numpy(value.dtype) if isinstance(value, np.ndarray) else _plain_dtype(value)
        array = _array(value, dtype)
        key = (dtype, array.shape, array.tobytes())
        found = self._constants.get(self.scope, key)
        if found is None:
            found = self._constants.put(self.scope, key, self._constant(array, dtype))
        return found

    def _constant(self, array: np.ndarray[Any, Any], dtype: ir.DataType) -> Tensor:
        content = ir.Tensor(array, dtype=dtype)
        out = Tensor(self, self.new_name("const"), dtype, array.shape)
        out.const_value = content
        self._append("Constant", "", [], [ir.AttrTensor("value", content)], [out])
        return out

    def shared(self, *key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """What several calls need alike (the causal mask of every layer), made once per scope."""
        found = self._shared.get(self.scope, key)
        if found is None:
            with self.for_all():
                found = self._shared.put(self.scope, key, make())
        return found

    def cast(self, x: Tensor, dtype: ir.DataType | torch.dtype) -> Tensor:
        """`x` in another dtype; `x` itself when it has it already."""
        wanted = onnx_dtype(dtype) if isinstance(dtype, torch.dtype) else dtype
        if x.dtype == wanted:
            return x
        # What is too large for a float8 is infinite, or NaN, in eager; ONNX's default is the largest number.
        out = self.Cast(x, to=int(wanted), saturate=0) if wanted in _FLOAT8 else self.Cast(x, to=int(wanted))
        out.sizes = x.sizes
        return out

    def scalar(self, x: Operand, dtype: ir.DataType | torch.dtype) -> Tensor:
        """An operand that is a tensor already, or a Python number that becomes one, in a dtype."""
        if isinstance(x, Tensor):
            return self.cast(x, dtype)
        if isinstance(x, Number):
            return self.cast(self.sizes.scalar(x), dtype)
        return self.const(x, dtype)

    def size(self, size: AnySize) -> Tensor:
        """A size or a Python number that is not the same in every run, as a 0-d tensor."""
        return self.sizes.scalar(size)

    def shape(self, sizes: Sequence[AnySize]) -> Tensor:
        """Sizes as a 1-d int64 tensor; a constant when all are known."""
        return self.sizes.vector(sizes)

    def ints(self, *values: int) -> Tensor:
        """A constant 1-d int64 tensor (axes, pads, a shape)."""
        return self.const(np.array(values, dtype=np.int64), ir.DataType.INT64)

    # Shapes

    def reshape(self, x: Tensor, sizes: Sequence[AnySize]) -> Tensor:
        """`x` in other sizes; `x` itself when it has them."""
        wanted = tuple(size.expr if isinstance(size, Number) else size for size in sizes)
        if x.sizes == wanted:
            return x
        target, zeros_meant = self.sizes.reshape_target(x.sizes, wanted)
        out = self.Reshape(x, target, allowzero=int(zeros_meant) or None)
        out.settle(wanted)
        return out

    def expand(self, x: Tensor, sizes: Sequence[AnySize]) -> Tensor:
        """`x` broadcast to sizes. An axis that keeps its size is asked for as 1, which leaves it alone."""
        wanted = tuple(size.expr if isinstance(size, Number) else size for size in sizes)
        if x.sizes == wanted:
            return x
        before = x.known_sizes
        lead = len(wanted) - len(before)
        asked = [1 if i >= lead and before[i - lead] == size else size for i, size in enumerate(wanted)]
        out = self.Expand(x, self.shape(asked))
        out.settle(wanted)
        return out

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        if list(order) == list(range(len(order))):
            return x
        out = self.Transpose(x, perm=list(order))
        if x.sizes is not None:
            out.settle(tuple(x.sizes[axis] for axis in order))
        return out

    def range(self, length: AnySize) -> Tensor:
        """0, 1, ... as a 1-d int64 tensor."""
        out = self.Range(self.const(0), self.size(length), self.const(1))
        out.settle((length.expr if isinstance(length, Number) else length,))
        return out

    # Nodes

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if not name[0].isupper():
            raise AttributeError(name)
        emit = functools.partial(self._one, self.signature(name))
        self.__dict__[name] = emit
        return emit

    def _one(self, signature: Signature, *inputs: Operand, **attributes: Any) -> Tensor:
        return self.emit(signature, inputs, attributes, 1)[0]

    def many(self, name: str, count: int, *inputs: Operand, **attributes: Any) -> tuple[Tensor, ...]:
        """A node of which the first `count` outputs are wanted."""
        return self.emit(self.signature(name), inputs, attributes, count)

    def signature(self, name: str) -> Signature:
        """An operator as translations write it, whatever the older opset says that is written (forms.py)."""
        return signature_of(name, max(self.opset, PLAIN))

    def custom(self, domain: str, name: str, *inputs: Operand, version: int = 1, **attributes: Any) -> Tensor:
        """A node of a domain that the user's runtime knows. Its dtype is what eager gives for the call."""
        self.domains[domain] = version
        return self.foreign(domain, name, inputs, attributes, 1)[0]

    def foreign(
        self, domain: str, name: str, inputs: Sequence[Operand], attributes: Mapping[str, Any], count: int
    ) -> tuple[Tensor, ...]:
        """A node without a schema: of another domain, or a call of a function of the model."""
        self.domains.setdefault(domain, 1)
        values = [x if x is None or isinstance(x, Tensor) else self.const(x) for x in inputs]
        given = [attribute(key, value) for key, value in attributes.items() if value is not None]
        outputs = tuple(Tensor(self, self.new_name(name)) for _ in range(count))
        self._append(name, domain, values, given, outputs)
        return outputs

    def emit(
        self, signature: Signature, inputs: Sequence[Operand], attributes: Mapping[str, Any], count: int
    ) -> tuple[Tensor, ...]:
        """Append one node. `inputs` may hold Python numbers and Numbers; None stands for an input left out."""
        dtypes = _known_dtypes(signature, inputs)
        values = [self._operand(x, signature.input(i), dtypes) for i, x in enumerate(inputs)]
        while values and values[-1] is None:
            values.pop()
        instead = None if signature.domain else written_otherwise(self, signature.name, values, attributes)
        if instead is not None:
            return (instead,)
        if not signature.domain:
            form = older_form(self, self.opset, Asked(signature.name, tuple(values), attributes, count))
            if not isinstance(form, Asked):
                return form
            values, attributes = list(form.inputs), form.attributes
        types = self._attribute_types(signature)
        given = [attribute(key, value, types.get(key)) for key, value in attributes.items() if value is not None]
        outputs = []
        for i in range(count):
            slot = signature.outputs[min(i, len(signature.outputs) - 1)]
            dtype = slot.dtype or dtypes.get(slot.shares) or _dtype_by_attribute(signature.name, given)
            outputs.append(Tensor(self, self.new_name(signature.name), dtype))
        self._append(signature.name, signature.domain, values, given, outputs)
        return tuple(outputs)

    def _attribute_types(self, signature: Signature) -> Mapping[str, ir.AttributeType]:
        """In the opset that is written. The types of inputs and outputs may have other names there than in the form."""
        return signature.attributes if signature.domain else signature_of(signature.name, self.opset).attributes

    def append(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        attributes: Sequence[ir.Attr],
        outputs: Sequence[Tensor],
    ) -> None:
        """Append a node whose parts are made already (a control-flow operator)."""
        self._append(name, "", inputs, attributes, outputs)

    def _append(
        self,
        name: str,
        domain: str,
        inputs: Sequence[Tensor | None],
        attributes: Sequence[ir.Attr],
        outputs: Sequence[Tensor],
    ) -> None:
        for out in outputs:
            out.scope = self.scope
        self.scope.nodes.append(
            ir.Node(
                domain,
                name,
                inputs=inputs,
                attributes=attributes,
                outputs=outputs,
                name=f"node_{outputs[0].name}",
                metadata_props=dict(self._metadata),
            )
        )

    def _operand(self, x: Operand, slot: SchemaSlot, dtypes: Mapping[str, ir.DataType]) -> Tensor | None:
        if x is None or isinstance(x, Tensor):
            return x
        dtype = slot.dtype or dtypes.get(slot.shares)
        if isinstance(x, bool | int | float):
            return self.const(x, dtype)
        if isinstance(x, Number | sympy.Basic):
            value = self.sizes.scalar(x)
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(x, list | tuple) and any(isinstance(item, Number | sympy.Basic | Tensor) for item in x):
            value = self.sizes.vector(x)
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(x, ir.TensorProtocol):
            return self.const(x.numpy(), x.dtype)
        return self.const(x, dtype)


def _known_dtypes(signature: Signature, inputs: Sequence[Operand]) -> dict[str, ir.DataType]:
    """The dtype behind each shared name of the schema, from the tensors given; else from the Python numbers."""
    found: dict[str, ir.DataType] = {}
    plain: dict[str, ir.DataType] = {}
    for i, x in enumerate(inputs):
        shares = signature.input(i).shares
        if isinstance(x, Tensor):
            if shares not in found and x.dtype is not None:
                found[shares] = x.dtype
        elif isinstance(x, Number):
            plain.setdefault(shares, onnx_dtype(x.dtype))
        elif isinstance(x, bool | int | float) and (shares not in plain or isinstance(x, float)):
            plain[shares] = _PLAIN[type(x)]
    if signature.name == "Pow" and ir.DataType.DOUBLE in found.values():  # whose exponent has a dtype of its own
        plain = dict.fromkeys(plain, ir.DataType.DOUBLE)
    return plain | found


def _dtype_by_attribute(name: str, attributes: Sequence[ir.Attr]) -> ir.DataType | None:
    """Some operators are told the dtype of their output: Cast, EyeLike, RandomNormal, ConstantOfShape."""
    for given in attributes:
        if given.name in _DTYPE_ATTRIBUTES:
            return ir.DataType(given.as_int())
        if given.name == "value":
            return given.as_tensor().dtype
    return ir.DataType.FLOAT if name in ("ConstantOfShape", "RandomNormal", "RandomUniform") else None


def _plain_dtype(value: Any) -> ir.DataType:
    while isinstance(value, list | tuple):
        if any(isinstance(item, float) for item in value):
            return ir.DataType.FLOAT
        value = value[0] if value else 0
    return _PLAIN[type(value)]


def _array(value: Any, dtype: ir.DataType) -> np.ndarray[Any, Any]:
    if isinstance(value, float) and dtype.is_integer() and not value.is_integer():
        raise ValueError(f"{value} is not a number of dtype {dtype.name.lower()}")
    if isinstance(value, int) and dtype.is_integer() and dtype.itemsize < 8:
        return np.asarray(value, dtype=np.int64).astype(dtype.numpy())  # wraps around, as a number does in eager
    return np.asarray(value, dtype=dtype.numpy())


def _metadata(node: Node) -> dict[str, str]:
    return notes_of(_spelt(node.op), node.place)


@functools.cache
def _spelt(target: object) -> str:
    return str(target.value) if isinstance(target, Control) else str(target)
