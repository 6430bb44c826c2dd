"""What else people write: objects with attributes, closures made in loops, star arguments, `finally`, layers."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import Kind
from tests.fuzz.statements import Lines, Statements, indented

HEAD = """\
TABLE = torch.tensor([[1.0, -2.0, 3.0], [-1.0, 0.0, 2.0]])
LIMITS = {"low": -1, "high": 2}


class Record(typing.NamedTuple):
    h: torch.Tensor
    k: int


class Box:
    def __init__(self, h, k=0):
        self.h, self.k = h, k

    def add(self, a):
        if a.sum() > self.k:
            self.h = (self.h + a).clamp(-9, 9)
        else:
            self.k = (self.k + 1) % 5
        return self


def weigh(*rows, scale=1):
    total = rows[0] * 0
    for j, row in enumerate(rows):
        if row.sum() > j:
            total = total + row * scale
        else:
            total += row
    return total.clamp(-9, 9)


def fold(a, depth):
    if depth == 0:
        return a
    if a.sum() > 0:
        return fold(a - 1, depth - 1)
    return fold(a.abs(), depth - 1)


@contextlib.contextmanager
def counted(net):
    net.count += 1
    yield net
    net.count -= 2


class Layer(nn.Module):
    def __init__(self, least):
        super().__init__()
        self.least = least

    def forward(self, a):
        if a.sum() < self.least:
            return a + 1
        return a.clamp(-9, 9)


class Base(nn.Module):
    def step(self, a, j=2):
        if a[0] > j:
            return a - j
        return a


"""

METHODS = """\
    def step(self, a, j=1):
        a = super().step(a, j=j)
        return -a if a.sum() > 5 else a

