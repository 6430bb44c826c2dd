"""Scripted modules are traced as the Python that they were scripted from; eager stays what was scripted."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import assert_kept_alive
from trueport.load.unscripted import in_python, unscripted

FREE = torch.export.Dim.DYNAMIC
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")


class Padding(nn.Module):
    """pytorch/pytorch#54297: scripted, since only that kept the loop."""

    def forward(self, items: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        padded = torch.zeros([len(lengths), int(lengths.max())], dtype=items.dtype)
        start = 0
        for row, length in enumerate(lengths):
            padded[row, :length] = items[start : start + length]
            start = start + length
        return padded


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)])
        self.rnn = nn.GRU(3, 3, batch_first=True)
        self.scale = 0.5
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        h = torch.zeros(x.size(0), 3)
        for t in range(x.size(1)):
            h = torch.tanh(x[:, t] + h * self.scale)
        if bool(h.sum() > 0):
            h = h + self.shift
        return self.rnn(x)[0][:, -1] + h


def test_a_loop_over_a_tensor():
    given = [(torch.arange(sum(n)), torch.tensor(n)) for n in ([1, 2, 3, 4], [3, 3], [5], [2, 0, 1])]
    assert_kept_alive(torch.jit.script(Padding()), given[0], given[1:], dynamic_shapes=({0: FREE}, {0: FREE}), loops=1)


@pytest.mark.parametrize("as_part", [False, True])
def test_layers_buffers_and_numbers_are_those_of_the_scripted_module(as_part):
    scripted = torch.jit.script(Recurrent().eval())
    model = nn.Sequential(nn.Linear(3, 3), scripted).eval() if as_part else scripted
    given = [(torch.randn(b, t, 3) + shift,) for b, t, shift in ((2, 4, 0), (1, 7, 2), (3, 1, -2))]
    assert_kept_alive(model, given[0], given[1:], dynamic_shapes=({0: FREE, 1: FREE},), loops=1, ifs=1, verify=True)


def test_the_model_holds_its_scripted_part_again_afterwards():
    part = torch.jit.script(Recurrent().eval())
    model = nn.Sequential(part)
    with unscripted(model) as traced:
        assert traced is model and type(model[0]) is Recurrent
        assert model[0].shift is part.shift or model[0].shift.data_ptr() == part.shift.data_ptr()
    assert model[0] is part


def test_what_was_loaded_traced_or_frozen_has_no_python():
    scripted = torch.jit.script(Recurrent().eval())
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 3)), torch.ones(2, 3))
    others = (torch.jit.load(file), torch.jit.freeze(scripted), traced, nn.Linear(3, 3))
    assert [in_python(module) for module in others] == [None] * 4
