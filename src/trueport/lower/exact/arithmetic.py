"""sympy expressions as ONNX nodes on tensors of shape [1], or without axes where all of an expression is.

One rule per class of expression, found by the class's name: torch's own functions of sizes (`FloorDiv`, `PythonMod`,
`IntTrueDiv`, ...) live in a private module, and their names are what its printers use too. Integers are int64, floats
are float64, truth is bool: what Python computes with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import onnx_ir as ir
import sympy

from trueport.lower.exact.division import float_floor_div, float_floor_mod, floor_div, floor_mod
from trueport.lower.exact.precise import function, logarithm, round_decimal
from trueport.lower.tensor import Emitter, Tensor

INT, FLOAT, BOOL = ir.DataType.INT64, ir.DataType.DOUBLE, ir.DataType.BOOL
Rule = Callable[[Emitter, sympy.Basic], Tensor]
_RULES: dict[str, Rule] = {}

_UNARY = {
    "sqrt": "Sqrt",
    "cos": "Cos",
    "cosh": "Cosh",
    "sin": "Sin",
    "sinh": "Sinh",
    "tan": "Tan",
    "tanh": "Tanh",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "exp": "Exp",
    "log": "Log",
    "asinh": "Asinh",
}
_RELATIONS = {
    "Equality": "Equal",
    "StrictLessThan": "Less",
    "LessThan": "LessOrEqual",
    "StrictGreaterThan": "Greater",
    "GreaterThan": "GreaterOrEqual",
}


def compute(op: Emitter, expr: sympy.Basic) -> Tensor:
    """The value of an expression, in the form in which it is wanted (`Sizes.part`)."""
    name = type(expr).__name__
    if expr.is_Integer:
        return op.sizes.constant(int(expr), INT)
    if expr.is_Float or expr.is_Rational or expr.is_NumberSymbol or expr in (sympy.oo, -sympy.oo):
        return op.sizes.constant(float(expr), FLOAT)
    if name in ("BooleanTrue", "BooleanFalse"):
        return op.sizes.constant(bool(expr), BOOL)
    if name.startswith("OpaqueUnaryFn_"):
        return _unary(op, name.removeprefix("OpaqueUnaryFn_"), _part(op, expr, 0, FLOAT))
    if name in _RELATIONS or name == "Unequality":
        return _relation(op, expr)
    if (rule := _RULES.get(name)) is None:
        raise NotImplementedError(f"no ONNX arithmetic for {name} in {expr}")
    return rule(op, expr)


def rule(*names: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return add


def _part(op: Emitter, expr: sympy.Basic, index: int, dtype: ir.DataType | None = None) -> Tensor:
    value = op.sizes.part(expr.args[index])
    return value if dtype is None else op.cast(value, dtype)


def _alike(op: Emitter, parts: list[Tensor]) -> list[Tensor]:
    """Parts in one dtype: a float among them makes all float, and truth counts as 0 or 1."""
    dtype = FLOAT if any(part.dtype == FLOAT for part in parts) else INT
    return [op.cast(part, dtype) for part in parts]


def _parts(op: Emitter, expr: sympy.Basic) -> list[Tensor]:
    return _alike(op, [op.sizes.part(part) for part in expr.args])


def _relation(op: Emitter, expr: sympy.Basic) -> Tensor:
    left, right = [op.sizes.part(part) for part in expr.args]
    if not (left.dtype == right.dtype == BOOL):
        left, right = _alike(op, [left, right])
    name = type(expr).__name__
    if name == "Unequality":
        return op.Not(op.Equal(left, right))
    compare: Tensor = getattr(op, _RELATIONS[name])(left, right)
    return compare


def _unary(op: Emitter, name: str, x: Tensor) -> Tensor:
    return logarithm(op, x, 2) if name == "log2" else function(op, _UNARY[name], x)


@rule(*_UNARY)
def _plain_function(op: Emitter, expr: sympy.Basic) -> Tensor:
    return _unary(op, type(expr).__name__, _part(op, expr, 0, FLOAT))


@rule("Add")
def _add(op: Emitter, expr: sympy.Basic) -> Tensor:
    """Terms with a negative factor are subtracted, so that `h - 1` is one node."""
    plus, minus = [], []
    for term in expr.args:
        factor, rest = term.as_coeff_Mul()
        if factor.is_Integer and factor < 0:
            minus.append(op.sizes.part(-factor * rest))
        else:
            plus.append(op.sizes.part(term))
    parts = _alike(op, [*plus, *minus])
    plus, minus = parts[: len(plus)], parts[len(plus) :]
    if not plus:
        return op.Neg(reduce(op.Add, minus))
    return reduce(op.Sub, minus, reduce(op.Add, plus))


@rule("Mul")
def _mul(op: Emitter, expr: sympy.Basic) -> Tensor:
    """Factors `1/q` and `x**-1` divide: exactly where the whole is known to be an integer, else in floating point."""
    above, below = expr.as_numer_denom()
    if below == 1:
        first, *rest = expr.args
        return op.Neg(op.sizes.part(sympy.Mul(*rest))) if first == -1 else reduce(op.Mul, _parts(op, expr))
    dtype = INT if expr.is_integer else FLOAT
    return op.Div(op.cast(op.sizes.part(above), dtype), op.cast(op.sizes.part(below), dtype))


@rule("Pow", "PowByNatural")
def _pow(op: Emitter, expr: sympy.Basic) -> Tensor:
    """Whole exponents multiply: the runtime's integer `Pow` goes through floating point."""
    base, exponent = expr.args
    if exponent.is_Integer and 0 < exponent <= 64:
        return reduce(op.Mul, [op.sizes.part(base)] * int(exponent))
    if exponent.is_Integer and exponent < 0:
        return op.Div(op.sizes.constant(1.0, FLOAT), op.cast(op.sizes.part(base**-exponent), FLOAT))
    if exponent == sympy.Rational(1, 2):
        return op.Sqrt(op.cast(op.sizes.part(base), FLOAT))
    if type(expr).__name__ == "PowByNatural":
        return op.cast(op.Round(op.Pow(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))), INT)
    return op.Pow(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloatAdd")
def _float_add(op: Emitter, expr: sympy.Basic) -> Tensor:
    """One step of Python's, which is rounded: no other order of the terms will do."""
    left, right = expr.args
    for plus, minus in ((left, right), (right, left)):
        if minus.as_coeff_Mul()[0] == -1:
            return op.Sub(op.cast(op.sizes.part(plus), FLOAT), op.cast(op.sizes.part(-minus), FLOAT))
    return op.Add(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloatMul")
def _float_mul(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Mul(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloatFloorDiv")
def _float_floor_div(op: Emitter, expr: sympy.Basic) -> Tensor:
    return float_floor_div(op, _part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloatMod")
def _float_mod(op: Emitter, expr: sympy.Basic) -> Tensor:
    return float_floor_mod(op, _part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloatPow")
def _float_pow(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Pow(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("FloorDiv")
def _floor_div(op: Emitter, expr: sympy.Basic) -> Tensor:
    """Python's `//`, which rounds down; ONNX's integer `Div` rounds towards zero, the same only without signs."""
    top, bottom = _parts(op, expr)
    if top.dtype == FLOAT:
        return float_floor_div(op, top, bottom)
    if op.sizes.is_natural(expr.args[0]) and op.sizes.is_natural(expr.args[1]):
        return op.Div(top, bottom)
    return floor_div(op, top, bottom, positive=op.sizes.is_natural(expr.args[1]))


@rule("CleanDiv")
def _clean_div(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.Div, _parts(op, expr))


@rule("CeilDiv")
def _ceil_div(op: Emitter, expr: sympy.Basic) -> Tensor:
    top, bottom = _parts(op, expr)
    return op.Neg(floor_div(op, op.Neg(top), bottom, positive=op.sizes.is_natural(expr.args[1])))


@rule("Mod", "PythonMod")
def _mod(op: Emitter, expr: sympy.Basic) -> Tensor:
    """The sign follows the divisor, in Python as in ONNX's integer `Mod`."""
    top, bottom = _parts(op, expr)
    if top.dtype == FLOAT:
        return float_floor_mod(op, top, bottom)
    return op.Mod(top, bottom) if op.sizes.is_natural(expr.args[1]) else floor_mod(op, top, bottom)


@rule("ModularIndexing")
def _modular_indexing(op: Emitter, expr: sympy.Basic) -> Tensor:
    """(base // divisor) % modulus, of naturals."""
    base, divisor, modulus = _parts(op, expr)
    return op.Mod(op.Div(base, divisor), modulus)


@rule("IntTrueDiv", "FloatTrueDiv")
def _true_div(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Div(_part(op, expr, 0, FLOAT), _part(op, expr, 1, FLOAT))


@rule("LShift")
def _left_shift(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Mul(_part(op, expr, 0), _power_of_two(op, expr))


@rule("RShift")
def _right_shift(op: Emitter, expr: sympy.Basic) -> Tensor:
    return floor_div(op, _part(op, expr, 0), _power_of_two(op, expr), positive=True)


def _power_of_two(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.cast(op.Pow(op.sizes.constant(2.0, FLOAT), _part(op, expr, 1, FLOAT)), INT)


@rule("Max")
def _max(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Max(*_parts(op, expr))


@rule("Min")
def _min(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Min(*_parts(op, expr))


@rule("Abs")
def _abs(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Abs(_part(op, expr, 0))


@rule("Identity")
def _identity(op: Emitter, expr: sympy.Basic) -> Tensor:
    return _part(op, expr, 0)


@rule("ToFloat")
def _to_float(op: Emitter, expr: sympy.Basic) -> Tensor:
    return _part(op, expr, 0, FLOAT)


@rule("TruncToInt")
def _trunc_to_int(op: Emitter, expr: sympy.Basic) -> Tensor:
    return _part(op, expr, 0, INT)


@rule("TruncToFloat")
def _trunc_to_float(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.cast(_part(op, expr, 0, INT), FLOAT)


@rule("CeilToInt", "ceiling")
def _ceil_to_int(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.cast(op.Ceil(_part(op, expr, 0, FLOAT)), INT)


@rule("FloorToInt", "floor")
def _floor_to_int(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.cast(op.Floor(_part(op, expr, 0, FLOAT)), INT)


@rule("RoundToInt")
def _round_to_int(op: Emitter, expr: sympy.Basic) -> Tensor:
    """Half to even, in Python as in ONNX."""
    return op.cast(op.Round(_part(op, expr, 0, FLOAT)), INT)


@rule("RoundDecimal")
def _round_decimal(op: Emitter, expr: sympy.Basic) -> Tensor:
    return round_decimal(op, _part(op, expr, 0, FLOAT), int(expr.args[1]))


@rule("And")
def _and(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.And, [_part(op, expr, i, BOOL) for i in range(len(expr.args))])


@rule("Or")
def _or(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.Or, [_part(op, expr, i, BOOL) for i in range(len(expr.args))])


@rule("Xor")
def _xor(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.Xor, [_part(op, expr, i, BOOL) for i in range(len(expr.args))])


@rule("Not")
def _not(op: Emitter, expr: sympy.Basic) -> Tensor:
    return op.Not(_part(op, expr, 0, BOOL))


@rule("BitwiseFn_bitwise_and")
def _bitwise_and(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.BitwiseAnd, _parts(op, expr))


@rule("BitwiseFn_bitwise_or")
def _bitwise_or(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.BitwiseOr, _parts(op, expr))


@rule("BitwiseFn_bitwise_xor")
def _bitwise_xor(op: Emitter, expr: sympy.Basic) -> Tensor:
    return reduce(op.BitwiseXor, _parts(op, expr))


@rule("Where", "ITE")
def _where(op: Emitter, expr: sympy.Basic) -> Tensor:
    yes, no = _alike(op, [_part(op, expr, 1), _part(op, expr, 2)])
    return op.Where(_part(op, expr, 0, BOOL), yes, no)


@rule("Piecewise")
def _piecewise(op: Emitter, expr: sympy.Basic) -> Tensor:
    """The first piece whose condition holds; the last one where none does."""
    pieces: list[Any] = list(expr.args)
    values = _alike(op, [op.sizes.part(value) for value, _ in pieces])
    result = values[-1]
    for value, (_, condition) in zip(reversed(values[:-1]), reversed(pieces[:-1]), strict=True):
        result = op.Where(op.cast(op.sizes.part(condition), BOOL), value, result)
    return result
