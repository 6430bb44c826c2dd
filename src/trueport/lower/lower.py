"""From the captured graph of regions to an ONNX model.

    lower(graph, opset=20) -> Lowered(model, diagnostics)

Every region is walked once. Each ATen call is handed to its translation, whose result is brought to the dtype that
eager gives; a call that cannot be translated is noted and the walk goes on, so that one run names them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import sympy
import torch

from trueport.capture.assumptions import declared_sizes
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import Control, Graph, Node, Number, OpenItems, Region, Returns, Value, is_carried
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, at_the_ends, meets_complex, not_carried, translate_complex
from trueport.lower.complex.pairs import on_twins
from trueport.lower.complex.parts import by_parts, by_truth
from trueport.lower.complex.twins import Twins
from trueport.lower.control import lower_control
from trueport.lower.dtypes import align, onnx_dtype
from trueport.lower.failed import NeedsOnnxscript, needs_opset, not_translated
from trueport.lower.opsets import ir_version_for
from trueport.lower.passes.dtypes_of_opset import refuse_newer_dtypes
from trueport.lower.passes.exact_factors import keep_factors_exact
from trueport.lower.passes.legalise import legalise
from trueport.lower.passes.padded_pools import keep_padding
from trueport.lower.passes.unread import without_unread
from trueport.lower.scope import NestedTooDeep
from trueport.lower.sequences import is_sequence, sequence_of
from trueport.lower.signature import NeedsOpset
from trueport.lower.subgraphs import made_here
from trueport.lower.table import Translation, is_dropped, name_of, translation_for
from trueport.lower.tensor import Tensor
from trueport.lower.unknown_dtypes import without_onnx_dtype
from trueport.lower.weights import Weights
from trueport.torch_internals import OpOverload

CustomTable = Mapping[OpOverload, Callable[..., Any]]


@dataclass(frozen=True)
class Lowered:
    """The ONNX model, and what there is to say about it. There is no model when a diagnostic is an error."""

    model: ir.Model | None
    diagnostics: tuple[Diagnostic, ...] = ()
    names: Mapping[Value, str] = field(default_factory=dict)
    """What each captured value is called in the model."""


def lower(graph: Graph, opset: int = 20, custom: CustomTable | None = None) -> Lowered:
    """Translate a captured graph. Errors are collected, never raised."""
    lowered = _in_opset(graph, opset, custom)
    needed = [int(found.facts["opset"]) for found in lowered.diagnostics if isinstance(found, OpsetUnsupported)]
    if not needed:
        return lowered
    # What one operator needs is known. What the whole model needs, in the forms that it has there, is tried.
    for later in range(max(needed), onnx.defs.onnx_opset_version() + 1):
        if not any(isinstance(found, OpsetUnsupported) for found in _in_opset(graph, later, custom).diagnostics):
            return Lowered(None, tuple(_with_lowest(found, later) for found in lowered.diagnostics))
    return lowered


def _with_lowest(found: Diagnostic, opset: int) -> Diagnostic:
    if not isinstance(found, OpsetUnsupported):
        return found
    fix = told("pass ", option("opset_version", opset), ", the lowest that has all that the model needs")
    return replace(found, fix=fix, facts={"opset": str(opset)})


def _in_opset(graph: Graph, opset: int, custom: CustomTable | None) -> Lowered:
    if refused := without_onnx_dtype(graph):
        return Lowered(None, tuple(refused))
    lowering = Lowering(graph, opset, custom)
    inputs = lowering.inputs()
    lowering.run(graph.root)
    if any(found.is_error for found in lowering.diagnostics):
        return Lowered(None, tuple(lowering.diagnostics))
    outputs = lowering.outputs()
    if any(found.is_error for found in lowering.diagnostics):
        return Lowered(None, tuple(lowering.diagnostics))
    op = lowering.op
    main = ir.Graph(
        inputs,
        outputs,
        nodes=op.scope.nodes,
        initializers=lowering.weights.initializers,
        opset_imports=op.domains,
        name="main",
    )
    model = ir.Model(
        main,
        ir_version=ir_version_for(opset),
        producer_name="trueport",
        functions=list(op.functions.values()),
    )
    gone = without_unread(model)
    keep_factors_exact(model)
    keep_padding(model)
    names = {value: name for value, name in lowering.names().items() if name not in gone}
    told = (*lowering.diagnostics, *op.notes, *at_the_ends(graph), *legalise(model))
    if newer := tuple(refuse_newer_dtypes(model)):
        return Lowered(None, (*told, *newer))
    return Lowered(model, told, names)


def _sizes_of_outputs(graph: Graph) -> dict[sympy.Symbol, str]:
    """How many a mask selects, or how long a list became, has no name of the user's: it is an axis of an output."""
    taken = {size.name for size in graph.size_symbols.values()}
    names: dict[sympy.Symbol, str] = {}
    for out in graph.outputs:
        value = out.value.rows if isinstance(out.value, OpenItems) else out.value
        for axis, size in enumerate(value.shape if isinstance(value, Value) else ()):
            name = f"{re.sub(r'[^A-Za-z0-9_]', '_', out.name)}_dim{axis}"
            if isinstance(size, sympy.Symbol) and name not in taken:
                names.setdefault(size, name)
    return names


