"""Functions inside functions, and other blocks that are no loop and no branch."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import Kind, Names
from tests.fuzz.statements import Lines, Statements, indented


class Functions(Statements):
    """Closures, lambdas, `match`, `with`, `assert` and `raise`."""

    def more_vectors(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_vectors(depth)
        if self.in_method:
            made.append(lambda: f"self.larger({self.vector(depth)}, {self.vector(depth)})")
        if self.has(Kind.FUNCTION):
            made += [lambda: f"{self.name(Kind.FUNCTION)}({self.vector(depth)})"] * 3
        return made

    def more_integers(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_integers(depth)
        if self.in_method:
            made += [lambda: "self.level", lambda: "self.count"]
            if self.helpers:
                made.append(lambda: f"helper({self.vector(depth)}, {self.integer(depth)})[1]")
        return made

    def more_statements(self, depth: int, in_loop: bool) -> list[Callable[[], Lines]]:
        made = super().more_statements(depth, in_loop)
        made.append(self.anonymous)
        if depth > 0:
            made += [
                self.inner_function,
                lambda: self.match(depth, in_loop),
                lambda: self.without_gradients(depth, in_loop),
            ]
            if self.chance(0.2):
                made.append(self.refuse)
        return made

    def anonymous(self) -> Lines:
        """A lambda that reads names of the function around it, as they are when it is called."""
        name = self.new_name(Kind.FUNCTION)
        values = [f"lambda a: (a + {self.vector(0)}).clamp(-9, 9)", f"lambda a: a if {self.test(0)} else -a"]
        self.names.kinds[name] = Kind.FUNCTION
        return [f"{name} = {self.random.choice(values)}"]

    def inner_function(self) -> Lines:
        """A nested function with a body of its own; now and then it sets a number of the function around it."""
        name = self.new_name(Kind.FUNCTION)
        inner = type(self)(self.random)
        inner._fresh, inner._loops = self._fresh, 3
        read = {n: k for n, k in self.names.kinds.items() if k in (Kind.VECTOR, Kind.INT, Kind.ROWS)}
        inner.names = Names({**read, "a": Kind.VECTOR})
        inner.inputs = frozenset(inner.names.kinds)
        inner.returned, inner.budget = (Kind.VECTOR,), 1
        outer = [n for n in self.names.of(Kind.INT) if n not in self.inputs and "." not in n]
        lines: Lines = []
        if outer and self.chance(0.4):
            number = self.random.choice(outer)
            lines = [f"nonlocal {number}", f"{number} = ({number} + 1) % 7"]
        lines += inner.statement(1, in_loop=False)
        lines += inner.leave()
        self._fresh = inner._fresh
        self.names.kinds[name] = Kind.FUNCTION
        return [f"def {name}(a):", *indented(lines)]

    def match(self, depth: int, in_loop: bool) -> Lines:
        lines = [f"match {self.integer(1)} % 3:"]
        for pattern in ("0", self.random.choice(["1 | 2", "2"]), "_"):
            body, _, _ = self.nested(depth - 1, in_loop)
            lines += [f"    case {pattern}:", *indented(body)]
        return lines

    def without_gradients(self, depth: int, in_loop: bool) -> Lines:
        lines, _ = self.block(depth - 1, in_loop)
        return ["with torch.no_grad():", *indented(lines)]

    def refuse(self) -> Lines:
        """Eager refuses some inputs from here on: those say nothing."""
        return self.random.choice(
            [
                [f"assert {self.scalar(1)} > -9"],
                [f"if {self.scalar(0)} > 7:", '    raise ValueError("too large")'],
            ]
        )
