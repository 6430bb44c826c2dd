"""Looking for more functions to rewrite, in a trace that has to begin anew anyway.

A trace ends at the first function that decides by a traced value, so a model with forty of them would be traced
forty-one times. After the first few, and where a trace has come far already, it is given any answer and goes on:
whatever else decides is found, too, and all are rewritten at once. Nothing of what it records is kept.

    1. It goes on for half of what all traces have recorded so far, so that it is cheap beside what was spent.
    2. A question is answered with no, and the next time with yes; a number is 1. Both ways of a branch in a loop are
       gone, and a loop that asks for its end comes to one.
    3. What would raise at once (`assert`, `if bad: raise`) is answered so that it does not.
    4. Anything else that ends a trace (an error, a refusal, another reason to begin anew) is not believed: it may be
       due to an answer. What was found is rewritten, and the next trace will tell.
"""

from __future__ import annotations

import collections
import dis
import functools
from types import CodeType, FrameType

import sympy

from trueport.capture import limits
from trueport.capture.stops.restarts import NeedsRewrite


class Lookahead:
    """One for all traces of an export."""

    def __init__(self) -> None:
        self.found: NeedsRewrite | None = None
        """What the present trace has to begin anew for, with all that was found since."""
        self._prompt = int(limits.PROMPT_REWRITES)
        self._recorded = 0
        """Operators and questions, of all traces."""
        self._began = 0
        """How many of them when the present trace began."""
        self._until = 0
        self._answers: collections.Counter[tuple[CodeType, int]] = collections.Counter()

    def begin(self) -> None:
        """A trace begins."""
        self.found, self._began = None, self._recorded
        self._answers.clear()

    def step(self) -> bool:
        """An operator is recorded, or something is asked. False where it went far enough."""
        self._recorded += 1
        return self.found is None or self._recorded <= self._until

    def goes_on(self, needed: NeedsRewrite) -> bool:
        """Whether a trace that needs this is to be given an answer."""
        if self.found is not None:
            if all(each.code is not needed.code for each in (self.found, *self.found.more)):
                self.found.add(needed)
            return self.step()
        if self._prompt > 0 and self._recorded - self._began < limits.PROMPT_OPERATORS:
            self._prompt -= 1
            return False
        self.found, self._until = needed, self._recorded + self._recorded // 2
        return True

    def answer(self, expr: sympy.Basic, frame: FrameType) -> sympy.Basic:
        if isinstance(expr, sympy.Expr):
            return sympy.Integer(1)
        safe = _to_go_on(frame.f_code, frame.f_lasti)
        if safe is None:
            site = (frame.f_code, frame.f_lasti)
            safe = self._answers[site] % 2 == 1
            self._answers[site] += 1
        return sympy.true if safe else sympy.false


@functools.lru_cache(maxsize=1024)
def _to_go_on(code: CodeType, at: int) -> bool | None:
    """The answer with which the jump that asks goes past a `raise`; None where neither way raises at once."""
    instructions = iter(dis.get_instructions(code))
    jump = next((each for each in instructions if each.offset >= at and "POP_JUMP" in each.opname), None)
    if jump is None or jump.offset > at + _LENGTH_OF_A_QUESTION:
        return None
    for each in instructions:
        if each.opname == "RAISE_VARARGS":
            return "IF_TRUE" in jump.opname
        if each.opcode in _LEAVING:
            return None
    return None


_LENGTH_OF_A_QUESTION = 8
"""Bytes from the instruction that asks (`TO_BOOL`, in newer Pythons) to the jump."""
_LEAVING = frozenset({*dis.hasjrel, *dis.hasjabs, dis.opmap["RETURN_VALUE"]})
