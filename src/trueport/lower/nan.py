"""Whether a value may be NaN though all that the model was given is finite.

The runtime's maxima pass over NaN, and one that does not takes several times as long. So NaN is looked for where the
model itself may make it (`x.log().max()`), and not in what ordinary layers give (`logits.argmax()` behind a Linear).
Sums that overflow are not counted. What is not known to keep numbers what they are may be NaN.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from trueport.lower.tensor import Tensor

_KEEP = frozenset(
    # What moves numbers, chooses among them, or makes them from shapes.
    "Identity Reshape Transpose Squeeze Unsqueeze Flatten Expand Tile Slice Split Concat Gather GatherElements GatherND"
    " ScatterElements ScatterND Pad Where Trilu ReverseSequence DepthToSpace SpaceToDepth OneHot TopK Shape Size Range"
    " ConstantOfShape EyeLike Cast CastLike NonZero Compress"
    # Sums, products and means.
    " Add Sub Mul Neg Abs Sum Mean Conv ConvTranspose MatMul Gemm Einsum CumSum ReduceSum ReduceMean AveragePool"
    " GlobalAveragePool Resize MatMulInteger DequantizeLinear"
    # Functions that give a number for every number, and normalisations with an epsilon.
    " Relu LeakyRelu PRelu Elu Selu Sigmoid HardSigmoid HardSwish Tanh Erf Gelu Sin Cos Atan Softplus Softsign Mish"
    " Celu Softmax LogSoftmax Floor Ceil Round Sign Clip Max Min ReduceMax ReduceMin MaxPool GlobalMaxPool Dropout"
    " BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization"
    # Comparisons and what is made of them.
    " Equal Less LessOrEqual Greater GreaterOrEqual And Or Not Xor IsNaN IsInf ArgMax ArgMin".split()
)
_LARGE = 1 << 20
"""Weights of more elements are not read for this; a mask of infinities has fewer."""


def may_be_nan(tensor: Tensor) -> bool:
    """By what has made it, and what that was made of."""
    known, seen = tensor.builder.never_nan, {tensor}
    waiting = [tensor]
    while waiting:
        each = waiting.pop()
        if each in known or each.dtype is None or not each.dtype.is_floating_point():
            continue
        producer = each.producer()
        if each.const_value is not None:
            if not _is_finite(each.const_value):
                return True
        elif producer is None or producer.domain or producer.op_type not in _KEEP:
            return True  # nobody makes what a loop carries
        else:
            new = {given for given in producer.inputs if isinstance(given, Tensor)} - seen
            seen |= new
            waiting += new
    known |= seen
    return False


def _is_finite(held: ir.TensorProtocol) -> bool:
    return held.size > _LARGE or bool(np.isfinite(held.numpy().astype(np.float64)).all())
