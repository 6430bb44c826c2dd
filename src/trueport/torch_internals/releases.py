"""In what the releases of torch differ, as far as we stand on it. Nobody else asks which release it is.

Each difference is one function with both forms. It says up to which release the old form is needed: when that release
is no longer supported, the old form goes, and the function with it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from types import SimpleNamespace
from typing import Any

import sympy
import torch
import torch.nn.functional as F
from packaging.version import Version
from torch.fx.experimental.symbolic_shapes import ShapeEnv as _ShapeEnv
from torch.fx.experimental.symbolic_shapes import guard_or_false as _guard_or_false
from torch.fx.experimental.symbolic_shapes import statically_known_true as _statically_known_true
from torch.fx.experimental.symbolic_shapes import sym_and as _sym_and

_RELEASE = Version(torch.__version__).release[:2]


def example_sizes(env: _ShapeEnv) -> MutableMapping[sympy.Symbol, Any]:
    """The example's value of each free size. Up to 2.10, torch calls it otherwise."""
    name = "backed_var_to_val" if _RELEASE >= (2, 11) else "var_to_val"
    sizes: MutableMapping[sympy.Symbol, Any] = getattr(env, name)
    return sizes


def forget_hints() -> None:
    """Let torch look at the example's sizes again. Up to 2.11, the methods that remember them are called otherwise."""
    names = ("guarding_hint_or_throw", "has_guarding_hint") if _RELEASE >= (2, 12) else ("size_hint", "has_hint")
    for name in names:
        getattr(_ShapeEnv, name).cache_clear()


def no_proxies() -> Mapping[Any, Any]:
    """What functionalisation finds where it looks for the proxy of a tensor, so as to mark the views that it replays.

    Nothing: KeyError means "not yours". Up to 2.12 that is an error, and it gets a proxy of no node.
    """
    return {} if _RELEASE >= (2, 13) else _NoNode()


class _NoNode(dict[Any, Any]):
    def __missing__(self, _tensor: Any) -> Any:
        return SimpleNamespace(proxy=SimpleNamespace(node=None))


def linear_cross_entropy() -> tuple[Callable[..., torch.Tensor], ...]:
    """`F.linear_cross_entropy`. Up to 2.12 there is none."""
    return (F.linear_cross_entropy,) if _RELEASE >= (2, 13) else ()


@contextlib.contextmanager
def guard_of_no_thread() -> Iterator[None]:
    """Fake tensors may be used on a thread that ends.

    Where a CUDA build finds no GPU, they replace torch's guard of the device. Up to 2.11 the new one belongs to the
    thread that used them first, and the process dies when that has ended and another uses some (pytorch#178950). A
    trace needs no such guard, and makes none there.
    """
    if _RELEASE >= (2, 12):
        yield
        return
    make = torch._C._ensureCUDADeviceGuardSet
    torch._C._ensureCUDADeviceGuardSet = lambda: None
    try:
        yield
    finally:
        torch._C._ensureCUDADeviceGuardSet = make


def either(condition: torch.SymBool, yes: Any, no: Any) -> Any:
    """`torch.sym_ite`. Up to 2.11, a number that nobody knows says that it is `no`, and `1 / it` raises."""
    number = torch.sym_ite(condition, yes, no)
    if _RELEASE < (2, 12) and condition.node.hint is None:
        number.node._hint = None
    return number


def length_of_slice(rows: Any, start: Any, end: Any, step: Any) -> Any | None:
    """How many rows `x[start:end:step]` has, where torch would have a new symbol for that; None where it knows better.

    Up to 2.11, torch does not say `Min(end, rows)`. These are its rules from 2.12 on.
    """
    if _RELEASE >= (2, 12):
        return None
    first = 0 if start is None else _place(rows, start)
    last = rows if end is None or _statically_known_true(end == sys.maxsize) else _place(rows, end)
    if first is None or last is None:
        return None
    if _guard_or_false(last >= first):
        return (last - first + step - 1) // step
    if _guard_or_false(first >= last):
        return 0
    return (torch.sym_max(last - first, 0) + step - 1) // step


def _place(rows: Any, index: Any) -> Any | None:
    """Where an index of a slice is, from the first row; None where it may be on either side of it."""
    if _guard_or_false(_sym_and(index >= 0, index <= rows)):
        return index
    if _guard_or_false(_sym_and(index < 0, index >= -rows)):
        return index + rows
    if _guard_or_false(index < -rows):
        return 0
    if _guard_or_false(index > rows):
        return rows
    if _guard_or_false(index >= 0):
        return torch.sym_min(index, rows)
    if _guard_or_false(index < 0):
        return torch.sym_max(index + rows, 0)
    return None
