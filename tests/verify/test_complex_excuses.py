"""Complex numbers are judged with the same care as real ones: their last bits, and their own yardstick."""

from __future__ import annotations

import torch
from torch import nn

import trueport
from trueport.examine import Precisely, run_eager
from trueport.load.request import make_job
from trueport.verify.judging.compare import tolerance_for
from trueport.verify.judging.sensitivity import excuse
from trueport.verify.runtime.tensors import from_torch

TOLERANCE = [tolerance_for(torch.complex64)]


def excused(function, z, got):
    """`got` is the runtime's answer, as the pairs that it gives."""

    def eager(values):
        return [function(values[0])], frozenset()

    pairs = from_torch(torch.view_as_real(got))
    return excuse(eager, [z], [function(z)], [pairs], TOLERANCE, torch.finfo(torch.float32).eps, seed=0)


def test_what_the_last_bit_of_a_complex_input_decides_is_excused():
    z = torch.full((4, 4), 0.3 - 1.2j, dtype=torch.complex64)
    other = torch.linalg.qr(z + 1e-7 * torch.randn(4, 4)).Q
    assert "round otherwise" in excused(lambda z: torch.linalg.qr(z).Q, z, other)


def test_a_wrong_answer_is_not():
    z = torch.randn(4, dtype=torch.complex64)
    assert excused(torch.exp, z, torch.exp(z).conj().resolve_conj()) is None


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))
        self.register_buffer("turn", torch.polar(torch.ones(3), torch.arange(3.0)))

    def forward(self, z, x):
        return z @ self.weight * self.turn + x


def test_the_yardstick_widens_complex_weights_and_inputs():
    model = Turned()
    z, x = torch.randn(2, 3, dtype=torch.complex64), torch.randn(3)
    job = make_job(model, (z, x))
    precise = Precisely(job, run_eager)([z, x])
    assert precise.dtype is torch.complex128
    assert model.weight.dtype is torch.complex64
    torch.testing.assert_close(precise.to(torch.complex64), model(z, x))


def test_a_result_of_double_precision_that_was_single_on_its_way_is_judged_as_single():
    report = trueport.check(lambda z: z.exp().to(torch.complex128) * 3, (torch.randn(4, dtype=torch.complex64),))
    assert report.ok
