"""Bessel's and Airy's functions, in float64 whatever the dtype (Cephes; the same approximations as torch's).

Phases are the exception: eager rounds `x - pi / 4` to its own dtype before it takes the cosine, and so do we.
"""

from __future__ import annotations

import math

from trueport.lower.builder import Builder
from trueport.lower.exact.series import Coefficients, chebyshev, polynomial, ratio
from trueport.lower.ops.special import bessel_tables as table
from trueport.lower.ops.special.normal import DOUBLE, wide, working
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_TURN = 5.0
"""Up to here a ratio of polynomials, and an oscillation above."""


def _oscillation(op: Builder, x: Tensor, order: int) -> tuple[Tensor, Tensor, Tensor]:
    """(the amplitude of the cosine, that of the sine, the phase), for x > 5 in eager's dtype; order 0 or 1."""
    tables = (table.J0_PP, table.J0_PQ, table.J0_QP, table.J0_QQ), (table.J1_PP, table.J1_PQ, table.J1_QP, table.J1_QQ)
    pp, pq, qp, qq = tables[order]
    phase = op.cast(op.Sub(x, op.const((0.25 + 0.5 * order) * math.pi, x.element)), DOUBLE)
    wider = op.cast(x, DOUBLE)
    inverse = op.Div(_TURN, op.Max(wider, _TURN))
    square = op.Mul(inverse, inverse)
    scale = op.Div(math.sqrt(2 / math.pi), op.Sqrt(op.Max(wider, _TURN)))
    along = op.Mul(ratio(op, square, pp, pq), scale)
    across = op.Mul(op.Mul(inverse, ratio(op, square, qp, qq)), scale)
    return along, across, phase


def _first_kind(op: Builder, x: Tensor, order: int) -> Tensor:
    """J0 or J1 of what is not negative, in eager's dtype; the result in float64."""
    along, across, phase = _oscillation(op, x, order)
    far = op.Sub(op.Mul(along, op.Cos(phase)), op.Mul(across, op.Sin(phase)))
    wider = op.Min(op.cast(x, DOUBLE), _TURN)
    square = op.Mul(wider, wider)
    if order == 0:
        zeros = (5.78318596294678452118e00, 3.04712623436620863991e01)
        near = ratio(op, square, table.J0_RP, table.J0_RQ)
    else:
        zeros = (1.46819706421238932572e01, 4.92184563216946036703e01)
        near = op.Mul(ratio(op, square, table.J1_RP, table.J1_RQ), wider)
    for zero in zeros:
        near = op.Mul(near, op.Sub(square, zero))
    return _finite_or(op, x, op.Where(op.LessOrEqual(x, op.const(_TURN, x.element)), near, far))


def _finite_or(op: Builder, x: Tensor, found: Tensor) -> Tensor:
    """NaN stays NaN: the bounds above would have made a number of it."""
    return op.Where(op.IsNaN(x), op.const(math.nan, DOUBLE), found)


@op("aten::special_bessel_j0")
def bessel_j0(op: Builder, self: Tensor) -> Tensor:
    """special_bessel_j0(Tensor self) -> Tensor"""
    return _first_kind(op, op.Abs(working(op, self)), 0)


@op("aten::special_bessel_j1")
def bessel_j1(op: Builder, self: Tensor) -> Tensor:
    """special_bessel_j1(Tensor self) -> Tensor"""
    x = working(op, self)
    found = _first_kind(op, op.Abs(x), 1)
    return op.Where(op.Less(x, 0), op.Neg(found), found)


@op("aten::special_bessel_y0")
def bessel_y0(op: Builder, self: Tensor) -> Tensor:
    """special_bessel_y0(Tensor self) -> Tensor"""
    x = working(op, self)
    wider = op.cast(x, DOUBLE)
    square = op.Mul(wider, wider)
    beside = op.Mul(op.Mul(op.Log(wider), 2 / math.pi), _first_kind(op, x, 0))
    near = op.Add(ratio(op, square, table.Y0_YP, table.Y0_YQ), beside)
    return _second_kind(op, x, near, 0)


