"""Python's builtins for traced numbers and tensors, where the real ones would ask for a plain number."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.merging import Symbolic
from trueport.capture.sequences import GrownList, OpenSequence
from trueport.rewrite.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals import SYMBOLIC_MATH

if TYPE_CHECKING:
    from trueport.capture.control_flow import ControlFlow

Builtin = Callable[..., Any]
_TRACED: dict[Builtin, Callable[..., Any]] = {}


def traced_builtin(control: ControlFlow, function: Builtin) -> Builtin | None:
    """What to call instead of a builtin; None where the builtin itself does."""
    replacement = _TRACED.get(function)
    if replacement is not None:
        return functools.partial(replacement, control)
    symbolic = SYMBOLIC_MATH.get(function)
    if symbolic is not None:
        return lambda *args: symbolic(*args) if any(isinstance(a, Symbolic) for a in args) else function(*args)
    return None


def _for(*functions: Any) -> Callable[[Builtin], Builtin]:
    def register(replacement: Builtin) -> Builtin:
        _TRACED.update(dict.fromkeys(functions, replacement))
        return replacement

    return register


def _number(value: Any) -> Any:
    """A tensor of one element as the number that `.item()` gives."""
    return value.item() if isinstance(value, torch.Tensor) else value


@_for(int)
def _int(_: ControlFlow, *args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not isinstance(args[0], (torch.Tensor, *Symbolic)):
        return int(*args, **kwargs)
    number = _number(args[0])
    if isinstance(number, torch.SymBool):
        return torch.sym_ite(number, 1, 0)
    return torch.sym_int(number) if isinstance(number, Symbolic) else int(number)


@_for(float)
def _float(_: ControlFlow, *args: Any) -> Any:
    if len(args) != 1 or not isinstance(args[0], (torch.Tensor, *Symbolic)):
        return float(*args)
    number = _number(args[0])
    if isinstance(number, torch.SymBool):
        number = torch.sym_ite(number, 1, 0)
    return torch.sym_float(number) if isinstance(number, Symbolic) else float(number)


@_for(bool)
def _bool(control: ControlFlow, *args: Any) -> Any:
    if len(args) != 1:
        return bool(*args)
    truth = control.truth(args[0])
    return truth.item() if isinstance(truth, torch.Tensor) else truth


@_for(len)
def _len(_: ControlFlow, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0:
        return value.shape[0]
    return value.length if isinstance(value, (GrownList, OpenSequence)) else len(value)


@_for(range)
def _range(_: ControlFlow, *bounds: Any) -> Any:
    if not any(isinstance(b, (torch.Tensor, *Symbolic)) for b in bounds):
        return range(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    start, stop, step = _number(start), _number(stop), _number(step)
    if not any(isinstance(b, Symbolic) for b in (start, stop, step)):
        return range(start, stop, step)
    if isinstance(step, Symbolic):
        raise NotImplementedError("range() with a step that depends on a tensor or a free size")
    span = stop - start if step > 0 else start - stop
    steps = span if abs(step) == 1 else (span + abs(step) - 1) // abs(step)
    return OpenSequence(torch.sym_max(steps, 0), lambda i: start + i * step)


@_for(max)
def _max(control: ControlFlow, *args: Any, **kwargs: Any) -> Any:
    return _extreme(control, max, torch.sym_max, lambda new, best: new > best, args, kwargs)


@_for(min)
def _min(control: ControlFlow, *args: Any, **kwargs: Any) -> Any:
    return _extreme(control, min, torch.sym_min, lambda new, best: new < best, args, kwargs)


def _extreme(control: ControlFlow, plain: Any, symbolic: Any, better: Any, args: Any, kwargs: Any) -> Any:
    items = args
    if len(args) == 1:
        sequence = control.sequence(args[0])
        if sequence is not None:
            rows = args[0] if isinstance(args[0], torch.Tensor) else args[0].whole()
            return rows.amax(0) if plain is max else rows.amin(0)
        items = tuple(args[0])
    if kwargs or not any(isinstance(i, (torch.Tensor, *Symbolic)) for i in items):
        return plain(*args, **kwargs)
    if not any(isinstance(i, torch.Tensor) for i in items):
        return functools.reduce(symbolic, items)
    best = items[0]
    for item in items[1:]:
        best = RUNTIME_FUNCTIONS.ternary(better(item, best), lambda item=item: item, lambda best=best: best)  # type: ignore[misc]
    return best


@_for(sum)
def _sum(control: ControlFlow, items: Any, start: Any = 0) -> Any:
    if control.sequence(items) is None:
        return sum(items, start)
    rows = items.whole() if isinstance(items, GrownList) else items
    if isinstance(rows, OpenSequence):
        rows = control.collect(rows, lambda item: item).whole()
    return rows.sum(0) + start


@_for(any)
def _any(control: ControlFlow, items: Any) -> Any:
    if control.sequence(items) is not None:
        return _all_items(control, items).any()
    return RUNTIME_FUNCTIONS.or_(False, *[lambda item=item: item for item in items])


@_for(all)
def _all(control: ControlFlow, items: Any) -> Any:
    if control.sequence(items) is not None:
        return _all_items(control, items).all()
    return RUNTIME_FUNCTIONS.and_(True, *[lambda item=item: item for item in items])


def _all_items(control: ControlFlow, items: Any) -> torch.Tensor:
    if isinstance(items, OpenSequence):
        items = control.collect(items, lambda item: item)
    return items.whole() if isinstance(items, GrownList) else items


@_for(abs)
def _abs(_: ControlFlow, value: Any) -> Any:
    negated: Any = -value
    return torch.sym_max(value, negated) if isinstance(value, Symbolic) else abs(value)


@_for(enumerate)
def _enumerate(control: ControlFlow, items: Any, start: int = 0) -> Any:
    sequence = control.sequence(items)
    if sequence is None:
        return enumerate(items, start)
    return OpenSequence(sequence.length, lambda i: (i + start, sequence.at(i)))


@_for(zip)
def _zip(control: ControlFlow, *iterables: Any, **kwargs: Any) -> Any:
    sequences = [control.sequence(items) for items in iterables]
    if all(s is None for s in sequences):
        return zip(*iterables, **kwargs)  # noqa: B905  as the user called it
    if any(s is None for s in sequences):
        raise NotImplementedError("zip() of something of open length with something of plain length")
    length = functools.reduce(torch.sym_min, [s.length for s in sequences])
    return OpenSequence(length, lambda i: tuple(s.at(i) for s in sequences))


@_for(reversed)
def _reversed(control: ControlFlow, items: Any) -> Any:
    # Torch's own reversed() makes a flipped copy: a write to a row of it does not reach the tensor.
    sequence = control.sequence(items.flip(0) if isinstance(items, torch.Tensor) else items)
    if sequence is None:
        return reversed(items)
    return OpenSequence(sequence.length, lambda i: sequence.at(sequence.length - 1 - i))


@_for(list)
def _list(control: ControlFlow, *args: Any) -> Any:
    sequence = control.sequence(args[0]) if args else None
    return list(*args) if sequence is None else control.collect(sequence, lambda item: item)


@_for(isinstance)
def _isinstance(_: ControlFlow, value: Any, kinds: Any) -> bool:
    """A traced number is an instance of what the plain one would be."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    stands_for = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}.get(type(value))
    if stands_for is not None and any(isinstance(k, type) and issubclass(stands_for, k) for k in wanted):
        return True
    return builtins.isinstance(value, kinds)


_MATH_THAT_WORKS = (math.floor, math.ceil, math.trunc)
"""These call methods that traced numbers have."""
