"""Arithmetic, functions, logic and choices: dtypes, signs and special values as eager has them."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.lower.through_onnx import check, model_of

ROWS = {0: {0: "rows"}}
BOTH_ROWS = {0: {0: "rows"}, 1: {0: "rows"}}


def whole(*sizes: int, low: int = -9, high: int = 9) -> torch.Tensor:
    return torch.randint(low, high, sizes)


UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor isfinite isinf isnan log "
    "log10 log1p log2 logit nan_to_num neg rad2deg reciprocal round rsqrt sigmoid sign signbit sin sinc sinh sqrt "
    "square tan tanh trunc"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_and_of_integers(name):
    function = getattr(torch, name)
    check(function, (torch.rand(2, 3) * 0.9,), (torch.rand(0, 3),), free=ROWS)
    check(function, (whole(2, 3, low=0, high=2),))


IN_FLOAT64 = "acos asin asinh atan atanh cosh erf erfc expm1 log1p sinh tan".split()


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_functions_of_float64_keep_their_digits(name):
    """The runtime has kernels for most of these in float32 only."""
    x = torch.cat([torch.linspace(-0.99, 0.99, 41, dtype=torch.float64) * scale for scale in (1e-9, 0.1, 1)])
    check(getattr(torch, name), (x,), rtol=1e-12, atol=1e-15)


def test_small_arguments_keep_their_digits():
    tiny = torch.tensor([1e-12, -1e-9, 1e-6, 0.0])
    check(lambda x: (torch.log1p(x), torch.expm1(x)), (tiny,), rtol=1e-6, atol=0)


BINARY = (
    "add sub mul div floor_divide remainder fmod maximum minimum fmax fmin eq ne lt le gt ge hypot atan2 true_divide"
).split()


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors_of_floats(name):
    function = getattr(torch, name)
    check(function, (torch.randn(4, 3) * 3, torch.randn(4, 3)), (torch.randn(7, 3), torch.randn(7, 3)), free=BOTH_ROWS)


@pytest.mark.parametrize("name", [name for name in BINARY if name not in ("hypot", "atan2")])
def test_two_tensors_of_integers_and_of_mixed_dtypes(name):
    function = getattr(torch, name)
    divisor = whole(4, 3, low=1)
    check(function, (whole(4, 3), divisor), (whole(4, 3), -divisor))
    check(function, (whole(4, 3).int(), torch.randn(4, 3)))
    check(function, (whole(4, 3).int(), divisor.to(torch.int16)))


def test_numbers_take_the_place_that_eager_gives_them():
    def forward(a):
        return a + 1, a * 2.5, 1 - a, 1.0 - a, a / 2, a**2, a**3, a.float() ** 0.5, 2**a, a > 2.5, a % 3, 7 // (a + 1)

    check(forward, (whole(3, 3, low=0),))
    check(lambda a: (a + 1, a * 2.5, a > 2.5, 1.0 - a), (whole(3, 3, low=0).to(torch.uint8),))


def test_a_number_among_the_inputs_is_no_constant():
    check(lambda x, n: (x * n, x**n, torch.full((2,), n)), (torch.rand(3), 2.5), (torch.rand(3), -1.5))
    check(lambda x, n: (x + n, x[:n], x % n), (whole(5), 2), (whole(5), 3))


def test_division_rounds_as_asked_on_both_sides_of_zero():
    def forward(a, b):
        modes = [torch.div(a, b, rounding_mode=mode) for mode in ("trunc", "floor", None)]
        return *modes, a // b, a % b, torch.fmod(a, b)

    check(forward, (torch.randn(40) * 9, torch.randn(40)))
    check(forward, (whole(40), whole(40, low=1)), (whole(40), -whole(40, low=1)))


def test_one_tenth_goes_nine_times_into_one_and_nothing_goes_into_zero():
    check(lambda a, b: a // b, (torch.tensor([1.0, -1.0, 1.0, 5.0]), torch.tensor([0.1, 0.1, -0.1, 0.0])))


def test_truth_adds_and_multiplies_as_logic():
    def forward(a, b):
        return a + b, a * b, a & b, a | b, a ^ b, ~a, a == b, a != b, a < b, a.logical_and(b), torch.maximum(a, b)

    check(forward, (torch.randn(9) > 0, torch.randn(9) > 0))


def test_bits():
    check(lambda a, b: (a & b, a | 5, a ^ b, ~a, a << 2, a >> 1, a << b, a >> b), (whole(9), whole(9, low=0)))


def test_bounds():
    def forward(a, b):
        return a.clamp(-1), a.clamp(max=0.5), a.clamp(b, b + 1), a.clamp(min=b), a.clamp(-0.5, 0.5), a.clamp(1, -1)

    check(forward, (torch.randn(5), torch.randn(5)))
    check(lambda a: (a.clamp(0, 3), a.clamp(min=1), a.clamp(0.5)), (whole(5),))


def test_choices_promote_their_values_and_never_their_condition():
    def forward(a, b):
        return torch.where(a > 0, a, b), torch.where(a > 0, 1.0, b), torch.where(a > 0, 1, 2), a.masked_fill(a > 0, 0.5)

    check(forward, (torch.randn(5), torch.randn(5)))
    check(lambda a, b: torch.where(a > 0, a, b), (torch.randn(5), whole(5)))
    check(lambda a: torch.where(a, a, ~a), (torch.randn(5) > 0,))


def test_special_values():
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0])

    def forward(x):
        return (
            torch.isnan(x),
            torch.isinf(x),
            torch.signbit(x),
            x.nan_to_num(),
            x.clamp(-2, 2),
            x.clamp(min=0),
            x.clamp(max=0),
            x.relu(),
            x == x,
        )

    check(forward, (x,))
    check(lambda x: (x.nan_to_num(1.0, 2.0, -2.0), torch.sign(x)[1:], x.softmax(0)), (x,))


ACTIVATIONS = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus "
    "softshrink softsign tanhshrink"
).split()


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_activations(name, dtype):
    x = (torch.randn(3, 5) * 4).to(dtype)
    last_digit = {"rtol": 1e-2, "atol": 1e-2} if dtype is torch.bfloat16 else {}
    check(lambda x: getattr(F, name)(x).to(torch.float32), (x,), **last_digit)


def test_activations_with_options():
    def forward(x):
        glu, prelu = F.glu(x), F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4]))
        return glu, prelu, F.gelu(x, approximate="tanh"), F.softplus(x, 2.0, 5.0), F.threshold(x, 0.1, 20.0)

    check(forward, (torch.randn(2, 4),), (torch.randn(5, 4),), free=ROWS)


def test_before_opset_20_gelu_is_written_out():
    model = check(F.gelu, (torch.randn(3),), opset=18)
    assert "Gelu" not in {node.op_type for node in model.graph}


def test_softmax_of_rows_of_columns_and_in_another_dtype():
    def forward(x):
        return x.softmax(-1), x.log_softmax(0), torch.softmax(x, 0, dtype=torch.float64)

    check(forward, (torch.randn(2, 4),), (torch.randn(5, 4),), free=ROWS)


def test_constants_are_shared():
    model = model_of(lambda x: (x + 2.5) * 2.5 - 2.5, (torch.randn(3),))
    assert [node.op_type for node in model.graph].count("Constant") == 1
