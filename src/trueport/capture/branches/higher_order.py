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

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.sequences import OpenSequence
from trueport.load.structures import Structure, flatten
from trueport.rewrite.running.runtime import NO_NAMES, RUNTIME_FUNCTIONS, TRACE, BlockNames
from trueport.torch_internals import HIGHER_ORDER

_PLACE = "\0trueport.capture.higher_order\0"


def _leaves(value: Any) -> tuple[list[Any], Structure]:
    found, structure = flatten(value, "value")
    return [leaf.value for leaf in found], structure


def _cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    return RUNTIME_FUNCTIONS.ternary(pred, lambda: true_fn(*operands), lambda: false_fn(*operands))


def _while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    box = _Box(tuple(carried_inputs))

    def body() -> None:
        made = body_fn(*box.held)
        box.held = tuple(made) if isinstance(made, (tuple, list)) else (made,)

    RUNTIME_FUNCTIONS.while_(lambda: cond_fn(*box.held), body, box.state())
    return box.held


def _scan(
    combine_fn: Callable[..., Any],
    init: Any,
    xs: Any = None,
    *,
    dim: int = 0,
    reverse: bool = False,
    length: int | None = None,
) -> Any:
    """Rounds over the slices of xs; what each yields is stacked along the same axis.

    Since torch 2.15 there may be so many rounds (`length`) without any xs; with them, torch has compared the two.
    """
    if xs is None and length is not None:
        return _scan(lambda carry, _: combine_fn(carry, None), init, torch.zeros(length))
    rows, structure = _leaves(xs)
    moved = [value.movedim(dim, 0) for value in rows]
    carry, yields = _Box(init), _Box(None)
    count = moved[0].shape[0]
    collected: list[Any] = []

    def at(i: Any) -> Any:
        index = count - 1 - i if reverse else i
        return structure.build([m[index] for m in moved])

    def each(row: Any) -> Any:
        carry.held, yields.held = combine_fn(carry.held, row)
        return [value.clone() for value in _leaves(yields.held)[0]]

    if isinstance(count, int):
        for i in range(count):
            collected.append(each(at(i)))
        stacked = [torch.stack(list(column)) for column in zip(*collected, strict=True)]
    else:
        stacked = _collected(OpenSequence(count, at), each, carry)
    if reverse:
        stacked = [s.flip(0) for s in stacked]
    _, shape = flatten(yields.held, "yields")
    return carry.held, shape.build([s.movedim(0, dim) for s in stacked])


def _collected(sequence: OpenSequence, each: Callable[[Any], list[Any]], carry: _Box) -> list[torch.Tensor]:
    """The columns of what `each` yields, one list per leaf, filled in one loop that also carries the state."""
    columns: _Box = _Box(None)

    def body(row: Any) -> None:
        made = each(row)
        for column, item in zip(columns.held, made, strict=True):
            column.append(item)

    columns.held = tuple(TracedList() for _ in range(_count(sequence, each, carry)))
    names = tuple(f"column {i}" for i in range(len(columns.held)))

    def put(values: tuple[Any, ...]) -> None:
        carry.held, columns.held = values[0], tuple(values[1:])

    state = BlockNames(lambda: (carry.held, *columns.held), put, ("the carry", *names), tuple)
    RUNTIME_FUNCTIONS.for_(sequence, body, lambda: False, state)
    return [column.whole() for column in columns.held]


def _count(sequence: OpenSequence, each: Callable[[Any], list[Any]], carry: _Box) -> int:
    """How many tensors one round yields, found by tracing one and forgetting it."""
    trace: Any = TRACE.trace
    before = carry.held
    counted: list[int] = []
    trace.trace_arm(lambda: counted.append(len(each(sequence.at(0)))), NO_NAMES, ())
    carry.held = before
    return counted[0]


def _map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    rows, structure = _leaves(xs)
    length = rows[0].shape[0]

    def at(i: Any) -> Any:
        return structure.build([value[i] for value in rows])

    if isinstance(length, int):
        made = [f(at(i), *args) for i in range(length)]
        parts = [[leaf.value for leaf in flatten(m, "result")[0]] for m in made]
        return flatten(made[0], "result")[1].build([torch.stack(list(column)) for column in zip(*parts, strict=True)])
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


class _Box:
    """A value that a loop changes."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def state(self) -> BlockNames:
        def put(values: tuple[Any, ...]) -> None:
            self.held = values[0]

        return BlockNames(lambda: (self.held,), put, ("what the loop carries",), tuple)


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
