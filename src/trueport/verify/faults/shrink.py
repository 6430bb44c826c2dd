"""The smallest input that still shows a difference: smaller sizes first, then plainer values.

A person reads `x = [0, 1]` and knows; nobody reads 3,000 random numbers. Every step is kept only where the input still
fails, so the result is a counterexample like the one it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from trueport.load.job import Job, Leaf
from trueport.verify.inputs.moves import Candidate, resized
from trueport.verify.inputs.offsets import in_order
from trueport.verify.inputs.sizes import Group

StillFails = Callable[[Sequence[object]], bool]
Cost = Callable[[Sequence[object]], float]
"""Units of work to find out whether these values fail."""

_SHOWN = 12
"""Tensors of up to so many elements are written out."""


def smallest(
    job: Job, groups: Sequence[Group], start: Candidate, still_fails: StillFails, cost: Cost, units: float
) -> Candidate:
    """A plainer input that fails too, as far as so many units of work lead. `start` itself is known to fail."""
    shrinking = _Shrinking(job.leaves, groups, still_fails, cost, units)
    return shrinking.values(shrinking.sizes(start))


class _Shrinking:
    def __init__(
        self, leaves: Sequence[Leaf], groups: Sequence[Group], still_fails: StillFails, cost: Cost, units: float
    ) -> None:
        self._leaves, self._groups, self._still_fails = leaves, groups, still_fails
        self._cost, self._left = cost, units

    def _fails(self, values: Sequence[object]) -> bool:
        self._left -= self._cost(values)
        return self._left >= 0 and self._still_fails(values)

    def sizes(self, start: Candidate) -> Candidate:
        best, settled = start, False
        while not settled:
            settled = True
            for group in self._groups:
                smaller = self._smaller(best, group)
                if smaller is not None:
                    best, settled = smaller, False
        return best

    def _smaller(self, best: Candidate, group: Group) -> Candidate | None:
        now = best.sizes[group.names[0]]
        for size in dict.fromkeys((1, 2, now // 2, now - 1)):
            if not (0 < size < now and group.admits(size)):
                continue
            sizes = {**best.sizes, **group.assign(size)}
            values = resized(self._leaves, best.values, sizes)
            if self._fails(values):
                return Candidate(values, sizes)
        return None

    def values(self, best: Candidate) -> Candidate:
        values = list(best.values)
        for at, leaf in enumerate(self._leaves):
            if not leaf.is_input:
                continue
            for _ in range(64):
                simpler = (in_order(self._leaves, _with(values, at, each)) for each in _plainer(leaf, values[at]))
                plainer = next((each for each in simpler if each[at] is not values[at] and self._fails(each)), None)
                if plainer is None:
                    break
                values = list(plainer)
        return Candidate(tuple(values), best.sizes)


def _with(values: Sequence[object], at: int, value: object) -> list[object]:
    return [*values[:at], value, *values[at + 1 :]]


def _plainer(leaf: Leaf, value: object) -> Iterator[object]:
    """Values that are easier to read, the plainest first; never the value itself."""
    if isinstance(value, torch.Tensor):
        for tensor in _plainer_tensors(value.detach()):
            within = leaf.value_range is None or not tensor.numel() or _within(tensor, leaf.value_range)
            if within and not _equal(tensor, value):
                yield tensor
    elif isinstance(value, int | float) and not isinstance(value, bool):
        for number in (0, 1, round(value), value // 2):
            if abs(number) < abs(value) or (number == round(value) != value):
                low, high = leaf.value_range or (number, number)
                if low <= number <= high:
                    yield type(value)(number)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """NaN is equal to NaN here."""
    same = (one == other) | ((one != one) & (other != other))
    return bool(same.all())


def _within(tensor: torch.Tensor, value_range: tuple[float, float]) -> bool:
    wide = tensor.double()
    return bool((wide >= value_range[0]).all() and (wide <= value_range[1]).all())


def _plainer_tensors(value: torch.Tensor) -> Iterator[torch.Tensor]:
    if not value.numel() or value.is_complex() or (value.element_size() == 1 and value.is_floating_point()):
        return
    flat = value.reshape(-1)
    present = (flat != 0).nonzero().reshape(-1)
    yield torch.zeros_like(value)
    if len(present) == 0:
        return
    # Halves, quarters, ... of what is not zero yet become zero.
    parts = 2
    while parts <= min(len(present), 16):
        for part in present.chunk(parts):
            cleared = flat.clone()
            cleared[part] = 0
            yield cleared.reshape(value.shape)
        parts *= 2
    if value.dtype is torch.bool:
        return
    signs = flat.sign().reshape(value.shape)
    yield signs.to(value.dtype)
    if len(present) == flat.numel():  # none of them can be zero: then one number is easier to read than many
        yield from (torch.full_like(value, same.item()) for same in (flat.max(), flat.min()))
    if value.is_floating_point():
        for digits in (0, 1):
            yield torch.round(value.double(), decimals=digits).to(value.dtype)
        if float(flat.abs().max()) > 2:
            yield value / 2
    elif int(flat.abs().max()) > 1:
        yield torch.div(value, 2, rounding_mode="trunc")


def in_words(leaves: Sequence[Leaf], values: Sequence[object]) -> str:
    """`x = [[0, 1]], n = 3`: written out where it is short enough to be read."""
    return ", ".join(
        f"{leaf.name} {_words(value)}" for leaf, value in zip(leaves, values, strict=True) if leaf.is_input
    )


def _words(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"= {value!r}"
    name = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if not value.numel():
        return f"= {name}"
    plain = value.detach().cpu()
    if plain.numel() <= _SHOWN:
        return f"= {_rounded(plain)}"
    if bool((plain == plain.reshape(-1)[0]).all()):
        return f"= {name}, all {_rounded(plain.reshape(-1)[0])}"
    other = int((plain != 0).sum())
    if other <= 3:
        at = [f"{list(map(int, index))}: {_rounded(plain[tuple(index)])}" for index in (plain != 0).nonzero()]
        return f"= {name}, zero but at {', '.join(at)}"
    return f"= {name}, {other} elements not zero"


def _rounded(tensor: torch.Tensor) -> str:
    if tensor.is_complex() or not tensor.is_floating_point():
        return str(tensor.tolist())
    return _listed(tensor.float().tolist())


def _listed(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_listed, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
