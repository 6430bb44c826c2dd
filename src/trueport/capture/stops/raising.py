"""Errors that an arm raises: whether the user's code raised them, and whether the user's code would catch them."""

from __future__ import annotations

import ast
import dis
import inspect
import itertools
import linecache
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, NoReturn

import sympy
import torch

from trueport.capture.stops.places import Places
from trueport.decompositions.arguments import flat, mapped
from trueport.diagnostics.base import Label, Severity
from trueport.diagnostics.rules.tp105_arm_dropped import ArmDropped
from trueport.errors import refusal
from trueport.rewrite.functions import Refused, find_definition, function_around
from trueport.rewrite.running.asking import UNBOUND
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.source import Where
from trueport.source.around import attempts_around, attempts_in, error_names, loops_around
from trueport.torch_internals import OpOverload, messages, outside_all_modes
from trueport.torch_internals.symbolic import expr_of, is_number, is_symbolic

OF_OPERATORS = (IndexError, RuntimeError, ValueError)
"""What an operator raises that refuses its operands."""
_NEAR, _FAR, _MOST_SIZES, _MOST_ELEMENTS = 14, 130, 4000, 1 << 20
"""Up to which size each is tried before an operator is said to refuse all, in how many calls, on how many elements."""
_RUNNING = os.path.dirname(RUNTIME_FUNCTIONS.for_.__code__.co_filename)
_LARGEST = 1 << 15
"""Where the numbers among the operands ask for a size beyond this (`x[50_000]`), nothing is said."""


def as_raised(failure: Exception, places: Places) -> Exception | None:
    """What eager would raise where the trace met this error; None where eager may not raise at all."""
    if reads_unbound(failure, places):
        return UnboundLocalError("a name is read before it is assigned")
    raised = _is_users_raise(failure, places) or refuses_none(failure, places)
    return failure if raised else None


def as_eager_fails(failure: Exception, op: OpOverload, args: Any, kwargs: Mapping[str, Any]) -> Exception:
    """The error of an operator, with a note whether its kernel refuses such tensors for all open sizes, or for some.

    Where it does for all, the error is the kernel's own: torch's word on the sizes may be another class.
    """
    found = [part for part in flat((args, *kwargs.values())) if isinstance(part, torch.Tensor) or is_number(part)]
    sizes_of = (part.shape if isinstance(part, torch.Tensor) else (part,) for part in found)
    numbers: list[Any] = [each for sizes in sizes_of for each in sizes]
    plain = {abs(each) for each in numbers if isinstance(each, int)}
    unknown = {expr_of(each) for each in numbers if is_symbolic(each)}
    near = range(_NEAR if len(unknown) > 1 else _FAR)
    tried = {*near, *(each + step for each in plain for step in (0, 1)), *(a * b for a in plain for b in plain)}
    within = {size for size in tried if size <= _LARGEST}
    if len(within) ** len(unknown) > _MOST_SIZES:
        return failure
    combined = (dict(zip(unknown, sizes, strict=True)) for sizes in itertools.product(within, repeat=len(unknown)))
    largest = dict.fromkeys(unknown, max(within))
    tensors = [part for part in found if isinstance(part, torch.Tensor)]
    device = "meta" if any(math.prod(_real(part.shape, largest)) > _MOST_ELEMENTS for part in tensors) else "cpu"
    with suppress(Exception):  # an operator that fails in another way tells nothing
        errors = [_error_of(op, args, kwargs, sizes, device) for sizes in combined]
        if None in errors and any(errors):
            failure.tp_refused = False  # type: ignore[attr-defined]
        elif None not in errors and within == tried and device == "cpu":
            failure = errors[0].with_traceback(failure.__traceback__)  # type: ignore[union-attr]
            failure.tp_refused = True  # type: ignore[union-attr]
    return failure


