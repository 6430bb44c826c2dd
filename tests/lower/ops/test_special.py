"""Special functions, on values of every range that their approximations distinguish, infinity and NaN included."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lower.ops.faithful import faithful
from tests.lower.through_onnx import check, model_of, run

special = torch.special

# Around each point where an approximation takes over from another; poles, zeros, what over- and underflows.
EDGES = [0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1.5, -2.5, -3.7, 0.46, 0.47, 0.135, 0.866, 0.999, -0.999, 1e-3, -1e-3]
EDGES += [4, 4.01, 4.99, 5.01, 2.08, -2.08, 2.1, -2.1, 7.99, 8.01, -8.2, 9.999, 10, 26, -26, 51, 60, -60.5, 104, 200]
EDGES += [1e-5, 1e-10, -1e-10, 1e-30, 1000.5, 1e4, math.inf, -math.inf, math.nan]


def values(dtype: torch.dtype) -> torch.Tensor:
    drawn = torch.randn(30, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    return torch.cat([torch.tensor(EDGES, dtype=torch.float64), drawn]).to(dtype)


FUNCTIONS = {
    "error function": lambda x: (special.erfc(x), special.erfcx(x), special.ndtr(x), special.log_ndtr(x)),
    "inverse error function": lambda x: (special.erfinv(x), special.ndtri(x)),
    "log gamma": lambda x: (torch.lgamma(x), torch.mvlgamma(x.abs() + 2, 3)),
    "digamma": lambda x: (torch.digamma(x), torch.polygamma(0, x)),
    "polygamma": lambda x: (torch.polygamma(2, x), torch.polygamma(3, x)),
    "zeta": lambda x: special.zeta(x.abs() + 1.25, x.abs() + 0.5),
    "bessel": lambda x: (special.bessel_j0(x), special.bessel_j1(x), special.spherical_bessel_j0(x)),
    "bessel of the second kind": lambda x: (special.bessel_y0(x), special.bessel_y1(x)),
    "modified bessel": lambda x: (special.i0(x), special.i0e(x), special.i1(x), special.i1e(x)),
    "the same by their other names": lambda x: (special.modified_bessel_i0(x), special.modified_bessel_i1(x)),
    "falling bessel": lambda x: (special.modified_bessel_k0(x), special.modified_bessel_k1(x)),
    "scaled": lambda x: (special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)),
    "airy": special.airy_ai,
    "parts of floats": torch.frexp,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_one_tensor(function, dtype):
    rtol, atol = (2e-5, 1e-6) if dtype is torch.float32 else (1e-9, 1e-12)
    check(function, (values(dtype),), rtol=rtol, atol=atol)


def test_trigamma():
    """Apart from its poles, where eager gives what the rounding of pi leaves."""
    x = torch.tensor([0.3, 0.5, 1.0, 2.0, -0.4, -3.7, 40.0, 1e6], dtype=torch.float64)
    check(lambda x: torch.polygamma(1, x), (x,), rtol=1e-11, atol=0)
    check(lambda x: torch.polygamma(1, x), (x.float(),), rtol=2e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_other_dtypes_are_computed_as_eager_does(dtype):
    x = torch.tensor([1, 2, 3, 7]).to(dtype)
    check(lambda x: (torch.digamma(x), torch.lgamma(x), special.i1(x), special.erfc(x)), (x,), rtol=1e-2, atol=1e-3)


POLYNOMIALS = [name for name in dir(special) if "_polynomial_" in name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_degrees_in_a_tensor(name, dtype):
    x = torch.tensor([-3, -1.5, -1, -0.75, 0, 0.1, 0.5, 0.9, 1, 1.2, 30], dtype=dtype)
    n = torch.tensor([-1, 0, 1, 2, 3, 6, 7, 9.7, 12], dtype=dtype)
    rtol, atol = (1e-4, 1e-4) if dtype is torch.float32 else (1e-10, 1e-10)
    check(getattr(special, name), (x[:, None], n), rtol=rtol, atol=atol)
    check(lambda x: getattr(special, name)(x, 4), (x,), rtol=rtol, atol=atol)


def test_polynomials_do_not_overflow_on_their_way():
    """Held against float64: whether eager itself does depends on the processor's fma."""
    x, n = torch.tensor([173, 59, 124, 36], dtype=torch.uint8), torch.tensor([49, 92, 86, 231], dtype=torch.uint8)
    (found,) = run(model_of(special.laguerre_polynomial_l, (x, n)), (x, n))
    right = special.laguerre_polynomial_l(x.double(), n.double())
    torch.testing.assert_close(torch.from_numpy(found.numpy()).double(), right, rtol=5e-3, atol=0)


def test_a_degree_that_eager_does_not_compute():
    check(special.hermite_polynomial_h, (torch.tensor([0.5, 0.5]), torch.tensor([129.0, 2.0])))


def test_incomplete_gamma_functions_have_eagers_own_error():
    """Where eager divides by a pi of float32, near the diagonal."""
    a, x = (
        side.reshape(-1)
        for side in torch.meshgrid(
            *[torch.tensor([19, 21, 31, 64, 128, 199, 201, 500, 1040], dtype=torch.float64)] * 2, indexing="ij"
        )
    )
    check(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), (a, x), rtol=1e-11, atol=1e-13)


def test_incomplete_gamma_functions():
    a, x = torch.meshgrid(
        *[values(torch.float64)[[0, 2, 4, 7, 12, 18, 20, 33, 36, 39, -32, -31, -30]]] * 2, indexing="ij"
    )
    check(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), (a, x), rtol=1e-7, atol=1e-12)
    a, x = a.float(), x.float()
    check(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), (a, x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_next_number(dtype):
    facts = torch.finfo(dtype)
    x = torch.tensor(
        [0, -0.0, 1, -1, 2, 0.3, facts.max, facts.tiny, facts.smallest_normal, math.inf, math.nan], dtype=dtype
    )
    towards = torch.tensor([5, 0, -math.inf, math.inf, math.nan], dtype=dtype)
    check(torch.nextafter, (x, towards[:, None]), rtol=0, atol=0)


def test_divisors():
    a = torch.tensor([12, 0, -12, 7, 0, 35, 2**40, 832040])
    b = torch.tensor([18, 5, 8, 0, 0, -49, 2**35 * 3, 514229])
    check(lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), (a, b))
    check(torch.gcd, (a.to(torch.uint8), b.to(torch.uint8)))


def test_lengths_and_sums_that_do_not_overflow():
    a, b = torch.tensor([3.0, 1e30, 0.0, math.inf]), torch.tensor([4.0, 1e30, 0.0, math.nan])
    check(torch.hypot, (a, b))
    check(torch.logaddexp2, (torch.tensor([200.0, -1e4, 3.0]), torch.tensor([1.0, 1e4, 3.0])))


def test_free_and_empty_sizes():
    def forward(x):
        return special.zeta(x.abs() + 2, x.abs() + 1), torch.digamma(x.abs() + 1), torch.igamma(x.abs() + 1, x.abs())

    faithful(forward, torch.randn(3, 4), free=({0, 1},))
