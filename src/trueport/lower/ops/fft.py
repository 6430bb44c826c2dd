"""Fourier transforms, by ONNX's `DFT` on pairs.

ONNX Runtime transforms lengths that are not powers of two with an error that grows to 1e-4 in float32; in float64 they
are exact, so such lengths (and those that are free) take that way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_only
from trueport.lower.ops.complex.complexes import conj, mul
from trueport.lower.tensor import Tensor

_AXIS_INPUT_SINCE = 20
_BY_ROOT, _BY_LENGTH = 1, 2
DOUBLE = ir.DataType.DOUBLE


@complex_only("aten::_fft_r2c")
def fft_r2c(op: Builder, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Complex:
    """_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor

    The last axis of `dim` is halved; the others are then transformed as complex ones.
    """
    axes = [axis % self.rank for axis in dim]
    lengths = [self.known_sizes[axis] for axis in axes]
    z = _dft(op, op.Unsqueeze(self, op.ints(-1)), axes[-1], lengths[-1], onesided=int(onesided))
    z = _real_where_eager_is(op, z, self.rank, axes[-1], lengths[-1], op.result.shape[axes[-1]])
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        z = _dft(op, z, axis, length)
    return Complex(_normalised(op, z, lengths, normalization))


@complex_only("aten::_fft_c2c")
def fft_c2c(op: Builder, self: Complex, dim: Sequence[int], normalization: int, forward: bool) -> Complex:
    """_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"""
    axes = [axis % self.rank for axis in dim]
    lengths = [self.pairs.known_sizes[axis] for axis in axes]
    return Complex(_transformed(op, self.pairs, axes, lengths, normalization, forward))


@complex_only("aten::_fft_c2r")
def fft_c2r(op: Builder, self: Complex, dim: Sequence[int], normalization: int, last_dim_size: int | Number) -> Tensor:
    """_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor

    The missing half of the last axis is the conjugate of the given one, backwards.
    """
    axes = [axis % self.rank for axis in dim]
    length = last_dim_size.expr if isinstance(last_dim_size, Number) else last_dim_size
    lengths = [self.pairs.known_sizes[axis] for axis in axes[:-1]] + [length]
    pairs = self.pairs
    for axis, size in zip(axes[:-1], lengths[:-1], strict=True):
        pairs = _dft(op, pairs, axis, size, inverse=1)
    whole = _whole(op, pairs, axes[-1], self.pairs.known_sizes[axes[-1]], length)
    pairs = _dft(op, whole, axes[-1], length, inverse=1)
    return Complex(_normalised(op, pairs, lengths, normalization, inverse=True)).real(op)


def _real_where_eager_is(op: Builder, pairs: Tensor, rank: int, axis: int, length: Size, bins: Size) -> Tensor:
    """The sum and the highest frequency of real numbers are real, and eager gives 0 for their imaginary parts.

    ONNX Runtime leaves rounding errors there, which decide between the angles pi and -pi.
    """
    at = op.range(bins)
    real = op.Or(op.Equal(at, 0), op.Equal(op.Mul(at, 2), op.size(length)))
    along = [1] * (rank + 1)
    along[axis] = -1
    places = op.And(op.Reshape(real, op.ints(*along)), op.const([False, True]))
    return op.Where(places, op.const(0, pairs.element), pairs)


def _transformed(
    op: Builder, pairs: Tensor, axes: Sequence[int], lengths: Sequence[Size], normalization: int, forward: bool
) -> Tensor:
    for axis, length in zip(axes, lengths, strict=True):
        pairs = _dft(op, pairs, axis, length, inverse=int(not forward))
    return _normalised(op, pairs, lengths, normalization, inverse=not forward)


def _dft(op: Builder, pairs: Tensor, axis: int, length: Size, onesided: int = 0, inverse: int = 0) -> Tensor:
    dtype = pairs.element
    if inverse and dtype == DOUBLE:
        # The runtime divides by a length in single precision: the conjugate is transformed forwards instead.
        mirror = op.const([1.0, -1.0], DOUBLE)
        forward = _dft(op, op.Mul(pairs, mirror), axis, length, onesided)
        return op.Div(op.Mul(forward, mirror), op.cast(op.size(length), DOUBLE))
    x = pairs if isinstance(length, int) and length & (length - 1) == 0 else op.cast(pairs, DOUBLE)
    if op.opset >= _AXIS_INPUT_SINCE:
        out = op.DFT(x, None, op.const(axis), inverse=inverse, onesided=onesided)
    else:
        out = op.DFT(x, None, axis=axis, inverse=inverse, onesided=onesided)
    return op.cast(out, dtype)


def _normalised(
    op: Builder, pairs: Tensor, lengths: Sequence[Size], normalization: int, inverse: bool = False
) -> Tensor:
    """Eager's scale. ONNX divides an inverse transform by its length, and a forward one by nothing."""
    count = math.prod(lengths)
    power = {0: 0.0, _BY_ROOT: -0.5, _BY_LENGTH: -1.0}[normalization] + (1.0 if inverse else 0.0)
    if power == 0:
        return pairs
    if isinstance(count, int):
        return op.Mul(pairs, float(count) ** power)
    return op.Mul(pairs, op.Pow(op.scalar(Number(count, int), pairs.element), power))


