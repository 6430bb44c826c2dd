"""Norms that users wrote by hand, in the form that runtimes have one kernel for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from trueport.lower.weights import WeightTensor
from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import (
    array_of,
    become,
    dims_of,
    given,
    graph_of,
    has_one_reader,
    ints_of,
    maker,
    new_constant,
    number,
    number_in,
    tensor_of,
)

_LAYER_SINCE, _ROOT_SINCE = 17, 23
_MOST = 1 << 12
"""Elements of a scale of ones that is written where the user has none."""


@dataclass(frozen=True, slots=True)
class _Norm:
    """`x / sqrt(mean(x * x) + epsilon)`, perhaps with a scale on `x`."""

    x: ir.Value
    scale: ir.Value | None
    square: ir.Node
    is_one_mean: bool
    root: ir.Value
    epsilon: float
    axis: int
    """The first of the last axes, over which the mean is taken; counted from the end."""
    sizes: tuple[int, ...]
    """Those of these axes."""


class Norms(NodeByNode):
    """Makes one operator of a norm that is written by hand.

    1. `c / sqrt(mean(c²) + eps)` over the last axes is an `RMSNormalization` from opset 23 on; the root may be a factor
       (`rsqrt`), the square a product or a power, the mean a sum over the number of its terms (`var`).
    2. Where this `c` is `x - mean(x)` over the same axes, it is a `LayerNormalization` of `x`, from opset 17 on.
    3. A product of either, where it has no scale of its own, with a factor for each element: its scale.
    4. A sum of a `LayerNormalization` without a bias and a term for each element: its bias.
    5. Before opset 23, case 1 with a scale is written as `Pow`, `ReduceMean`, `Add`, `Sqrt`, `Div`, `Mul`. So the
       optimiser of ONNX Runtime knows it, and computes it at once. By itself a `Pow` would be slower than a product.

    What is read elsewhere (the variance, say) is computed anyway, and the norm stays as it is. In single precision
    only: the epsilon of the operators, and of the runtime's own, is of single precision. Sizes are fixed and not 0.
    The operators round less often than what they stand for.
    """

    name: ClassVar[str] = "norms"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {"Div": self._ratio, "Mul": self._product, "Add": self._sum}

    def _ratio(self, node: ir.Node) -> bool:
        """Cases 1 and 2."""
        norm = _norm(node)
        if norm is None:
            return False
        before = _centred(norm) if self.opset >= _LAYER_SINCE else None
        if before is None and self.opset < _ROOT_SINCE:
            return False
        scale = self._ones(node, norm.sizes) if norm.scale is None else norm.scale
        if scale is None:
            return False
        attributes = [ir.AttrInt64("axis", norm.axis), ir.AttrFloat32("epsilon", norm.epsilon)]
        if before is None:
            return become(node, "RMSNormalization", [norm.x, scale], attributes)
        return become(node, "LayerNormalization", [before, scale], attributes)

    def _product(self, node: ir.Node) -> ir.Value | bool | None:
        if self._ratio(node):
            return True
        for value, factor in (node.inputs, reversed(node.inputs)):
            made = maker(value, "LayerNormalization", "RMSNormalization")
            if made is not None and value is not None and _may_take(made, value, factor) and _is_one(made.inputs[1]):
                return self._joined(node, made, [made.inputs[0], factor])  # case 3
        return self.opset < _ROOT_SINCE and self._as_the_runtime_reads_it(node)

    def _sum(self, node: ir.Node) -> ir.Value | bool | None:
        for value, term in (node.inputs, reversed(node.inputs)):
            made = maker(value, "LayerNormalization")
            if made is not None and value is not None and given(made, 2) is None and _may_take(made, value, term):
                return self._joined(node, made, [*made.inputs[:2], term])  # case 4
        return False

    def _joined(self, node: ir.Node, norm: ir.Node, inputs: list[ir.Value | None]) -> bool:
        """The later node becomes the norm, so that all its inputs are made before it."""
        return become(node, norm.op_type, inputs, list(norm.attributes.values()))

    def _ones(self, node: ir.Node, sizes: tuple[int, ...]) -> ir.Value | None:
        if np.prod(sizes) > _MOST:
            return None
        name = self.names.new(f"{node.outputs[0].name}_scale")
        return new_constant(graph_of(node), name, ir.Tensor(np.ones(sizes, np.float32), name=name))

    def _as_the_runtime_reads_it(self, node: ir.Node) -> bool:
        """Case 5."""
        for value, scale in (node.inputs, reversed(node.inputs)):
            ratio = maker(value, "Div", "Mul")
            norm = None if ratio is None or value is None or not has_one_reader(value) else _norm(ratio)
            if ratio is None or norm is None or norm.scale is not None or dims_of(scale) != norm.sizes:
                continue
            if scale is None or scale.dtype != ir.DataType.FLOAT or not norm.is_one_mean:
                continue
            changed = False
            if norm.square.op_type == "Mul":
                two = self.names.new(f"{norm.square.outputs[0].name}_exponent")
                power = new_constant(graph_of(norm.square), two, ir.Tensor(np.array(2, np.float32), name=two))
                changed = become(norm.square, "Pow", [norm.x, power])
            if ratio.op_type == "Mul":
                changed = become(ratio, "Div", [norm.x, norm.root])
            return changed
        return False


def _norm(node: ir.Node) -> _Norm | None:
    """The norm that a `Div` or a `Mul` ends."""
    top, root = _over_a_root(node)
    added = None if root is None else maker(root.inputs[0], "Add")
    if top is None or root is None or added is None or not has_one_reader(root.outputs[0]):
        return None
    for value, constant in (added.inputs, reversed(added.inputs)):
        epsilon, mean = number_in(constant), _mean_of(value)
        if epsilon is None or mean is None or not 0 <= epsilon < 1 or not has_one_reader(added.outputs[0]):
            continue
        square, reduced = mean
        x = _squared(square)
        axes = None if x is None else _last_axes(reduced, x)
        if x is None or axes is None or x.dtype != ir.DataType.FLOAT:
            continue
        scale = None if top is x else _other_factor(top, x)
        if top is not x and (scale is None or dims_of(scale) != axes or scale.dtype != x.dtype):
            continue
        return _Norm(x, scale, square, value is reduced.outputs[0], root.outputs[0], epsilon, -len(axes), axes)
    return None


def _over_a_root(node: ir.Node) -> tuple[ir.Value | None, ir.Node | None]:
    """`a / sqrt(b)` or `a * (1 / sqrt(b))`: a, and the `Sqrt`."""
    if node.op_type == "Div":
        return node.inputs[0], maker(node.inputs[1], "Sqrt")
    for top, factor in (node.inputs, reversed(node.inputs)):
        inverse = maker(factor, "Reciprocal", "Div")
        if inverse is None or factor is None or not has_one_reader(factor):
            continue
        if inverse.op_type == "Reciprocal":
            return top, maker(inverse.inputs[0], "Sqrt")
        if number_in(inverse.inputs[0]) == 1.0:
            return top, maker(inverse.inputs[1], "Sqrt")
    return None, None


def _mean_of(value: ir.Value | None) -> tuple[ir.Node, ir.Node] | None:
    """What a mean is taken of, by its maker, and the node that reduces."""
    if value is None or not has_one_reader(value):
        return None
    reduced = maker(value, "ReduceMean", "Div")
    if reduced is not None and reduced.op_type == "Div":
        count, total = number_in(reduced.inputs[1]), reduced.inputs[0]
        reduced = maker(total, "ReduceSum")
        if reduced is None or total is None or not has_one_reader(total):
            return None
        axes = _last_axes(reduced, reduced.inputs[0])
        if axes is None or count != np.prod(axes):
            return None
    square = None if reduced is None else maker(reduced.inputs[0], "Mul", "Pow")
    if reduced is None or square is None or not has_one_reader(square.outputs[0]):
        return None
    return square, reduced


def _squared(node: ir.Node) -> ir.Value | None:
    x, other = node.inputs
    return x if (x is other if node.op_type == "Mul" else number_in(other) == 2.0) else None


def _last_axes(reduced: ir.Node, x: ir.Value | None) -> tuple[int, ...] | None:
    """The sizes of the axes that are reduced, if they are the last, are kept, and have fixed sizes that are not 0."""
    dims = _dims(x)
    if dims is None or number(reduced, "keepdims", 1) != 1:
        return None
    attribute = reduced.attributes.get("axes")
    axes = list(attribute.as_ints()) if attribute is not None else ints_of(given(reduced, 1))
    counted = sorted(axis % len(dims) for axis in axes or ()) if dims else []
    if not counted or counted != list(range(counted[0], len(dims))):
        return None
    sizes = tuple(size for size in dims[counted[0] :] if isinstance(size, int) and size)
    return sizes if len(sizes) == len(counted) else None


def _dims(x: ir.Value | None) -> tuple[int | str, ...] | None:
    """The sizes of a value; those of a square and of a difference from a mean are the sizes of what they are of."""
    for _ in range(3):
        made = None if dims_of(x) is not None else maker(x, "Mul", "Pow", "Sub")
        if made is None or x is None:
            break
        is_square = made.op_type != "Sub" and _squared(made) is not None
        mean = maker(made.inputs[1], "ReduceMean")
        is_centred = mean is not None and mean.inputs[0] is made.inputs[0] and number(mean, "keepdims", 1) == 1
        x = made.inputs[0] if is_square or (made.op_type == "Sub" and is_centred) else None
    return dims_of(x)


def _centred(norm: _Norm) -> ir.Value | None:
    """x, where what is normed is `x - mean(x)` over the same axes."""
    less = maker(norm.x, "Sub")
    mean = None if less is None else maker(less.inputs[1], "ReduceMean")
    if less is None or mean is None or mean.inputs[0] is not less.inputs[0]:
        return None
    return less.inputs[0] if _last_axes(mean, less.inputs[0]) == norm.sizes else None


def _other_factor(product: ir.Value, x: ir.Value) -> ir.Value | None:
    made = maker(product, "Mul") if has_one_reader(product) else None
    if made is None:
        return None
    return made.inputs[1] if made.inputs[0] is x else made.inputs[0] if made.inputs[1] is x else None


def _may_take(norm: ir.Node, value: ir.Value, factor: ir.Value | None) -> bool:
    """Whether a value has one number for each of the elements that are normed, and nobody else reads the norm."""
    dims, axis = dims_of(norm.inputs[0]), number(norm, "axis", -1)
    if factor is None or dims is None or len(norm.outputs) > 1 or not has_one_reader(value):
        return False
    return factor.dtype == ir.DataType.FLOAT and dims_of(factor) == dims[axis:] and value.dtype in (None, factor.dtype)


def _is_one(scale: ir.Value | None) -> bool:
    """Whether it is all ones, and no weight, whose name the user would miss."""
    if isinstance(tensor_of(scale), WeightTensor):
        return False
    content = array_of(scale)
    return content is not None and bool((content == 1).all())
