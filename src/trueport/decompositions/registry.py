"""What a trace calls instead of torch's functions, operators and layers (polyfills, decompositions).

Torch's own way sometimes reads a free size or a value as a plain number, which would be frozen in the graph.
`@decomposes(...)` registers what computes the same without that, at one of three heights:

1. a function: `torch.linspace` takes a plain int, and would read a free size in C++, before any operator is called;
2. an operator: `aten.squeeze.default` is taken apart by torch in a way that decides by the example's sizes;
3. a layer: `nn.TransformerEncoder` does in inference what no trace can follow.

It takes what the original takes. Where it answers NotImplemented, torch's own way is gone after all.

`@sizes_of(...)` says what an operator gives that is recorded as it is, where torch's answer would freeze a size.

A file of this folder is a family of functions, and is found by itself. Rooms above this one register, too.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import pkgutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from trueport.decompositions.arguments import flat
from trueport.torch_internals import OpOverload
from trueport.torch_internals.symbolic import is_single, is_symbolic

F = TypeVar("F", bound=Callable[..., Any])
When = Callable[[Sequence[Any]], bool]
"""Of all arguments that a function is given: whether it needs its decomposition."""


def traced_number(given: Sequence[Any]) -> bool:
    """A number that is known only when the model runs is among them, or in a list of them."""
    return holds_symbol(given)


def free_size(given: Sequence[Any]) -> bool:
    """Or a tensor of a free size is: the function reads the sizes of its tensors as plain numbers."""
    return holds_symbol(given) or holds_symbol([_sizes(each) for each in given])


def always(given: Sequence[Any]) -> bool:
    return True


@dataclass(frozen=True)
class Decomposition:
    function: Callable[..., Any]
    when: When
    views_only: bool
    """Whether it is for traces that write in place, where views have to be told from copies."""
    calls_back: bool = False
    """Whether it calls functions of the user's, whose own calls of torch are decomposed like any other."""

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as it takes them: one that is asked where numbers are traced gets tensors of one value as the
        numbers that they hold. `torch.linspace(0, 1, n)`"""
        if self.when not in (traced_number, free_size) or not any(map(is_or_holds_single, (*args, *kwargs.values()))):
            return args, kwargs
        parameters = inspect.signature(self.function).parameters
        of_numbers = {p.name for p in parameters.values() if p.annotation not in _TENSORS}
        named = dict(zip(parameters, args, strict=False))
        made = tuple(number_in(value) if name in of_numbers else value for name, value in named.items())
        return (*made, *args[len(made) :]), {
            name: number_in(value) if name in of_numbers else value for name, value in kwargs.items()
        }


_TENSORS = (torch.Tensor, "torch.Tensor", "Tensor")
_DECOMPOSITIONS: dict[Any, list[Decomposition]] = {}
SIZES: dict[OpOverload, Callable[..., Any]] = {}


def decomposes(
    *originals: Any, when: When | None = None, views_only: bool = False, calls_back: bool = False
) -> Callable[[F], F]:
    """Register what is called instead of functions, operators or layers of torch's.

    A function is asked `when` a traced number is among its arguments, unless told otherwise; an operator and a layer
    always.
    """

    def register(function: F) -> F:
        for original in originals:
            is_function = not isinstance(original, (OpOverload, type))
            found = Decomposition(function, when or (traced_number if is_function else always), views_only, calls_back)
            others = _DECOMPOSITIONS.setdefault(original, [])
            assert found.when not in [other.when for other in others], f"{original} is decomposed twice"
            others.insert(len(others) if found.when is always else 0, found)
        return function

    return register


def sizes_of(*ops: OpOverload) -> Callable[[F], F]:
    """Register what operators give: tensors without content. A relation between sizes that is tested there is an
    assumption of the trace, like any other."""

    def register(function: F) -> F:
        assert not SIZES.keys() & set(ops), f"the sizes of {ops} are told twice"
        SIZES.update(dict.fromkeys(ops, function))
        return function

    return register


def decompositions_of(function: Any) -> Sequence[Decomposition]:
    """Of a function, the one that is always asked last."""
    discover()
    return _DECOMPOSITIONS.get(function, ())


def operator_decomposition(op: OpOverload, careful: bool) -> Callable[..., Any] | None:
    """`careful`: in a trace in which views may be written to."""
    found = next(iter(decompositions_of(op)), None)
    return found.function if found is not None and (careful or not found.views_only) else None


def results_of(op: OpOverload) -> Callable[..., Any]:
    """What tells the results of an operator: torch itself, unless something is registered."""
    discover()
    return SIZES.get(op, op)


@functools.cache
def discover() -> None:
    """Import every family."""
    here = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(here).__path__, f"{here}."):
        importlib.import_module(module.name)


@contextlib.contextmanager
def layers_decomposed(model: nn.Module) -> Iterator[None]:
    """For its duration the layers of `model`, called on this thread, run what is registered for them.

    A subclass with a forward of its own decides for itself, and so does an object that was given one.
    """
    discover()
    thread = threading.get_ident()
    changed: list[dict[str, Any]] = []
    kinds = [kind for kind in _DECOMPOSITIONS if isinstance(kind, type) and issubclass(kind, nn.Module)]
    for module in model.modules():
        for kind in kinds:
            if isinstance(module, kind) and type(module).forward is kind.forward and "forward" not in vars(module):
                vars(module)["forward"] = functools.partial(_forward, thread, kind, module)
                changed.append(vars(module))
    try:
        yield
    finally:
        for attributes in changed:
            attributes.pop("forward", None)


def _forward(thread: int, kind: Any, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    ours = threading.get_ident() == thread
    return (_DECOMPOSITIONS[kind][0].function if ours else kind.forward)(module, *args, **kwargs)


def holds_symbol(data: Any) -> bool:
    return any(map(is_symbolic, flat(data)))


def is_or_holds_single(value: Any) -> bool:
    """A tensor of one value, or a list with one in it."""
    if type(value) in (list, tuple):
        return any(map(is_or_holds_single, value))
    return is_single(value)


def number_in(value: Any) -> Any:
    """Tensors of one value as the numbers that they hold."""
    if type(value) in (list, tuple):
        return type(value)(map(number_in, value))
    return value.item() if is_or_holds_single(value) else value


def _sizes(given: Any) -> tuple[Any, ...]:
    return tuple(given.shape) if isinstance(given, torch.Tensor) else ()
