"""Functions of `math` and of numpy for traced numbers.

Torch has symbols for a few of them. The others are computed in float64 by torch's operators on a tensor of one number,
whose item is a traced number again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from trueport.decompositions.arguments import flat
from trueport.decompositions.arrays import computed, holds_array, is_of_numpy
from trueport.rewrite.running.asking import fails_unless
from trueport.torch_internals import SYMBOLIC_MATH
from trueport.torch_internals.symbolic import is_symbolic

Function = Callable[..., Any]


def _by(operator: Function) -> Function:
    def computed(*numbers: Any) -> Any:
        return operator(*(torch.full((), torch.sym_float(n), dtype=torch.float64) for n in numbers)).item()

    return computed


def _of_integers(operator: Function) -> Function:
    def computed(*numbers: Any) -> Any:
        tensors = [torch.full((), number, dtype=torch.int64) for number in numbers]
        return functools.reduce(operator, tensors).abs().item()

    return computed


def _log(number: Any, base: Any = None) -> Any:
    return _by(torch.log)(number) if base is None else _by(lambda x, b: torch.log(x) / torch.log(b))(number, base)


def _length(*numbers: Any) -> Any:
    return _by(lambda *parts: torch.stack(parts).square().sum().sqrt())(*numbers)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    def near(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x - y).abs() <= torch.maximum(rel_tol * torch.maximum(x.abs(), y.abs()), torch.full_like(x, abs_tol))

    return _by(near)(a, b)


def _modf(number: Any) -> tuple[Any, Any]:
    whole = _by(torch.trunc)(number)
    return number - whole, whole


def _gamma(number: Any) -> Any:
    """By its logarithm; below a half by its reflection."""

    def of(x: torch.Tensor) -> torch.Tensor:
        above = torch.where(x < 0.5, 1 - x, x)
        value = torch.lgamma(above).exp()
        return torch.where(x < 0.5, math.pi / (torch.sin(math.pi * x) * value), value)

    return _by(of)(number)


_FACTORIALS = [math.factorial(n) for n in range(21)]
"""All that fit into 64 bits."""


def _factorial(number: Any) -> Any:
    return torch.tensor(_FACTORIALS)[number].item()


def _perm(n: Any, k: Any = None) -> Any:
    """Integers all the way where k is plain; otherwise by logarithms, which give about 14 digits."""
    if k is None:
        return _factorial(n)
    if not is_symbolic(k):
        return functools.reduce(lambda ways, i: ways * (n - i), range(k), 1)
    ways = _by(lambda a, b: torch.where(b > a, 0.0, torch.exp(torch.lgamma(a + 1) - torch.lgamma(a - b + 1))))
    return _whole(ways(n, k))


def _comb(n: Any, k: Any) -> Any:
    if not is_symbolic(k):
        return functools.reduce(lambda ways, i: ways * (n - i) // (i + 1), range(k), 1)
    return _whole(_perm(n, k) / _gamma(k + 1))


def _whole(number: Any) -> Any:
    return torch.sym_int(math.floor(number + 0.5))


def _cube_root(x: torch.Tensor) -> torch.Tensor:
    nearly = torch.sign(x) * x.abs() ** (1 / 3)
    whole = nearly.round()
    return torch.where(whole * whole * whole == x, whole, nearly)


def _remainder(number: Any, other: Any) -> Any:
    return _by(lambda x, y: x - torch.round(x / y) * y)(number, other)


def _frexp(number: Any) -> tuple[Any, Any]:
    exponent = _by(lambda x: torch.frexp(x)[1])(number)
    return _by(lambda x: torch.frexp(x)[0])(number), exponent


_WHERE: dict[Any, Callable[..., Any]] = {
    math.sqrt: lambda x: x >= 0,
    **dict.fromkeys((math.log2, math.log10), lambda x: x > 0),
    math.log: lambda x, *_: x > 0,
    math.log1p: lambda x: x > -1,
    **dict.fromkeys((math.acos, math.asin), lambda x: (x >= -1) & (x <= 1)),
    math.acosh: lambda x: x >= 1,
    math.atanh: lambda x: (x > -1) & (x < 1),
    math.fmod: lambda _, y: y != 0,
    math.factorial: lambda n: n >= 0,
    math.isqrt: lambda n: n >= 0,
}
"""Where a function of `math` gives something; elsewhere it raises ValueError."""


def _as_float(function: Function) -> Function:
    return lambda number: torch.sym_float(function(number))


_IN_FLOAT64 = "exp log10 log1p expm1 erf erfc atan2 fmod copysign lgamma asinh acosh atanh exp2 isnan isinf isfinite"

TRACED_MATH: dict[Any, Function] = {
    **{getattr(math, name): _by(getattr(torch, name)) for name in _IN_FLOAT64.split()},
    **SYMBOLIC_MATH,
    math.log: _log,
    math.log2: _by(torch.log2),
    math.hypot: _length,
    math.dist: lambda p, q: _length(*(a - b for a, b in zip(p, q, strict=True))),
    math.fabs: lambda number: torch.sym_float(abs(number)),
    math.fsum: lambda numbers: torch.sym_float(functools.reduce(lambda a, b: a + b, numbers, 0)),
    math.degrees: lambda number: number * (180.0 / math.pi),
    math.radians: lambda number: number * (math.pi / 180.0),
    math.cbrt: _by(_cube_root),
    math.ldexp: lambda number, power: number * 2.0**power,
    math.isqrt: lambda number: torch.sym_int(math.floor(_by(torch.sqrt)(number))),
    math.floor: math.floor,
    math.ceil: math.ceil,
    math.trunc: math.trunc,
    math.gcd: _of_integers(torch.gcd),
    math.lcm: _of_integers(torch.lcm),
    math.isclose: _isclose,
    math.modf: _modf,
    math.frexp: _frexp,
    math.gamma: _gamma,
    math.remainder: _remainder,
    math.nextafter: _by(torch.nextafter),
    math.factorial: _factorial,
    math.perm: _perm,
    math.comb: _comb,
}
"""What to call for a function of `math` where an argument is traced."""

_NUMPY: dict[Any, Function] = {
    **{
        getattr(np, name): TRACED_MATH[getattr(math, name)] for name in "sqrt exp log2 log10 log1p sin cos tanh".split()
    },
    np.log: _log,
    np.floor: _as_float(math.floor),
    np.ceil: _as_float(math.ceil),
    np.abs: abs,
    np.maximum: torch.sym_max,
    np.minimum: torch.sym_min,
    np.power: lambda number, power: number**power,
    np.prod: TRACED_MATH[math.prod],
    np.clip: lambda number, low, high: torch.sym_min(torch.sym_max(number, low), high),
}


def traced_math(function: Any) -> Function | None:
    """The function for traced numbers in place of one of `math` or numpy; plain numbers go to the function itself."""
    try:
        replacement = TRACED_MATH.get(function) or _NUMPY.get(function)
    except TypeError:  # something that has no hash is none of them
        return None
    if replacement is None and not is_of_numpy(function):
        return None

    def either(*args: Any, **kwargs: Any) -> Any:
        plain = [_number(argument) for argument in args]
        if replacement is not None and _is_traced(plain):
            within = _WHERE.get(function)
            if within is not None:
                fails_unless(lambda: within(*plain), ValueError)
            return replacement(*plain, **kwargs)
        if is_of_numpy(function) and (_is_traced((*plain, *kwargs.values())) or holds_array(args)):
            answer = computed(function.__name__, plain, kwargs)
            if answer is not NotImplemented:
                return answer
        return function(*args, **kwargs)

    return either


def _number(argument: Any) -> Any:
    return argument.item() if isinstance(argument, torch.Tensor) and argument.numel() == 1 else argument


def _is_traced(arguments: Sequence[Any]) -> bool:
    return any(map(is_symbolic, flat(arguments)))
