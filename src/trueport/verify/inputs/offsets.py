"""Inputs that say where the parts of another one begin. Eager trusts them: out of order, or beyond the end, it reads
memory that is not its own, and may take the process with it. So no value of our making is tried that is."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trueport.load.job import Leaf


def like_offsets(example: object) -> bool:
    """Integers in order, from 0 on, along the last axis."""
    if not isinstance(example, torch.Tensor) or example.is_floating_point() or example.is_complex():
        return False
    if example.dim() < 1 or example.dtype is torch.bool or not example.numel() or example.shape[-1] < 2:
        return False
    starts, ends = example[..., 0], example[..., -1]
    return bool((starts == 0).all()) and bool((example.diff() >= 0).all()) and bool((ends > 1).any())


def offsets_among(leaves: Sequence[Leaf]) -> tuple[int, ...]:
    """Which of them are offsets. An example of 0, 1, 2, ... is more likely one of positions, or indices."""
    return tuple(
        at
        for at, leaf in enumerate(leaves)
        if leaf.is_input
        and isinstance(leaf.value, torch.Tensor)
        and like_offsets(leaf.value)
        and not bool((leaf.value.diff() == 1).all())
    )


def in_order(
    leaves: Sequence[Leaf], values: Sequence[object], offsets: Sequence[int] | None = None
) -> tuple[object, ...]:
    """The values, with all offsets in order and within the input that they are of. `offsets` are their places, where
    they are known."""
    kept = list(values)
    for at in offsets_among(leaves) if offsets is None else offsets:
        example, value = leaves[at].value, values[at]
        if not (isinstance(value, torch.Tensor) and value.numel()):
            continue
        assert isinstance(example, torch.Tensor)
        others = [pair for other, pair in enumerate(zip(leaves, values, strict=True)) if other != at]
        ordered = _within(value, *_end(others, example.dim() - 1, int(example.max())))
        kept[at] = value if torch.equal(ordered, value) else ordered
    return tuple(kept)


def _end(others: Sequence[tuple[Leaf, object]], axis: int, last: int) -> tuple[int, bool]:
    """How far offsets into this axis may go, of which the last is `last` in the example; and whether they have to go
    there, as they do in it."""
    lengths = [
        (leaf.value.shape[axis], value.shape[axis])
        for leaf, value in others
        if isinstance(leaf.value, torch.Tensor) and isinstance(value, torch.Tensor) and value.dim() > axis
    ]
    of = [(then, now) for then, now in lengths if then >= last]
    return min((now for _, now in of), default=last), any(then == last for then, _ in of)


def _within(value: torch.Tensor, end: int, complete: bool) -> torch.Tensor:
    ordered = value.detach().sort().values.clamp(0, end)
    ordered[..., 0] = 0
    if complete and ordered.shape[-1] > 1:
        ordered[..., -1] = end
    return ordered
