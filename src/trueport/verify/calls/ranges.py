"""Which values the model can give an operand, as far as the graph tells without being run.

A walk from the inputs on: a declared range, a constant, the result of `sigmoid` or `argmax`, a mask. What nothing is
known of may be any finite value of its dtype. An interval only ever grows: where in doubt, more is possible.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from trueport.graph.regions import Control, Graph, Node, Number, Region, Value, Weight, WeightKind
from trueport.torch_internals import OpOverload
from trueport.verify.calls.kinds import OperatorKind, base_name, kind_of, named_arguments, names

LARGEST_SIZE = (1 << 31) - 2
"""No tensor has more elements along an axis."""
_SMALL_WEIGHT = 1 << 16


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included; `infinite`: infinities of the model's own making may be among them."""

    low: float
    high: float
    infinite: bool = False

    def __or__(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), self.infinite or other.infinite)


_WEIGHTS = Range(-1000.0, 1000.0)


@functools.cache
def whole(dtype: torch.dtype) -> Range:
    """Everything finite that the dtype has."""
    if dtype is torch.bool:
        return Range(0, 1)
    if dtype.is_floating_point or dtype.is_complex:
        most = torch.finfo(dtype).max
        return Range(-most, most)
    try:
        facts = torch.iinfo(dtype)
    except TypeError:  # quantised and 4-bit kinds
        return Range(-math.inf, math.inf)
    return Range(facts.min, facts.max)


_ZERO_TO_ONE = names("sigmoid softmax _softmax _safe_softmax hardsigmoid rand rand_like")
_MINUS_ONE_TO_ONE = names("tanh erf sin cos sign sgn softsign")
_NOT_NEGATIVE = names("relu abs exp square sqrt relu6 softplus count_nonzero norm linalg_vector_norm var std rsqrt")
_INDICES = names("argmax argmin nonzero argwhere argsort searchsorted bucketize bincount count_nonzero")
_SECOND_IS_INDEX = names(
    "topk sort max min median kthvalue mode cummax cummin max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices adaptive_max_pool2d"
)
_SAME = names(
    "maximum minimum clone alias detach contiguous dropout where cat concat stack index_put scatter max min amax amin "
    "_to_copy to type_as topk sort cummax cummin median"
)
_CHANGES_CONTENT = names(
    "one_hot bincount nonzero argwhere searchsorted bucketize arange full zeros ones new_zeros new_ones "
    "new_full scalar_tensor tril_indices triu_indices nonzero_static isin"
)


def ranges_of(graph: Graph) -> Mapping[Value, Range]:
    """What is known of each value."""
    walk = _Walk()
    for weight in graph.weights:
        if weight.kind is not WeightKind.PARAMETER:
            walk.known[weight.value] = _of_weight(weight)
        elif weight.value.dtype.is_floating_point:
            walk.known[weight.value] = _WEIGHTS
    for given in graph.inputs:
        if isinstance(given.value, Value) and given.leaf is not None and given.leaf.value_range is not None:
            low, high = given.leaf.value_range
            walk.known[given.value] = Range(_plain(low), _plain(high))
    walk.region(graph.root)
    return walk.known


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else number


