"""What probed code calls: it says which way each decision of the user's code went, and changes nothing.

Verification compares with eager, so eager must stay what the user wrote. Probes are put around tests and iterables and
nowhere else; where nobody watches on this thread, they hand their argument through.
"""

from __future__ import annotations

import builtins
import operator
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol


class DecisionKind(Enum):
    """What decides."""

    IF = "if"
    TERNARY = "conditional expression"
    AND = "and"
    OR = "or"
    FILTER = "if of a comprehension"
    WHILE = "while"
    FOR = "for"
    MATCH = "match"
    PICK = "max or min"
    COND = "torch.cond"
    WHILE_LOOP = "while_loop"
    SCAN = "scan"
    MAP = "map"

    @property
    def is_loop(self) -> bool:
        return self in (
            DecisionKind.WHILE,
            DecisionKind.FOR,
            DecisionKind.WHILE_LOOP,
            DecisionKind.SCAN,
            DecisionKind.MAP,
        )

    @property
    def asks(self) -> bool:
        """A loop that asks before each round whether there is another."""
        return self in (DecisionKind.WHILE, DecisionKind.WHILE_LOOP)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's code where something is decided. `end_line` is the last line of what decides."""

    file: str
    line: int
    column: int
    end_line: int
    function: str
    kind: DecisionKind
    text: str = field(compare=False)
    """What decides, as it is written."""
    constants: tuple[int | float, ...] = field(default=(), compare=False)
    """The numbers that stand in it."""
    ways: int = field(default=2, compare=False)
    """How many ways there are: two, or the cases of a match, or the items to pick from."""
    raising: tuple[int, ...] = field(default=(), compare=False)
    """Ways that end in a `raise`: no input that eager accepts takes them."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def __hash__(self) -> int:
        """Of what tells places apart mostly: every test of every run looks its place up."""
        return hash((self.line, self.column, self.file))


class Watcher(Protocol):
    """Who is told. Tests are measured on a stack: each call takes off what lies above `mark` and puts one item on."""

    @property
    def guides(self) -> bool:
        """Whether the run is made for what it decides, and its result thrown away."""

    def mark(self) -> int: ...

    def leaf(self, mark: int, value: Any) -> None: ...

    def compared(self, mark: int, word: str, left: Any, right: Any) -> None: ...

    def joined(self, mark: int, word: str, count: int) -> None: ...

    def decided(self, site: Site, mark: int, value: Any) -> None:
        """A test has been evaluated; `value` has not been asked for its truth yet."""

    def took(self, site: Site, way: int) -> None: ...

    def began(self, site: Site) -> None: ...

    def rounds(self, site: Site, over: Iterable[Any]) -> Iterable[Any]: ...


class _Here(threading.local):
    watcher: Watcher | None = None


WATCH = _Here()
SITES: list[Site] = []
"""Every place that was ever probed; compiled code names them by their number."""

_WORDS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "in": lambda item, container: item in container,
    "not_in": lambda item, container: item not in container,
}


class Probes:
    """The functions that probed code calls, as one object that its constants can hold."""

    @staticmethod
    def mark() -> int:
        watcher = WATCH.watcher
        return 0 if watcher is None else watcher.mark()

    @staticmethod
    def decide(number: int, mark: int, value: Any) -> Any:
        """The test of a branch or a loop; an operand of `and`/`or`, which goes on as it is."""
        if WATCH.watcher is not None:
            WATCH.watcher.decided(SITES[number], mark, value)
        return value

    @staticmethod
    def leaf(mark: int, value: Any) -> Any:
        if WATCH.watcher is not None:
            WATCH.watcher.leaf(mark, value)
        return value

    @staticmethod
    def compare(mark: int, word: str, left: Any, right: Any) -> Any:
        result = _WORDS[word](left, right)
        if WATCH.watcher is not None:
            WATCH.watcher.compared(mark, word, left, right)
        return result

    @staticmethod
    def join(mark: int, word: str, count: int, value: Any) -> Any:
        """`and`, `or` or `not` of what was measured since `mark`, of `count` operands; forgotten without a word."""
        if WATCH.watcher is not None:
            WATCH.watcher.joined(mark, word, count)
        return value

    @staticmethod
    def begin(number: int) -> None:
        """A `while` is about to be entered."""
        if WATCH.watcher is not None:
            WATCH.watcher.began(SITES[number])

    @staticmethod
    def rounds(number: int, over: Iterable[Any]) -> Iterable[Any]:
        watcher = WATCH.watcher
        return over if watcher is None else watcher.rounds(SITES[number], over)

    @staticmethod
    def took(number: int, way: int) -> None:
        if WATCH.watcher is not None:
            WATCH.watcher.took(SITES[number], way)

    @staticmethod
    def pick(number: int, function: Callable[..., Any], *items: Any) -> Any:
        """`max(a, b)` of two tensors decides like an `if`."""
        picked = function(*items)
        if WATCH.watcher is not None and function in (builtins.max, builtins.min):
            way = next((at for at, item in enumerate(items) if item is picked), None)
            if way is not None:
                WATCH.watcher.took(SITES[number], way)
        return picked


PROBES = Probes()
