"""What some operators return, where torch's own answer would freeze a free size.

Torch finds the result of a composite operator by running its definition: a GRU is then unrolled over time. Each
function here says the sizes at once. It takes what the operator takes, and a relation between sizes that it tests is an
assumption of the trace like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from trueport.capture.decompositions.image_shapes import IMAGE_RESULTS
from trueport.torch_internals import GuardOnDataDependentSymNode, OpOverload
from trueport.torch_internals.symbolic import expr_of, shapes_of

aten = torch.ops.aten
F = TypeVar("F", bound=Callable[..., Any])

RESULTS: dict[OpOverload, Callable[..., Any]] = dict(IMAGE_RESULTS)


def result_of(*ops: OpOverload) -> Callable[[F], F]:
    def register(function: F) -> F:
        RESULTS.update(dict.fromkeys(ops, function))
        return function

    return register


@result_of(aten.view.default)
def _view(self: torch.Tensor, size: Sequence[Any]) -> torch.Tensor:
    """Torch asks how the memory lies, which has no answer where only the run tells the sizes; a graph has no memory."""
    try:
        return aten.view.default(self, size)  # type: ignore[no-any-return]
    except GuardOnDataDependentSymNode:
        others: Any = math.prod(length for length in size if not _is_open(length))
        return self.new_empty([self.numel() // others if _is_open(length) else length for length in size])


@result_of(aten.slice.Tensor)
def _slice(self: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> torch.Tensor:
    """`x[t : t + 1]` in a loop over the rows has one row: torch has a new symbol for the length of such a slice.

    So many rows it has where it is known that both bounds are in x; elsewhere it may have fewer.
    """
    if isinstance(start, torch.SymInt) and isinstance(end, torch.SymInt) and isinstance(step, int) and step == 1:
        shapes, length = shapes_of(start), expr_of(end - start)
        rows = self.shape[dim]
        if length.is_Integer and shapes.is_never_negative(start) and shapes.is_never_negative(rows - end):
            sizes: list[Any] = [*self.shape]
            sizes[dim] = max(int(length), 0)
            return self.new_empty_strided(sizes, self.stride())
    return aten.slice.Tensor(self, dim, start, end, step)  # type: ignore[no-any-return]


def _is_open(length: Any) -> bool:
    return isinstance(length, int) and length == -1


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


@result_of(aten.geqrf.default)
def _reflections(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    least = torch.sym_min(*self.shape[-2:])
    return torch.empty_like(self), self.new_empty((*self.shape[:-2], least))


@result_of(aten.linalg_lstsq.default)
def _least_squares(
    self: torch.Tensor, b: torch.Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[torch.Tensor, ...]:
    """Sizes as eager gives them on the CPU, where `gelsy` is the default; the rank is taken to be full."""
    is_vector = b.dim() == self.dim() - 1
    right = b.unsqueeze(-1) if is_vector else b
    rows, columns = self.shape[-2:]
    batch = torch.broadcast_shapes(self.shape[:-2], right.shape[:-2])
    solution = self.new_empty((*batch, columns, right.shape[-1]))
    wants_residuals = driver in ("gels", "gelsd", "gelss") and rows > columns
    real = self.dtype.to_real()
    residuals = self.new_empty((*batch, right.shape[-1]) if wants_residuals else (0,), dtype=real)
    rank = self.new_empty((0,) if driver == "gels" else batch, dtype=torch.int64)
    has_values = driver in ("gelsd", "gelss")
    values = self.new_empty((*batch, torch.sym_min(rows, columns)) if has_values else (0,), dtype=real)
    return solution.squeeze(-1) if is_vector else solution, residuals, rank, values


@result_of(aten.scaled_dot_product_attention.default)
def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *settings: Any, **options: Any
) -> torch.Tensor:
    """Torch's kernel does not look whether there is a value for each key, and reads beyond the end otherwise."""
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"attention over {key.shape[-2]} keys and {value.shape[-2]} values")
    result: torch.Tensor = aten.scaled_dot_product_attention.default(query, key, value, *settings, **options)
    return result


@result_of(aten.topk.default)
def _topk(
    self: torch.Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Torch looks whether there are as many, which decides by `k`; eager refuses more."""
    sizes = list(self.shape)
    if sizes:
        sizes[dim] = k
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


@result_of(aten.mean.default, aten.mean.dim)
def _mean(self: torch.Tensor, *axes: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """As the sum: of complex numbers, torch divides by a plain count."""
    return self.sum(*axes, dtype=dtype)


def _must_agree(given: Any, wanted: Any, what: str) -> None:
    if given != wanted:
        raise ValueError(f"the {what} size of the initial state is {given}, that of the input {wanted}")


@result_of(aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data)
def _packed_recurrent(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    width = hx.shape[2] * (2 if bidirectional else 1)
    return data.new_empty((data.shape[0], width)), data.new_empty(hx.shape)


@result_of(aten.lstm.data)
def _packed_lstm(
    data: torch.Tensor, batch_sizes: torch.Tensor, hx: Sequence[torch.Tensor], *settings: Any
) -> tuple[torch.Tensor, ...]:
    output, last = _packed_recurrent(data, batch_sizes, hx[0], *settings)
    return output, last, data.new_empty(hx[1].shape)


@result_of(
    aten.fake_quantize_per_tensor_affine.default,
    aten.fake_quantize_per_tensor_affine.tensor_qparams,
    aten.fake_quantize_per_channel_affine.default,
    aten._fake_quantize_learnable_per_tensor_affine.default,
    aten._fake_quantize_learnable_per_channel_affine.default,
)
def _fake_quantized(self: torch.Tensor, *_settings: Any) -> torch.Tensor:
    """Torch asks a kernel that reads the scale."""
    return torch.empty_like(self)


@result_of(aten._ctc_loss.default, aten._ctc_loss.Tensor)
def _ctc_loss(log_probs: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The second, whose sizes depend on the longest text, is for the backward pass."""
    times, batch = log_probs.shape[:2]
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, times, 1))


def _spread(op: OpOverload) -> None:
    """Of complex numbers torch takes the parts together by their number, as a plain one."""

    @result_of(op)
    def results(self: torch.Tensor, *args: Any, **options: Any) -> Any:
        if not self.is_complex():
            return op(self, *args, **options)
        returned = op(self.new_empty(self.shape, dtype=self.dtype.to_real()), *args, **options)
        if isinstance(returned, torch.Tensor):
            return returned
        spread, middle = returned
        return spread, self.new_empty(middle.shape)


for _name in ("var", "std", "var_mean", "std_mean"):
    for _form in ("default", "dim", "correction"):
        _spread(getattr(getattr(aten, _name), _form))
