"""Walks one function and writes its body anew: decisions in torch's words, all other lines as the user wrote them."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from trueport.fix.edit import Edit, SourceFile
from trueport.fix.portable import branches, loops, scans
from trueport.fix.portable.aliasing import may_alias
from trueport.fix.portable.liveness import needed
from trueport.fix.portable.tests import ATOMS, Tests
from trueport.fix.portable.text import STEP, NoPortableForm, UserText
from trueport.fix.portable.values import SeenInFunction, SeenValue, ValueKind, is_number
from trueport.fix.portable.writing import Inside, PortableStyle
from trueport.rewrite.exits import contains
from trueport.rewrite.names import bound_names, declared, parameters, read_names


class Portable:
    """One function in torch's words."""

    def __init__(
        self,
        source: SourceFile,
        node: ast.FunctionDef,
        decisions: Collection[int],
        seen: SeenInFunction,
        style: PortableStyle,
    ) -> None:
        self.node, self.seen, self.style = node, seen, style
        self.text = UserText(source)
        self.tensors: dict[str, SeenValue] = {}
        """Names that are numbers in the user's code and tensors in ours."""
        self.restructured: set[int] = set()
        """Statements (by id) whose blocks are no longer those of the file."""
        self.replaced: dict[int, str] = {}
        """Expressions (by id) that are written otherwise."""
        self.counters: set[str] = set()
        """Of those, the ones that count: as an index they take one row."""
        self.flags: set[str] = set()
        """Of those, the ones that stand for break and continue."""
        self.loop_depth = 0
        """In how many bodies of torch's loops this is; torch.onnx takes no torch.cond there."""
        self._arm_depth = 0
        self.imports: set[str] = set()
        self.lines_used: set[int] = set()
        self._source, self._decisions = source, decisions
        everything = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {*parameters(node.args)}
        self._taken = everything | {"torch"}
        self.local_names = {*parameters(node.args), *bound_names(node.body)} - declared(node.body, ast.Global)
        self.test = Tests(self.write, self.value)

    # --- the whole function

    def edits(self) -> list[Edit]:
        first, last = self.node.body[0], self.node.body[-1]
        on_own_line = (
            first.lineno > self.node.lineno
            and not self._source.text[self._source.line_start(first.lineno) : self._source.span(first)[0]].strip()
        )
        indent = self._source.indent(first.lineno) if on_own_line else self._source.indent(self.node.lineno) + STEP
        lines = _spaced(self.block(self.node.body, indent, Inside()))
        start, end = self._source.span(first)[0], self._source.span(last)[1]
        rest = self._source.text[end:].split("\n", 1)[0]
        end += len(rest) if rest.strip().startswith("#") else 0
        text = self._source.newline.join(lines)
        text = text[len(indent) :] if on_own_line else self._source.newline + text
        return [Edit(self._source.path, start, end, text)]

    def block(self, statements: Sequence[ast.stmt], indent: str, inside: Inside) -> list[str]:
        out: list[str] = []
        for at, statement in enumerate(statements):
            rest = list(statements[at + 1 :])
            above = statements[at - 1].end_lineno if at else None
            out += self.text.comments_above(statement, indent, above) if above else []
            if isinstance(statement, ast.If) and self.decides(statement) and contains(statement, ast.Return):
                return out + branches.returning(self, statement, rest, indent, inside)
            if scans.starts_list(self, statement, rest):
                continue
            behind = frozenset(needed(rest, inside.after))
            out += self._statement(statement, indent, Inside(behind, inside.arm, inside.augmented), rest)
        return out

    def _statement(self, node: ast.stmt, indent: str, inside: Inside, rest: list[ast.stmt]) -> list[str]:
        if isinstance(node, ast.If) and self.decides(node):
            return branches.branch(self, node, indent, inside)
        if isinstance(node, ast.While) and self.decides(node):
            return loops.while_loop(self, node, indent, inside)
        if isinstance(node, ast.For) and self.decides(node):
            return loops.for_loop(self, node, indent, inside, rest)
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)) and self._changes_inside(node, inside):
            return self._compound(node, indent, inside)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in inside.augmented:
            whole = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            operator = ast.unparse(whole).split(" ")[1]
            value = self.write(node.value)
            value = value if isinstance(node.value, (ast.Name, ast.Constant, ast.Call, ast.Subscript)) else f"({value})"
            return [f"{indent}{node.target.id} = {node.target.id} {operator} {value}"]
        if isinstance(node, ast.Return) and inside.arm is not None:
            return [f"{indent}return {self._returned(node, inside.arm)}"]
        return self.text.statement(node, indent, self.replacement)

    def _changes_inside(self, node: ast.stmt, inside: Inside) -> bool:
        if id(node) in self.restructured or (inside.arm is not None and contains(node, ast.Return)):
            return True
        return any(self.decides(inner) for inner in ast.walk(node) if isinstance(inner, ast.stmt)) or (
            bool(inside.augmented) and contains(node, ast.AugAssign)
        )

    def _compound(self, node: ast.If | ast.For | ast.While | ast.With, indent: str, inside: Inside) -> list[str]:
        """A statement that Python itself decides, around something that it does not."""
        repeated = frozenset(read_names([node])) if isinstance(node, (ast.For, ast.While)) else frozenset()
        within = Inside(inside.after | repeated, inside.arm, inside.augmented)
        match node:
            case ast.If():
                head = f"if {self.write(node.test)}:"
            case ast.While():
                head = f"while {self.write(node.test)}:"
            case ast.For():
                head = f"for {self.write(node.target)} in {self.write(node.iter)}:"
            case ast.With():
                head = f"with {', '.join(ast.unparse(item) for item in node.items)}:"
        out = [indent + head, *self.block(node.body, indent + STEP, within)]
        orelse = getattr(node, "orelse", [])
        if orelse:
            out += [f"{indent}else:", *self.block(orelse, indent + STEP, within)]
        return out

    @property
    def both_arms(self) -> bool:
        """Whether branches compute both arms."""
        return bool(self.loop_depth) or self.style.both_arms or (self.style.flat and bool(self._arm_depth))

    @contextlib.contextmanager
    def in_arm(self) -> Iterator[None]:
        self._arm_depth += 1
        yield
        self._arm_depth -= 1

    # --- what decides

    def decides(self, node: ast.AST) -> bool:
        """Whether a statement or a ternary asks a tensor, or a size that is free."""
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                asked: ast.expr = test
            case ast.For(iter=over):
                asked = over
            case _:
                return False
        if set(read_names([asked])) & self.tensors.keys():
            return True
        own = set(range(asked.lineno, (asked.end_lineno or asked.lineno) + 1)) & set(self._decisions)
        if isinstance(node, ast.IfExp) and node.lineno in self._decisions:
            own.add(node.lineno)
        self.lines_used |= own
        return bool(own)

    # --- expressions

    def write(self, node: ast.expr) -> str:
        return self.text.expression(node, self.replacement)

    def replacement(self, node: ast.AST) -> str | None:
        if id(node) in self.replaced:
            return self.replaced[id(node)]
        if isinstance(node, ast.IfExp) and self.decides(node):
            return branches.ternary(self, node)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            return loops.row(self, node)
        return None

    def value(self, node: ast.expr) -> SeenValue | None:
        """What an expression is in the new code."""
        if isinstance(node, ast.Name) and node.id in self.tensors:
            return self.tensors[node.id]
        if set(read_names([node])) & self.tensors.keys():
            return SeenValue(ValueKind.TENSOR, isinstance(node, (ast.Compare, ast.BoolOp)))
        if isinstance(node, ast.Constant):
            return SeenValue.of(node.value)
        found = self.seen.expression(node)
        if found is None and isinstance(node, ast.Name):
            found = self.seen.name(node.id)
        return found

    def name(self, name: str, line: int) -> SeenValue | None:
        """What a name is in the new code before a line."""
        return self.tensors.get(name) or self.seen.name(name, line)

    def is_known(self, name: str, line: int) -> bool:
        return name in self.tensors or self.seen.bound_at(name, line)

    def _returned(self, node: ast.Return, names: Mapping[str, bool]) -> str:
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            raise NoPortableForm(node.lineno, "an arm returns None, and torch.cond returns tensors")
        return self.apart(node.value, names)

    def apart(self, node: ast.expr, names: Mapping[str, bool]) -> str:
        """What an arm gives, with a copy of each part that may be something that it was given."""
        if isinstance(node, ast.Tuple):
            parts = [self.apart(part, names) for part in node.elts]
            return f"({parts[0]},)" if len(parts) == 1 else ", ".join(parts)
        if isinstance(node, ast.Dict):
            keys = [self.write(key) for key in node.keys if key is not None]
            return "{" + ", ".join(f"{k}: {self.apart(v, names)}" for k, v in zip(keys, node.values, strict=True)) + "}"
        text = self.write(node)
        if is_number(node):
            return f"torch.full((), {text})"
        if not (self.style.clone_all or may_alias(node, names)):
            return text
        return f"{text}.clone()" if isinstance(node, ATOMS) else f"({text}).clone()"

    # --- names

    def fresh(self, *wanted: str) -> list[str]:
        """Names that the function does not use yet; of all of them the same how-manieth."""
        for count in range(1, 1000):
            names = [name if count == 1 else f"{name}_{count}" for name in wanted]
            if not self._taken & set(names):
                self._taken.update(names)
                return names
        raise AssertionError("a function that uses a thousand names of ours")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """The function's own names, and flags of ours, in the order in which the user mentions them."""
        order = {name: at for at, name in reversed(list(enumerate(self._mentions())))}
        own = {name for name in names if name in self.local_names or name in self.flags}
        return sorted(own, key=lambda name: (order.get(name, len(order)), name))

    def _mentions(self) -> list[str]:
        found = [node for node in ast.walk(self.node) if isinstance(node, ast.Name) and self.text.is_users(node)]
        found.sort(key=lambda node: (node.lineno, node.col_offset))
        return [*parameters(self.node.args), *(node.id for node in found)]

    def source_of(self, node: ast.expr) -> str:
        """An expression as text; for a name that is assigned once, what it is assigned (`n = x.shape[1]`)."""
        if not isinstance(node, ast.Name):
            return ast.unparse(node)
        found: list[str] = []
        for inner in ast.walk(self.node):
            match inner:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == node.id:
                    found.append(ast.unparse(value))
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Attribute(attr="shape") as shape):
                    found += [f"{ast.unparse(shape)}[{k}]" for k, n in enumerate(names) if ast.unparse(n) == node.id]
        return found[0] if len(found) == 1 else node.id


def _spaced(lines: list[str]) -> list[str]:
    """An empty line before a function that follows something else at its own height."""
    out: list[str] = []
    for line in lines:
        above = out[-1] if out else ""
        same_height = len(above) - len(above.lstrip()) >= len(line) - len(line.lstrip())
        if line.lstrip().startswith("def ") and above.strip() and same_height and above.lstrip()[0] not in "@#":
            out.append("")
        out.append(line)
    return out