@op("aten::special_bessel_y1")
def bessel_y1(op: Builder, self: Tensor) -> Tensor:
    """special_bessel_y1(Tensor self) -> Tensor"""
    x = working(op, self)
    wider = op.cast(x, DOUBLE)
    square = op.Mul(wider, wider)
    beside = op.Sub(op.Mul(_first_kind(op, x, 1), op.Log(wider)), op.Reciprocal(wider))
    near = op.Add(op.Mul(wider, ratio(op, square, table.Y1_YP, table.Y1_YQ)), op.Mul(beside, 2 / math.pi))
    return _second_kind(op, x, near, 1)


def _second_kind(op: Builder, x: Tensor, near: Tensor, order: int) -> Tensor:
    along, across, phase = _oscillation(op, x, order)
    far = op.Add(op.Mul(along, op.Sin(phase)), op.Mul(across, op.Cos(phase)))
    found = op.Where(op.LessOrEqual(x, op.const(_TURN, x.element)), near, far)
    found = op.Where(op.Equal(x, 0), op.const(-math.inf, DOUBLE), found)
    return op.Where(op.GreaterOrEqual(x, 0), found, op.const(math.nan, DOUBLE))


def _scaled_growing(op: Builder, x: Tensor, order: int) -> Tensor:
    """exp(-|x|) * I0(x) or I1(|x|), of float64."""
    size = op.Abs(x)
    inner, outer = (table.I0_A, table.I0_B) if order == 0 else (table.I1_A, table.I1_B)
    near = chebyshev(op, op.Sub(op.Mul(size, 0.5), 2.0), inner)
    near = near if order == 0 else op.Mul(near, size)
    large = op.Max(size, 8.0)
    far = op.Div(chebyshev(op, op.Sub(op.Div(32.0, large), 2.0), outer), op.Sqrt(large))
    return _finite_or(op, x, op.Where(op.LessOrEqual(size, 8.0), near, far))


def _odd(op: Builder, x: Tensor, found: Tensor) -> Tensor:
    return op.Where(op.Less(x, 0), op.Neg(found), found)


@op("aten::i0", "aten::special_modified_bessel_i0")
def i0(op: Builder, self: Tensor) -> Tensor:
    """i0(Tensor self) -> Tensor"""
    x = wide(op, self)
    return op.Mul(op.Exp(op.Abs(x)), _scaled_growing(op, x, 0))


@op("aten::special_i0e")
def i0e(op: Builder, self: Tensor) -> Tensor:
    """special_i0e(Tensor self) -> Tensor"""
    return _scaled_growing(op, wide(op, self), 0)


@op("aten::special_i1", "aten::special_modified_bessel_i1")
def i1(op: Builder, self: Tensor) -> Tensor:
    """special_i1(Tensor self) -> Tensor"""
    x = wide(op, self)
    return _odd(op, x, op.Mul(op.Exp(op.Abs(x)), _scaled_growing(op, x, 1)))


@op("aten::special_i1e")
def i1e(op: Builder, self: Tensor) -> Tensor:
    """special_i1e(Tensor self) -> Tensor"""
    x = wide(op, self)
    return _odd(op, x, _scaled_growing(op, x, 1))


def _scaled_falling(op: Builder, x: Tensor, order: int) -> Tensor:
    """exp(x) * K0(x) or K1(x), of float64."""
    inner, outer = (table.K0_A, table.K0_B) if order == 0 else (table.K1_A, table.K1_B)
    small = op.Min(x, 2.0)
    grown = op.Mul(op.Exp(op.Abs(small)), _scaled_growing(op, small, order))
    series = chebyshev(op, op.Sub(op.Mul(small, small), 2.0), inner)
    logarithm = op.Mul(op.Log(op.Mul(small, 0.5)), grown)
    near = op.Sub(series, logarithm) if order == 0 else op.Add(logarithm, op.Div(series, small))
    near = op.Mul(near, op.Exp(small))
    large = op.Max(x, 2.0)
    far = op.Div(chebyshev(op, op.Sub(op.Div(8.0, large), 2.0), outer), op.Sqrt(large))
    found = op.Where(op.LessOrEqual(x, 2.0), near, far)
    found = op.Where(op.Equal(x, 0.0), op.const(math.inf, DOUBLE), found)
    return op.Where(op.GreaterOrEqual(x, 0.0), found, op.const(math.nan, DOUBLE))


