"""What eager answers now, kept to be held against what it answers after its source was edited.

How an answer is handed over (sparse or dense, complex or as pairs, in a generator or a tuple, as numpy) is left out of
the comparison: that may be what the edit was for. The numbers, their shapes and their dtypes are in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trueport.examine.limits import within
from trueport.examine.run import run_eager
from trueport.load.job import Job, sizes_in
from trueport.load.structures import flatten
from trueport.verify.inputs.draw import draw
from trueport.verify.judging.compare import compare
from trueport.verify.runtime.tensors import from_torch

_KEPT = 8
_TRIES = 48
_PATIENCE = 20.0

Leaves = list[torch.Tensor | str]


@dataclass(frozen=True)
class Answer:
    """One input that eager accepted, and what it gave for it."""

    values: tuple[object, ...]
    sizes: Mapping[str, int]
    leaves: Leaves


@dataclass(frozen=True)
class Answers:
    """Eager's answers, with the weights that it gave them with."""

    weights: Mapping[str, torch.Tensor]
    given: tuple[Answer, ...] = ()


def answers(job: Job, numbers: Sequence[int], seed: int = 0) -> Answers:
    """What the model gives for some inputs, at sizes of `numbers` too. Nothing where it gives now this, now that."""
    found = itertools.islice(_answered(job, numbers, seed), _KEPT)
    return Answers({name: tensor.clone() for name, tensor in job.model.state_dict().items()}, tuple(found))


def _answered(job: Job, numbers: Sequence[int], seed: int) -> Iterator[Answer]:
    for sizes, values in itertools.islice(_inputs(job, numbers, seed), _TRIES):
        first, second = _run(job, values), _run(job, values)
        if not isinstance(first, list) or not isinstance(second, list) or _difference(first, second):
            continue
        if _same(first, second) or not _draws(job, values):
            yield Answer(tuple(values), sizes, first)


def _inputs(job: Job, numbers: Sequence[int], seed: int) -> Iterator[tuple[Mapping[str, int], Sequence[object]]]:
    example = [leaf.value for leaf in job.leaves]
    sizes = sizes_in(job.leaves, example)
    yield sizes, example
    wanted = [{**sizes, free.name: number} for free in job.free_sizes for number in numbers if free.admits(number)]
    for drawn in draw(job, example, seed, wanted):
        yield drawn.sizes, drawn.values


@dataclass(frozen=True)
class Compared:
    """On how many inputs the answers are as before, and where they are not: the first difference, in words."""

    same: int = 0
    different: str = ""
    only_at_one: bool = False
    """Every difference is at a size of 1, which torch spreads to whatever it meets."""


def kept(job: Job, before: Answers) -> Compared:
    """Whether the model gives what it gave before, with the same weights on the same inputs."""
    with torch.no_grad():
        own = job.model.state_dict()
        for name, tensor in before.weights.items():
            if name in own and own[name].shape == tensor.shape:
                own[name].copy_(tensor)
    said = [(answer.sizes, _change(job, answer)) for answer in before.given]
    at_one = [not change or 1 in sizes.values() for sizes, change in said]
    different = next((change for _, change in said if change), "")
    return Compared(sum(not change for _, change in said), different, bool(different) and all(at_one))


def _change(job: Job, answer: Answer) -> str:
    """How the answer to one input has changed; '' where it has not."""
    if len(answer.values) != len(job.leaves):
        return "the model takes other arguments"
    now = _run(job, answer.values)
    if isinstance(now, Exception):
        return f"it raises {type(now).__name__}: {now}{_at(answer.sizes)}"
    difference = _difference(answer.leaves, now)
    return f"{difference}{_at(answer.sizes)}" if difference else ""


def _run(job: Job, values: Sequence[object]) -> Leaves | Exception:
    try:
        with within(_PATIENCE), torch.random.fork_rng(devices=[]):
            torch.seed()
            return _leaves(run_eager(job, values))
    except Exception as raised:  # noqa: BLE001  a model may raise anything; who asks decides what it means
        return raised


def _draws(job: Job, values: Sequence[object]) -> bool:
    """Whether the answer is made with random numbers: beside large values their difference may be within tolerance."""
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        try:
            with within(_PATIENCE):
                run_eager(job, values)
        except Exception:  # noqa: BLE001  it ran twice, and now it does not
            return True
        return not torch.equal(before, torch.random.get_rng_state())


def _same(first: Leaves, second: Leaves) -> bool:
    """To the last bit."""
    return all(
        torch.equal(one, other) if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) else one == other
        for one, other in zip(first, second, strict=True)
    )


def _leaves(outputs: Any) -> Leaves:
    return [_plain(leaf.value) for leaf in flatten(_opened(outputs))[0]]


def _opened(value: Any) -> Any:
    """One-time and unordered containers as tuples, wherever they are."""
    if isinstance(value, Mapping):
        return {key: _opened(item) for key, item in value.items()}
    if type(value) in (list, tuple) or (isinstance(value, Iterator) or type(value).__name__.startswith("dict_")):
        return tuple(_opened(item) for item in value)
    return value


def _plain(value: object) -> torch.Tensor | str:
    if isinstance(value, np.ndarray | np.generic):
        value = torch.from_numpy(np.asarray(value).copy())
    if isinstance(value, bool | int | float):
        value = torch.tensor(value)
    if not isinstance(value, torch.Tensor):
        return str(type(value)) if not isinstance(value, str) else value
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_quantized:
        value = value.dequantize()
    value = value.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(value).clone() if value.is_complex() else value.clone()


def _difference(before: Leaves, now: Leaves) -> str:
    if len(before) != len(now):
        return f"{len(now)} results instead of {len(before)}"
    for one, other in zip(before, now, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if one is not other and str(one) != str(other):
                return f"{other} instead of {one}"
            continue
        found = compare(one, from_torch(other))
        if found is not None:
            return f"{found.kind.value} {found.got} instead of {found.expected}"
    return ""


def _at(sizes: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name}={size}' for name, size in sizes.items())})" if sizes else ""