def _error_of(
    op: OpOverload, args: Any, kwargs: Mapping[str, Any], sizes: Mapping[sympy.Basic, int], device: str
) -> Exception | None:
    """What a kernel raises on zeros of these sizes, one after the other in memory: so most of them can be viewed.

    On the device "meta" nothing has memory, and torch's word on the sizes is all that is asked.
    """

    def real(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return torch.zeros(_real(part.shape, sizes), dtype=part.dtype, device=device)
        return _real((part,), sizes)[0]

    try:
        with outside_all_modes():
            op(*mapped(args, real), **{name: mapped(value, real) for name, value in kwargs.items()})
    except OF_OPERATORS as refused:
        return refused
    return None


def _real(numbers: Iterable[Any], sizes: Mapping[sympy.Basic, int]) -> list[Any]:
    return [sizes[expr_of(each)] if is_symbolic(each) else each for each in numbers]


def is_refused_by_eager(failure: Exception) -> bool | None:
    """True where eager raises this, too, for all sizes; False where it does for some; None where nobody knows."""
    return getattr(failure, "tp_refused", None)


def fail(kind: type[Exception]) -> NoReturn:
    """Raise an error as eager would in an operation of Python's own, which the trace carries out otherwise."""
    raised = kind("raised where the model runs")
    raised.tp_as_python = True  # type: ignore[attr-defined]
    raise raised


def reads_unbound(failure: Exception, places: Places) -> bool:
    """Whether code read a name that is not bound there; in rewritten code the name holds a stand-in, which fails."""
    if isinstance(failure, NameError):
        return _users_last(failure, places) is not None
    return isinstance(failure, (TypeError, AttributeError)) and f"'{type(UNBOUND).__name__}'" in str(failure)


def refuses_none(failure: Exception, places: Places) -> bool:
    """Whether Python refuses None here: `items[0]`, `bias + x`. Nothing stands for None, which is None in eager, too.

    Where our own code works with values of its own and meets None, nobody knows what eager would do.
    """
    if not isinstance(failure, (TypeError, AttributeError)):
        return False
    last = _last(failure)
    if last is None or (places.is_foreign(last.tb_frame.f_code) and not _is_rewritten(last.tb_frame.f_code)):
        return False
    if isinstance(failure, AttributeError):
        return failure.obj is None and failure.name is not None
    return messages.names_none(str(failure))


def _is_rewritten(code: CodeType) -> bool:
    """Whether this is what rewritten code calls for an operation that it had itself: `items[:n]`, `for`."""
    return os.path.dirname(code.co_filename) == _RUNNING


def _is_users_raise(failure: Exception, places: Places) -> bool:
    """Whether an exception was raised by a `raise` or `assert` in Python code that is not torch's or ours."""
    if getattr(failure, "tp_as_python", False):
        return True
    last = _users_last(failure, places)
    return last is not None and dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _users_last(failure: Exception, places: Places) -> TracebackType | None:
    """Where an exception arose; None where that is in torch or in trueport."""
    last = _last(failure)
    return None if last is None or places.is_foreign(last.tb_frame.f_code) else last


def _last(failure: Exception) -> TracebackType | None:
    """Where an exception arose."""
    last: TracebackType | None = failure.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last


def refuse_if_caught(kind: type[Exception], places: Places) -> None:
    """An arm that raises can be dropped only where eager would end with the error; an `except` would go on."""
    caught = catcher(kind, places)
    if caught is None and not issubclass(kind, StopIteration):
        return
    raise refusal(
        ArmDropped(
            message=f"a traced value decides whether {kind.__name__} is raised, and the code around it goes on",
            place=places.here(),
            severity=Severity.ERROR,
            label="raises or not when the model runs",
            also=(Label(caught.where, "caught here"),) if caught is not None else (),
            fix="decide with `if` what happens instead, or return a flag: ONNX cannot raise",
        )
    )


@dataclass(frozen=True)
class Catcher:
    """A statement of the user's that would go on after an error."""

    code: CodeType
    line: int
    where: Where
    """The line that says so."""
    loop: tuple[str, int] | None = None
    """The file and the line of the innermost loop that the error would have to leave before."""


_LOOPS = (RUNTIME_FUNCTIONS.for_.__code__, RUNTIME_FUNCTIONS.while_.__code__)
"""Where rewritten code goes into a loop."""


def catcher(kind: type[Exception], places: Places) -> Catcher | None:
    """The `try` or `with` of the user's that would catch an error raised here."""
    names = {base.__name__ for base in kind.__mro__}
    entered, loops = _entered(places), list[tuple[str, int]]()
    for frame in places.outwards():
        if not places.is_foreign(frame.f_code):
            file = frame.f_code.co_filename
            source = "".join(linecache.getlines(file))
            for attempt in attempts_around(source, frame.f_lineno):
                line = _catching_line(attempt, names, frame, places)
                if line is not None:
                    where = Where.of(frame.f_code, line)
                    loops += ((file, at) for at in loops_around(source, frame.f_lineno, attempt.lineno))
                    return Catcher(
                        frame.f_code, attempt.lineno, where, next((loop for loop in loops if loop in entered), None)
                    )
            loops += ((file, at) for at in loops_around(source, frame.f_lineno))
    return None


def is_handled_here(kinds: set[str], places: Places) -> bool:
    """Whether the user's function that runs just now has an `except` for one of these errors, at any line."""
    frame = next(places.users_frames(), None)
    if frame is None:
        return False
    file = frame.f_code.co_filename
    first, last = function_around(file, frame.f_lineno)
    attempts = [each for each in attempts_in("".join(linecache.getlines(file))) if first <= each.lineno <= last]
    handlers = [handler for each in attempts if isinstance(each, ast.Try) for handler in each.handlers]
    return any(handler.type is not None and kinds & {*error_names(handler.type)} for handler in handlers)


def _entered(places: Places) -> set[tuple[str, int]]:
    """The loops that run just now: file and line."""
    callers = (frame.f_back for frame in places.outwards() if frame.f_code in _LOOPS)
    return {(caller.f_code.co_filename, caller.f_lineno) for caller in callers if caller is not None}


def _catching_line(attempt: ast.Try | ast.With, names: set[str], frame: FrameType, places: Places) -> int | None:
    if isinstance(attempt, ast.With):
        stops = any(_may_suppress(item.context_expr, names, frame, places) for item in attempt.items)
        return attempt.lineno if stops else None
    for handler in attempt.handlers:
        if handler.type is None or names & {*error_names(handler.type)}:
            return handler.lineno
    return None


def _may_suppress(manager: ast.expr, names: set[str], frame: FrameType, places: Places) -> bool:
    """Whether leaving a `with` may end an error of these names: it is `suppress` of one of them, or the user's and
    written so that it may."""
    made = _named(manager.func if isinstance(manager, ast.Call) else manager, frame)
    if made is suppress:
        given = manager.args if isinstance(manager, ast.Call) else []
        kinds = [_named(each, frame) for each in given]
        return any(kind.__name__ in names if isinstance(kind, type) else True for kind in kinds)
    written = inspect.unwrap(made) if callable(made) else None  # of a `@contextmanager`: the generator
    if isinstance(written, FunctionType):
        users = written is not made and not places.is_foreign(written.__code__)
        return users and _goes_on(written.__code__)
    leaving = getattr(made, "__exit__", None)
    code = getattr(leaving, "__code__", None)
    return code is not None and not places.is_foreign(code) and _goes_on(code)


def _goes_on(code: CodeType) -> bool:
    """Whether a context manager can end an error: a generator that yields where it is caught, an exit that says so."""
    try:
        written, _ = find_definition(code)
    except Refused:
        return True
    if code.co_name == "__exit__":
        said = [node.value for node in _nodes(ast.Return, written)]
        return any(value is not None and not (isinstance(value, ast.Constant) and not value.value) for value in said)
    around = [*_nodes(ast.With, written), *filter(_handles, _nodes(ast.Try, written))]
    return any(_nodes(ast.Yield | ast.YieldFrom, *around))


def _nodes(kind: Any, *trees: ast.AST) -> list[Any]:
    """The nodes of a kind in these trees."""
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, kind)]


def _handles(attempt: ast.Try) -> bool:
    """Whether an error may be gone after a `try`."""
    return bool(attempt.handlers) or bool(_nodes(ast.Return, *attempt.finalbody))


def _named(expression: ast.expr, frame: FrameType) -> Any:
    """What a dotted name stands for in a frame; None where that cannot be told."""
    match expression:
        case ast.Attribute(value=owner, attr=name):
            return getattr(_named(owner, frame), name, None)
        case ast.Name(id=name):
            return {**frame.f_builtins, **frame.f_globals, **frame.f_locals}.get(name)
    return None