def _whole(op: Builder, half: Tensor, axis: int, given: Size, length: Size) -> Tensor:
    """All `length` places of a spectrum of which the first `given` are there.

    The others mirror them, from the last place that has a mirror image down to the second one.
    """
    mirrored = op.Slice(half, op.shape([length - given]), op.ints(0), op.ints(axis), op.ints(-1))
    return op.Concat(half, conj(op, Complex(mirrored)).pairs, axis=axis)


@complex_only("aten::stft")
def stft(
    op: Builder,
    self: Tensor | Complex,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | Complex | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Complex | Tensor:
    """stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None,
    bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor
    """
    pairs = self.pairs if isinstance(self, Complex) else op.Unsqueeze(self, op.ints(-1))
    time = self.rank - 1
    frames = op.result.shape[self.rank]
    hop = hop_length or n_fft // 4
    starts = op.Mul(op.range(frames), hop)
    index = op.Add(op.Unsqueeze(starts, op.ints(1)), op.range(n_fft))
    cut = op.Gather(pairs, index, axis=time)
    if isinstance(window, Complex):
        if not isinstance(self, Complex):
            raise NotImplementedError("a complex window over a real signal is not carried")
        both = (window.real(op), window.imaginary(op))
        shapes = [_window(op, part, win_length or n_fft, n_fft, pairs.element) for part in both]
        cut = mul(op, Complex(cut), Complex.joined(op, *(shape for shape in shapes if shape is not None))).pairs
    elif (shape := _window(op, window, win_length or n_fft, n_fft, pairs.element)) is not None:
        cut = op.Mul(cut, op.Unsqueeze(shape, op.ints(1)))
    half = onesided is not False and not isinstance(self, Complex)
    z = _dft(op, cut, self.rank, n_fft, onesided=int(half))
    if not isinstance(self, Complex):
        z = _real_where_eager_is(op, z, self.rank + 1, self.rank, n_fft, n_fft // 2 + 1 if half else n_fft)
    z = _normalised(op, z, [n_fft], _BY_ROOT if normalized else 0)
    order = list(range(self.rank + 2))
    order[-3], order[-2] = order[-2], order[-3]
    z = op.Transpose(z, perm=order)
    return Complex(z) if return_complex else z


def _window(op: Builder, window: Tensor | None, length: int, n_fft: int, dtype: ir.DataType) -> Tensor | None:
    """The window in the middle of a frame; without one, a window of ones."""
    if window is None and length == n_fft:
        return None
    shape = op.expand(op.const(1, dtype), (length,)) if window is None else op.cast(window, dtype)
    before = (n_fft - length) // 2
    return shape if length == n_fft else op.Pad(shape, op.ints(before, n_fft - length - before))
