"""A norm by constants behind a convolution is part of the convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import onnx_ir as ir
import torch

from trueport.lower.weights import WeightTensor
from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import become, given, graph_of, has_one_reader, maker, new_constant, number, tensor_of
from trueport.optimise.weights import ComputedWeight, computed

_PIECE = 1 << 16
"""Elements that are widened at once: as many as a cache holds, where the whole would be fetched from memory thrice."""


class ConvBatchNorm(NodeByNode):
    """Makes one convolution of a convolution and the norm behind it.

    1. `Conv`, read by nobody else, then `BatchNormalization` in inference, all with constant parameters: the weights
       are multiplied by `scale / sqrt(variance + epsilon)`, the bias follows.
    2. The same of `ConvTranspose` without groups, whose output channels are its second axis.

    The new weights are computed in float64 and rounded once, so an output differs by roundings of its own dtype, no
    more than it does where ONNX Runtime does the same in float32 when it loads the model. NotExact: other dtypes than
    float32 and float64, a factor that is no finite number or is 0, weights that something else reads.
    """

    name: ClassVar[str] = "conv_batch_norm"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {"BatchNormalization": self._join}

    def _join(self, node: ir.Node) -> ir.Value | None:
        conv = maker(node.inputs[0], "Conv", "ConvTranspose")
        if conv is None or len(node.outputs) != 1 or number(node, "training_mode", 0):
            return None
        if not has_one_reader(conv.outputs[0]):
            return None
        if conv.op_type == "ConvTranspose" and number(conv, "group", 1) != 1:  # case 2
            return None
        values = [given(conv, 1), given(conv, 2), *node.inputs[1:5]]
        parts = [tensor_of(value) for value in values]
        weight, bias, *norm = parts
        if not isinstance(weight, WeightTensor) or (bias is None) != (values[1] is None):
            return None
        if weight.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE) or values[0] is None:
            return None
        known = [part for part in (bias, *norm) if isinstance(part, WeightTensor) and part.dtype == weight.dtype]
        if len(known) != 4 + (bias is not None) or len(values[0].uses()) > 1 or values[0].is_graph_output():
            return None
        epsilon = node.attributes.get("epsilon")
        joined = _Joined(1e-5 if epsilon is None else epsilon.as_float(), conv.op_type == "ConvTranspose")
        if not joined.is_sound(known[-4:]):
            return None
        return self._written(conv, node, weight, known, joined)

    def _written(
        self, conv: ir.Node, node: ir.Node, weight: WeightTensor, known: Sequence[WeightTensor], joined: _Joined
    ) -> ir.Value:
        graph, stem = graph_of(conv), f"{weight.name}.with_norm"
        name, of_bias = self.names.new(stem), self.names.new(f"{stem}_bias")
        norm = list(known[-4:])
        tensors: list[ComputedWeight] = [
            computed([weight, *norm], joined.weight, name),
            computed([*known[:-4], *norm], joined.bias, of_bias),
        ]
        made = [new_constant(graph, tensor.name or "", tensor) for tensor in tensors]
        become(conv, conv.op_type, [conv.inputs[0], *made], list(conv.attributes.values()))
        return conv.outputs[0]


class _Joined:
    """The arithmetic, on torch's tensors."""

    def __init__(self, epsilon: float, transposed: bool) -> None:
        self._epsilon, self._transposed = epsilon, transposed

    def factor(self, norm: Sequence[torch.Tensor]) -> torch.Tensor:
        scale, _, _, variance = (each.to(torch.float64) for each in norm)
        return scale / (variance + self._epsilon).sqrt()

    def is_sound(self, norm: Sequence[WeightTensor]) -> bool:
        numbers = [each.source for each in norm]
        factor = self.factor(numbers)
        return bool(torch.isfinite(factor).all() and (factor != 0).all() and torch.isfinite(torch.cat(numbers)).all())

    def weight(self, given: Sequence[torch.Tensor]) -> torch.Tensor:
        weight, *norm = given
        sizes = [1, -1] if self._transposed else [-1, 1]
        factor = self.factor(norm).reshape([*sizes, *[1] * (weight.ndim - 2)])
        made = torch.empty_like(weight)
        if weight.is_meta:  # only its sizes are asked for
            return made
        rows = max(1, _PIECE * len(weight) // max(weight.numel(), 1))
        for at in range(0, len(weight), rows):
            by = factor if self._transposed else factor[at : at + rows]
            made[at : at + rows] = weight[at : at + rows].to(torch.float64) * by
        return made

    def bias(self, given: Sequence[torch.Tensor]) -> torch.Tensor:
        *before, scale, shift, mean, variance = given
        factor = self.factor([scale, shift, mean, variance])
        start = before[0].to(torch.float64) if before else torch.zeros_like(factor)
        return ((start - mean.to(torch.float64)) * factor + shift.to(torch.float64)).to(scale.dtype)
