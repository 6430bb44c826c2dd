"""Lists, dicts, tuples and names that may be None, in random statements."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import Kind
from tests.fuzz.statements import Lines, Statements

Makers = list[Callable[[], Lines]]


class Containers(Statements):
    """Statements that build, fill, read and exchange containers."""

    # --- expressions

    def more_vectors(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_vectors(depth)
        if self.has(Kind.DICT):
            made += [
                lambda: f'{self.name(Kind.DICT)}["{self.random.choice("ab")}"]',
                lambda: f'{self.name(Kind.DICT)}.get("c", {self.vector(depth)})',
            ]
            if self.has(Kind.KEY):
                made.append(lambda: f"{self.name(Kind.DICT)}[{self.name(Kind.KEY)}]")
        if self.has(Kind.MAYBE):
            made.append(lambda: f"({(b := self.name(Kind.MAYBE))} if {b} is not None else {self.vector(depth)})")
        if self.has(Kind.LIST):
            made += [
                lambda: f"({(o := self.name(Kind.LIST))}[-1] if {o} else {self.vector(depth)})",
                lambda: f"({(o := self.name(Kind.LIST))}[0] if len({o}) > 1 else {self.vector(depth)})",
                lambda: f"sum({self.name(Kind.LIST)}, {self.vector(depth)}).clamp(-9, 9)",
            ]
        if self.has(Kind.ROWS):
            made.append(
                lambda: f"sum([v * {self.integer(0)} for v in {self.name(Kind.ROWS)}], {self.vector(0)}).clamp(-9, 9)"
            )
        return made

    def more_integers(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_integers(depth)
        if self.has(Kind.DICT):
            made.append(lambda: f'{self.name(Kind.DICT)}["k"]')
        return made

    def more_tests(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_tests(depth)
        if self.has(Kind.LIST):
            made += [lambda: f"len({self.name(Kind.LIST)}) > {self.random.randrange(3)}", lambda: self.name(Kind.LIST)]
        if self.has(Kind.MAYBE):
            made.append(lambda: f"{self.name(Kind.MAYBE)} is None")
        if self.has(Kind.ROWS):
            rows, word = self.name(Kind.ROWS), self.random.choice(["any", "all"])
            made.append(lambda: f"{word}(v.sum() > {self.constant()} for v in {rows})")
        return made

    # --- statements

    def more_statements(self, depth: int, in_loop: bool) -> Makers:
        made = super().more_statements(depth, in_loop)
        made += [self.new_dict, self.exchange, self.unpack, self.new_maybe]
        if self.has(Kind.DICT):
            made += [self.write_dict] * 3
        if self.has(Kind.MAYBE):
            made += [self.keep_best] * 2
        if self.has(Kind.LIST):
            made += [self.change_list] * 3
        return made

    def new_dict(self) -> Lines:
        value = f'{{"a": {self.vector(1)}, "b": {self.vector(1)}, "k": {self.integer(1)} % 7}}'
        return [f"{self._own(Kind.DICT)} = {value}"]

    def write_dict(self) -> Lines:
        d = self.name(Kind.DICT)
        key = self.random.choice("ab")
        return self.random.choice(
            [
                lambda: [f'{d}["{key}"] = {self.vector(1)}'],
                lambda: [f'{d}["k"] = {self.integer(1)} % 7'],
                lambda: [f'{d}["{key}"] = {d}["{key}"] + 1'],
                lambda: [f'{d}["{key}"] += 1'],
                lambda: [f'{d} = {{**{d}, "{key}": {self.vector(1)}}}'],
                lambda: [f"{d}.update({key}={self.vector(1)})"],
                lambda: [f'{d}["k"] += 1', f'{d}["k"] %= 7'],
            ]
        )()

    def exchange(self) -> Lines:
        kind = self.random.choice([Kind.VECTOR, Kind.INT, Kind.ROWS])
        own = [n for n in self.names.of(kind) if n not in self.inputs]
        if len(own) < 2:
            return self.assign()
        one, other = self.random.sample(own, 2)
        return [f"{one}, {other} = {other}, {one}"]

    def unpack(self) -> Lines:
        vectors = [n for n in self.names.of(Kind.VECTOR) if n not in self.inputs]
        integers = [n for n in self.names.of(Kind.INT) if n not in self.inputs]
        if not vectors or not integers:
            return self.assign()
        pair = self.name(Kind.PAIR) if self.has(Kind.PAIR) else f"({self.vector(1)}, {self.integer(1)} % 7)"
        return [f"{self.random.choice(vectors)}, {self.random.choice(integers)} = {pair}"]

    def new_maybe(self) -> Lines:
        test, value = self.test(1), self.vector(1)
        return [f"{self._own(Kind.MAYBE)} = {self.random.choice(['None', f'{value} if {test} else None'])}"]

    def keep_best(self) -> Lines:
        best, value = self.name(Kind.MAYBE), self.vector(1)
        return self.random.choice(
            [
                lambda: [f"if {best} is None or ({best}.sum() < {self.scalar(1)}):", f"    {best} = {value}"],
                lambda: [f"if {best} is not None:", f"    {best} = ({best} + {value}).clamp(-9, 9)"],
                lambda: [f"{best} = {value} if {best} is None else torch.maximum({best}, {value})"],
                lambda: [f"if {self.test(0)}:", f"    {best} = None"],
            ]
        )()

    def change_list(self) -> Lines:
        items, value = self.name(Kind.LIST), self.vector(1)
        return self.random.choice(
            [
                lambda: [f"{items} += [{value}]"],
                lambda: [f"{items} = {items} + [{value}]"],
                lambda: [f"{items}.extend([{value}, {self.vector(0)}])"],
                lambda: [f"{items} = [{value}]"],
                lambda: [f"if {items}:", f"    {items}.pop()"],
                lambda: [f"if len({items}) > 0:", f"    {items}[-1] = {value}"],
                lambda: [f"{items} = [(v + {self.integer(0)}).clamp(-9, 9) for v in {items}]"],
                lambda: [f"{items} = [v for v in {items} if v.sum() > {self.constant()}]"],
                lambda: [f"{items}.insert(0, {value})"],
            ]
        )()

    def more_loops(self, item: str, index: str) -> list[tuple[str, dict[str, Kind]]]:
        made = super().more_loops(item, index)
        if self.has(Kind.LIST):
            items = f"list({self.name(Kind.LIST)})"
            made += [
                (f"for {item} in {items}:", {item: Kind.VECTOR}),
                (f"for {index}, {item} in enumerate({items}):", {index: Kind.COUNTER, item: Kind.VECTOR}),
            ]
        if self.has(Kind.DICT):
            key = self.new_name(Kind.KEY)
            made += [
                (f"for {key}, {item} in [*{self.name(Kind.DICT)}.items()][:2]:", {key: Kind.KEY, item: Kind.VECTOR}),
                (f'for {key} in ("a", "b"):', {key: Kind.KEY}),
            ]
        return made

    def _own(self, kind: Kind) -> str:
        """A name of this kind to be given a value: one that is there, or a new one."""
        known = self.names.of(kind)
        target = self.random.choice(known) if known and self.chance(0.8) else self.new_name(kind)
        self.names.kinds[target] = kind
        return target