class _Walk:
    def __init__(self) -> None:
        self.known: dict[Value, Range] = {}

    def region(self, region: Region) -> None:
        for node in region.nodes:
            if isinstance(node.op, Control):
                self._control(node)
            else:
                self._call(node)

    def of(self, argument: Any, dtype: torch.dtype | None = None) -> Range | None:
        """What an operand may be; None where it is none."""
        if isinstance(argument, Value):
            return self.known.get(argument) or whole(argument.dtype)
        if isinstance(argument, bool | int | float):
            infinite = isinstance(argument, float) and math.isinf(argument)
            return Range(0, 0, True) if infinite else None if argument != argument else Range(argument, argument)
        if isinstance(argument, Number):
            is_size = argument.kind is int and all(symbol.is_nonnegative for symbol in _symbols(argument.expr))
            return Range(0, LARGEST_SIZE) if is_size else whole(argument.dtype)
        return None

    def _control(self, node: Node) -> None:
        for region in node.regions:
            self.region(region)
        if node.op is Control.IF:  # a loop's values depend on how often it runs
            for at, output in enumerate(node.outputs):
                arms = [self.of(region.outputs[at]) for region in node.regions]
                if isinstance(output, Value) and all(arm is not None for arm in arms):
                    self.known[output] = _union(arm for arm in arms if arm is not None)

    def _call(self, node: Node) -> None:
        assert isinstance(node.op, OpOverload)
        for at, output in enumerate(node.outputs):
            if isinstance(output, Value):
                found = self._result(node, at, output)
                if found is not None:
                    self.known[output] = _within(found, output.dtype)

    def _result(self, node: Node, at: int, output: Value) -> Range | None:
        assert isinstance(node.op, OpOverload)
        name, given = base_name(node.op), named_arguments(node)
        if output.dtype is torch.bool:
            return Range(0, 1)
        if name in _INDICES or (at == 1 and name in _SECOND_IS_INDEX):
            return Range(0, LARGEST_SIZE)
        if name in _ZERO_TO_ONE or name == "one_hot":
            return Range(0, 1)
        if name in _MINUS_ONE_TO_ONE:
            return Range(-1, 1)
        if name in ("zeros", "zeros_like", "new_zeros"):
            return Range(0, 0)
        if name in ("ones", "ones_like", "new_ones"):
            return Range(1, 1)
        if name in ("full", "full_like", "new_full", "scalar_tensor", "fill"):
            return self.of(given.get("fill_value", given.get("value", given.get("s"))))
        if name == "arange":
            return self._arange(given)
        if name in ("clamp", "clip", "hardtanh"):
            return self._clamped(given, output.dtype)
        operands = [self.of(each) for each in _operands((node.args, tuple(node.kwargs.values())))]
        known = [each for each in operands if each is not None]
        if name in ("masked_fill", "constant_pad_nd", "index_fill", "pad"):
            filled = self.of(given.get("value", 0) if given.get("value", 0) is not None else 0)
            return None if filled is None or not known else known[0] | filled
        if name in _CHANGES_CONTENT or not known:
            return None
        if (
            name in ("add", "sub", "mul")
            and given.get("alpha", 1) == 1
            and (other := self.of(given["other"])) is not None
        ):
            return _arithmetic(name, known[0], other, output.dtype)
        if name in _NOT_NEGATIVE:
            return Range(0, whole(output.dtype).high)
        if name in _SAME or (kind_of(node.op) is OperatorKind.MOVING and name not in _CHANGES_CONTENT):
            content = [self.of(each) for each in _content(name, given, output)]
            found = [each for each in content if each is not None]
            return _union(found) if found else None
        infinite = kind_of(node.op) is OperatorKind.POINTWISE and any(each.infinite for each in known)
        everything = whole(output.dtype)
        return Range(everything.low, everything.high, infinite)

    def _arange(self, given: Mapping[str, Any]) -> Range | None:
        first, last = self.of(given.get("start", 0)), self.of(given.get("end"))
        return None if first is None or last is None else first | last

    def _clamped(self, given: Mapping[str, Any], dtype: torch.dtype) -> Range | None:
        known = self.of(given.get("self")) or whole(dtype)
        least, most = self.of(given.get("min", given.get("min_val"))), self.of(given.get("max", given.get("max_val")))
        low = known.low if least is None else max(known.low, least.low)
        high = known.high if most is None else min(known.high, most.high)
        return Range(min(low, high), max(low, high), known.infinite)


def _content(name: str, given: Mapping[str, Any], output: Value) -> Iterable[Any]:
    """The operands whose elements the result holds."""
    if name == "embedding":
        return [given["weight"]]
    masks = ("index", "indices", "condition", "mask", "repeats")
    operands = [value for key, value in given.items() if key not in masks]
    return [each for each in _operands(operands) if isinstance(each, Value)] + [
        given[key] for key in ("self", "other", "value", "src") if isinstance(given.get(key), int | float | Number)
    ]


def _operands(argument: Any) -> list[Any]:
    if isinstance(argument, tuple | list):
        return [found for item in argument for found in _operands(item)]
    return [argument] if isinstance(argument, Value) else []


def _arithmetic(name: str, one: Range, other: Range, dtype: torch.dtype) -> Range | None:
    if name == "mul":
        ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    elif name == "sub":
        ends = [one.low - other.high, one.high - other.low]
    else:
        ends = [one.low + other.low, one.high + other.high]
    if any(end != end for end in ends):
        return None
    everything = whole(dtype)
    infinite = one.infinite or other.infinite
    if min(ends) < everything.low or max(ends) > everything.high:  # integers wrap
        return Range(everything.low, everything.high, infinite)
    return Range(min(ends), max(ends), infinite)


def _within(found: Range, dtype: torch.dtype) -> Range:
    """A cast wraps what does not fit."""
    everything = whole(dtype)
    if found.low >= everything.low and found.high <= everything.high:
        return found
    return Range(everything.low, everything.high, found.infinite)


def _union(ranges: Iterable[Range]) -> Range:
    first, *rest = ranges
    for each in rest:
        first |= each
    return first


def _of_weight(weight: Weight) -> Range:
    """Trained weights are taken to be within a thousand; of small buffers it is seen."""
    tensor = weight.tensor.detach()
    everything = whole(weight.value.dtype)
    plain = not (
        tensor.is_quantized or tensor.is_complex() or (tensor.element_size() < 2 and tensor.is_floating_point())
    )
    if tensor.numel() == 0 or not plain or tensor.device.type != "cpu":
        return everything
    if tensor.numel() > _SMALL_WEIGHT:
        return _WEIGHTS if tensor.is_floating_point() else everything
    low, high = (end.item() for end in torch.aminmax(tensor.long() if not tensor.is_floating_point() else tensor))
    if math.isfinite(low) and math.isfinite(high):
        return Range(low, high)
    finite = tensor[tensor.isfinite()].double()
    return Range(finite.min().item(), finite.max().item(), True) if finite.numel() else Range(0, 0, True)


def _symbols(expr: sympy.Basic) -> set[sympy.Basic]:
    return set(expr.free_symbols)
