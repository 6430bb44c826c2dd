"""The distinct calls of a captured graph.

Two calls are the same where the operator, the dtypes and axes of its tensors, its other arguments and what may be among
its operands are: their lowering is the same, and one of them speaks for both. A size that the call does not depend on
is no part of it (`kinds.kept_sizes`): `relu` of 64 channels and of 128 are one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from trueport.graph.regions import Control, Graph, Node, Number, Size, Value, Weight, WeightKind
from trueport.lower.lower import CustomTable, used_values
from trueport.lower.table import Translation, is_dropped, translation_for
from trueport.torch_internals import OpOverload
from trueport.verify.calls.kinds import (
    UNINITIALISED,
    OperatorKind,
    base_name,
    draws_random,
    is_aten,
    is_conditioned,
    kept_sizes,
    kind_of,
    named_arguments,
    reads_by_integers,
)
from trueport.verify.calls.ranges import Range, ranges_of, whole

_BY_VALUE = 64
"""Constants of so many elements belong to the call as they are; of larger ones only dtype and shape."""


@dataclass(frozen=True)
class CallOperand:
    """A tensor that a call reads. `argument` is its name in the schema, `at` its place there in a list of tensors."""

    value: Value
    argument: str
    at: int
    known: Range
    weight: bool = False
    constant: torch.Tensor | None = None


@dataclass(frozen=True)
class Call:
    """A call by itself. Its sizes are numbers that it depends on, and symbols: `fixed` ones stand for sizes that are
    one number in the model, whatever it is, the others for sizes that are free there."""

    node: Node
    operands: tuple[CallOperand, ...]
    results: tuple[Value | Number | None, ...]
    """What the model reads of what the call gives, None for the rest."""
    fixed: tuple[sympy.Symbol, ...]
    free: Mapping[sympy.Symbol, int]
    """Each with the least that it may be."""
    own: Mapping[sympy.Symbol, int]
    """What a fixed size is in the model."""
    signature: str
    """What it is, whatever values the model gives it."""
    ranges: str
    """What of these values is known; empty where nothing is."""
    remembered: bool
    """Whether its translation is ours: what a user wrote may change under the same name."""

    @property
    def op(self) -> OpOverload:
        assert isinstance(self.node.op, OpOverload)
        return self.node.op

    @property
    def kind(self) -> OperatorKind:
        return kind_of(self.op)

    def on_any_values(self) -> Call:
        """The same where nothing is known of the values: what holds there holds in every range."""
        operands = [
            each if each.weight else replace(each, known=replace(whole(each.value.dtype), infinite=each.known.infinite))
            for each in self.operands
        ]
        return replace(self, operands=tuple(operands), ranges="")


@dataclass(frozen=True)
class Calls:
    """The distinct calls of a model, with those that are left out and why."""

    distinct: tuple[Call, ...]
    left_out: Mapping[str, str]


def calls_of(graph: Graph, opset: int, custom: CustomTable | None = None) -> Calls:
    """In the order of the program."""
    known, used = ranges_of(graph), used_values(graph)
    weights = {weight.value: weight for weight in graph.weights}
    found: dict[str, Call] = {}
    left_out: dict[str, str] = {}
    seen: set[tuple[Any, ...]] = set()
    for node in graph.root.walk():
        if isinstance(node.op, Control) or is_dropped(node.op):
            continue
        as_written = _as_written(node, known, used, weights)
        if as_written in seen:  # of the same layer again: most of a deep model
            continue
        seen.add(as_written)
        if reason := _left_out(node):
            left_out.setdefault(str(node.op), reason)
            continue
        call = _call(node, graph, known, used, weights, opset, translation_for(node.op, custom))
        if any(result is not None for result in call.results):
            found.setdefault(call.signature + call.ranges, call)
    return Calls(tuple(found.values()), left_out)


def _as_written(
    node: Node, known: Mapping[Value, Range], used: set[object], weights: Mapping[Value, Weight]
) -> tuple[Any, ...]:
    """What two calls of one model have in common that are surely the same."""
    places: dict[Value, int] = {}

    def of(argument: Any) -> Any:
        if isinstance(argument, Value):
            if argument in places:
                return places[argument]
            places[argument] = len(places)
            weight = weights.get(argument)
            own = argument if weight is not None and weight.kind is not WeightKind.PARAMETER else weight is not None
            return (argument.dtype, argument.shape, known.get(argument), own)
        if isinstance(argument, tuple | list):
            return tuple(of(item) for item in argument)
        return argument if isinstance(argument, Number) else (type(argument), str(argument))

    outputs = tuple(
        (out.dtype, getattr(out, "shape", ()), out in used) if out is not None else None for out in node.outputs
    )
    return (node.op, of(node.args), tuple((name, of(value)) for name, value in node.kwargs.items()), outputs)


def _left_out(node: Node) -> str:
    if not any(isinstance(output, Value) for output in node.outputs):
        return "gives a Python number"
    assert isinstance(node.op, OpOverload)
    if not is_aten(node.op):
        return "no operator of torch's"
    if base_name(node.op) in UNINITIALISED:
        return "its result is uninitialised memory"
    if is_conditioned(node.op):
        return "as exact as its operands let it be"
    if draws_random(node):
        return "draws random numbers"
    if reads_by_integers(node):
        return "its integers tell eager where to read, so that drawn ones could end the process"
    tensors = [*_values((node.args, tuple(node.kwargs.values()))), *node.outputs]
    if any(isinstance(each, Value) and each.dtype is torch.complex32 for each in tensors):
        return "complex numbers of half precision"
    return ""


def _call(
    node: Node,
    graph: Graph,
    known: Mapping[Value, Range],
    used: set[object],
    weights: Mapping[Value, Weight],
    opset: int,
    translation: Translation | None,
) -> Call:
    given = named_arguments(node)
    kept = kept_sizes(node, given)
    if kept is not None:
        read = _values((node.args, tuple(node.kwargs.values())))
        kept |= {
            size
            for each in read
            if _constant(each, weights) is not None
            for size in each.shape
            if isinstance(size, int)
        }
    sizes = _Sizes(graph, kept, _numbers((node.args, tuple(node.kwargs.values()))))
    operands: dict[Value, CallOperand] = {}
    for argument, content in given.items():
        items = content if isinstance(content, tuple | list) else (content,)
        for at, value in enumerate(items):
            if isinstance(value, Value) and value not in operands:
                operands[value] = _operand(value, argument, at, known, weights, sizes)
    place_of = {value: f"%{at}" for at, value in enumerate(operands)}
    arguments = _text((node.args, tuple(sorted(node.kwargs.items()))), place_of, sizes)
    args = _rebound(node.args, operands, sizes)
    kwargs = {name: _rebound(value, operands, sizes) for name, value in node.kwargs.items()}
    fixed, free = dict(sizes.fixed), dict(sizes.free)  # the results may have sizes of their own
    results = tuple(_result(output, used, sizes) for output in node.outputs)
    rebound = replace(node, args=args, kwargs=kwargs, outputs=tuple(sizes.rename(output) for output in node.outputs))
    parts = [str(node.op), f"opset {opset}", arguments]
    parts += [_operand_text(each) for each in operands.values()]
    parts += ["-> " + " ".join("_" if each is None else _value_text(each) for each in results)]
    parts += [f"{symbol}>={least}" for symbol, least in free.items()]
    ranges = " ".join(_range_text(each) for each in operands.values())
    ours = translation is not None and translation.function.__module__.startswith("trueport.")
    return Call(
        rebound,
        tuple(operands.values()),
        results,
        tuple(fixed.values()),
        free,
        {symbol: size for size, symbol in fixed.items()},
        " | ".join(parts),
        ranges if any(ranges.split(" ")) else "",
        ours,
    )


def _operand(
    value: Value,
    argument: str,
    at: int,
    known: Mapping[Value, Range],
    weights: Mapping[Value, Weight],
    sizes: _Sizes,
) -> CallOperand:
    return CallOperand(
        sizes.rename(value),
        argument,
        at,
        known.get(value) or whole(value.dtype),
        value in weights,
        _constant(value, weights),
    )


def _constant(value: Value, weights: Mapping[Value, Weight]) -> torch.Tensor | None:
    """A small tensor that belongs to the program. What is trained, or counted while training, is another next time."""
    weight = weights.get(value)
    if weight is None or weight.kind is WeightKind.PARAMETER or weight.tensor.numel() > _BY_VALUE:
        return None
    of_training = weight.kind is WeightKind.BUFFER and weight.tensor.is_floating_point() and weight.tensor.dim()
    return None if of_training else weight.tensor.detach()


def is_fixed(size: object) -> bool:
    """Whether a size of a call stands for a number: the symbols of free sizes may be zero."""
    return isinstance(size, sympy.Symbol) and bool(size.is_positive)


class _Sizes:
    """Sizes of the model to those of the call by itself."""

    def __init__(self, graph: Graph, kept: frozenset[int] | None, in_arguments: set[sympy.Symbol]) -> None:
        self._graph, self._kept = graph, kept
        self._as_expressions = kept is None or bool(in_arguments)
        self.fixed: dict[int, sympy.Symbol] = {}
        self.free: dict[sympy.Symbol, int] = {}
        self._renamed: dict[sympy.Basic, sympy.Symbol] = {}
        self._values: dict[Value, Value] = {}

    def rename(self, value: Any) -> Any:
        if isinstance(value, Value):
            if value not in self._values:
                self._values[value] = Value(value.dtype, tuple(self.size(size) for size in value.shape))
            return self._values[value]
        return replace(value, expr=self.expression(value.expr)) if isinstance(value, Number) else value

    def size(self, size: Size) -> Size:
        if isinstance(size, int):
            if size < 2 or self._kept is None or size in self._kept:
                return size
            found = self.fixed.get(size)
            if found is None:
                found = self.fixed[size] = _symbol(f"n{len(self.fixed)}", integer=True, positive=True)
            return found
        return self.expression(size, on_axis=True) if self._as_expressions else self._free(size, True)

    def expression(self, expr: sympy.Basic, on_axis: bool = False) -> sympy.Basic:
        """The same over symbols that are called alike in every model."""
        if isinstance(expr, sympy.Symbol):
            return self._free(expr, on_axis)
        ordered = sorted(expr.free_symbols, key=str)
        return expr.xreplace({symbol: self._free(symbol, on_axis) for symbol in ordered})

    def _free(self, expr: sympy.Basic, on_axis: bool) -> sympy.Symbol:
        found = self._renamed.get(expr)
        if found is None:
            declared = self._graph.size_symbols.get(expr)
            is_size = on_axis or declared is not None or bool(expr.is_nonnegative)
            kind = {"integer": True, **({"nonnegative": True} if is_size else {})} if expr.is_integer else {}
            found = self._renamed[expr] = _symbol(f"s{len(self._renamed)}", **kind)
            self.free[found] = declared.minimum if declared is not None else 0
        return found


@functools.cache
def _symbol(name: str, **assumptions: bool) -> sympy.Symbol:
    """sympy takes long to make one."""
    return sympy.Symbol(name, **assumptions)


def _result(output: Any, used: set[object], sizes: _Sizes) -> Any:
    if output is None or (isinstance(output, Value) and output not in used):
        return None
    return sizes.rename(output)


def _rebound(argument: Any, operands: Mapping[Value, CallOperand], sizes: _Sizes) -> Any:
    if isinstance(argument, Value):
        return operands[argument].value
    if isinstance(argument, Number):
        return sizes.rename(argument)
    if isinstance(argument, tuple | list):
        return type(argument)(_rebound(item, operands, sizes) for item in argument)
    return argument


def _text(argument: Any, place_of: Mapping[Value, str], sizes: _Sizes) -> str:
    if isinstance(argument, Value):
        return place_of[argument]
    if isinstance(argument, Number):
        return f"{sizes.expression(argument.expr)}:{argument.kind.__name__}"
    if isinstance(argument, tuple | list):
        return "(" + ", ".join(_text(item, place_of, sizes) for item in argument) + ")"
    return repr(argument)


def _operand_text(operand: CallOperand) -> str:
    text = _value_text(operand.value)
    if operand.constant is not None:
        return f"{text} = {operand.constant.tolist()}"
    if operand.weight:
        return f"{text} weight"
    return f"{text} with infinities" if operand.known.infinite else text


def _range_text(operand: CallOperand) -> str:
    """Indices are drawn within what they index, whatever is known of them."""
    known, everything = operand.known, whole(operand.value.dtype)
    if operand.weight or (known.low, known.high) == (everything.low, everything.high):
        return ""
    return f"{known.low:.17g}..{known.high:.17g}"


def _value_text(value: Value | Number) -> str:
    if isinstance(value, Number):
        return f"{value.kind.__name__} {value.expr}"
    return f"{str(value.dtype).removeprefix('torch.')}[{','.join(map(str, value.shape))}]"


def _values(argument: Any) -> list[Value]:
    if isinstance(argument, tuple | list):
        return [found for item in argument for found in _values(item)]
    return [argument] if isinstance(argument, Value) else []


def _numbers(argument: Any) -> set[sympy.Symbol]:
    """The symbols that stand among the arguments."""
    if isinstance(argument, tuple | list):
        return {symbol for item in argument for symbol in _numbers(item)}
    return set(argument.expr.free_symbols) if isinstance(argument, Number) else set()