"""

FIRST = {
    "self.h": (Kind.VECTOR, "y + 1"),
    "self.i": (Kind.INT, "2"),
    "self.seen": (Kind.LIST, "[]"),
    "self.table": (Kind.DICT, '{"a": y, "b": y - 1, "k": 0}'),
    "state": (Kind.STATE, "(y * 1, y - 1)"),
    "box": (Kind.BOX, "Box(y * 1)"),
    "record": (Kind.RECORD, "Record(y, 1)"),
    "key": (Kind.KEY, '"a" if y[0] > 0 else "b"'),
}
"""Further names that forward may begin with."""


_LIMITS = ("low", "high")
_KEYS = "abc"


class Idioms(Statements):
    """Statements and expressions over objects, records, states of two tensors, and functions of several forms."""

    # --- expressions

    def more_vectors(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_vectors(depth)
        v = self.vector
        made += [lambda: f"weigh({v(depth)}, {v(0)})", lambda: f"fold({v(depth)}, {self.random.randrange(1, 3)})"]
        made.append(lambda: f"weigh(*[{v(0)}, {v(0)}], scale={self.integer(depth)})")
        made.append(lambda: f"(TABLE[{self.integer(0)} % 2] + 0)")
        made.append(lambda: f"max([{v(0)}, {v(0)}], key=lambda e: e.sum())")
        if self.in_method:
            made += [lambda: f"self.step({v(depth)})", lambda: f"self.step({v(depth)}, j={self.integer(0)})"]
        if self.has(Kind.STATE):
            made += [lambda: f"{self.name(Kind.STATE)}[{self.random.randrange(2)}]"] * 2
        if self.has(Kind.RECORD, Kind.BOX):
            made += [lambda: f"{self.name(Kind.RECORD, Kind.BOX)}.h"] * 2
        return made

    def more_integers(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_integers(depth)
        made += [
            lambda: f"divmod({self.integer(depth)}, 3)[{self.random.randrange(2)}]",
            lambda: f"round({self.floating(depth)})",
            lambda: f"int({self.floating(depth)})",
            lambda: f"int({self.test(0)})",
            lambda: f'LIMITS["{self.random.choice(_LIMITS)}"]',
            lambda: f"sum(1 for e in ({self.vector(0)}, {self.vector(0)}) if e.sum() > {self.constant()})",
        ]
        if self.has(Kind.RECORD, Kind.BOX):
            made += [lambda: f"{self.name(Kind.RECORD, Kind.BOX)}.k"] * 2
        return made

    def more_tests(self, depth: int) -> list[Callable[[], str]]:
        made = super().more_tests(depth)
        if self.has(Kind.KEY):
            made.append(lambda: f'{self.name(Kind.KEY)} == "a"')
        if self.has(Kind.DICT):
            made.append(lambda: f'"c" in {self.name(Kind.DICT)}')
        return made

    # --- statements

    def more_statements(self, depth: int, in_loop: bool) -> list[Callable[[], Lines]]:
        made = super().more_statements(depth, in_loop)
        made += [self.new_state, self.new_key, self.closures, self.with_default]
        made += [self.cut] if self.has(Kind.MATRIX, Kind.ROWS) else []
        made += [self.box_changes] * 2 if self.has(Kind.BOX) else []
        made += [self.record_changes] * 2 if self.has(Kind.RECORD) else []
        made += [self.list_changes] * 2 if self.has(Kind.LIST) else []
        made += [self.dict_of_dict] if self.has(Kind.DICT) else []
        if depth > 0:
            made.append(lambda: self.finally_(depth, in_loop))
            if self.in_method:
                made.append(lambda: ["with counted(self):", *indented(self.block(depth - 1)[0])])
        return made

    def new_state(self) -> Lines:
        known = self.names.of(Kind.STATE)
        target = self.random.choice(known) if known and self.chance(0.85) else self.new_name(Kind.STATE)
        value = f"({self.vector(1)}, {self.vector(1)})"
        self.names.kinds[target] = Kind.STATE
        own = [n for n in self.names.of(Kind.VECTOR) if n not in self.inputs]
        if known and len(own) > 1 and self.chance(0.4):
            return [f"{', '.join(self.random.sample(own, 2))} = {self.random.choice(known)}"]
        return [f"{target} = {value}"]

    def new_key(self) -> Lines:
        known = self.names.of(Kind.KEY)
        name = self.random.choice(known) if known and self.chance(0.7) else self.new_name(Kind.KEY)
        test = self.test(1)
        self.names.kinds[name] = Kind.KEY
        return [f'{name} = "a" if {test} else "b"']

    def closures(self) -> Lines:
        """Functions made in a loop, of which a traced number takes one: with the loop's number, and with its last."""
        name = self.new_name(Kind.FUNCTION)
        several = f"acts{name}"
        bound = self.random.choice(["a, m=m", "a"])
        body = self.random.choice(["(a + m).clamp(-9, 9)", "a if a.sum() > m else -a"])
        pick = f"{several}[{self.integer(1)} % 2]"
        self.names.kinds[name] = Kind.FUNCTION
        return [
            f"{several} = []",
            "for m in range(2):",
            f"    {several}.append(lambda {bound}: {body})",
            f"{name} = {pick}",
        ]

    def with_default(self) -> Lines:
        """A function whose default is a tensor of that moment."""
        name, base = self.new_name(Kind.FUNCTION), self.vector(0)
        body = self.random.choice(
            [
                ["return (a + base).clamp(-9, 9)"],
                ["if a.sum() > base.sum():", "    return base", "return a"],
                ["for row in (base, *more):", "    a = torch.maximum(a, row)", "return a"],
            ]
        )
        self.names.kinds[name] = Kind.FUNCTION
        return [f"def {name}(a, *more, base={base}):", *indented(body)]

    def cut(self) -> Lines:
        m = self.name(Kind.MATRIX, Kind.ROWS)
        low, high = self.integer(0), self.integer(0)
        value = self.random.choice(
            [f"{m}[{low} : {high}]", f"{m}[-{abs(int(self.random.randrange(1, 3)))} :]", f"{m}[::2]", f"{m}[:-1]"]
        )
        target = self.new_name(Kind.MATRIX)
        self.names.kinds[target] = Kind.MATRIX
        return [f"{target} = {value}"]

    def box_changes(self) -> Lines:
        box = self.name(Kind.BOX)
        return self.random.choice(
            [
                lambda: [f"{box}.h = {self.vector(1)}"],
                lambda: [f"{box}.h += 1"],
                lambda: [f"{box}.h[{self.random.randrange(3)}] += 1"],
                lambda: [f"{box}.k += 1"],
                lambda: [f"{box}.k = {self.integer(1)} % 7"],
                lambda: [f"{box} = Box({self.vector(1)}, k={self.integer(0)})"],
                lambda: [f"{box}.add({self.vector(1)})"],
                lambda: [f"{box} = {box}.add({self.vector(0)}).add({self.vector(0)})"],
            ]
        )()

    def record_changes(self) -> Lines:
        record = self.name(Kind.RECORD)
        return self.random.choice(
            [
                lambda: [f"{record} = {record}._replace(h={self.vector(1)})"],
                lambda: [f"{record} = {record}._replace(k={self.integer(1)} % 7)"],
                lambda: [f"{record} = Record({self.vector(1)}, {self.integer(1)} % 7)"],
                lambda: [f"{record} = Record(*{record})"],
            ]
        )()

    def list_changes(self) -> Lines:
        items = self.name(Kind.LIST)
        return self.random.choice(
            [
                lambda: [f"if {items}:", f"    {items}[{self.integer(0)} % len({items})] += 1"],
                lambda: [f"if {items}:", f"    {items}.pop(0)"],
                lambda: [f"{items}.reverse()"],
                lambda: [f"{items}.clear()"],
                lambda: [f"{items} = {items}[1:]"],
                lambda: [f"{items} = [*{items}, {self.vector(0)}]"],
                lambda: [f"{items} = [v if v.sum() > {self.constant()} else -v for v in {items} if v[0] < 2]"],
                lambda: [f"{items} = {items}[:3] + {self.name(Kind.LIST)}[-3:]"],
            ]
        )()

    def dict_of_dict(self) -> Lines:
        d = self.name(Kind.DICT)
        return self.random.choice(
            [
                lambda: [f'{d} = {{key: value + 1 for key, value in {d}.items() if key != "q"}}'],
                lambda: [f"{d} = dict({d})"],
                lambda: [f'{d}.setdefault("{self.random.choice(_KEYS)}", {self.vector(0)})'],
                lambda: [f'{d}["{self.random.choice(_KEYS[:2])}"].add_(1)'],
                lambda: [f"{d}[{self.name(Kind.KEY)}] = {self.vector(1)}" if self.has(Kind.KEY) else "pass"],
                lambda: [f'{d}.pop("c", None)'],
                lambda: [f"{d}[{self.name(Kind.KEY)}] += 1" if self.has(Kind.KEY) else "pass"],
            ]
        )()

    def finally_(self, depth: int, in_loop: bool) -> Lines:
        lines, _, _ = self.nested(depth - 1, in_loop)
        last = self.augmented() if not self.in_method else ["self.count += 1"]
        return ["try:", *lines, "finally:", *indented(last)]

    # --- loops

    def more_loops(self, item: str, index: str) -> list[tuple[str, dict[str, Kind]]]:
        made = super().more_loops(item, index)
        if self.has(Kind.MATRIX, Kind.ROWS):
            m, k = self.name(Kind.MATRIX, Kind.ROWS), self.constant()
            made += [
                (f"for {item} in (e * 2 for e in {m} if e.sum() > {k}):", {item: Kind.VECTOR}),
                (f"for {item} in [e for e in {m} if e[0] > {k}]:", {item: Kind.VECTOR}),
                (f"for {index}, {item} in zip(range(3), {m}):", {index: Kind.COUNTER, item: Kind.VECTOR}),
                (f"for {item} in {m}[1:]:", {item: Kind.VECTOR}),
                (f"for {item} in {m}.split(2):", {item: Kind.MATRIX}),
            ]
        if self.has(Kind.DICT):
            made.append(
                (f'for {item} in (e for k, e in {self.name(Kind.DICT)}.items() if k in "ab"):', {item: Kind.VECTOR})
            )
        made.append((f"for {item} in ({self.vector(0)}, {self.vector(1)}):", {item: Kind.VECTOR}))
        if self.in_method:
            act = self.new_name(Kind.FUNCTION)
            made.append((f"for {act} in self.layers:", {act: Kind.FUNCTION}))
        return made
