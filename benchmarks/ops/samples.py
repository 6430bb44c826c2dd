"""Torch's samples of an operator (the OpInfo database) as subjects for the judge."""

from __future__ import annotations

import copy
import functools
import unittest.mock
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from benchmarks.compare import BY_DTYPE, Tolerance
from benchmarks.judge import Inputs, Subject
from benchmarks.leaves import Leaf, flatten
from benchmarks.ops import calls

VARIANTS = ("float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64")
LARGEST = 1 << 18
"""Elements in one sample; more is not cheap."""
_HALVES = (torch.float16, torch.bfloat16)
UNINITIALISED = frozenset(
    (
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    )
)
"""Operators whose result holds what the memory held before."""
TRUSTING: dict[str, Callable[[list[torch.Tensor]], bool]] = {
    "nn.functional.ctc_loss": lambda given: _at_most(given[1], given[0].shape[-1] - 1),
    "linalg.lu_solve": lambda given: _at_most(given[1], given[0].shape[-1]),
    "lu_solve": lambda given: _at_most(given[2], given[1].shape[-1]),
    "lu_unpack": lambda given: _at_most(given[1], given[0].shape[-2]),
}
"""Operators whose indices eager does not check: it reads what is behind the tensor. Whether all are within."""


@dataclass(frozen=True)
class Unmeasurable:
    """A sample that says nothing about an exporter, and why."""

    why: str


@dataclass(frozen=True)
class _Call:
    """A sample, split into the tensors that become inputs and the rest."""

    tensors: list[torch.Tensor]
    constants: list[Any]
    spec: Any

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.constants]
        return pytree.tree_unflatten(leaves, self.spec)


