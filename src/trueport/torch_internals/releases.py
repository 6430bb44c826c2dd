"""In what the releases of torch differ, as far as we stand on it. Nobody else asks which release it is.

Each difference is one function with both forms. It says up to which release the old form is needed: when that release
is no longer supported, the old form goes, and the function with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from types import SimpleNamespace
from typing import Any

import sympy
import torch
import torch.nn.functional as F
from packaging.version import Version
from torch.fx.experimental.symbolic_shapes import ShapeEnv as _ShapeEnv

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
