"""Random statements: branches, loops with exits, writes in place, attributes, lists."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz.expressions import Expressions, Kind

Lines = list[str]

_ASSIGNABLE = (Kind.VECTOR, Kind.ROWS, Kind.MATRIX, Kind.SCALAR, Kind.TOTAL, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.PAIR)
_LETTERS = {
    Kind.VECTOR: "h",
    Kind.ROWS: "z",
    Kind.MATRIX: "w",
    Kind.SCALAR: "s",
    Kind.TOTAL: "total",
    Kind.INT: "i",
    Kind.FLOAT: "f",
    Kind.BOOL: "b",
    Kind.PAIR: "p",
    Kind.LIST: "out",
    Kind.COUNTER: "k",
    Kind.INDEX: "t",
    Kind.DICT: "d",
    Kind.KEY: "key",
    Kind.MAYBE: "best",
    Kind.FUNCTION: "act",
    Kind.STATE: "state",
}
_DIGESTS = {
    **dict.fromkeys((Kind.VECTOR, Kind.ROWS, Kind.MATRIX, Kind.SCALAR), "{}.sum()"),
    **dict.fromkeys((Kind.TOTAL, Kind.INT, Kind.FLOAT, Kind.COUNTER, Kind.INDEX), "{}"),
    Kind.BOOL: "int({})",
    Kind.PAIR: "({0}[0].sum() + {0}[1])",
    Kind.LIST: "sum(v.sum() * (j + 1) for j, v in enumerate({}))",
    Kind.DICT: '({0}["a"].sum() + {0}["b"].sum() * 2 + {0}["k"])',
    Kind.KEY: '(1 if {} == "a" else 2)',
    Kind.MAYBE: "(0 if {0} is None else {0}.sum())",
    Kind.FUNCTION: "{}(y).sum()",
    Kind.STATE: "({0}[0].sum() + {0}[1].sum() * 2)",
    **dict.fromkeys((Kind.BOX, Kind.RECORD), "({0}.h.sum() + {0}.k)"),
}


class Statements(Expressions):
    """Draws blocks of statements. A block is a list of lines; what it binds for sure is in `names` afterwards."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.budget = 0
        self.returned: tuple[Kind, ...] = ()
        self.inputs: frozenset[str] = frozenset()
        self._fresh = 0
        self._loops = 0

    # --- blocks

    def block(self, depth: int, in_loop: bool = False) -> tuple[Lines, bool]:
        """Some statements, and whether the block always leaves."""
        lines: Lines = []
        for i in range(self.random.randint(1, 3)):
            if self.budget <= 0 and i:
                break
            self.budget -= 1
            lines += self.statement(depth if self.budget > 0 else 0, in_loop)
        exits: list[tuple[float, Callable[[], Lines]]] = []
        if in_loop:
            exits += [(0.12, lambda: ["break"]), (0.1, lambda: ["continue"])]
        if depth < 3:
            exits.append((0.08 if in_loop else 0.15, self.leave))
        for probability, make in exits:
            if self.chance(probability):
                return lines + make(), True
        return lines, False

    def statement(self, depth: int, in_loop: bool) -> Lines:
        makers: list[Callable[[], Lines]] = (
            [self.assign] * 6 + [self.augmented] * 2 + [self.in_place] * 3 + [self.alias]
        )
        if depth > 0:
            makers += [lambda: self.branch(depth, in_loop)] * 6
            makers += [lambda: self.loop(depth, in_loop)] * 4
        if self.in_method:
            makers += [
                lambda: [f"self.last = {self.vector()}"],
                lambda: [f"self.count = {self.value(Kind.INT)}"],
                lambda: ["self.count += 1"],
                lambda: [f"self.last[{self.random.randrange(3)}] += 1"],
            ]
        if self.has(Kind.LIST):
            makers += [self.append, self.join]
        makers += self.more_statements(depth, in_loop)
        return self.random.choice(makers)()

    def more_statements(self, depth: int, in_loop: bool) -> list[Callable[[], Lines]]:
        """What other files of the grammar add."""
        return []

    def more_loops(self, item: str, index: str) -> list[tuple[str, dict[str, Kind]]]:
        return []

    def nested(self, depth: int, in_loop: bool = False) -> tuple[Lines, bool, dict[str, Kind]]:
        """A block: its lines, whether it leaves, and what is bound at its end. Names are as before after it."""
        before = self.names
        self.names = before.copy()
        lines, leaves = self.block(depth, in_loop)
        after = self.names.kinds
        self.names = before
        return indented(lines), leaves, after

    def leave(self) -> Lines:
        """Return what the function returns; forward begins with a number that everything in sight goes into."""
        digest = [self.digest()] if self.in_method else []
        return ["return " + ", ".join([*digest, *(self.value(kind) for kind in self.returned)])]

    def digest(self) -> str:
        terms = ["self.last.sum()", "self.count"]
        for weight, (name, kind) in enumerate(self.names.kinds.items(), 3):
            terms.append(f"{_DIGESTS[kind].format(name)} * {weight}")
        return " + ".join(terms)

    # --- plain statements

    def value(self, kind: Kind) -> str:
        """An expression whose value stays within bounds however often it is assigned."""
        if kind is Kind.INT:
            return self.one_of([lambda: f"{self.integer()} % 7", lambda: f"max(-5, min(5, {self.integer()}))"])
        if kind is Kind.FLOAT:
            return f"max(-8.0, min(8.0, {self.floating()}))"
        if kind is Kind.BOOL:
            return self.one_of(
                [lambda: f"bool({self.test(1)})", lambda: f"not {self.test(0)}", lambda: "True", lambda: "False"]
            )
        if kind is Kind.SCALAR:
            return f"{self.scalar()}.clamp(-9, 9)"
        if kind is Kind.TOTAL:
            if not self.has(Kind.TOTAL):
                return self.random.choice(["0", "0.0"])
            return f"{self.name(Kind.TOTAL)} * 0 + {self.scalar()}"
        if kind is Kind.PAIR:
            return f"({self.vector()}, {self.integer()} % 7)"
        makers = {Kind.VECTOR: self.vector, Kind.ROWS: self.rows, Kind.MATRIX: self.matrix}
        return makers[kind]()

    def new_name(self, kind: Kind) -> str:
        self._fresh += 1
        return f"{_LETTERS[kind]}{self._fresh}"

    def assign(self) -> Lines:
        kind = self.random.choice(_ASSIGNABLE)
        if kind is Kind.ROWS and not self.has(Kind.ROWS):
            kind = Kind.VECTOR
        value = self.value(kind)
        known = [n for n in self.names.of(kind) if n not in self.inputs]
        target = self.random.choice(known) if known and self.chance(0.85) else self.new_name(kind)
        self.names.kinds[target] = kind
        return [f"{target} = {value}"]

    def augmented(self) -> Lines:
        """`+=`: on a tensor it writes in place, also under its other names."""
        own = [n for n in self.names.of(Kind.VECTOR, Kind.ROWS, Kind.INT, Kind.SCALAR) if n not in self.inputs]
        if not own:
            return self.assign()
        target = self.random.choice(own)
        if self.names.kinds[target] is Kind.INT:
            return [f"{target} += {self.random.choice([1, 2, -1])}", f"{target} %= 7"]
        if self.names.kinds[target] is Kind.SCALAR:
            return [f"{target} += {self.scalar(1)}.sign()"]
        operator = self.random.choice(["+=", "-="])
        return [f"{target} {operator} {self.one_of([lambda: f'{self.vector(1)}.sign()', lambda: '1'])}"]

    def in_place(self) -> Lines:
        own = [n for n in self.names.of(Kind.ROWS, Kind.VECTOR, Kind.MATRIX) if n not in self.inputs]
        if not own:
            return self.assign()
        target = self.random.choice(own)
        kind = self.names.kinds[target]
        makers: list[Callable[[], Lines]] = [
            lambda: [f"{target}.add_({self.random.choice([1, -1, 2])})"],
            lambda: [f"{target}.clamp_({self.random.choice(['-3, 3', 'min=0', 'max=1'])})"],
            lambda: [f"{target}.mul_(-1)"],
            lambda: [f"{target}[1:] += 1"],
            lambda: [f"{target}[{target} > {self.constant()}] = {self.random.randrange(-2, 3)}"],
        ]
        if kind is Kind.VECTOR:
            makers += [
                lambda: [f"{target}[{self.random.randrange(3)}] = {self.scalar(1)}.clamp(-9, 9)"],
                lambda: [f"{target}[{self.integer(0)} % 3] = {self.integer(0)}"],
                lambda: [f"{target}.copy_({self.vector(1)})"],
            ]
        else:
            makers += [lambda: [f"{target}[:, 0] = {self.integer(0)}"], lambda: [f"{target}[:1] = {self.vector(1)}"]]
            makers.append(lambda: self.through_view(target))
        if kind is Kind.ROWS and self.has(Kind.INDEX):
            index = self.name(Kind.INDEX)
            makers += [lambda: [f"{target}[{index}] = {self.vector(1)}"], lambda: [f"{target}[{index}].add_(1)"]] * 2
        return self.random.choice(makers)()

    def through_view(self, target: str) -> Lines:
        self._fresh += 1
        view = f"v{self._fresh}"
        cut = self.random.choice(["[1:]", "[:, 1]", ".flatten()", "[:2]", ".t()"])
        made = [f"{view} = {target}{cut}", f"{view}.{self.random.choice(['add_(1)', 'mul_(-1)', 'clamp_(-2, 2)'])}"]
        if cut in ("[1:]", "[:2]"):
            self.names.kinds[view] = Kind.MATRIX
        return made

    def alias(self) -> Lines:
        kind = self.random.choice([Kind.VECTOR, Kind.ROWS, Kind.MATRIX])
        known = [n for n in self.names.of(kind) if n not in self.inputs]
        if len(known) < 1:
            return self.assign()
        source = self.random.choice(known)
        target = self.random.choice([n for n in known if n != source] or [self.new_name(kind)])
        self.names.kinds[target] = kind
        return [f"{target} = {source}"]

    def append(self) -> Lines:
        return [f"{self.name(Kind.LIST)}.append({self.vector(1)})"]

    def join(self) -> Lines:
        """Use a list that may be empty."""
        items = self.name(Kind.LIST)
        target = self.new_name(Kind.MATRIX)
        otherwise = self.matrix(1)
        self.names.kinds[target] = Kind.MATRIX
        return [f"if len({items}) > 0:", f"    {target} = torch.stack({items})", "else:", f"    {target} = {otherwise}"]

    # --- branches

    def branch(self, depth: int, in_loop: bool) -> Lines:
        arms: list[tuple[str, Lines, bool, dict[str, Kind]]] = []
        for i in range(self.random.choice([1, 1, 2])):
            word = "elif" if i else "if"
            test = self.test()
            if i == 0 and self.chance(0.1):
                name = self.new_name(Kind.SCALAR)
                test = self.walrus(name)
                self.names.kinds[name] = Kind.SCALAR
            arms.append((f"{word} {test}:", *self.nested(depth - 1, in_loop)))
        if self.chance(0.6):
            arms.append(("else:", *self.nested(depth - 1, in_loop)))
            ends = [after for _, _, leaves, after in arms if not leaves]
            if ends:
                self.names.kinds = {n: k for n, k in ends[0].items() if all(n in end for end in ends)}
        return [line for head, body, _, _ in arms for line in (head, *body)]

    # --- loops

    def loop(self, depth: int, in_loop: bool) -> Lines:
        self._loops += 1
        if self._loops > 4:
            return self.assign()
        return self.while_loop(depth, in_loop) if self.chance(0.4) else self.for_loop(depth, in_loop)

    def while_loop(self, depth: int, in_loop: bool) -> Lines:
        counter = self.new_name(Kind.COUNTER)
        bound = self.random.choice(["2", "4", "n", "x.shape[0]"] if self.in_method else ["2", "4"])
        self.names.kinds[counter] = Kind.COUNTER
        most = f"{counter} < {bound}"
        first: Lines = [f"{counter} += 1"]
        form = self.random.randrange(5)
        if form == 3:
            name = self.new_name(Kind.SCALAR)
            test = f"{most} and {self.walrus(name)}"
        elif form == 4:
            done = self.new_name(Kind.BOOL)
            self.names.kinds[done] = Kind.BOOL
            self.inputs |= {done}  # the body may read it; a loop whose end it puts off never ends
            lines = [f"{done} = False", f"{counter} = 0", f"while not {done}:", f"    {counter} += 1"]
            return [*lines, f"    {done} = {counter} >= {bound} or bool({self.test(0)})", *self.body(depth, in_loop)]
        elif form == 0:
            test = most
        elif form == 1:
            test = self.random.choice([f"{most} and {self.test(1)}", f"{self.test(1)} and {most}"])
        else:
            test, first = "True", [*first, f"if {counter} >= {bound}:", "    break"]
        return [f"{counter} = 0", f"while {test}:", *indented(first), *self.body(depth, in_loop)]

    def for_loop(self, depth: int, in_loop: bool) -> Lines:
        item, index = self.new_name(Kind.VECTOR), self.new_name(Kind.INDEX)
        r = self.random
        heads: list[tuple[str, dict[str, Kind]]] = [
            (f"for {index} in range({r.randint(1, 3)}):", {index: Kind.COUNTER}),
            (f"for {index} in range(abs({self.integer(1)}) % 4):", {index: Kind.COUNTER}),
        ]
        if self.has(Kind.ROWS):
            rows = self.name(Kind.ROWS)
            heads += [
                (f"for {index} in range({rows}.shape[0]):", {index: Kind.INDEX}),
                (f"for {index} in range(len({rows})):", {index: Kind.INDEX}),
                (f"for {index} in range({rows}.size(0) - 1, -1, -1):", {index: Kind.INDEX}),
                (f"for {index} in range(1, {rows}.shape[0], 2):", {index: Kind.INDEX}),
                (f"for {index} in range(abs({self.integer(1)}) % 3, {rows}.shape[0]):", {index: Kind.INDEX}),
                (f"for {index}, {item} in enumerate({rows}, 1):", {index: Kind.COUNTER, item: Kind.VECTOR}),
                (f"for {index} in reversed(range({rows}.shape[0])):", {index: Kind.INDEX}),
                (f"for {index}, {item} in enumerate({rows}):", {index: Kind.INDEX, item: Kind.VECTOR}),
                (f"for {item} in reversed({rows}):", {item: Kind.VECTOR}),
            ]
        if self.has(Kind.MATRIX, Kind.ROWS):
            one, other = self.name(Kind.MATRIX, Kind.ROWS), self.name(Kind.MATRIX, Kind.ROWS)
            second = self.new_name(Kind.VECTOR)
            heads += [
                (f"for {item} in {one}:", {item: Kind.VECTOR}),
                (f"for {item} in {one}.unbind(0):", {item: Kind.VECTOR}),
                (f"for {item}, {second} in zip({one}, {other}):", {item: Kind.VECTOR, second: Kind.VECTOR}),
                *[(f"for {item} in above({one}, {self.constant()}):", {item: Kind.VECTOR})] * 2,
                (
                    f"for {index}, {item} in enumerate(above({one}, {self.constant()})):",
                    {index: Kind.COUNTER, item: Kind.VECTOR},
                ),
                (
                    f"for {index}, ({item}, {second}) in enumerate(zip({one}, {other})):",
                    {index: Kind.COUNTER, item: Kind.VECTOR, second: Kind.VECTOR},
                ),
            ]
        if self.in_method:
            heads += [(f"for {index} in range({count}):", {index: Kind.COUNTER}) for count in ("n", "c", "int(c)")]
        heads += self.more_loops(item, index)
        head, bound = r.choice(heads)
        before = self.names
        self.names = before.copy()
        self.names.kinds.update(bound)
        body = self.body(depth, in_loop)
        self.names = before
        return [head, *body]

    def body(self, depth: int, around_in_loop: bool) -> Lines:
        lines, _, _ = self.nested(depth - 1, in_loop=True)
        if self.has(Kind.LIST) and self.chance(0.3):
            lines = [*indented(self.append()), *lines]
        if self.chance(0.2):
            orelse, _, _ = self.nested(depth - 1, around_in_loop)  # a `break` here leaves the loop around
            lines += ["else:", *orelse]
        return lines


def indented(lines: Lines) -> Lines:
    return ["    " + line for line in lines]
