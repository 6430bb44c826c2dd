"""Complex numbers are pairs of real ones in ONNX: inside, at the ends, in weights, and through branches and loops."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from tests.lower.ops.faithful import faithful


def complex_(*sizes, dtype=torch.complex64):
    return torch.randn(*sizes, dtype=dtype)


FUNCTIONS = {
    "exp": torch.exp,
    "expm1": lambda z: torch.expm1(z * 1e-3),
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "reciprocal": lambda z: 1 / (z + 3),
    "power of two": lambda z: z**2,
    "other powers": lambda z: (z**-3, z**0.5, z**1.7, z ** (0.5 + 1j), 2**z),
    "sign": torch.sgn,
    "absolute value": torch.abs,
    "angle": torch.angle,
    "equality": lambda z: (z == z[:1], z != 1j, z == 0),
    "what is finite": lambda z: ((z / 0).isfinite(), (z / 0).isnan(), (z / 0).isinf()),
    "norm": lambda z: torch.linalg.vector_norm(z, dim=1),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(function):
    faithful(function, complex_(4, 3), free=({0},))


MOVES = {
    "sums": lambda z: (z.sum(), z.mean(0), z.cumsum(1), z.sum(1, keepdim=True)),
    "views": lambda z: (z.T, z.flatten(), z[:, None], z.unflatten(1, (1, 3)), z[:, :1].squeeze(1), z.mH),
    "slices": lambda z: (z[::2], z[..., -1], z[:, [0, 2]], z[z.real > 0], z.flip(0), z.roll(1)),
    "copies": lambda z: (z.repeat(2, 1), torch.cat([z, z]), torch.stack([z, z], -1), z.tril(), z.diagonal()),
    "gather": lambda z: z.gather(1, torch.zeros(z.shape[0], 2, dtype=torch.int64)),
    "pad": lambda z: torch.nn.functional.pad(z, (1, 2), value=1.5),
    "where": lambda z: (torch.where(z.real > 0, z, 0), z.masked_fill(z.real > 0, 2j), torch.where(z.imag > 0, 1.0, z)),
    "new ones": lambda z: (torch.zeros_like(z), torch.ones_like(z) * 1j, torch.full_like(z, 1 + 2j), z.new_zeros(2)),
    "from reals": lambda z: (torch.complex(z.real, z.imag * 2), torch.polar(z.abs(), z.angle()), z.real.to(z.dtype)),
    "infinities": lambda z: (1 / z.real.clamp(min=0)).to(torch.complex64) + z,
}


@pytest.mark.parametrize("function", MOVES.values(), ids=MOVES)
def test_elements_are_moved_and_added_up(function):
    faithful(function, complex_(4, 3), free=({0},))


def test_writes_in_place_reach_the_parts():
    def forward(x):
        z = torch.zeros(x.shape, dtype=torch.complex64)
        z[:, 0] = torch.complex(x[:, 0], x[:, 1])
        z[x > 1] = 2j
        z.imag[:, 1] = 3.0
        return z

    faithful(forward, torch.randn(5, 2), free=({0},))


LAYERS = {
    "linear": (lambda: nn.Linear(3, 4), (2, 3)),
    "linear without bias": (lambda: nn.Linear(3, 4, bias=False), (2, 3)),
    "convolution": (lambda: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 6)),
    "padded by name": (lambda: nn.Conv2d(3, 4, 3, padding="same"), (2, 3, 6, 5)),
    "transposed": (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2), (2, 3, 6)),
}


@pytest.mark.parametrize(("layer", "sizes"), LAYERS.values(), ids=LAYERS)
def test_layers_with_complex_weights(layer, sizes):
    faithful(layer().to(torch.complex64), complex_(*sizes), free=({0},))


def test_products_of_matrices():
    faithful(lambda a, b, c: a @ b + torch.einsum("ij,jk->ik", a, b) * c, complex_(4, 3), complex_(3, 2), complex_(2))
    faithful(lambda a, b, c: torch.addmm(c, a, b, beta=2, alpha=0.5), complex_(4, 3), complex_(3, 2), complex_(2))


def test_double_precision():
    faithful(lambda z: (z * z.conj(), z.exp()), complex_(3, dtype=torch.complex128), free=({0},))


def test_large_numbers_have_a_length():
    faithful(lambda z: (z * 1e25).abs(), complex_(3))


class Turned(nn.Module):
    """Rotary embeddings, as written with complex numbers."""

    def __init__(self):
        super().__init__()
        turns = torch.outer(torch.arange(16.0), 1 / 100 ** (torch.arange(0, 8, 2) / 8))
        self.register_buffer("turns", torch.polar(torch.ones_like(turns), turns))

    def forward(self, x):
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.turns[: x.shape[1], None]
        return torch.view_as_real(z).flatten(-2)


def test_rotary_embeddings_of_any_length():
    faithful(Turned(), torch.randn(2, 5, 2, 8), free=({0, 1},))


def test_angles_of_a_spectrum_do_not_jump():
    """The imaginary part of the highest frequency is 0 in eager; a rounding error would decide between pi and -pi."""
    faithful(lambda x: torch.fft.rfft(x).angle(), torch.randn(5, 16), free=({0},))


def test_through_branches():
    def forward(x):
        z = torch.complex(x, 2 * x)
        if x.sum() > 0:
            z = z * 1j
        else:
            z = (z + 1)[:, :1]
        return z

    program = faithful(forward, torch.randn(3, 2), free=({0},))
    for x in (torch.ones(4, 2), -torch.ones(2, 2)):
        torch.testing.assert_close(program(x), forward(x))


def test_through_loops():
    def forward(x, n):
        z = c = torch.complex(x, 0.1 * x)
        seen = []
        for _ in range(n):
            z = (z * z + c) / (1 + z.abs())  # which does not overflow, however many rounds
            seen.append(z)
        return z.abs(), torch.stack(seen)

    program = faithful(forward, torch.rand(3) * 0.3, 3, free=({0}, None))
    x = torch.rand(4) * 0.3
    for expected, got in zip(forward(x, 5), program(x, 5), strict=True):
        torch.testing.assert_close(got, expected)


def test_inputs_and_outputs_are_pairs_and_the_report_says_so():
    program = trueport.export(lambda z: {"spectrum": z * 2, "size": z.abs()}, (complex_(3, 4),))
    (given,) = program.model.graph.inputs
    assert [given.dtype.name, *given.shape] == ["FLOAT", 3, 4, 2]
    assert [*program.model.graph.outputs[0].shape] == [3, 4, 2]
    told = [found.message for found in program.report.diagnostics if found.code == "TP404"]
    assert [message.split("`")[1] for message in told] == ["z", "spectrum"]
    z = complex_(3, 4)
    torch.testing.assert_close(program(z)["spectrum"], z * 2)


def test_what_is_not_carried_is_named_at_its_line():
    with pytest.raises(trueport.ExportError) as refused:
        faithful(lambda z: z.scatter(0, torch.tensor([1, 1]), z, reduce="multiply").abs(), complex_(3))
    (found,) = refused.value.diagnostics
    assert found.code == "TP403"
    assert "aten.scatter.reduce" in found.message