class Lowering:
    """The walk over one graph: which ONNX value stands for which captured one."""

    def __init__(self, graph: Graph, opset: int, custom: CustomTable | None = None) -> None:
        self.graph = graph
        self.custom = custom
        self.diagnostics: list[Diagnostic] = []
        self.op = Builder(opset, _names(graph))
        self.op.sizes.name(
            declared_sizes(graph),
            {symbol: size.minimum for symbol, size in graph.size_symbols.items()},
        )
        self.op.sizes.name_results(_sizes_of_outputs(graph))
        self.weights = Weights(self.op, graph.weights)
        self.twins = Twins()
        self._tensors: dict[Value, Tensor] = {}
        self._used = self.op.used = used_values(graph)

    # The ends

    def inputs(self) -> list[Tensor]:
        found = []
        for given in self.graph.inputs:
            value = self.twins.everywhere(given.value)
            sizes = value.shape if isinstance(value, Value) else ()
            found.append(Tensor(self.op, given.name, onnx_dtype(value.dtype), sizes))
        for given, tensor in zip(self.graph.inputs, found, strict=True):
            self.bind(given.value, tensor)
        self.op.never_nan.update(found)
        return found

    def outputs(self) -> list[Tensor]:
        """Tensors, numbers that differ between runs and numbers that do not; None and text are not ONNX outputs."""
        wanted = [out for out in self.graph.outputs if is_carried(out.value)]
        own = made_here(self.op, [self._output(out.value) for out in wanted])
        for out, tensor in zip(wanted, own, strict=True):
            tensor.name = out.name
            if tensor.shape is None and not is_sequence(tensor):
                value = self.twins.everywhere(out.value)
                tensor.settle(value.shape if isinstance(value, Value) else ())
        return own

    def _output(self, value: Any) -> Tensor:
        if not isinstance(value, OpenItems):
            return self.tensor(value)
        with self.op.putting_out(value.place):
            try:
                return self.tensor(value.rows) if value.number is not None else sequence_of(self, value)
            except NeedsOpset as needed:
                self.diagnostics.append(needs_opset(needed, value.place, "output"))
                return Tensor(self.op, self.op.new_name("missing"), onnx_dtype(value.rows.dtype), ())

    def names(self) -> dict[Value, str]:
        return {self.twins.origin(value): tensor.name for value, tensor in self._tensors.items() if tensor.name}

    # Values

    def bind(self, value: Value | Number, tensor: Tensor) -> None:
        """`tensor` stands for `value` from here on, and its axes for their symbols."""
        value = self.twins.everywhere(value)
        if isinstance(value, Value):
            self._tensors[value] = tensor
            self.op.sizes.bind(tensor, value.shape)
        else:
            self.op.sizes.bind_number(value, tensor)

    def tensor(self, value: Any, dtype: ir.DataType | None = None) -> Tensor:
        """The ONNX value of a captured value, a Number or a Python constant; in a dtype, if one is named."""
        if isinstance(value, Value):
            real = self.twins.everywhere(value)
            found = self._tensors.get(real)
            if found is None and (found := self.weights.find(self.twins.origin(value))) is not None:
                self._tensors[real] = found
            if found is None:
                raise LookupError(f"{value!r} is used where nothing has made it")
        elif isinstance(value, Number | sympy.Basic):
            found = self.op.size(value)
        else:
            found = self.op.const(value, ir.DataType.DOUBLE if isinstance(value, float) and dtype is None else dtype)
        return found if dtype is None else self.op.cast(found, dtype)

    def argument(self, arg: Any) -> Any:
        """An argument of an ATen call as translations take it."""
        if isinstance(arg, Value):
            return self.tensor(arg)
        if isinstance(arg, Number):
            return int(arg.expr) if arg.expr.is_Integer else arg
        if isinstance(arg, list | tuple):
            return [self.argument(item) for item in arg]
        return arg

    # The walk

    def run(self, region: Region) -> None:
        for node in region.nodes:
            with self.op.translating(node):
                self.node(node)

    def node(self, node: Node) -> None:
        """Translate one node and bind what it gives."""
        if meets_complex(node) and not isinstance(node.op, Control):
            self._complex_node(node)
            return
        if isinstance(node.op, Control):
            try:
                lower_control(self, node)
            except (NestedTooDeep, LookupError, ValueError) as error:
                self._give_up(node, not_translated(node, error))
            return
        if is_dropped(node.op):
            return
        translation = translation_for(node.op, self.custom)
        if translation is None:
            message = f"`{name_of(node.op)}` has no ONNX translation and no decomposition"
            self._give_up(
                node, UnsupportedOperator(message=message, place=node.place, label=f"calls {name_of(node.op)}")
            )
            return
        try:
            results = self._translate(node, translation)
            self._settle(node, results)
        except Exception as error:  # noqa: BLE001 (a translation may be anybody's code; it becomes a diagnostic)
            self._give_up(node, not_translated(node, error))

    def _complex_node(self, node: Node) -> None:
        """A call that meets complex numbers: on pairs of real ones, by a translation of its own, or by its parts."""
        if (real := on_twins(node, self.twins) or by_truth(self, node)) is not None:
            with self.op.translating(real):
                self.node(real)
            return
        outputs = tuple(self.twins.everywhere(value) for value in node.outputs)
        try:
            results = translate_complex(self, node)
            if results is None:
                results = by_parts(self, node)
            if results is None:
                self._give_up(replace(node, outputs=outputs), not_carried(node))
            else:
                self._settle(replace(node, outputs=outputs), results)
        except Exception as error:  # noqa: BLE001 (a translation may be anybody's code; it becomes a diagnostic)
            self._give_up(replace(node, outputs=outputs), not_translated(node, error))

    def part(self, value: Value, imaginary: bool) -> Value:
        """A real value that is one part of a complex one."""
        pairs = Complex(self.tensor(value))
        found = Value(value.dtype.to_real(), value.shape)
        self.bind(found, pairs.imaginary(self.op) if imaginary else pairs.real(self.op))
        return found

    def truth(self, value: Value) -> Value:
        """A bool for each complex number: whether it is not zero."""
        found = Value(torch.bool, value.shape)
        self.bind(found, Complex(self.tensor(value)).is_not_zero(self.op))
        return found

    def zeros_like(self, value: Value) -> Value:
        found = Value(value.dtype, value.shape)
        self.bind(found, self.op.expand(self.op.const(0, value.dtype), value.shape))
        return found

    def _translate(self, node: Node, translation: Translation) -> Sequence[Any]:
        args = [self.argument(arg) for arg in node.args]
        kwargs = {name: self.argument(arg) for name, arg in node.kwargs.items()}
        args, kwargs = align(self.op, node, args, kwargs)
        if translation.takes_builder:
            result = translation.function(self.op, *args, **kwargs)
        else:
            result = _with_onnxscript(self.op, translation.function, args, kwargs)
            if node.returns is Returns.LIST and isinstance(result, Tensor):
                result = [self.op.SequenceAt(result, np.int64(i)) for i in range(len(node.outputs))]
        if node.returns in (Returns.TUPLE, Returns.LIST):
            return list(result)
        return [result]

    def _settle(self, node: Node, results: Sequence[Any]) -> None:
        """Bind what a translation returned, in the dtype that eager gives."""
        for i, value in enumerate(node.outputs):
            result = results[i] if i < len(results) else None
            origin = self.twins.origin(value) if isinstance(value, Value) else value
            if result is None and origin in self._used:
                raise NotImplementedError(f"its result number {i} is used, which the translation leaves out")
            if value is None or result is None:
                continue
            tensor = result if isinstance(result, Tensor) else self.op.const(result, value.dtype)
            if tensor.dtype is None:
                tensor.dtype = onnx_dtype(value.dtype)
            if isinstance(value, Value):
                tensor = self.op.cast(tensor, value.dtype)
                if tensor.shape is None:
                    tensor.settle(value.shape)
            self.bind(value, tensor)

    def _give_up(self, node: Node, diagnostic: Diagnostic) -> None:
        """Note it, and stand something in for the results so that the rest of the model is looked at too."""
        self.diagnostics.append(diagnostic)
        for value in node.outputs:
            if value is not None:
                sizes = value.shape if isinstance(value, Value) else ()
                self.bind(value, Tensor(self.op, self.op.new_name("missing"), onnx_dtype(value.dtype), sizes))


def _with_onnxscript(op: Builder, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Imported here: an extra, and half a second that only models with such translations pay."""
    try:
        from trueport.lower import onnxscript_functions
    except ModuleNotFoundError as missing:
        if missing.name != "onnxscript":
            raise
        raise NeedsOnnxscript from missing
    return onnxscript_functions.call(op, function, args, kwargs)


def used_values(graph: Graph) -> set[object]:
    """The values that something reads. Results for the backward pass, that nobody reads, need no translation."""
    found: set[object] = set()

    def note(arg: Any) -> None:
        if isinstance(arg, Value):
            found.add(arg)
        elif isinstance(arg, list | tuple):
            for item in arg:
                note(item)

    for node in graph.root.walk():
        if not isinstance(node.op, Control) and is_dropped(node.op):
            continue
        note(node.args)
        note(list(node.kwargs.values()))
        for region in node.regions:
            note(region.outputs)
    note([read for out in graph.outputs for read in out.reads])
    return found


def _names(graph: Graph) -> set[str]:
    """Names that are the user's: no value of ours may have one of them."""
    return (
        {given.name for given in graph.inputs} | {out.name for out in graph.outputs} | {w.name for w in graph.weights}
    )
