"""Finding the user's own line on the Python stack while the trace runs.

A frame is torch's when its file lies in the torch package (or in sympy, or in ours); everything else is the user's,
installed libraries such as transformers included. Answers are interned: a model has far fewer lines than operations.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

from trueport.source import Place, Where
from trueport.torch_internals.frames import HANDS_QUESTIONS_ON, SYMBOLIC_NUMBERS, TORCH_FOLDER

_OUR_FOLDER = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep
_FOREIGN_FOLDERS = (TORCH_FOLDER + os.sep, _OUR_FOLDER)
_FOREIGN_PARTS = (
    f"{os.sep}sympy{os.sep}",
    f"{os.sep}site-packages{os.sep}numpy{os.sep}",
    f"{os.sep}contextlib.py",
    f"{os.sep}functools.py",
    "<frozen ",
)
_SIZE_MACHINERY = (*HANDS_QUESTIONS_ON, *_FOREIGN_PARTS, _OUR_FOLDER)


class Places:
    """Answers "where are we?" for one trace.

    `outermost` is the code that called the model: frames above it are not the user's model any more.
    """

    def __init__(self) -> None:
        self.module: str = ""
        self.call: tuple[int, ...] = ()
        """The calls of modules that are running, where those are noted."""
        self._foreign: dict[CodeType, bool] = {}
        self._known: dict[tuple[str, tuple[int, ...], tuple[tuple[CodeType, int], ...]], Place] = {}
        self._outermost: FrameType | None = None
        self._torch_asking = False

    def begin(self, frame: FrameType) -> None:
        self._outermost = frame

    def end(self) -> None:
        self._outermost = None

    def outwards(self) -> Iterator[FrameType]:
        """The frames of the running call of the model, ours and torch's among them, innermost first."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame is not self._outermost:
            yield frame
            frame = frame.f_back

    def traced_frames(self) -> Iterator[FrameType]:
        """The frames of the model's code, the user's own and that of libraries, innermost first."""
        return (frame for frame in self.outwards() if not self.is_foreign(frame.f_code))

    def users_frames(self) -> Iterator[FrameType]:
        """The frames of the user's own code, innermost first."""
        return (frame for frame in self.outwards() if self._is_users(frame.f_code))

    def _is_users(self, code: CodeType) -> bool:
        return not self.is_foreign(code) and not Where.of(code).is_library

    def is_foreign(self, code: CodeType) -> bool:
        known = self._foreign.get(code)
        if known is None:
            name = code.co_filename
            known = name.startswith(_FOREIGN_FOLDERS) or any(part in name for part in _FOREIGN_PARTS)
            self._foreign[code] = known
        return known

    def here(self) -> Place:
        """The place of the running operation."""
        chain: list[tuple[CodeType, int]] = []
        for frame in self.outwards():
            code = frame.f_code
            if not self.is_foreign(code):
                chain.append((code, frame.f_lineno or code.co_firstlineno))
        key = (self.module, self.call, tuple(chain))
        place = self._known.get(key)
        if place is None:
            calls = tuple(Where.of(code, line) for code, line in reversed(chain))
            place = self._known[key] = Place(calls, self.module, self.call)
        return place

    def decided_by_user(self) -> bool:
        """Whether the size decision being taken now was asked for by Python code outside torch."""
        return self.deciding_frame() is not None

    def deciding_frame(self) -> FrameType | None:
        """The frame of the user's whose Python needs the decision: it called a method of a symbolic number.

        Torch's C++ (`y.contiguous()`) asks the symbol itself, with no such method between it and the user's line.
        """
        for frame in itertools.takewhile(lambda frame: self.is_size_machinery(frame.f_code), self.outwards()):
            if frame.f_code.co_filename == SYMBOLIC_NUMBERS:
                return self.asking_frame()
        return None

    def frame_calling(self, names: frozenset[str]) -> FrameType | None:
        """The frame of the user's that is calling something of these names, which asks in C++ for a plain number."""
        frame = self.asking_frame()
        return frame if frame is not None and _calls(frame.f_code, frame.f_lasti, names) else None

    def asking_frame(self, through: CodeType | None = None) -> FrameType | None:
        """The frame of the user's that asks for a plain number or bool right now; None where torch itself does.

        `through` is code of torch's that only hands the question on.
        """
        if self._torch_asking:
            return None
        for frame in self.outwards():
            if frame.f_code is not through and not self.is_size_machinery(frame.f_code):
                return None if self.is_foreign(frame.f_code) else frame
        return None

    @contextlib.contextmanager
    def torch_asking(self) -> Iterator[None]:
        """Whatever is asked meanwhile, torch asks: `y[0]` looks in C++, without a frame of its own, for a row."""
        before, self._torch_asking = self._torch_asking, True
        try:
            yield
        finally:
            self._torch_asking = before

    def called_by_user(self) -> bool:
        """Whether the innermost frame outside of torch and of us is the user's own, and no library's."""
        codes = (frame.f_code for frame in self.outwards() if not self.is_foreign(frame.f_code))
        innermost = next(codes, None)
        return innermost is not None and not Where.of(innermost).is_library

    @staticmethod
    def is_size_machinery(code: CodeType) -> bool:
        """Frames that only carry a question about a size: SymInt's methods, the ShapeEnv, sympy, ourselves."""
        return _is_size_machinery(code.co_filename)


@functools.lru_cache(maxsize=1024)
def _is_size_machinery(file: str) -> bool:
    return any(part in file for part in _SIZE_MACHINERY)


def calling_frame() -> FrameType:
    """The innermost frame that is not ours: whoever called us, by however many of our functions."""
    frame = sys._getframe()
    while frame.f_code.co_filename.startswith(_OUR_FOLDER) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def code_that_calls(file: str) -> CodeType:
    """The code that called into a file of ours: the innermost outside of it, whatever functions of it lie between."""
    frame = sys._getframe()
    while frame.f_code.co_filename in (__file__, file) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code


@functools.lru_cache(maxsize=1024)
def _calls(code: CodeType, at: int, names: frozenset[str]) -> bool:
    """Whether the expression that is being evaluated holds one of the names."""
    instructions = list(dis.get_instructions(code))
    now = next((i.positions for i in instructions if i.offset == at), None)
    if now is None or now.lineno is None:
        return False
    begin, end = (now.lineno, now.col_offset), (now.end_lineno, now.end_col_offset)
    for each in instructions:
        place = each.positions
        if each.argval in names and each.opname in _LOADS and place is not None:
            inside = begin <= (place.lineno, place.col_offset) and (place.end_lineno, place.end_col_offset) <= end
            if inside:
                return True
    return False


_LOADS = frozenset({"LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME"})
