"""Other layers of `nn.functional`: activations, losses, distances, segments."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.registry import always, decomposes, sizes_of
from trueport.torch_internals import OpOverload
from trueport.torch_internals.releases import linear_cross_entropy
from trueport.torch_internals.symbolic import same_number

aten = torch.ops.aten


@decomposes(F.leaky_relu)
def _leaky_relu(input: torch.Tensor, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    if inplace:
        return NotImplemented
    return torch.where(input > 0, input, input * negative_slope)


@decomposes(F.elu)
def _elu(input: torch.Tensor, alpha: Any = 1.0, inplace: bool = False) -> Any:
    if inplace:
        return NotImplemented
    return torch.where(input > 0, input, torch.expm1(input.clamp(max=0)) * alpha)


@decomposes(aten.rrelu.default)
def _rrelu(
    tensor: torch.Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """Below zero, a slope of its own for each element while training, else the one in the middle."""
    if not training:
        return F.leaky_relu(tensor, (lower + upper) / 2)
    slope = torch.rand_like(tensor) * (upper - lower) + lower
    return torch.where(tensor < 0, tensor * slope, tensor)


@decomposes(aten.rrelu_with_noise.default)
def _rrelu_with_noise(tensor: torch.Tensor, noise: torch.Tensor, *settings: Any, **options: Any) -> Any:
    return _rrelu(tensor, *settings, **options)


@decomposes(aten.bilinear.default)
def _bilinear(
    one: torch.Tensor, other: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Two matrix products; torch's own way broadcasts a batch that may be empty, which the runtime does not."""
    outputs, width, other_width = weight.shape
    table = weight.permute(1, 0, 2).reshape(width, outputs * other_width)
    inner = torch.mm(one.reshape(-1, width), table).reshape(*one.shape[:-1], outputs, other_width)
    found = (inner * other.unsqueeze(-2)).sum(-1, dtype=inner.dtype)
    return found if bias is None else found + bias


@decomposes(F.one_hot, aten.one_hot.default)
def _one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> Any:
    """As many classes as the largest number asks for, where no number of them is given."""
    if same_number(num_classes, -1):
        if tensor.numel() == 0:
            return NotImplemented
        num_classes = tensor.max().item() + 1
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


@decomposes(aten._pdist_forward.default)
def _pdist(tensor: torch.Tensor, p: float = 2) -> Any:
    """The distances of all pairs, the first of the pair varying slowest."""
    first, second = torch.ones(tensor.shape[0], tensor.shape[0]).triu(1).nonzero().unbind(1)
    return torch.linalg.vector_norm(tensor[first] - tensor[second], p, -1)


@decomposes(aten.segment_reduce.default)
def _segment_reduce(
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Each segment against each row: whether the row lies in it."""
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        assert lengths is not None
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    row = torch.arange(data.shape[axis])
    inside = (row >= starts.unsqueeze(-1)) & (row < ends.unsqueeze(-1))
    inside = inside.reshape(*inside.shape, *[1] * (data.dim() - axis - 1))
    neutral = {"max": -torch.inf, "min": torch.inf, "prod": 1.0}.get(reduce, 0.0)
    rows = torch.where(inside, data.unsqueeze(axis), torch.full((), neutral, dtype=data.dtype))
    if reduce == "max":
        found = rows.amax(axis + 1)
        return found if initial is None else found.clamp(min=initial)
    if reduce == "min":
        found = rows.amin(axis + 1)
        return found if initial is None else found.clamp(max=initial)
    if reduce == "prod":
        return rows.prod(axis + 1) * (1.0 if initial is None else initial)
    total = rows.sum(axis + 1) + (0.0 if initial is None else initial)
    if reduce == "sum":
        return total
    count = (ends - starts).reshape(*ends.shape, *[1] * (data.dim() - axis - 1)).to(data.dtype)
    mean = total / count
    return mean if initial is None else torch.where(count > 0, mean, initial)


@decomposes(aten.embedding_renorm_.default)
def _embedding_renorm_(weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """Rows that are looked up are shortened in place. Torch's kernel takes them one by one, in double precision."""
    norms = torch.linalg.vector_norm(weight, norm_type, 1, keepdim=True).double()
    used = torch.zeros(weight.shape[0], 1, dtype=torch.bool).index_fill(0, indices.reshape(-1).long(), True)
    scale = torch.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1.0)
    return weight.mul_(scale.to(weight.dtype))


@decomposes(aten._weight_norm_interface.default)
def _weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a vector, each number has a norm of its own; torch's definition sums over no axes, and so over all."""
    norms = v.abs() if v.dim() == 1 else torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


@decomposes(aten.multilabel_margin_loss_forward.default)
def _multilabel_margin_loss(input: torch.Tensor, target: torch.Tensor, reduction: int) -> tuple[torch.Tensor, ...]:
    """Torch's definition counts a margin for places behind the first -1, too."""
    rows, labels = torch.atleast_2d(input), torch.atleast_2d(target)
    is_label = (labels == -1).cumsum(-1) == 0
    chosen = rows.gather(-1, torch.where(is_label, labels, 0))
    is_target = ((labels.unsqueeze(-1) == torch.arange(rows.shape[1])) & is_label.unsqueeze(-1)).any(1)
    margins = (1 - chosen.unsqueeze(-1) + rows.unsqueeze(1)).clamp_min(0)
    counted = is_label.unsqueeze(-1) & ~is_target.unsqueeze(1)
    loss = torch.where(counted, margins, 0).sum((1, 2)) / rows.shape[1]
    loss = (loss, loss.mean(), loss.sum())[reduction]
    return loss.reshape(()) if input.dim() < 2 else loss, is_target.to(input.dtype).reshape(target.shape)


@decomposes(*linear_cross_entropy(), when=always)
def _linear_cross_entropy(*args: Any, options: Any = None, **named: Any) -> torch.Tensor:
    """In one go: the pieces in which torch computes it are for the gradient's sake."""
    return F.linear_cross_entropy(*args, **named)


@sizes_of(aten._ctc_loss.default, aten._ctc_loss.Tensor)
def _ctc_loss(log_probs: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The second, whose sizes depend on the longest text, is for the backward pass."""
    times, batch = log_probs.shape[:2]
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, times, 1))


def _writes_statistics(norm: OpOverload, of_each_sample: bool) -> None:
    """Register what a norm writes to the running statistics, which its signature does not tell."""

    @decomposes(norm)
    def normalised(
        tensor: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        by_its_own: bool,
        momentum: float,
        *others: Any,
    ) -> Any:
        if not by_its_own or running_mean is None or running_var is None:
            return NotImplemented
        axes = [*range(2, tensor.dim())] if of_each_sample else [0, *range(2, tensor.dim())]
        found = torch.var_mean(tensor.to(running_mean.dtype), axes, correction=1)
        for statistic, now in zip((running_var, running_mean), found, strict=True):
            if momentum != 0:
                new = now.mean(0) if of_each_sample else now
                statistic.copy_(statistic * (1 - momentum) + new * momentum)
        return norm(tensor, weight, bias, None, None, by_its_own, momentum, *others)


_writes_statistics(aten.batch_norm.default, of_each_sample=False)
_writes_statistics(aten.instance_norm.default, of_each_sample=True)
