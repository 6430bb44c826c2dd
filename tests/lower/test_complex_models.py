"""Models with complex numbers, as users write them, of any batch and any length."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.lower.ops.faithful import faithful


def complex_(*sizes):
    return torch.randn(*sizes, dtype=torch.complex64)


class Fourier(nn.Module):
    """A layer of a Fourier neural operator: the lowest frequencies, from both ends, times complex weights."""

    def __init__(self, channels=3, modes=2):
        super().__init__()
        self.modes = modes
        self.low, self.high = (nn.Parameter(0.1 * complex_(channels, channels, modes, modes)) for _ in range(2))
        self.beside = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        m = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*spectrum.shape, dtype=torch.cfloat)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.high)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.beside(x))


class Masked(nn.Module):
    """Speech enhancement: a complex mask over a spectrogram."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.mask = nn.Conv1d(18, 18, 3, padding=1)

    def forward(self, x):
        z = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        real, imaginary = torch.tanh(self.mask(torch.cat([z.real, z.imag], 1))).chunk(2, 1)
        return torch.istft(z * torch.complex(real, imaginary), 16, 4, window=self.window, length=x.shape[-1])


class StateSpace(nn.Module):
    """S4D: the kernel of a diagonal state space, over as many steps as the input has."""

    def __init__(self, channels=3, states=2):
        super().__init__()
        self.log_step = nn.Parameter(-torch.rand(channels))
        self.c = nn.Parameter(torch.randn(channels, states, 2))
        self.frequencies = nn.Parameter(math.pi * torch.arange(states).repeat(channels, 1).float())

    def forward(self, u):
        length = u.size(-1)
        a = -0.5 + 1j * self.frequencies
        per_step = a * torch.exp(self.log_step).unsqueeze(-1)
        powers = torch.exp(per_step.unsqueeze(-1) * torch.arange(length))
        c = torch.view_as_complex(self.c) * (torch.exp(per_step) - 1.0) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, powers).real
        product = torch.fft.rfft(kernel, n=2 * length) * torch.fft.rfft(u, n=2 * length)
        return torch.fft.irfft(product, n=2 * length)[..., :length]


class Recurrent(nn.Module):
    """A linear recurrent unit: a complex state, round after round."""

    def __init__(self, width=3, states=4):
        super().__init__()
        self.size, self.angle = nn.Parameter(torch.rand(states)), nn.Parameter(3 * torch.rand(states))
        self.b, self.c = nn.Parameter(complex_(states, width)), nn.Parameter(complex_(width, states))

    def forward(self, u):
        step = torch.exp(torch.complex(-torch.exp(self.size), self.angle))
        given = u.to(torch.cfloat) @ (self.b * torch.sqrt(1 - step.abs() ** 2).unsqueeze(-1)).T
        state = torch.zeros(u.shape[0], step.shape[0], dtype=torch.cfloat)
        outputs = []
        for t in range(u.shape[1]):
            state = step * state + given[:, t]
            outputs.append((state @ self.c.T).real)
        return torch.stack(outputs, 1)


class Attention(nn.Module):
    """With complex weights, inputs and outputs."""

    def __init__(self, width=4):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, dtype=torch.cfloat) for _ in range(3))

    def forward(self, z):
        scores = self.q(z) @ self.k(z).mH / math.sqrt(z.shape[-1])
        return torch.softmax(scores.abs(), -1).to(z.dtype) @ self.v(z)


class Whitened(nn.Module):
    """A complex batch normalisation: the parts are made uncorrelated by the root of their covariance."""

    def __init__(self, channels=3):
        super().__init__()
        self.register_buffer("mean", complex_(channels))
        self.register_buffer("covariance", torch.rand(channels, 3) + torch.tensor([1.0, 1.0, 0.0]))

    def forward(self, z):
        z = z - self.mean[:, None]
        rr, ii, ri = (self.covariance[:, i, None] for i in range(3))
        s = torch.sqrt(rr * ii - ri.pow(2))
        t = 1 / (s * torch.sqrt(rr + ii + 2 * s))
        real = (ii + s) * t * z.real - ri * t * z.imag
        return real.type(torch.complex64) + 1j * ((rr + s) * t * z.imag - ri * t * z.real).type(torch.complex64)


class Beamformer(nn.Module):
    """MVDR: the inverse of the noise's covariance, which is Hermitian, times the speech's."""

    def forward(self, x, mask):
        speech = torch.einsum("cft,dft,ft->fcd", x, x.conj(), mask.to(x.dtype))
        noise = torch.einsum("cft,dft,ft->fcd", x, x.conj(), (1 - mask).to(x.dtype)) + torch.eye(x.shape[0])
        weights = torch.linalg.solve(noise, speech)
        trace = torch.diagonal(weights, dim1=-2, dim2=-1).sum(-1, keepdim=True)
        return torch.einsum("fc,cft->ft", (weights[..., 0] / (trace + 1e-3)).conj(), x)


class Evolved(nn.Module):
    """exp(-iht) by eigenvectors, whose phases cancel."""

    def forward(self, z, t):
        values, vectors = torch.linalg.eigh(z + z.mH)
        return vectors @ torch.diag_embed(torch.exp(-1j * values * t)) @ vectors.mH


MODELS = {
    "Fourier neural operator": (Fourier, (torch.randn(2, 3, 6, 8),), ({0, 2, 3},)),
    "mask over a spectrogram": (Masked, (torch.randn(2, 64),), ({0, 1},)),
    "state space": (StateSpace, (torch.randn(2, 3, 8),), ({0, 2},)),
    "linear recurrent unit": (Recurrent, (torch.randn(2, 5, 3),), ({0, 1},)),
    "attention": (Attention, (complex_(2, 5, 4),), ({0, 1},)),
    "batch normalisation": (Whitened, (complex_(2, 3, 5),), ({0, 2},)),
    "beamformer": (Beamformer, (complex_(3, 4, 9), torch.rand(4, 9)), ({1, 2}, {0, 1})),
    "evolution": (Evolved, (complex_(2, 3, 3), torch.tensor(0.3)), ({0}, None)),
}


@pytest.mark.parametrize(("model", "inputs", "free"), MODELS.values(), ids=MODELS)
def test_a_model_of_any_size(model, inputs, free):
    torch.manual_seed(0)
    faithful(model().eval(), *inputs, free=free)