def _register_falling(order: int) -> None:
    @op(f"aten::special_scaled_modified_bessel_k{order}")
    def scaled(op: Builder, x: Tensor) -> Tensor:
        return _scaled_falling(op, wide(op, x), order)

    @op(f"aten::special_modified_bessel_k{order}")
    def plain(op: Builder, self: Tensor) -> Tensor:
        x = wide(op, self)
        return op.Mul(op.Exp(op.Neg(x)), _scaled_falling(op, x, order))


for _order in (0, 1):
    _register_falling(_order)

_SPHERICAL: Coefficients = tuple(1 / math.factorial(2 * k + 1) * (-1) ** k for k in range(6, -1, -1))


@op("aten::special_spherical_bessel_j0")
def spherical_bessel_j0(op: Builder, x: Tensor) -> Tensor:
    """special_spherical_bessel_j0(Tensor x) -> Tensor"""
    wider = wide(op, x)
    near = polynomial(op, op.Mul(wider, wider), _SPHERICAL)
    found = op.Where(op.Less(op.Abs(wider), 0.5), near, op.Div(op.Sin(wider), wider))
    return op.Where(op.IsInf(wider), op.const(0.0, DOUBLE), found)


@op("aten::special_airy_ai")
def airy_ai(op: Builder, x: Tensor) -> Tensor:
    """special_airy_ai(Tensor x) -> Tensor: a power series between -2.09 and 2.09, asymptotic forms beyond"""
    narrow, wider = working(op, x), wide(op, x)
    found = op.Where(op.Less(narrow, -2.09), _airy_oscillating(op, narrow), _airy_series(op, wider))
    found = op.Where(op.GreaterOrEqual(narrow, 2.09), _airy_falling(op, wider), found)
    found = op.Where(op.Greater(narrow, 103.892), op.const(0.0, DOUBLE), found)
    undefined = op.Or(op.IsInf(narrow), op.IsNaN(narrow))
    return op.Where(undefined, op.const(math.nan, DOUBLE), found)


def _airy_oscillating(op: Builder, x: Tensor) -> Tensor:
    """Of x < -2.09, with the phase in eager's dtype."""
    size = op.Max(op.Neg(x), 2.0)
    angle = op.Div(op.Mul(op.Mul(size, 2.0), op.Sqrt(size)), 3.0)
    phase = op.cast(op.Add(angle, op.const(0.25 * math.pi, x.element)), DOUBLE)
    inverse = op.Reciprocal(op.cast(angle, DOUBLE))
    square = op.Mul(inverse, inverse)
    sine = op.Add(op.Mul(square, ratio(op, square, table.AIRY_AFN, table.AIRY_AFD)), 1.0)
    cosine = op.Mul(inverse, ratio(op, square, table.AIRY_AGN, table.AIRY_AGD))
    waves = op.Sub(op.Mul(op.Sin(phase), sine), op.Mul(op.Cos(phase), cosine))
    return op.Div(op.Mul(waves, 1 / math.sqrt(math.pi)), op.Sqrt(op.Sqrt(op.cast(size, DOUBLE))))


def _airy_falling(op: Builder, x: Tensor) -> Tensor:
    large = op.Max(x, 2.0)
    depth = op.Div(op.Mul(op.Mul(large, 2.0), op.Sqrt(large)), 3.0)
    shape = ratio(op, op.Reciprocal(depth), table.AIRY_AN, table.AIRY_AD)
    below = op.Mul(op.Mul(op.Sqrt(op.Sqrt(large)), 2.0), op.Exp(depth))
    return op.Div(op.Mul(shape, 1 / math.sqrt(math.pi)), below)


def _airy_series(op: Builder, x: Tensor) -> Tensor:
    bounded = op.Clip(x, -2.5, 2.5)
    cube = op.Mul(op.Mul(bounded, bounded), bounded)
    even, odd = [1.0], [1.0]
    for k in range(1, 16):
        even.append(even[-1] / ((3 * k - 1) * (3 * k)))
        odd.append(odd[-1] / ((3 * k) * (3 * k + 1)))
    first = op.Mul(polynomial(op, cube, even[::-1]), 0.355028053887817239260)
    second = op.Mul(op.Mul(polynomial(op, cube, odd[::-1]), bounded), 0.258819403792806798405)
    return op.Sub(first, second)
