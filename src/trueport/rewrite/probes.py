"""Putting probes into the user's functions for a while: around tests and iterables, at the user's own lines.

    if a > b and c:          →   if probes.decide(4, probes.mark(), probes.join(probes.mark(), "and", 2,
                                     probes.decide(5, probes.mark(), probes.compare(probes.mark(), "gt", a, b))
                                     and probes.leaf(probes.mark(), c))):
    for x in xs:             →   for x in probes.rounds(6, xs):

The order in which the user's expressions are evaluated, and whether they are, stays as it was.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from trueport.rewrite.build import runtime, same_place
from trueport.rewrite.finding import everywhere
from trueport.rewrite.functions import Refused, compile_in_place, find_definition, with_inner
from trueport.rewrite.running.probe_runtime import PROBES, SITES, DecisionKind, Site
from trueport.rewrite.walking import Transformer, copied

_WORDS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.In: "in",
    ast.NotIn: "not_in",
}


@contextlib.contextmanager
def probed(codes: Iterable[CodeType], functions: Sequence[FunctionType] = ()) -> Iterator[tuple[Site, ...]]:
    """The functions that run these codes, or make functions that do, have probes meanwhile.

    Where it is known which these are, `functions` saves looking through all objects of the process (0.1 s). A function
    that cannot be probed (no source) is left as it is. Yields the places that were found.
    """
    wanted = set(codes)
    sites: dict[Site, None] = {}
    originals: list[tuple[FunctionType, CodeType]] = []
    replaced: dict[CodeType, CodeType] = {}
    for function in (functions or everywhere(*{code.co_filename for code in wanted})) if wanted else ():
        code = function.__code__
        if code not in replaced and not wanted.isdisjoint(with_inner(code)):
            try:
                replaced[code], found = probed_code(code)
            except Refused:
                continue
            sites.update(dict.fromkeys(found))
        if code in replaced:
            originals.append((function, code))
    for function, code in originals:
        function.__code__ = replaced[code]
    try:
        yield tuple(sites)
    finally:
        for function, code in originals:
            if function.__code__ is replaced[code]:
                function.__code__ = code


def probed_code(code: CodeType) -> tuple[CodeType, tuple[Site, ...]]:
    """A function's code with probes in it, and where they are. Raises Refused where there is no source."""
    return _probed_code(code, code.co_filename)


@functools.lru_cache(maxsize=1024)
def _probed_code(code: CodeType, _file: str) -> tuple[CodeType, tuple[Site, ...]]:
    """Codes of two files are equal where their text is, and each needs its own file in its sites."""
    node, classes = find_definition(code)
    probing = _Probing(code.co_filename, code.co_qualname)
    made = copied(node)
    made.body = probing.statements(made.body)
    if not probing.sites:
        return code, ()
    return compile_in_place(made, code, classes, PROBES), tuple(probing.sites)


