"""Which names a piece of code binds and reads, without looking into functions and classes defined inside it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from trueport.rewrite.walking import Visitor, statements_within

Known = dict[int, tuple[ast.AST, "Names"]]
"""The names of statements that were gone through, by id; each with the statement, so that no other takes its id."""


class Names(Visitor):
    """The names that a piece of code binds and reads, in the order in which they come up."""

    def __init__(self, known: Known | None = None) -> None:
        self.bound: dict[str, None] = {}
        self.read: dict[str, None] = {}
        self._hidden: list[set[str]] = []
        self._known = known

    def visit(self, node: ast.AST) -> None:
        if self._known is None or not isinstance(node, ast.stmt):
            super().visit(node)
            return
        if id(node) not in self._known:
            names = Names(self._known)
            super(Names, names).visit(node)
            self._known[id(node)] = (node, names)
        self.add(self._known[id(node)][1])

    def add(self, other: Names) -> None:
        self.bound.update(other.bound)
        self.read.update(other.read)

    def visit_Name(self, node: ast.Name) -> None:
        if any(node.id in names for names in self._hidden):
            return
        if isinstance(node.ctx, ast.Load):
            self.read[node.id] = None
        else:
            self.bound[node.id] = None

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read[node.target.id] = None
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound[node.name] = None
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound[(node.asname or node.name).split(".")[0]] = None

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bound[node.name] = None
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bound[node.name] = None

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) -> None:
        """A definition binds its own name, and reads whatever is free inside it."""
        if not isinstance(node, ast.Lambda):
            self.bound[node.name] = None
            for decorator in node.decorator_list:
                self.visit(decorator)
        inner = Names()
        hidden: set[str] = set()
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
                self.visit(default)
            hidden = set(parameters(node.args))
        for part in node.body if isinstance(node.body, list) else [node.body]:
            inner.visit(part)
        given_away = declared(node.body) if isinstance(node.body, list) else set()
        for name in given_away:
            self.bound[name] = None
        for name in inner.read:
            if name not in hidden and (name not in inner.bound or name in given_away):
                self.read[name] = None

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _scope

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """Its targets live in the comprehension; a walrus inside it binds in the function around it."""
        targets = Names()
        for generator in node.generators:
            targets.visit(generator.target)
        self._hidden.append(set(targets.bound))
        self.generic_visit(node)
        self._hidden.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def bound_names(statements: Iterable[ast.AST]) -> list[str]:
    """Names that the statements bind in the function around them."""
    return list(names_of(statements).bound)


def read_names(statements: Iterable[ast.AST]) -> list[str]:
    """Names that the statements read."""
    return list(names_of(statements).read)


def names_of(statements: Iterable[ast.AST], known: Known | None = None) -> Names:
    """Both. `known` remembers statements, also those inside others, and is good until one of them is changed."""
    names = Names(known)
    for statement in statements:
        names.visit(statement)
    return names


def parameters(args: ast.arguments) -> list[str]:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [a.arg for a in (*named, *(v for v in (args.vararg, args.kwarg) if v is not None))]


def declared(statements: Sequence[ast.stmt], kind: type = ast.Nonlocal) -> set[str]:
    """Names that the statements declare `nonlocal` (or `global`), outside functions defined in them."""
    found: set[str] = set()
    for statement in statements_within(statements):
        if isinstance(statement, kind) and isinstance(statement, (ast.Nonlocal, ast.Global)):
            found.update(statement.names)
    return found
