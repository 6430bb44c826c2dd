"""A tensor of one value where a function takes a size or a place: `x.repeat(t, 1)`, `torch.zeros(rows, 3)`.

Torch reads such a tensor in C++. Of a row that a loop came to, `for t, h, w in grid:`, it cannot: where the tensor lies
in memory is known only when the model runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from trueport.decompositions.registry import decomposes, is_or_holds_single, number_in

_MAKING = (torch.zeros, torch.ones, torch.empty, torch.full, torch.eye)
_OF_A_TENSOR = """
new_zeros new_ones new_empty new_full view reshape expand repeat tile unflatten broadcast_to select topk triu tril
""".split()


def _any_single(given: Sequence[Any]) -> bool:
    return any(map(is_or_holds_single, given))


def _any_single_beside_the_first(given: Sequence[Any]) -> bool:
    return _any_single(given[1:])


def _made(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*map(number_in, args), **{name: number_in(value) for name, value in options.items()})


def _with_numbers(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The tensor itself may have one value, too: it comes first, or by its name."""
    named = {name: options.pop(name) for name in ("input", "self") if name in options}
    return _made(functools.partial(function, *args[:1], **named), *args[1:], **options)


for _function in _MAKING:
    decomposes(_function, when=_any_single, calls_back=True)(functools.partial(_made, _function))
for _name in _OF_A_TENSOR:
    for _method in (getattr(torch.Tensor, _name), getattr(torch, _name, None)):
        if _method is not None:
            decomposes(_method, when=_any_single_beside_the_first, calls_back=True)(
                functools.partial(_with_numbers, _method)
            )
