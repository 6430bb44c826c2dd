"""What some operators return, where torch's own answer would freeze a free size.

Torch finds the result of a composite operator by running its definition: a GRU is then unrolled over time, and
`max_pool1d` decides by the length whether it may take a short cut. Each function here says the sizes at once. It takes
what the operator takes, and a relation between sizes that it tests is an assumption of the trace like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from trueport.torch_internals import OpOverload

aten = torch.ops.aten
Sizes = Sequence[Any]
F = TypeVar("F", bound=Callable[..., Any])

RESULTS: dict[OpOverload, Callable[..., Any]] = {}


class CannotBeCarried(Exception):
    """A call that the trace cannot go on from; says what to write instead."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


def result_of(*ops: OpOverload) -> Callable[[F], F]:
    def register(function: F) -> F:
        RESULTS.update(dict.fromkeys(ops, function))
        return function

    return register


@result_of(aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input)
def _recurrent(
    input: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = input.shape[0 if batch_first else 1]
    _must_agree(hx.shape[1], batch, "batch")
    width = hx.shape[2] * (2 if bidirectional else 1)
    return input.new_empty((*input.shape[:2], width)), input.new_empty((hx.shape[0], batch, hx.shape[2]))


@result_of(aten.lstm.input)
def _lstm(
    input: torch.Tensor,
    hx: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    hidden, cell = hx
    output, last = _recurrent(input, hidden, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    _must_agree(cell.shape[1], last.shape[1], "batch")
    return output, last, input.new_empty((last.shape[0], last.shape[1], cell.shape[2]))


def _must_agree(given: Any, wanted: Any, what: str) -> None:
    if given != wanted:
        raise ValueError(f"the {what} size of the initial state is {given}, that of the input {wanted}")


@result_of(aten._pack_padded_sequence.default)
def _packed(*_args: Any, **_kwargs: Any) -> Any:
    raise CannotBeCarried(
        "packed sequences are not carried: their layout depends on the lengths of the sequences",
        "give the layer the padded tensor, and mask or gather its results by length",
    )


def _windows(length: Any, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Any:
    """How many windows of a pooling fit; with `ceil_mode` none that starts in the padding after the end."""
    span = length + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    return torch.sym_min((span + stride - 1) // stride + 1, (length + padding + stride - 1) // stride)


def each_axis(value: int | Sequence[int], rank: int) -> list[int]:
    """Torch takes one number for all axes."""
    if isinstance(value, int):
        return [value] * rank
    return [*value] if len(value) == rank else [*value] * rank


def _pooled(x: torch.Tensor, rank: int, *settings: Any, ceil_mode: bool) -> list[Any]:
    kernel, stride, padding, dilation = (each_axis(setting, rank) for setting in settings)
    sizes = x.shape[-rank:]
    after = [_windows(*of_axis, ceil_mode) for of_axis in zip(sizes, kernel, stride, padding, dilation, strict=True)]
    return [*x.shape[:-rank], *after]


def _max_pool(rank: int) -> Callable[..., torch.Tensor]:
    def pool(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> torch.Tensor:
        settings = (kernel_size, stride or kernel_size, padding, dilation)
        return self.new_empty(_pooled(self, rank, *settings, ceil_mode=ceil_mode))

    return pool


def _max_pool_with_indices(rank: int) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    pool = _max_pool(rank)

    def pool_with_indices(self: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        values = pool(self, *args, **kwargs)
        return values, values.new_empty(values.shape, dtype=torch.int64)

    return pool_with_indices


def _avg_pool(rank: int) -> Callable[..., torch.Tensor]:
    def pool(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> torch.Tensor:
        settings = (kernel_size, stride or kernel_size, padding, 1)
        return self.new_empty(_pooled(self, rank, *settings, ceil_mode=ceil_mode))

    return pool


for _rank, _plain, _indexed, _average in (
    (1, aten.max_pool1d.default, aten.max_pool1d_with_indices.default, aten.avg_pool1d.default),
    (2, aten.max_pool2d.default, aten.max_pool2d_with_indices.default, aten.avg_pool2d.default),
    (3, aten.max_pool3d.default, aten.max_pool3d_with_indices.default, aten.avg_pool3d.default),
):
    RESULTS |= {
        _plain: _max_pool(_rank),
        _indexed: _max_pool_with_indices(_rank),
        _average: _avg_pool(_rank),
    }


@result_of(
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
)
def _adaptive_mean(self: torch.Tensor, output_size: Sizes) -> torch.Tensor:
    return self.new_empty((*self.shape[: -len(output_size)], *output_size))


@result_of(aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def _adaptive_max(self: torch.Tensor, output_size: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    values = _adaptive_mean(self, output_size)
    return values, values.new_empty(values.shape, dtype=torch.int64)


@result_of(aten.affine_grid_generator.default)
def _affine_grid(theta: torch.Tensor, size: Sizes, align_corners: bool) -> torch.Tensor:
    batch, _channels, *lengths = size
    return theta.new_empty((batch, *lengths, len(lengths)))
