"""Eager as another machine might round it: the results of operators that round are moved by as much as they may be off.

The rule, which decides what rounding can excuse:

1. *Exact*: an operator that copies, picks, fills, compares, or does one operation of IEEE arithmetic (`+`, `*`, `/`,
   `sqrt`) has one right answer, to the last bit. It hands on what its operands were moved by, and adds nothing. So a
   mask of -1e9 is -1e9, and a value that equals a threshold equals it. A product of complex numbers is none of these.
2. *Functions* (`exp`, `tanh`, `softmax`) may be off by a few last bits of their result.
3. *Sums* (products of matrices, convolutions, means, norms) may be added up in any order: as if each of their operands
   were off by its last bit. Where every partial sum is exact, as with whole numbers that are not too large, they add
   nothing either.
4. *Decompositions* (`svd`, `solve`, `fft`) mix all elements of an operand: as if each were off by the last bit of the
   largest. Those of an `fft` are added up again on the way, and its results are off by as much: a frequency that is not
   there is 0 in eager, and the last bits of the others elsewhere.

The inputs are never moved: both sides are given the same. Below float32 there is no first kind: the runtime computes
float16 in float32, and rounds where it likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import torch

from trueport.torch_internals.eager_modes import EagerMode
from trueport.torch_internals.schemas import argument_names, only_gives_a_view, writes_in_place

_PLAIN_SUMS = re.compile("mm|mv|dot|einsum|sum|mean|conv|avg_pool|addc|scatter_add|index_add|trace|outer|cross|prod")
"""Operators that add up products of their operands, and nothing else, by their names."""
_SUMS = re.compile(
    "var|std|norm|attention|lerp|cdist|dist|lstm|gru|rnn|upsample|interp|grid|scatter_reduce|index_reduce|bilinear|quant|dynamic"
)
"""Those that add up among other things."""
_DECOMPOSITIONS = re.compile("fft|linalg|inverse|solve|cholesky|lu_|qr|svd|eig|pinv|matrix|det|lstsq|ormqr|householder")
_FUNCTIONS = re.compile("softmax|logsumexp|logcumsumexp")
"""Operators that add up, but only what they have brought to one scale: a mask of -1e9 stays what it is."""
_ARITHMETIC = frozenset("add sub rsub mul div sqrt reciprocal square leaky_relu prelu".split())
"""One operation of IEEE arithmetic for each element, or one that is exact."""
_PICKING = frozenset(
    "neg abs relu relu6 hardtanh clamp clamp_min clamp_max maximum minimum max min amax amin aminmax fmax fmin sort"
    " topk kthvalue median nanmedian mode cummax cummin where masked_fill masked_scatter masked_select fill full"
    " full_like zeros zeros_like ones ones_like empty empty_like new_empty new_zeros new_ones new_full scalar_tensor"
    " arange eye tril triu index index_put index_select index_copy index_fill gather scatter select slice"
    " select_scatter slice_scatter diagonal_scatter as_strided_scatter cat stack constant_pad_nd reflection_pad1d"
    " reflection_pad2d"
    " reflection_pad3d replication_pad1d replication_pad2d replication_pad3d flip roll repeat repeat_interleave clone"
    " copy _to_copy floor ceil round trunc frac sign sgn signbit copysign max_pool1d max_pool2d max_pool3d"
    " max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d threshold hardshrink"
    " nan_to_num complex real imag view_as_real view_as_complex unfold im2col pixel_shuffle pixel_unshuffle"
    " channel_shuffle embedding lift_fresh lift_fresh_copy detach alias unique _unique2 unique_consecutive take"
    " put diag_embed block_diag tensor_split unbind split view reshape _reshape_alias rot90 nonzero floor_divide fmod"
    " remainder _local_scalar_dense item".split()
)
"""Nothing is computed: elements are copied, picked, filled in, or cut off."""
_OF_COMPLEX_PARTS = frozenset("mul div reciprocal square sqrt abs sign sgn".split())
"""Of complex numbers these are sums of products of their parts, which round on the way."""
_BITS_OF_A_FUNCTION = 4.0
_ROUND = 1 << 8
"""A result of no more digits than this (1, 0.5, 0.125) is taken for exact: `sigmoid(0)` is a half everywhere."""


class RoundedOtherwise(EagerMode):
    """`times` as far as rounding goes: a sum of a thousand numbers is off by more than its last bit."""

    def __init__(self, seed: int, times: float = 1.0) -> None:
        super().__init__()
        self._times = times
        self._chance = torch.Generator().manual_seed(seed)
        self.decomposed = False
        """Whether something was decomposed: rounding decides on infinities where a matrix is all but singular."""

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func.overloadpacket.__name__
        plain = name.removeprefix("_foreach_").rstrip("_")
        given = list(_floats((*args, *kwargs.values())))
        of_parts = plain in _OF_COMPLEX_PARTS and any(tensor.is_complex() for tensor in given)
        if (plain in _PICKING and not of_parts) or only_gives_a_view(func) or not given:
            return func(*args, **kwargs)
        if plain in _ARITHMETIC and not of_parts and all(tensor.dtype.itemsize >= 4 for tensor in given):
            return func(*args, **kwargs)
        kind = _kind(plain)
        self.decomposed |= kind is _Kind.DECOMPOSITION
        if kind is _Kind.PLAIN_SUM and _adds_exactly(given):
            return self._result(func, func(*args, **kwargs), 1.0 if "mean" in plain or "avg" in plain else 0.0)
        if kind is not _Kind.FUNCTION and not writes_in_place(func):
            args, kwargs = self._operands(func, args, kwargs, kind)
        if "fft" in plain:
            return self._moved(func(*args, **kwargs), _BITS_OF_A_FUNCTION, mixed=True)
        return self._result(func, func(*args, **kwargs), _BITS_OF_A_FUNCTION)

    def _operands(self, func: Any, args: Any, kwargs: Any, kind: _Kind) -> tuple[list[Any], dict[str, Any]]:
        """Each moved by its last bit. A mask is added and not multiplied, and an added number is rounded once."""
        names = argument_names(func)

        def operand(name: str, arg: Any) -> Any:
            return arg if name in _ADDED else self._moved(arg, 1.0, kind is _Kind.DECOMPOSITION)

        moved = [operand(name, arg) for name, arg in zip(names, args, strict=False)]
        return [*moved, *args[len(moved) :]], {name: operand(name, arg) for name, arg in kwargs.items()}

    def _result(self, func: Any, result: Any, bits: float) -> Any:
        if not writes_in_place(func):
            return self._moved(result, bits, keeps_few_digits=True)
        for tensor in _floats([result]):  # written in place: whoever holds it sees it moved
            tensor.copy_(self._moved(tensor, bits, keeps_few_digits=True))
        return result

    def _moved(self, value: Any, bits: float, mixed: bool = False, keeps_few_digits: bool = False) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(self._moved(each, bits, mixed, keeps_few_digits) for each in value)
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or not value.numel():
            return value
        if not (value.is_floating_point() or value.is_complex()) or value.dtype.itemsize < 2:
            return value
        size = value.abs().amax().clamp(min=_NOTHING) if mixed else value.abs()
        if value.is_complex():  # either part is as exact as the number is large
            by = torch.view_as_complex(self._shares((*value.shape, 2), value.real.dtype))
        else:
            by = self._shares(value.shape, value.dtype)
        moved = value + bits * self._times * torch.finfo(value.dtype).eps * size * by
        if not keeps_few_digits or value.is_complex():
            return moved
        return torch.where(_has_few_digits(value), value, moved)

    def _shares(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype).uniform_(-1, 1, generator=self._chance)


class Overflow(EagerMode):
    """Whether a run overflows: an operator makes an infinity of finite numbers, and not by dividing by nothing."""

    _POLES = frozenset("log log2 log10 log1p logit atanh lgamma digamma tan".split())
    _POLES_AT_ZERO = {"div": 1, "reciprocal": 0, "rsqrt": 0, "pow": 0}  # noqa: RUF012
    """Of which operand."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__.rstrip("_")
        if not self.seen and name not in _PICKING and name not in self._POLES and not writes_in_place(func):
            given = list(_floats((*args, *kwargs.values())))
            finite = bool(given) and all(bool(tensor.isfinite().all()) for tensor in given)
            by = args[self._POLES_AT_ZERO[name]] if name in self._POLES_AT_ZERO else 1
            self.seen = finite and any(bool((~tensor.isfinite() & (by != 0)).any()) for tensor in _floats([result]))
        return result


