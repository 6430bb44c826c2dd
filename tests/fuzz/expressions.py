"""Random expressions of the fuzzer's little language.

All numbers stay small and whole (or halves), so that every result is exact in float32 and eager and ONNX Runtime must
agree to the last bit; a test like `h.sum() > 2` then never hangs on a rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random


class Kind(Enum):
    """What a name of a generated program holds."""

    VECTOR = "a float tensor of 3"
    ROWS = "a float tensor of as many rows as x, by 3"
    MATRIX = "a float tensor of any number of rows, by 3"
    SCALAR = "a 0-d float tensor"
    TOTAL = "a Python number at first, a 0-d tensor later"
    INT = "a Python int"
    FLOAT = "a Python float"
    BOOL = "a Python bool"
    PAIR = "a tuple of a vector and an int"
    LIST = "a list of vectors"
    COUNTER = "an int that only its own loop changes"
    INDEX = "an int that is a row of x"
    DICT = "a dict of two vectors and an int"
    KEY = "the key of one of those vectors"
    MAYBE = "a vector or None"
    FUNCTION = "a function from a vector to a vector"
    STATE = "a tuple of two vectors"
    BOX = "an object that holds a vector h and an int k, which others may set"
    RECORD = "a named tuple of the same"


@dataclass
class Names:
    """The names that are bound for sure at some point of a program."""

    kinds: dict[str, Kind] = field(default_factory=dict)

    def of(self, *kinds: Kind) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def copy(self) -> Names:
        return Names(dict(self.kinds))


class Expressions:
    """Draws expressions over the bound names."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = Names()
        self.in_method = False
        self.helpers = False
        self._walrus = 0

    def one_of(self, makers: list[Callable[[], str]]) -> str:
        return self.random.choice(makers)()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, *kinds: Kind) -> str:
        return self.random.choice(self.names.of(*kinds))

    def has(self, *kinds: Kind) -> bool:
        return bool(self.names.of(*kinds))

    # --- what other files of the grammar add

    def more_vectors(self, depth: int) -> list[Callable[[], str]]:
        return []

    def more_integers(self, depth: int) -> list[Callable[[], str]]:
        return []

    def more_tests(self, depth: int) -> list[Callable[[], str]]:
        return []

    # --- tensors

    def vector(self, depth: int = 2) -> str:
        simple: list[Callable[[], str]] = [lambda: self.name(Kind.VECTOR)] * 4
        if self.has(Kind.PAIR):
            simple.append(lambda: f"{self.name(Kind.PAIR)}[0]")
        if self.has(Kind.INDEX) and self.has(Kind.ROWS):
            simple += [lambda: f"{self.name(Kind.ROWS)}[{self.name(Kind.INDEX)}]"] * 2
        if self.in_method:
            simple.append(lambda: "self.last")
        if depth == 0:
            return self.one_of(simple)
        d = depth - 1
        v = self.vector
        composed: list[Callable[[], str]] = [
            lambda: f"({v(d)} + {v(d)}).clamp(-9, 9)",
            lambda: f"({v(d)} - {self.integer(d)}).clamp(-9, 9)",
            lambda: f"({v(d)} * {self.integer(d)}).clamp(-9, 9)",
            lambda: f"({v(d)} + {self.scalar(d)}).clamp(-9, 9)",
            lambda: f"({v(d)} + {self.floating(d)}).clamp(-9, 9)",
            lambda: f"-{v(d)}",
            lambda: f"{v(d)}.abs()",
            lambda: f"torch.relu({v(d)})",
            lambda: f"{v(d)}.flip(0)",
            lambda: f"torch.minimum({v(d)}, {v(d)})",
            lambda: f"torch.where({v(d)} > {self.constant()}, {v(d)}, {v(d)})",
            lambda: f"({v(d)} if {self.test(d)} else {v(d)})",
            lambda: f"{self.matrix(d)}.sum(0).clamp(-9, 9)",
        ]
        if self.has(Kind.MATRIX, Kind.ROWS):
            composed.append(lambda: self.guarded_row(d))
        if self.in_method:
            composed.append(lambda: f"self.lin({v(d)}).clamp(-9, 9)")
            if self.helpers:
                composed += [lambda: f"self.part({v(d)}, {self.integer(d)})"] * 2
        if self.helpers:
            composed.append(lambda: f"helper({v(d)}, {self.integer(d)})[0]")
        return self.one_of(simple + composed + self.more_vectors(d))

    def guarded_row(self, depth: int) -> str:
        """A row that only a large enough tensor has; the example mostly has not."""
        name, row = self.name(Kind.MATRIX, Kind.ROWS), self.random.randrange(5)
        enough = self.random.choice([f"{name}.shape[0] > {row}", f"len({name}) >= {row + 1}"])
        test = self.random.choice([enough, f"{enough} and {self.test(0)}", f"{self.test(0)} and {enough}"])
        return f"({name}[{row}] if {test} else {self.vector(depth)})"

    def matrix(self, depth: int = 2) -> str:
        def m() -> str:
            return self.name(Kind.MATRIX, Kind.ROWS) if self.has(Kind.MATRIX, Kind.ROWS) else f"{self.vector(0)}[None]"

        if depth == 0:
            return m()
        d = depth - 1
        return self.one_of(
            [
                *[m] * 3,
                lambda: f"({m()} + {self.vector(d)}).clamp(-9, 9)",
                lambda: f"({m()} * {self.integer(d)}).clamp(-9, 9)",
                lambda: f"{m()}[1:]",
                lambda: f"{m()}[:2]",
                lambda: f"{m()}[{self.integer(d)} :]",
                lambda: f"{m()}[: {self.integer(d)}]",
                lambda: f"torch.ones(abs({self.integer(d)}) % 4, 3)",
                lambda: f"({(name := m())} + torch.arange(len({name}))[:, None]).clamp(-9, 9)",
                lambda: f"{m()}.flip(0)",
                lambda: f"torch.cat([{m()}, {self.vector(d)}[None]])[-6:]",
                lambda: f"torch.cat([{m()}, {m()}])[:5]",
                lambda: f"{(name := m())}[{name}[:, 0] > {self.constant()}]",
                lambda: f"({m()} if {self.test(d)} else {m()})",
            ]
        )

    def rows(self, depth: int = 2) -> str:
        """As many rows as x."""
        simple = [lambda: self.name(Kind.ROWS)]
        if depth == 0:
            return self.one_of(simple)
        d = depth - 1
        return self.one_of(
            [
                *simple,
                lambda: f"({self.rows(d)} + {self.vector(d)}).clamp(-9, 9)",
                lambda: f"({self.rows(d)} * {self.integer(d)}).clamp(-9, 9)",
                lambda: f"{self.rows(d)}.flip(0)",
                lambda: f"torch.maximum({self.rows(d)}, {self.rows(d)})",
                lambda: f"({self.rows(d)} if {self.test(d)} else {self.rows(d)})",
            ]
        )

    def scalar(self, depth: int = 2) -> str:
        simple = [lambda: f"{self.vector(0)}.sum()", lambda: f"{self.vector(0)}[{self.random.randrange(3)}]"]
        if self.has(Kind.SCALAR):
            simple += [lambda: self.name(Kind.SCALAR)] * 3
        if depth == 0:
            return self.one_of(simple)
        d = depth - 1
        return self.one_of(
            [
                *simple,
                lambda: f"{self.matrix(d)}.sum()",
                lambda: f"{self.vector(d)}.max()",
                lambda: f"{self.vector(0)}[{self.integer(0)} % 3]",
                lambda: f"({self.scalar(d)} + {self.integer(d)}).clamp(-9, 9)",
                lambda: f"-{self.scalar(d)}",
                lambda: f"abs({self.scalar(d)})",
                lambda: f"max({self.scalar(d)}, {self.scalar(d)})",
                lambda: f"min({self.scalar(d)}, {self.scalar(d)})",
                lambda: f"sum([{self.scalar(0)}, {self.scalar(0)}]).clamp(-9, 9)",
                lambda: f"({self.scalar(d)} if {self.test(d)} else {self.scalar(d)})",
            ]
        )

    # --- Python numbers

    def constant(self) -> str:
        return str(self.random.choice([-2, -1, 0, 1, 2, 3, -0.5, 0.5]))

    def integer(self, depth: int = 2) -> str:
        """Small: at most a few dozen in size."""
        simple: list[Callable[[], str]] = [lambda: str(self.random.randrange(-2, 4))] * 2
        if self.has(Kind.INT, Kind.COUNTER, Kind.INDEX):
            simple += [lambda: self.name(Kind.INT, Kind.COUNTER, Kind.INDEX)] * 4
        if self.has(Kind.PAIR):
            simple.append(lambda: f"{self.name(Kind.PAIR)}[1]")
        if depth == 0:
            return self.one_of(simple)
        d = depth - 1
        i = self.integer
        sizes: list[Callable[[], str]] = []
        if self.has(Kind.MATRIX, Kind.ROWS):
            sizes = [
                lambda: f"{self.name(Kind.MATRIX, Kind.ROWS)}.shape[0]",
                lambda: f"len({self.name(Kind.MATRIX, Kind.ROWS)})",
            ]
        if self.has(Kind.LIST):
            sizes.append(lambda: f"len({self.name(Kind.LIST)})")
        return self.one_of(
            [
                *simple,
                *sizes,
                *self.more_integers(d),
                lambda: f"({i(d)} + {i(d)})",
                lambda: f"({i(d)} - {i(d)})",
                lambda: f"({i(d)} * {self.random.randrange(-2, 4)} % 5)",
                lambda: f"({i(d)} // {self.random.choice([2, 3, -2])})",
                lambda: f"max({i(d)}, {i(d)})",
                lambda: f"min({i(d)}, {i(d)})",
                lambda: f"abs({i(d)})",
                lambda: f"int({self.scalar(d)})",
                lambda: f"int({self.scalar(d)}.item())",
                lambda: f"({i(d)} if {self.test(d)} else {i(d)})",
                lambda: f"({i(d)} {self.random.choice(['or', 'and'])} {i(d)})",
            ]
        )

    def floating(self, depth: int = 2) -> str:
        """Halves only, and small."""
        simple = [lambda: str(self.random.choice([-1.5, -1.0, 0.0, 0.5, 2.0]))]
        if self.has(Kind.FLOAT):
            simple += [lambda: self.name(Kind.FLOAT)] * 3
        if depth == 0:
            return self.one_of(simple)
        d = depth - 1
        return self.one_of(
            [
                *simple,
                lambda: f"float({self.integer(d)})",
                lambda: f"({self.floating(d)} + {self.integer(d)})",
                lambda: f"({self.floating(d)} - {self.floating(d)})",
                lambda: f"min({self.floating(d)}, {self.floating(d)})",
                lambda: f"max({self.floating(d)}, {self.floating(d)})",
                lambda: f"abs({self.floating(d)})",
                lambda: f"{self.scalar(d)}.item()",
                lambda: f"({self.floating(d)} if {self.test(d)} else {self.floating(d)})",
                lambda: f"({self.floating(d)} or {self.floating(d)})",
            ]
        )

    # --- tests

    def compare(self) -> str:
        return self.random.choice(["<", "<=", ">", ">=", "==", "!="])

    def test(self, depth: int = 2) -> str:
        """Something to branch on: tensors, items, sizes, plain numbers, and what and/or/not make of them."""
        c, k = self.compare, self.constant
        d = max(depth - 1, 0)
        simple: list[Callable[[], str]] = [
            lambda: f"{self.scalar(d)} {c()} {k()}",
            lambda: f"{self.scalar(0)} {c()} {self.scalar(0)}",
            lambda: f"({self.vector(d)} {c()} {k()}).any()",
            lambda: f"({self.matrix(d)} {c()} {k()}).all()",
            lambda: f"bool(({self.vector(0)} > {k()}).any())",
            lambda: f"{self.scalar(0)}.item() {c()} {k()}",
            lambda: f"{self.integer(d)} {c()} {self.integer(d)}",
            lambda: f"{self.integer(d)} % 2 == {self.random.randrange(2)}",
            lambda: f"{self.floating(d)} {c()} {k()}",
            lambda: f"{self.integer(0)} in (0, 2, 3)",
        ]
        if self.has(Kind.MATRIX, Kind.ROWS):
            simple += [lambda: f"{self.name(Kind.MATRIX, Kind.ROWS)}.shape[0] {c()} {self.random.randrange(4)}"] * 2
        if self.has(Kind.BOOL):
            simple += [lambda: self.name(Kind.BOOL)] * 2
        if self.has(Kind.TOTAL):
            simple.append(lambda: f"{self.name(Kind.TOTAL)} {c()} {k()}")
        if depth <= 0:
            return self.one_of(simple)
        return self.one_of(
            [
                *simple,
                *self.more_tests(d),
                lambda: f"({self.test(d)} and {self.test(d)})",
                lambda: f"({self.test(d)} or {self.test(d)})",
                lambda: f"(not {self.test(d)})",
                lambda: f"{self.constant()} {c()} {self.scalar(d)} {c()} {self.constant()}",
                lambda: f"{self.integer(0)} < {self.integer(d)} <= {self.integer(0)}",
            ]
        )

    def walrus(self, name: str) -> str:
        """A test that binds a scalar."""
        return f"({name} := {self.scalar(1)}) {self.compare()} {self.constant()}"
