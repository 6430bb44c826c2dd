"""What the names and tests of a function were while eager ran: tensors, numbers, or neither.

Which of the two a name is decides how it may be carried through a branch or a loop, and no syntax tells.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import CodeType, FrameType
from typing import Any

import torch


class ValueKind(Enum):
    TENSOR = "tensor"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    OTHER = "other"

    @property
    def is_number(self) -> bool:
        return self in (ValueKind.INT, ValueKind.FLOAT, ValueKind.BOOL)


@dataclass(frozen=True)
class SeenValue:
    """One value as it matters here."""

    kind: ValueKind
    truth: bool = False
    """A tensor of dtype bool."""
    axes: int = 0

    @classmethod
    def of(cls, value: object) -> SeenValue:
        if isinstance(value, torch.Tensor):
            return cls(ValueKind.TENSOR, value.dtype is torch.bool, value.dim())
        for kind, plain in ((ValueKind.BOOL, bool), (ValueKind.INT, int), (ValueKind.FLOAT, float)):
            if isinstance(value, plain):
                return cls(kind)
        return cls(ValueKind.OTHER)


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number that is written down."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, bool | int | float)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return is_number(operand)
        case _:
            return False


Question = tuple[int, str]
"""An expression of the user's: its line and its text."""


@dataclass
class SeenInFunction:
    """What one function's names and expressions were, over all runs."""

    at: dict[int, dict[str, set[SeenValue]]] = field(default_factory=dict)
    """By line, before it ran."""
    always: dict[int, set[str]] = field(default_factory=dict)
    """By line, the names that had a value each time before it ran: the line of a loop runs again after each round."""
    names: dict[str, set[SeenValue]] = field(default_factory=dict)
    expressions: dict[Question, set[SeenValue]] = field(default_factory=dict)

    def name(self, name: str, line: int | None = None) -> SeenValue | None:
        """What a name was before a line; where the line never ran, or none is given, what it was anywhere."""
        here = self.at.get(line) if line is not None else None
        return _one((here if here is not None else self.names).get(name, set()))

    def bound_at(self, name: str, line: int) -> bool:
        """Whether a name had a value before a line; a line that never ran is taken to know all names."""
        return name in self.always.get(line, self.names)

    def expression(self, node: ast.expr) -> SeenValue | None:
        return _one(self.expressions.get((node.lineno, ast.unparse(node)), set()))


def _one(found: set[SeenValue]) -> SeenValue | None:
    """What all runs agree on: a name that was a tensor once is one."""
    tensors = [value for value in found if value.kind is ValueKind.TENSOR]
    if tensors:
        return max(tensors, key=lambda value: value.axes)
    return next(iter(found)) if len(found) == 1 else None


@contextlib.contextmanager
def watched(questions: Mapping[CodeType, Mapping[int, list[ast.expr]]]) -> Iterator[dict[CodeType, SeenInFunction]]:
    """Notes what these functions hold, line by line, and asks the expressions of each line before it runs."""
    seen = {code: SeenInFunction() for code in questions}
    asked = {
        code: {line: [(ast.unparse(node), _compiled(node)) for node in nodes] for line, nodes in lines.items()}
        for code, lines in questions.items()
    }

    # The trace may have made the code of a function anew around one that it rewrote inside it: the place is the same.
    known = {_place(code): code for code in questions}

    def entered(frame: FrameType, _event: str, _argument: Any) -> Any:
        return at_line if _place(frame.f_code) in known else None

    def at_line(frame: FrameType, event: str, _argument: Any) -> Any:
        if event in ("line", "return"):
            own = known[_place(frame.f_code)]
            found, local = seen[own], dict(frame.f_locals)
            line = found.at.setdefault(frame.f_lineno, {}) if event == "line" else {}
            if event == "line":
                found.always[frame.f_lineno] = found.always.get(frame.f_lineno, set(local)) & set(local)
            for name, value in local.items():
                described = SeenValue.of(value)
                line.setdefault(name, set()).add(described)
                found.names.setdefault(name, set()).add(described)
            if event == "line":
                for text, code in asked[own].get(frame.f_lineno, ()):
                    answer = _answer(code, frame.f_globals, local)
                    if answer is not None:
                        found.expressions.setdefault((frame.f_lineno, text), set()).add(answer)
        return at_line

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield seen
    finally:
        sys.settrace(before)


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<asked>", "eval")


def _answer(code: CodeType, known: dict[str, Any], local: dict[str, Any]) -> SeenValue | None:
    before = sys.gettrace()
    sys.settrace(None)
    try:
        return SeenValue.of(eval(code, known, local))
    except Exception:  # noqa: BLE001  a name that the line itself binds first, or whatever the user's code raises
        return None
    finally:
        sys.settrace(before)
