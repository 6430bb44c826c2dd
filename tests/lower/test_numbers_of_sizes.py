"""Numbers that Python computes from free sizes: the same double arithmetic, in the same order, at every size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from tests.lower.through_onnx import model_of

EXACT: dict[str, Callable[[Any], Any]] = {
    "a product in its order": lambda n: int(n * 0.57 * 100),
    "a product from the right": lambda n: int(100 * (0.57 * n)),
    "a long product": lambda n: n * 0.1 * 3 * 7 * 11,
    "a sum in its order": lambda n: int((n + 0.1 + 0.2) * 10),
    "a difference in its order": lambda n: int((n - 0.1 - 0.2) * 1000),
    "a difference of floats": lambda n: n * 0.1 - n * 0.3,
    "a negative float": lambda n: -(n * 0.3) + n * 0.3 * 3,
    "a square": lambda n: (n / 7) * (n / 7),
    "a quotient and back": lambda n: int(n / 49 * 49),
    "floats floor division": lambda n: int(n * 0.1 // 0.1),
    "floor division by a float": lambda n: int(1000.5 // (n * 0.1 + 0.1)),
    "floats remainder": lambda n: (n * 0.1) % 0.1,
    "remainder by one": lambda n: (n * 0.3) % 1.0,
    "remainder by a negative": lambda n: (n * 0.3) % -0.7,
    "divmod": lambda n: divmod(n * 0.3, 0.1)[0],
    "log2, cut off": lambda n: int(math.log2(n)),
    "log2, rounded up": lambda n: math.ceil(math.log2(n)),
    "numpy's log2": lambda n: int(np.log2(n)),
    "log10, cut off": lambda n: int(math.log10(n)),
    "log to a base": lambda n: int(math.log(n, 2)),
    "log": lambda n: math.log(n),
    "square root": lambda n: math.sqrt(n),
    "exponential": lambda n: int(math.exp(n / 1000) * 100),
    "a root as a power": lambda n: int(n ** (1 / 3)),
    "a power": lambda n: math.pow(n, 3),
    "half to even": lambda n: round(n / 2),
    "rounded to two digits": lambda n: round(n * 0.005, 2),
    "rounded to one digit": lambda n: round(n * 0.05, 1),
    "rounded to tens": lambda n: round(n * 0.5, -1),
    "rounded up": lambda n: math.ceil(n * 0.1 * 10),
    "rounded down": lambda n: math.floor(n * 0.1 * 10),
    "cut off": lambda n: math.trunc(-n * 1.1),
    "integer square root": lambda n: math.isqrt(n),
    "factorial": lambda n: math.factorial(n % 21),
    "ways to choose": lambda n: math.comb(n, 3),
    "a power of integers": lambda n: 3 ** (n % 39),
    "a high power": lambda n: (n % 100) ** 9,
    "exponent": lambda n: math.frexp(n * 0.3)[1],
    "the smaller": lambda n: min(n * 0.3 * 3, 7.7),
    "a sum of a list": lambda n: sum([n * 0.1, 0.2, 0.3]),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_same_number_at_every_size(name: str) -> None:
    function = EXACT[name]

    def forward(x: torch.Tensor) -> torch.Tensor:
        number = function(x.shape[0])
        is_float = isinstance(number, (float, torch.SymFloat))
        return torch.full((), number, dtype=torch.float64 if is_float else torch.int64)

    model = model_of(forward, (torch.zeros(6),), {0: {0: "n"}})
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"])
    sizes = [*range(1, 600), *(2**k + step for k in range(10, 14) for step in (-1, 0, 1)), 999, 1000, 1001, 4999, 5000]
    found = [(n, session.run(None, {"x": np.zeros(n, np.float32)})[0].item()) for n in sizes]
    wrong = [(n, got, function(n)) for n, got in found if got != function(n)]
    assert not wrong, f"(size, ONNX, Python): {wrong[:5]}"


def test_a_size_that_a_float_gives_stays_one_expression() -> None:
    """Two ways to write the same product are the same size, so that tensors of it fit together."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        return x[: int(n * 0.5)] + x[: int(0.5 * n)]

    model_of(forward, (torch.zeros(8),), {0: {0: "n"}})
