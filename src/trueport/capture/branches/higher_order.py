"""torch.cond, while_loop, scan, map and associative_scan in the user's own source.

Torch compiles their functions and holds them to its own rules; a graph of regions has fewer. While a trace runs, the
functions lead here, however the user imported them, and become regions like any other branch or loop.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

from trueport.capture.containers.lists import held_in
from trueport.decompositions.registry import always, decomposes
from trueport.load.structures import Structure, flatten
from trueport.rewrite.ahead import rewritten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.torch_internals import HIGHER_ORDER

_PLACE = "\0trueport.capture.higher_order\0"


def _leaves(value: Any) -> tuple[list[Any], Structure]:
    found, structure = flatten(value, "value")
    return [leaf.value for leaf in found], structure


def _cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    return RUNTIME_FUNCTIONS.ternary(pred, lambda: true_fn(*operands), lambda: false_fn(*operands))


@rewritten
def _while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    held = tuple(carried_inputs)
    while cond_fn(*held):
        held = _as_tuple(body_fn(*held))
    return held


def _as_tuple(made: Any) -> tuple[Any, ...]:
    return tuple(made) if isinstance(made, (tuple, list)) else (made,)


def _scan(
    combine_fn: Callable[..., Any],
    init: Any,
    xs: Any = None,
    *,
    dim: int = 0,
    reverse: bool = False,
    length: int | None = None,
) -> Any:
    """Since torch 2.15 there may be so many rounds (`length`) without any xs; with them, torch has compared the two."""
    if xs is None and length is not None:
        return _scanned(lambda carry, _: combine_fn(carry, None), init, torch.zeros(length), 0, reverse)
    return _scanned(combine_fn, init, xs, dim, reverse)


@rewritten
def _scanned(combine_fn: Callable[..., Any], init: Any, xs: Any, dim: int, reverse: bool) -> Any:
    """Rounds over the slices of xs; what each yields is stacked along the same axis."""
    rows, structure = _leaves(xs)
    moved = [value.movedim(dim, 0) for value in rows]
    moved = [m.flip(0) for m in moved] if reverse else moved
    carry, collected = init, []
    for i in range(moved[0].shape[0]):
        carry, yields = combine_fn(carry, structure.build([m[i] for m in moved]))
        collected.append(_copy_of(yields))
    return carry, _stacked(collected, dim, reverse)


def _copy_of(value: Any) -> Any:
    """No list may hold a tensor that the user's function writes in a later round."""
    leaves, structure = _leaves(value)
    return structure.build([leaf.clone() for leaf in leaves])


def _stacked(items: Any, dim: int, reverse: bool) -> Any:
    """One item, whose tensors hold those of all, along an axis of their own."""
    shape = held_in(items).rows()
    columns = [tensor.flip(0) if reverse else tensor for tensor in shape.tensors]
    return shape.shape.structure.build([column.movedim(0, dim) for column in columns])


def _map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    return _scan(lambda carry, row: (carry, f(row, *args)), torch.zeros(()), xs)[1]


def _associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Combined from left to right, which is what any order of an associative function gives."""
    rows, structure = _leaves(xs)
    moved = [value.movedim(dim, 0) for value in rows]
    moved = [m.flip(0) for m in moved] if reverse else moved
    first = structure.build([m[0] for m in moved])

    def combine(carry: Any, row: Any) -> Any:
        made = combine_fn(carry, row)
        return made, made

    rest = structure.build([m[1:] for m in moved])
    if isinstance(moved[0].shape[0], int) and moved[0].shape[0] == 1:
        return xs
    _, others = _scan(combine, first, rest)
    pairs = zip(_leaves(first)[0], _leaves(others)[0], strict=True)
    joined = [torch.cat([one.unsqueeze(0), rest]) for one, rest in pairs]
    joined = [j.flip(0) for j in joined] if reverse else joined
    return structure.build([j.movedim(0, dim) for j in joined])


_operators = torch.ops.higher_order
"""What these functions end in. Some call it by itself: flat lists of tensors, with what all rounds see apart."""
decomposes(_operators.cond, when=always, calls_back=True)(_cond)


@decomposes(_operators.while_loop, when=always, calls_back=True)
def _while_operator(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Any, others: Any) -> Any:
    return _while_loop(lambda *held: cond_fn(*held, *others), lambda *held: body_fn(*held, *others), carried)


@decomposes(_operators.scan, when=always, calls_back=True)
def _scan_operator(combine_fn: Callable[..., Any], init: Any, xs: Any, additional_inputs: Any) -> Any:
    def combine(carry: Any, row: Any) -> Any:
        made = combine_fn(*carry, *row, *additional_inputs)
        return tuple(made[: len(init)]), tuple(made[len(init) :])

    carry, yields = _scan(combine, tuple(init), tuple(xs))
    return (*carry, *yields)


@decomposes(_operators.map_impl, when=always, calls_back=True)
def _map_operator(f: Callable[..., Any], xs: Any, others: Any) -> Any:
    return _map(lambda row: tuple(f(*row, *others)), tuple(xs))


class _Lead:
    """What a trampoline's constants hold."""

    def __init__(self, lead: Callable[..., Any]) -> None:
        self.lead = lead


IN_PYTHON: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map": _map,
    "associative_scan": _associative_scan,
}
"""The same functions by means of Python's control flow: regions of the graph in a trace, plain Python outside one."""

Lead = Callable[[str, Callable[..., Any]], Callable[..., Any]]
"""Given the name of such a function and the function itself: what is to be called in its stead."""


def higher_order_functions() -> contextlib.AbstractContextManager[None]:
    """While this lasts, torch's control-flow functions lead to ours; on threads without a trace, to themselves."""

    def lead(name: str, itself: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            return (itself if TRACE.trace is None else IN_PYTHON[name])(*args, **kwargs)

        return traced

    return led_elsewhere(lead)


@contextlib.contextmanager
def led_elsewhere(lead: Lead) -> Iterator[None]:
    """While this lasts, torch's control-flow functions lead where `lead` says, however the user imported them."""
    swapped: list[tuple[FunctionType, CodeType]] = []
    try:
        for name, function in HIGHER_ORDER.items():
            original = function.__code__
            copy = FunctionType(original, function.__globals__, function.__name__, function.__defaults__)
            copy.__kwdefaults__ = function.__kwdefaults__
            swapped.append((function, original))
            function.__code__ = _trampoline(function, lead(name, copy))
        yield
    finally:
        for function, original in swapped:
            function.__code__ = original


def _trampoline(function: FunctionType, lead: Callable[..., Any]) -> CodeType:
    """Code with the function's own signature that calls another."""
    params, passed = [], []
    for name, parameter in inspect.signature(function).parameters.items():
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                params.append(f"*{name}")
                passed.append(f"*{name}")
            case inspect.Parameter.KEYWORD_ONLY:
                params += ["*"] if not any(p.startswith("*") for p in params) else []
                params.append(f"{name}=None")
                passed.append(f"{name}={name}")
            case _:
                params.append(name if parameter.default is inspect.Parameter.empty else f"{name}=None")
                passed.append(name)
    source = f"def {function.__name__}({', '.join(params)}): return {_PLACE!r}.lead({', '.join(passed)})"
    namespace: dict[str, Any] = {}
    exec(compile(source, function.__code__.co_filename, "exec"), namespace)
    code: CodeType = namespace[function.__name__].__code__
    return code.replace(co_consts=tuple(_Lead(lead) if c == _PLACE else c for c in code.co_consts))
