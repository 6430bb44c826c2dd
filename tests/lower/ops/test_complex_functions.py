"""Functions of complex numbers on the plane: on branch cuts, where zeros have signs, far out, at infinities."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.lower.through_onnx import model_of, run

PARTS = (0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 1e-6, 30.0, -100.0)
GRID = torch.tensor([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], dtype=torch.complex64)
INFINITE = torch.tensor(
    [complex(a, b) for a, b in itertools.product((math.inf, -math.inf, math.nan, 0.0, 1.0), repeat=2)],
    dtype=torch.complex64,
)
NAMES = (
    *("exp", "exp2", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "sigmoid", "reciprocal", "square", "sgn", "abs", "angle"),
)
FUNCTIONS = {
    **{name: getattr(torch, name) for name in NAMES},
    "silu": torch.nn.functional.silu,
    "powers": lambda z: torch.stack([z**0, z**0.5, z**2, z**3, z**-1, z**-2, z**1.5, z ** (0.5 + 1j)]),
    "powers of numbers": lambda z: torch.stack([2**z, 0**z]),
}
ARITHMETIC = {
    "times a number": lambda z: torch.stack([z * 2, z * -1.5, z * 1j]),
    "by a number": lambda z: torch.stack([z / 2, z / 0, z / 2j, z / -1]),
    "times each other": lambda z: z * z.flip(0),
    "by each other": lambda z: z / z.flip(0),
    "plus each other": lambda z: torch.stack([z + z.flip(0), z - z.flip(0), z + 1, torch.rsub(z, z.flip(0))]),
    "with real ones": lambda z: torch.stack([z * z.real, z / z.real, z + z.real, z - z.imag, z.imag - z]),
    "length": torch.abs,
    "one by it": torch.reciprocal,
    "is it zero": lambda z: (z.bool(), z.logical_not(), z != 0),
}


def same_as_eager(function, z):
    expected = function(z)
    got = [value.numpy() for value in run(model_of(function, (z,)), (torch.view_as_real(z),))]
    for theirs, ours in zip(expected if isinstance(expected, tuple) else (expected,), got, strict=True):
        theirs = torch.view_as_real(theirs.resolve_conj()) if theirs.is_complex() else theirs
        torch.testing.assert_close(torch.from_numpy(ours.copy()), theirs, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_on_the_plane(function):
    # Eager's log2 of 0 is -inf in its code for vectors, and -inf+nanj in its code for single numbers.
    same_as_eager(function, GRID[GRID != 0] if function is torch.log2 else GRID)


@pytest.mark.parametrize("function", ARITHMETIC.values(), ids=ARITHMETIC)
def test_arithmetic_where_parts_are_zero_or_infinite(function):
    same_as_eager(function, torch.cat([GRID, INFINITE]))


def test_the_angle_of_a_real_vector_follows_the_signs_of_zeros():
    parts = torch.tensor(list(itertools.product((0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan), repeat=2)))
    model = model_of(torch.atan2, (parts[:, 0], parts[:, 1]))
    got = torch.from_numpy(run(model, (parts[:, 0], parts[:, 1]))[0].numpy().copy())
    torch.testing.assert_close(got, torch.atan2(parts[:, 0], parts[:, 1]), equal_nan=True)