@functools.cache
def database() -> dict[str, Any]:
    """Operators by name, `linalg.norm` or `norm.fro`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {_name(info): info for info in op_db}


def _name(info: Any) -> str:
    return info.name + (f"/{info.variant_test_name}" if info.variant_test_name else "")


def operators(variant: str) -> list[str]:
    """Those that eager computes in this dtype on the CPU."""
    dtype = getattr(torch, variant)
    return [name for name, info in database().items() if dtype in info.supported_dtypes("cpu")]


def subjects(name: str, variant: str, free: bool, limit: int | None) -> Iterator[Subject | Unmeasurable]:
    """The samples of one operator, in torch's order. Samples are drawn twice: the second draw is other values of the
    same structure, which eager accepts because torch made them so."""
    dtype = getattr(torch, variant)
    first, second = drawn(name, dtype, seed=0), drawn(name, dtype, seed=1)
    if isinstance(first, Unmeasurable):
        yield first
        return
    for index in chosen(len(first), limit):
        call = first[index]
        other = second[index] if not isinstance(second, Unmeasurable) and index < len(second) else None
        yield _subject(f"{name} {variant} {index}", name, call, other, free)


def chosen(count: int, limit: int | None) -> list[int]:
    """Which of so many samples: the first three, and others evenly over the rest, which often is a product of options
    of which the last varies fastest."""
    if limit is None or count <= limit:
        return list(range(count))
    first = list(range(min(3, limit)))
    rest = limit - len(first)
    step = (count - len(first)) / rest if rest else 0
    return first + [len(first) + int(i * step + step / 2) for i in range(rest)]


def drawn(name: str, dtype: torch.dtype, seed: int) -> list[_Call] | Unmeasurable:
    torch.manual_seed(seed)
    np.random.seed(seed)
    try:
        drawn = database()[name].sample_inputs("cpu", dtype, requires_grad=False)
        return [_split(((sample.input, *sample.args), sample.kwargs)) for sample in drawn]
    except Exception as error:  # noqa: BLE001 torch's own generator of samples may raise anything
        return Unmeasurable(f"torch cannot make its samples: {type(error).__name__}: {str(error)[:80]}")


def _split(sample: Any) -> _Call:
    leaves, spec = pytree.tree_flatten(sample)
    return _Call([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)], leaves, spec)


def _subject(title: str, name: str, call: _Call, other: _Call | None, free: bool) -> Subject | Unmeasurable:
    if name in UNINITIALISED:
        return Unmeasurable("its result is uninitialised memory")
    if any(tensor.layout is not torch.strided for tensor in call.tensors):
        return Unmeasurable("takes a sparse tensor")
    if sum(tensor.numel() for tensor in call.tensors) > LARGEST:
        return Unmeasurable("large")
    function = database()[name].op
    model = calls.Call(function, lambda tensors: call.rebuild(tensors))  # a function, which copies do not copy
    if isinstance(fault := _eager_fault(model, call.tensors), Unmeasurable):
        return fault
    found = [other.tensors] if other is not None and call.tensors and _same_form(call, other) else []
    axes = None

    def accepts(tensors: list[torch.Tensor]) -> bool:
        within = TRUSTING.get(name)
        return (within is None or within(tensors)) and not isinstance(_answers(model, tensors), Unmeasurable)

    if free:
        open_sizes, shrunk = _shrunk(accepts, call.tensors)
        axes = ([_free_axes(tensor, open_sizes) for tensor in call.tensors],)
        found += shrunk
    accepted = [tensors for tensors in found if accepts(tensors)]
    more: list[Inputs] = [((tensors,), {}) for tensors in accepted]
    tolerance = _tolerance(model, [call.tensors, *(args[0] for args, _ in more)])
    if isinstance(tolerance, Unmeasurable):
        return tolerance
    return Subject(title, model, ((call.tensors,), {}), more, axes, calls.__file__, tolerance)


def _at_most(indices: torch.Tensor, last: int) -> bool:
    return indices.numel() == 0 or int(indices.max()) <= last


def _free_axes(tensor: torch.Tensor, open_sizes: set[int]) -> dict[int, Any]:
    return {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(tensor.shape) if size in open_sizes}


def _same_form(call: _Call, other: _Call) -> bool:
    def form(one: _Call) -> list[Any]:
        return [
            (x.shape, x.stride(), x.dtype) if isinstance(x, torch.Tensor) else (type(x), str(x)) for x in one.constants
        ]

    return call.spec == other.spec and form(call) == form(other)


def _shrunk(
    accepts: Callable[[list[torch.Tensor]], bool], tensors: list[torch.Tensor]
) -> tuple[set[int], list[list[torch.Tensor]]]:
    """The sizes that may change, and inputs in which they did.

    Every axis of two or more is cut by one: 0 and 1 are fixed to torch.export, and broadcasting depends on them. Where
    eager refuses that, all axes of one size are, and those are free which eager lets be cut. Cutting keeps an order
    sorted, a matrix positive definite and values distinct, which growing would not.
    """

    def cut(these: set[int]) -> list[torch.Tensor]:
        return [
            _ended(tensor[tuple(slice(0, size - 1) if size in these else slice(None) for size in tensor.shape)], these)
            if tensor.dim()
            else tensor
            for tensor in tensors
        ]

    sizes = {size for tensor in tensors for size in tensor.shape if size > 1}
    if sizes and accepts(cut(sizes)):
        return sizes, [cut(sizes)]
    free = {size for size in sizes if accepts(cut({size}))}
    return free, [cut({size}) for size in sorted(free)[:3]]


def _ended(tensor: torch.Tensor, cut: set[int]) -> torch.Tensor:
    """Offsets that go to the end of an axis still do after it was cut: eager trusts them, and reads what is behind."""
    whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
    if whole and tensor.numel() and int(tensor.max()) in cut:
        if bool((tensor[..., 0] == 0).all()) and bool((tensor.diff() >= 0).all()):
            return tensor.clamp(max=int(tensor.max()) - 1)
    return tensor.clone()


def _eager_fault(model: torch.nn.Module, tensors: list[torch.Tensor]) -> Unmeasurable | None:
    """Why eager itself cannot be compared with."""
    first = _answers(model, tensors)
    before = torch.manual_seed(0).get_state()
    drew = not torch.equal(before, _state_after(model, tensors))
    if isinstance(first, Unmeasurable):
        return first
    if not first:
        return Unmeasurable("no result that a model could give")
    for seed in range(1, 50 if drew else 6):  # a coin that is hardly fair shows the same side for long
        again = _answers(model, tensors, seed)
        if isinstance(again, Unmeasurable):
            return again
        if len(first) != len(again) or not all(_same(a, b) for a, b in zip(first, again, strict=True)):
            return Unmeasurable("eager is not deterministic")
    compact = _answers(model, [tensor.clone() for tensor in tensors])
    if isinstance(compact, Unmeasurable) or not all(_same(a, b) for a, b in zip(first, compact, strict=True)):
        return Unmeasurable("eager reads the memory behind a view")
    return None


def _state_after(model: torch.nn.Module, tensors: list[torch.Tensor]) -> torch.Tensor:
    _answers(model, tensors)
    return torch.get_rng_state()


def _tolerance(model: torch.nn.Module, inputs: list[list[torch.Tensor]]) -> Tolerance | Unmeasurable | None:
    """For half precision, what eager itself loses on these inputs, where that is more than the usual tolerance: a
    result that is nearer to the truth than eager's is not wrong."""
    dtype = next((t.dtype for tensors in inputs for t in tensors if t.dtype in _HALVES), None)
    if dtype is None:
        return None
    usual = BY_DTYPE[dtype]
    lost = 0.0
    for tensors in inputs:
        rough = _answers(model, tensors)
        exact = _answers(model, [t.double() if t.dtype in _HALVES else t for t in tensors])
        if isinstance(rough, Unmeasurable) or isinstance(exact, Unmeasurable) or len(rough) != len(exact):
            continue
        for one, other in zip(rough, exact, strict=True):
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.is_floating_point():
                if one.shape == other.shape and (other.isfinite() & ~one.isfinite()).any():
                    return Unmeasurable("eager overflows in half precision")
                lost = max(lost, _distance(one, other))
    return Tolerance(usual.relative, max(usual.absolute, 1.5 * lost))


def _distance(rough: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference, against the largest value or one."""
    if rough.shape != exact.shape or rough.numel() == 0:
        return 0.0
    apart = torch.nan_to_num((rough.double() - exact.double()).abs(), nan=0.0, posinf=0.0)
    largest = torch.nan_to_num(rough.double().abs(), nan=0.0, posinf=0.0).max()
    return float(apart.max() / max(1.0, float(largest)))


def _answers(model: torch.nn.Module, tensors: list[torch.Tensor], seed: int = 0) -> list[Leaf] | Unmeasurable:
    torch.manual_seed(seed)
    reseed = torch.manual_seed
    try:
        # Some of torch's samples seed the generator themselves: then with another seed.
        with torch.no_grad(), unittest.mock.patch("torch.manual_seed", lambda given: reseed(given + seed)):
            found = flatten(model(copy.deepcopy(tensors)))
    except TypeError as error:
        return Unmeasurable(str(error)[:80])
    except Exception as error:  # noqa: BLE001 whatever eager raises, there is nothing to compare with
        return Unmeasurable(f"eager refuses: {type(error).__name__}: {str(error)[:80]}")
    if any(isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided for leaf in found):
        return Unmeasurable("gives a sparse tensor")
    return found


def _same(a: Leaf, b: Leaf) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a), _bits(b))
    return type(a) is type(b) and (a == b or a != a)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """NaN equals itself."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    return torch.nan_to_num(flat.double(), nan=1.2345e300) if flat.is_floating_point() else flat
