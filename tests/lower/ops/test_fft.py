"""Complex numbers inside a model travel as pairs: Fourier transforms, rotations, arithmetic."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from tests.lower.ops.faithful import faithful, operators

SIGNAL = ({0, 1},)


def signal():
    return torch.randn(3, 12)


TRANSFORMS = {
    "magnitude": lambda x: torch.fft.rfft(x).abs(),
    "there and back": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]),
    "there and back, full": lambda x: torch.fft.ifft(torch.fft.fft(x, norm="ortho"), norm="ortho").real,
    "normalised": lambda x: torch.view_as_real(torch.fft.rfft(x, norm="forward")),
    "longer than the signal": lambda x: torch.view_as_real(torch.fft.rfft(x, n=20)),
    "along the first axis": lambda x: torch.view_as_real(torch.fft.fft(x, dim=0)),
    "frequencies": lambda x: (torch.fft.fftfreq(x.shape[1]), torch.fft.rfftfreq(x.shape[1], 0.5), torch.fft.fftfreq(7)),
    "a filter": lambda x: torch.fft.irfft(torch.fft.rfft(x, n=16) * torch.linspace(1, 0, 9), n=16),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_signals_of_any_length(transform):
    faithful(transform, signal(), free=SIGNAL)


def test_images():
    def forward(x):
        spectrum = torch.fft.fftshift(torch.fft.fft2(x), dim=(-2, -1))
        smooth = torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho"), s=(6, 7), norm="ortho")
        return spectrum.real, spectrum.imag, smooth

    faithful(forward, torch.randn(2, 6, 7), free=({0},))


def test_a_length_that_is_no_power_of_two_is_as_exact_as_eager():
    faithful(lambda x: torch.view_as_real(torch.fft.rfft(x)), torch.randn(2, 1000))


def test_a_transform_of_a_power_of_two_stays_in_single_precision():
    assert "Cast" not in operators(faithful(lambda x: torch.view_as_real(torch.fft.rfft(x)), torch.randn(2, 64)))


def test_a_spectrogram():
    window = torch.hann_window(10)

    def forward(x):
        plain = torch.stft(x, 8, return_complex=True)
        windowed = torch.stft(x, 16, 4, 10, window=window, normalized=True, return_complex=True)
        return plain.abs(), torch.view_as_real(windowed)

    faithful(forward, torch.randn(2, 50), free=({0, 1},))


def test_a_spectrogram_and_back():
    window = torch.hann_window(8)

    def forward(x):
        z = torch.stft(x, 8, 2, window=window, return_complex=True)
        return torch.istft(z * 0.5, 8, 2, window=window)

    faithful(forward, torch.randn(2, 40), free=({0},))


def z_of(x):
    return torch.view_as_complex(x)


ARITHMETIC = {
    "products": lambda a, b: z_of(a) * z_of(b),
    "with a conjugate": lambda a, b: z_of(a) * z_of(b).conj(),
    "quotients": lambda a, b: z_of(a) / (z_of(b) + 3),
    "sums": lambda a, b: torch.sub(z_of(a), z_of(b), alpha=2) + 1j,
    "with real tensors": lambda a, b: a[..., 0] * z_of(b) + a[..., 1],
    "with numbers": lambda a, b: (z_of(a) * 2 - z_of(b) * (1 - 2j)) / 4,
    "exponentials": lambda a, b: torch.exp(z_of(a)) * torch.polar(b[..., 0].abs(), b[..., 1]),
    "chosen": lambda a, b: torch.where(a[..., 0] > 0, z_of(a), z_of(b)),
    "matrix products": lambda a, b: z_of(a) @ z_of(b).transpose(0, 1),
    "reciprocals": lambda a, b: 1 / (z_of(a) + 3) + z_of(b).reciprocal() * 0,
    "moved about": lambda a, b: torch.cat([z_of(a).flip(1), -z_of(b)[:, 1:]], -1).reshape(-1).sum(-1, keepdim=True),
    "stacked": lambda a, b: torch.stack([z_of(a), z_of(b)], -1).mean(-1).unsqueeze(0).permute(2, 0, 1),
    "from parts": lambda a, b: torch.complex(a[..., 0], b[..., 1]),
}


@pytest.mark.parametrize("compute", ARITHMETIC.values(), ids=ARITHMETIC)
def test_arithmetic(compute):
    a, b = torch.rand(3, 4, 2) + 0.5, torch.rand(3, 4, 2) + 0.5
    faithful(lambda a, b: torch.view_as_real(compute(a, b)), a, b)


def test_length_and_angle():
    faithful(lambda a: (z_of(a).abs(), z_of(a).angle()), torch.rand(3, 4, 2) - 0.5, free=({0, 1},))


def test_rotary_embeddings_by_complex_numbers_with_a_complex_buffer():
    class Rotate(nn.Module):
        def __init__(self):
            super().__init__()
            turns = torch.outer(torch.arange(32.0), torch.rand(4))
            self.register_buffer("turns", torch.polar(torch.ones_like(turns), turns))

        def forward(self, x):
            pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(2)

    program = faithful(Rotate(), torch.randn(2, 5, 8), free=({0, 1},))
    assert {name for name in program.model.graph.initializers if not name.startswith("const_")} == {"turns"}


def test_there_and_back_in_frames_of_any_signal():
    """The length that `istft` is to give is a free size; torch takes a plain number there."""

    def forward(x):
        window = torch.kaiser_window(16)
        z = torch.stft(x, 16, 4, window=window, return_complex=True)
        return torch.istft(z * 0.5, 16, 4, window=window, length=x.shape[-1]), torch.istft(z, 16, 4, window=window)

    length = torch.export.Dim("length", min=32)
    trueport.export(forward, (torch.randn(2, 50),), dynamic_shapes=({1: length},))


def test_frames_of_a_complex_signal():
    def forward(pairs):
        z = torch.view_as_complex(pairs)
        return torch.view_as_real(torch.stft(z, 8, 2, window=torch.hann_window(8), return_complex=True))

    faithful(forward, torch.randn(2, 40, 2))


def test_windows_of_any_length():
    faithful(lambda x: torch.kaiser_window(x.shape[0], False, 6.0) * x, torch.randn(7), free=({0},))
    faithful(lambda x: torch.kaiser_window(7, True, 6.0) * x, torch.randn(7))


GIVEN_LENGTHS = {
    "one axis": lambda x: torch.view_as_real(torch.fft.fft(x, n=6)),
    "half of the spectrum": lambda x: torch.view_as_real(torch.fft.rfft(x, n=5, dim=0)),
    "back": lambda x: torch.fft.irfft(torch.complex(x, x), n=7),
    "two axes": lambda x: torch.view_as_real(torch.fft.fft2(x, s=(3, 6))),
    "back in two axes": lambda x: torch.fft.irfft2(torch.complex(x, x), s=(3, 6)),
    "the last axes": lambda x: torch.view_as_real(torch.fft.rfftn(x, s=(4,))),
    "of a free length": lambda x: torch.fft.ifft(x, n=x.shape[0], dim=1).real,
    "back, of a free length": lambda x: torch.fft.irfft(torch.complex(x, x), n=2 * x.shape[0]),
    "two axes, one of a free length": lambda x: torch.view_as_real(torch.fft.fft2(x, s=(x.shape[1], 4))),
}


@pytest.mark.parametrize("transform", GIVEN_LENGTHS.values(), ids=GIVEN_LENGTHS)
def test_signals_shorter_and_longer_than_the_transform(transform):
    size = {axis: torch.export.Dim(f"size{axis}", min=1) for axis in (0, 1)}
    trueport.export(transform, (torch.randn(5, 9),), dynamic_shapes=(size,))


def test_the_lowest_and_the_highest_frequency_of_real_numbers_are_real():
    """Their angles are 0 or pi in eager; a rounding error below zero would make it -pi."""

    def angles(x):
        return torch.stft(x, 8, 8, window=torch.hann_window(8), center=False, return_complex=True)[:, [0, -1]].angle()

    faithful(angles, torch.rand(2, 64) - 0.5)