class _Kind(Enum):
    FUNCTION = "function"
    PLAIN_SUM = "plain sum"
    SUM = "sum"
    DECOMPOSITION = "decomposition"


def _kind(name: str) -> _Kind:
    if _FUNCTIONS.search(name):
        return _Kind.FUNCTION
    if _DECOMPOSITIONS.search(name):
        return _Kind.DECOMPOSITION
    if _SUMS.search(name):
        return _Kind.SUM
    return _Kind.PLAIN_SUM if _PLAIN_SUMS.search(name) else _Kind.FUNCTION


_FEW = 64
_NOTHING = 1e-30
"""What nothing but zeros is decomposed into is open."""


_ADDED = ("attn_mask", "attn_bias", "bias", "mask")


def _floats(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            yield value
        elif isinstance(value, tuple | list):
            yield from _floats(value)


def _has_few_digits(value: torch.Tensor) -> torch.Tensor:
    mantissa, _ = torch.frexp(value.float() if value.dtype.itemsize < 4 else value)
    scaled = mantissa * _ROUND
    return scaled == scaled.round()


def _adds_exactly(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether every product and every partial sum of these has room in the mantissa of its dtype: so it is with whole
    numbers, and with halves, that are not too large for their number.

    A few elements mostly tell that it is not so: all of them are no smaller, and multiples of no larger step.
    """
    return _have_room(tensors, _FEW) and _have_room(tensors, None)


def _have_room(tensors: Sequence[torch.Tensor], few: int | None) -> bool:
    """The same by the first few elements of each, or by all."""
    size = quantum = 1.0
    most = 1.0
    for tensor in tensors:
        if tensor.is_complex() or not tensor.numel() or tensor.dtype.itemsize < 4:
            return False
        looked_at = tensor if few is None or tensor.numel() <= few else _some(tensor, few)
        wide = looked_at.detach().double()
        if not bool(wide.isfinite().all()):
            return False
        present = wide[wide != 0].abs()
        if not present.numel():
            continue
        size *= max(float(present.max()), 1.0)
        quantum *= min(_quantum(present), 1.0)
        most = max(most, float(tensor.numel()))
        if size * most * torch.finfo(tensor.dtype).eps > quantum:
            return False
    return True


def _some(tensor: torch.Tensor, few: int) -> torch.Tensor:
    """A few elements, from the middle: the first ones are often zeros that were padded."""
    while tensor.dim() > 1:
        row = tensor[tensor.shape[0] // 2]
        tensor = row if row.numel() >= few else tensor[: few // row.numel()].flatten()
    return tensor[:few]


def _quantum(present: torch.Tensor) -> float:
    """The largest power of two of which all are multiples, as far as 2 ** -24."""
    for bits in range(25):
        scaled = present * float(1 << bits)
        if bool((scaled == scaled.round()).all()):
            return 1.0 / (1 << bits)
    return 0.0
