"""Sizes that were rounded to a multiple: the shorter form is the same number, and what cancels does."""

from __future__ import annotations

import itertools

import pytest
import sympy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

import trueport
from trueport.torch_internals.expressions import without_common_factor
from trueport.torch_internals.multiples import quotient, remainder, rounded, without_floors

N, M = sympy.symbols("n m", integer=True, nonnegative=True)
PAD_7 = PythonMod(-N, 7)


def at(expr: sympy.Expr, n: int, m: int) -> sympy.Expr:
    return expr.xreplace({N: sympy.Integer(n), M: sympy.Integer(m)})


@pytest.mark.parametrize(
    ("shorter", "written", "expected"),
    [
        (remainder, PythonMod(7 - Mod(N, 7), 7), PAD_7),
        (remainder, PythonMod(3 - Mod(N, 14) + 7 * M, 7), PythonMod(3 - N, 7)),
        (remainder, PythonMod(7 - Mod(N, 3), 7), PythonMod(7 - Mod(N, 3), 7)),  # another divisor says nothing
        (rounded, N + PAD_7, 7 * FloorDiv(N + 6, 7)),
        (rounded, N + M + PAD_7, M + 7 * FloorDiv(N + 6, 7)),
        (rounded, N - Mod(N, 4), 4 * FloorDiv(N, 4)),
        (rounded, N + 1 + PythonMod(-N - 1, 4), 4 * FloorDiv(N + 4, 4)),
        (rounded, N + Mod(N, 2), 2 * FloorDiv(N + 1, 2)),
        (rounded, M + Mod(N, 4), M + Mod(N, 4)),  # nothing cancels
        (quotient, FloorDiv(FloorDiv(N + 3, 4) + 1, 2), FloorDiv(N + 7, 8)),
        (quotient, FloorDiv(FloorDiv(N, 4) - 3, 2) + M, FloorDiv(N - 12, 8) + M),
        (quotient, FloorDiv(2 * FloorDiv(N, 4) + 1, 3), FloorDiv(2 * FloorDiv(N, 4) + 1, 3)),
    ],
)
def test_the_shorter_form_is_the_same_number(shorter, written, expected):
    assert shorter(written) == expected
    for n, m in itertools.product(range(40), (0, 1, 5)):
        assert at(expected, n, m) == at(written, n, m), (n, m)


@pytest.mark.parametrize(
    "expr",
    [
        7 * FloorDiv(N + 6, 7) - N,
        7 * FloorDiv(N + 27, 28) - FloorDiv(N + 3, 4),
        M - 3 * FloorDiv(FloorDiv(N, 2) + M, 5),
        -FloorDiv(N, 3) + FloorDiv(M + 1, 2) * 2,
    ],
)
def test_nothing_is_below_the_bound_without_floors(expr):
    least, scale = without_floors(expr)
    assert not least.has(FloorDiv)
    for n, m in itertools.product(range(40), range(12)):
        assert at(expr, n, m) * scale >= at(least, n, m), (n, m)


def test_channels_are_no_sizes():
    assert without_common_factor(sympy.Ne(96 * N, 96 * M)) == sympy.Ne(N, M)
    assert without_common_factor(sympy.Eq(96 * N, 0)) == sympy.Eq(N, 0)
    assert without_common_factor(sympy.Eq(6 * N, 4 * M)) == sympy.Eq(3 * N, 2 * M)
    assert without_common_factor(sympy.Ge(96 * N, 96)) == sympy.Ge(96 * N, 96)


class Windows(nn.Module):
    """Pads to windows, works on each, and takes the padding off; then half the size."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.down = nn.Conv2d(4, 4, 2, 2)

    def forward(self, x):
        w = self.window
        batch, channels, height, width = x.shape
        padded = F.pad(x, (0, (w - width % w) % w, 0, -height % w))
        tall, wide = padded.shape[2:]
        parts = padded.view(batch, channels, tall // w, w, wide // w, w).permute(0, 2, 4, 3, 5, 1)
        parts = parts.reshape(-1, w * w, channels).softmax(1)
        whole = parts.view(-1, tall // w, wide // w, w, w, channels).permute(0, 5, 1, 3, 2, 4)
        x = x + whole.reshape(-1, channels, tall, wide)[:, :, :height, :width]
        return self.down(F.pad(x, (0, width % 2, 0, height % 2)))


def test_windows_in_each_of_four_stages():
    """The sizes of the last stage had thousands of terms, and the trace did not end."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Windows(w) for w in (7, 5, 3, 7))).eval()
    x = torch.randn(2, 4, 40, 36)
    program = trueport.export(model, (x,), dynamic_shapes=({0: "batch", 2: "height", 3: "width"},))
    longest = max(len(str(size)) for value in program._graph.outputs for size in value.value.shape)
    assert longest < 60
    for shape in ((1, 4, 33, 47), (3, 4, 8, 100), (2, 4, 1, 1)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.as_tensor(program(x)), model(x).detach())
