"""Errors that an arm raises: whether the user's code raised them, and whether the user's code would catch them."""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType, TracebackType

from trueport.capture.places import Places
from trueport.diagnostics.base import Label, Severity
from trueport.diagnostics.rules.tp105_arm_dropped import ArmDropped
from trueport.errors import ExportError
from trueport.rewrite.asking import UNBOUND
from trueport.source import Where


def as_raised(failure: Exception, places: Places) -> Exception | None:
    """What eager would raise where the trace met this error; None where eager may not raise at all."""
    if reads_unbound(failure, places):
        return UnboundLocalError("a name is read before it is assigned")
    return failure if _is_users_raise(failure, places) else None


def reads_unbound(failure: Exception, places: Places) -> bool:
    """Whether code read a name that is not bound there; in rewritten code the name holds a stand-in, which fails."""
    if isinstance(failure, NameError):
        return _users_last(failure, places) is not None
    return isinstance(failure, (TypeError, AttributeError)) and f"'{type(UNBOUND).__name__}'" in str(failure)


def _is_users_raise(failure: Exception, places: Places) -> bool:
    """Whether an exception was raised by a `raise` or `assert` in Python code that is not torch's or ours."""
    last = _users_last(failure, places)
    return last is not None and dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _users_last(failure: Exception, places: Places) -> TracebackType | None:
    """Where an exception arose; None where that is in torch or in trueport."""
    last: TracebackType | None = failure.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return None if last is None or places.is_foreign(last.tb_frame.f_code) else last


def refuse_if_caught(kind: type[Exception], places: Places) -> None:
    """An arm that raises can be dropped only where eager would end with the error; an `except` would go on."""
    caught = _catcher(kind, places)
    if caught is None and not issubclass(kind, StopIteration):
        return
    raise ExportError(
        [
            ArmDropped(
                message=f"a traced value decides whether {kind.__name__} is raised, and the code around it goes on",
                place=places.here(),
                severity=Severity.ERROR,
                label="raises or not when the model runs",
                also=(Label(caught, "caught here"),) if caught is not None else (),
                fix="decide with `if` what happens instead, or return a flag: ONNX cannot raise",
            )
        ]
    )


def _catcher(kind: type[Exception], places: Places) -> Where | None:
    """The line of the `except` of the user's that would catch an error raised here."""
    names = {base.__name__ for base in kind.__mro__}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not places.is_outermost(frame):
        if not places.is_foreign(frame.f_code):
            file = frame.f_code.co_filename
            for handler in _handlers_around("".join(linecache.getlines(file)), frame.f_lineno):
                if handler.type is None or names & {*_names(handler.type)}:
                    return Where(file, handler.lineno, frame.f_code.co_qualname)
        frame = frame.f_back
    return None


def _handlers_around(source: str, line: int) -> Iterator[ast.ExceptHandler]:
    for attempt in _attempts(source):
        if attempt.body[0].lineno <= line <= (attempt.body[-1].end_lineno or 0):
            yield from attempt.handlers


@lru_cache(maxsize=64)
def _attempts(source: str) -> tuple[ast.Try, ...]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers)


def _names(kinds: ast.expr) -> Iterator[str]:
    """The names of the errors that an `except` catches."""
    for node in ast.walk(kinds):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
