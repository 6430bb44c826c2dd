"""The error function's relatives and the normal distribution, computed in float64 whatever the dtype."""

from __future__ import annotations

import math

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.exact import error_function, precise
from trueport.lower.exact.series import ratio
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

DOUBLE, FLOAT = ir.DataType.DOUBLE, ir.DataType.FLOAT
_HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def working(op: Builder, x: Tensor) -> Tensor:
    """`x` in the dtype in which eager computes the function: that of the result, or float32 for half precision."""
    dtype = onnx_dtype(op.result.dtype)
    return op.cast(x, FLOAT if dtype in _HALF else dtype)


def wide(op: Builder, x: Tensor) -> Tensor:
    """`x` in float64, after eager's own rounding of it."""
    return op.cast(working(op, x), DOUBLE)


@op("aten::erfc", "aten::special_erfc")
def erfc(op: Builder, self: Tensor) -> Tensor:
    """erfc(Tensor self) -> Tensor"""
    return error_function.erfc(op, wide(op, self))


@op("aten::special_erfcx")
def erfcx(op: Builder, self: Tensor) -> Tensor:
    """special_erfcx(Tensor self) -> Tensor"""
    return error_function.erfcx(op, wide(op, self))


@op("aten::special_ndtr")
def ndtr(op: Builder, self: Tensor) -> Tensor:
    """special_ndtr(Tensor self) -> Tensor: the area under the normal density, up to x"""
    return op.Mul(error_function.erfc(op, op.Mul(wide(op, self), -math.sqrt(0.5))), 0.5)


@op("aten::special_log_ndtr")
def log_ndtr(op: Builder, self: Tensor) -> Tensor:
    """special_log_ndtr(Tensor self) -> Tensor"""
    scaled = op.Mul(wide(op, self), math.sqrt(0.5))
    far = op.Sub(op.Log(op.Mul(error_function.erfcx(op, op.Neg(scaled)), 0.5)), op.Mul(scaled, scaled))
    near = precise.log1p(op, op.Mul(error_function.erfc(op, scaled), -0.5))
    return op.Where(op.Less(self, -1.0), far, near)


@op("aten::erfinv")
def erfinv(op: Builder, self: Tensor) -> Tensor:
    """erfinv(Tensor self) -> Tensor

    A rational guess, then two steps of Newton's rule, on erfc: near 1, erf has too few digits to tell where it is.
    """
    y = wide(op, self)
    size = op.Abs(y)
    rest = op.Sub(1.0, size)
    square = op.Mul(y, y)
    near = op.Mul(size, ratio(op, square, _CENTRE_TOP, _CENTRE_BOTTOM))
    depth = op.Sqrt(op.Neg(op.Log(op.Mul(rest, 0.5))))
    far = ratio(op, depth, _TAIL_TOP, _TAIL_BOTTOM)
    x = op.Where(op.LessOrEqual(size, 0.7), near, far)
    for _ in range(2):
        slope = op.Mul(op.Exp(op.Neg(op.Mul(x, x))), 2 / math.sqrt(math.pi))
        # Near 0 it is erf that has the digits.
        off = op.Where(
            op.Less(size, 0.5),
            op.Sub(error_function.erf(op, x), size),
            op.Sub(rest, error_function.erfc(op, x)),
        )
        x = op.Sub(x, op.Div(off, slope))
    x = op.Where(op.Equal(size, 1.0), op.const(math.inf, DOUBLE), x)
    return op.Mul(op.Sign(y), x)


_CENTRE_TOP = (-0.140543331, 0.914624893, -1.645349621, 0.886226899)
_CENTRE_BOTTOM = (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0)
_TAIL_TOP = (1.641345311, 3.429567803, -1.624906493, -1.970840454)
_TAIL_BOTTOM = (1.637067800, 3.543889200, 1.0)


@op("aten::special_ndtri")
def ndtri(op: Builder, self: Tensor) -> Tensor:
    """special_ndtri(Tensor self) -> Tensor: up to where the area under the normal density is y (Cephes)"""
    given = wide(op, self)
    in_upper_tail = op.Greater(given, 1 - _EDGE)
    y = op.Where(in_upper_tail, op.Sub(1.0, given), given)
    centred = op.Sub(y, 0.5)
    square = op.Mul(centred, centred)
    inner = op.Mul(
        op.Add(centred, op.Mul(centred, op.Mul(square, ratio(op, square, _P0, _Q0)))), math.sqrt(2 * math.pi)
    )
    depth = op.Sqrt(op.Mul(op.Log(y), -2.0))
    inverse = op.Reciprocal(depth)
    shallow, deep = ratio(op, inverse, _P1, _Q1), ratio(op, inverse, _P2, _Q2)
    bend = op.Mul(inverse, op.Where(op.Less(depth, 8.0), shallow, deep))
    tail = op.Sub(op.Sub(depth, op.Div(op.Log(depth), depth)), bend)
    tail = op.Where(in_upper_tail, tail, op.Neg(tail))
    x = op.Where(op.Greater(y, _EDGE), inner, tail)
    x = op.Where(op.Equal(given, 0.0), op.const(-math.inf, DOUBLE), x)
    x = op.Where(op.Equal(given, 1.0), op.const(math.inf, DOUBLE), x)
    outside = op.Or(op.Less(given, 0.0), op.Greater(given, 1.0))
    return op.Where(outside, op.const(math.nan, DOUBLE), x)


_EDGE = 0.13533528323661269189
"""exp(-2): below it, and above one minus it, lie the tails."""
# fmt: off
_P0 = (
    -59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125,
)
_Q0 = (
    1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066,
    -82.03722561683334, 15.90562251262117, -1.1833162112133,
)
_P1 = (
    4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803,
    2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854,
)
_Q1 = (
    1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075, 2.504649462083094,
    -0.14218292285478779, -0.03808064076915783, -0.0009332594808954574,
)
_P2 = (
    3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908,
    0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09,
)
_Q2 = (
    1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663, 0.013420400608854318,
    0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09,
)
# fmt: on