class _Probing(Transformer):
    """Walks one function, functions inside it included."""

    def __init__(self, file: str, function: str) -> None:
        self._file, self._function = file, function
        self._caught = 0
        """How many `try` with an `except` are around."""
        self.sites: list[Site] = []

    def statements(self, block: list[ast.stmt]) -> list[ast.stmt]:
        visited: list[Any] = [self.visit(statement) for statement in block]
        return [one for made in visited for one in (made if isinstance(made, list) else [made])]

    # --- what decides

    def visit_If(self, node: ast.If) -> ast.AST:
        arms = () if self._caught else (node.body, node.orelse)
        raising = tuple(way for way, arm in enumerate(arms) if arm and isinstance(arm[-1], ast.Raise))
        node.test = self._test(node.test, DecisionKind.IF, raising)
        return self._bodies(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self._caught += bool(node.handlers)
        node.body = self.statements(node.body)
        self._caught -= bool(node.handlers)
        for handler in node.handlers:
            handler.body = self.statements(handler.body)
        node.orelse, node.finalbody = self.statements(node.orelse), self.statements(node.finalbody)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._test(node.test, DecisionKind.TERNARY)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        number = self._site(node.test, DecisionKind.WHILE)
        begin = same_place(ast.Expr(value=runtime("begin", ast.Constant(number))), node)
        node.test = same_place(self._decided(number, self._measured(node.test)), node.test)
        self._bodies(node)
        return [begin, node]

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._rounds(node.iter)
        node.target = self.visit(node.target)
        return self._bodies(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        if not node.is_async:
            node.iter = self._rounds(node.iter)
        node.ifs = [self._test(test, DecisionKind.FILTER) for test in node.ifs]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Outside a test: nobody decides by the whole of it, only by its operands."""
        return same_place(
            runtime("join", runtime("mark"), ast.Constant(""), ast.Constant(0), self._measured(node)), node
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        is_pick = isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
        plain = is_pick and len(node.args) > 1 and not node.keywords and not starred
        number = self._site(node, DecisionKind.PICK, ways=len(node.args)) if plain else None
        self.generic_visit(node)
        if number is None:
            return node
        return same_place(runtime("pick", ast.Constant(number), node.func, *node.args), node)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        number = self._site(node.subject, DecisionKind.MATCH, ways=len(node.cases))
        self.generic_visit(node)
        for way, case in enumerate(node.cases):
            told = ast.Expr(value=runtime("took", ast.Constant(number), ast.Constant(way)))
            case.body.insert(0, same_place(told, case.body[0]))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def _bodies(self, node: Any) -> ast.AST:
        for part in ("body", "orelse"):
            setattr(node, part, self.statements(getattr(node, part)))
        return node  # type: ignore[no-any-return]

    # --- probes

    def _test(self, test: ast.expr, kind: DecisionKind, raising: tuple[int, ...] = ()) -> ast.expr:
        number = self._site(test, kind, raising=raising)
        return same_place(self._decided(number, self._measured(test)), test)

    def _rounds(self, over: ast.expr) -> ast.expr:
        number = self._site(over, DecisionKind.FOR)
        return same_place(runtime("rounds", ast.Constant(number), self.visit(over)), over)

    def _decided(self, number: int, measured: ast.expr) -> ast.Call:
        return runtime("decide", ast.Constant(number), runtime("mark"), measured)

    def _measured(self, test: ast.expr) -> ast.expr:
        """The test, with every comparison in it noted; `and`, `or` and `not` say how they belong together."""
        match test:
            case ast.BoolOp(op=op, values=values):
                kind = DecisionKind.AND if isinstance(op, ast.And) else DecisionKind.OR
                numbers = [self._site(value, kind) for value in values[:-1]]
                parts: list[ast.expr] = [
                    same_place(self._decided(number, self._measured(value)), value)
                    for number, value in zip(numbers, values[:-1], strict=True)
                ]
                joined = same_place(ast.BoolOp(op=op, values=[*parts, self._measured(values[-1])]), test)
                word, count = ast.Constant(kind.value), ast.Constant(len(values))
                return same_place(runtime("join", runtime("mark"), word, count, joined), test)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                negated = same_place(ast.UnaryOp(op=ast.Not(), operand=self._measured(operand)), test)
                return same_place(runtime("join", runtime("mark"), ast.Constant("not"), ast.Constant(1), negated), test)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _WORDS:
                word = ast.Constant(_WORDS[type(op)])
                call = runtime("compare", runtime("mark"), word, self.visit(left), self.visit(right))
                return same_place(call, test)
        return same_place(runtime("leaf", runtime("mark"), self.visit(test)), test)

    def _site(self, at: ast.expr, kind: DecisionKind, ways: int = 2, raising: tuple[int, ...] = ()) -> int:
        site = Site(
            self._file,
            at.lineno,
            at.col_offset,
            at.end_lineno or at.lineno,
            self._function,
            kind,
            ast.unparse(at),
            tuple(_numbers(at)),
            ways,
            raising,
        )
        SITES.append(site)
        self.sites.append(site)
        return len(SITES) - 1


def _numbers(node: ast.expr) -> Iterator[int | float]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            yield inner.value  # type: ignore[misc]
            yield -inner.value  # type: ignore[misc, operator]
