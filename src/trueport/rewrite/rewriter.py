"""The rewriter: exits first, then every construct that decides something, each in a file of its own."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from trueport.rewrite import booleans, branches, calls, comprehensions, contexts, generators, loops, matches
from trueport.rewrite.build import function, name, runtime, runtime_attribute, same_place
from trueport.rewrite.exits import Exits
from trueport.rewrite.forks import Fork, with_forks
from trueport.rewrite.scope import FunctionScope
from trueport.rewrite.tails import with_tails_inside
from trueport.rewrite.unsupported import Unsupported
from trueport.rewrite.walking import Transformer, statements_within


def rewrite(node: ast.FunctionDef, tails: Collection[int | Fork | contexts.Called] = ()) -> ast.FunctionDef:
    """A function that decides everything through the runtime. `node` is changed in place.

    Branches tested on the lines of `tails` take the rest of their block into both arms; the forks among them are
    statements that are run for each way through what they call, and others are `with` statements whose block is called.
    """
    _refuse(node)
    lines = [tail for tail in tails if isinstance(tail, int)]
    node.body = with_tails_inside(matches.as_branches(node.body), lines)
    node.body = with_forks(node.body, sorted(tail for tail in tails if isinstance(tail, Fork)))
    node.body = contexts.with_called(node.body, [tail for tail in tails if isinstance(tail, contexts.Called)])
    return Rewriter().function(node)


class Rewriter(Transformer):
    """Walks one function; nested functions are functions of their own."""

    def __init__(self) -> None:
        self.scopes: list[FunctionScope] = []
        self.can_hoist = True
        """Whether a function that is put before the statement sees all the names of the expression."""
        self._hoisted: list[ast.stmt] = []

    @property
    def scope(self) -> FunctionScope:
        return self.scopes[-1]

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if generators.is_generator(node):
            node = generators.turned_around(node)
        node.body = matches.as_branches(node.body)
        node.body = Exits().function(node.body)
        around = frozenset(n for s in self.scopes for n in s.local_names)
        scope = FunctionScope.of(node, around)
        self.scopes.append(scope)
        declarations = [s for s in node.body if isinstance(s, (ast.Nonlocal, ast.Global))]
        body = self.block([s for s in node.body if not isinstance(s, (ast.Nonlocal, ast.Global))])
        self.scopes.pop()
        node.body = [*declarations, *_bindings(scope, node), *_walrus_setters(scope, node), *body]
        return node

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        around = self._hoisted
        for statement in statements:
            self._hoisted = []
            made: Any = self.visit(statement)
            out += self._hoisted
            out += made if isinstance(made, list) else [made] if made is not None else []
        self._hoisted = around
        return out or [ast.Pass()]

    def hoist(self, made: ast.FunctionDef) -> str:
        """Rewrite a function that an expression calls, and put it before the statement. Gives its name."""
        made.name = f"{made.name}_{self.scope.new_number()}"
        around = self._hoisted
        self._hoisted = []
        rewritten = self.function(made)
        self._hoisted = [*around, rewritten]
        return made.name

    @contextlib.contextmanager
    def without_hoisting(self) -> Iterator[None]:
        before, self.can_hoist = self.can_hoist, False
        try:
            yield
        finally:
            self.can_hoist = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if generators.is_as_it_was(node):
            return node
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        scope = FunctionScope(None, set(), set())
        self.scopes.append(scope)
        with self.without_hoisting():
            node.body = self.visit(node.body)
        self.scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_If(self, node: ast.If) -> Any:
        return branches.rewrite_if(self, node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return branches.rewrite_ternary(self, node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return branches.rewrite_assert(self, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """A name that a block shares with its function cannot be annotated in the block."""
        if node.value is not None:
            _mark_lists(node.value)
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return None
        return same_place(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        """A bare `except:` lets through what the trace itself raises to start again."""
        if node.type is None:
            node.type = same_place(runtime_attribute("any_error"), node)
        return self.generic_visit(node)

    def visit_While(self, node: ast.While) -> Any:
        return loops.rewrite_while(self, node)

    def visit_For(self, node: ast.For) -> Any:
        return loops.rewrite_for(self, node)

    def visit_With(self, node: ast.With) -> Any:
        return contexts.rewrite_with(self, node)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return comprehensions.rewrite_comprehension(self, node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return comprehensions.rewrite_comprehension(self, node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        """A dict, which may be given keys on one way and not on another."""
        self.generic_visit(node)
        return comprehensions.rewrite_dict(node)

    def visit_Set(self, node: ast.Set) -> Any:
        """A set, which may be given items on one way and not on another."""
        self.generic_visit(node)
        return same_place(runtime("set_", node), node)

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        with self.without_hoisting():
            self.generic_visit(node)
        return same_place(runtime("set_", node), node)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        with self.without_hoisting():
            self.generic_visit(node)
        return same_place(runtime("dict_", node), node)

    def visit_List(self, node: ast.List) -> Any:
        """An empty list, and one that is given a name, may be appended to."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and any(isinstance(part, ast.Starred) for part in node.elts):
            return comprehensions.rewrite_unpacking(node)
        named = hasattr(node, "tp_named") or not node.elts
        return same_place(runtime("list_", node), node) if named and isinstance(node.ctx, ast.Load) else node

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and any(isinstance(part, ast.Starred) for part in node.elts):
            return comprehensions.rewrite_unpacking(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        _mark_lists(node.value)
        self.generic_visit(node)
        return calls.rewrite_storing(comprehensions.rewrite_taking_apart(node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return calls.rewrite_updating(self, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return booleans.rewrite_bool_op(self, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return booleans.rewrite_not(self, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        return booleans.rewrite_compare(self, node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return calls.rewrite_lookup(self, node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return calls.rewrite_changing(self, node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        _mark_lists(node)
        return calls.rewrite_percent(self, node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return calls.rewrite_text(self, node)

    def visit_Call(self, node: ast.Call) -> Any:
        return calls.rewrite_call(self, node)

    def lazily(self, value: ast.expr) -> ast.expr:
        """An operand that may not be evaluated at all, as a lambda. A walrus in it binds through a setter."""
        value = _WalrusThroughSetter(self.scope).visit(value)
        return same_place(ast.Lambda(args=function("f", [], []).args, body=value), value)


def _mark_lists(value: ast.expr) -> None:
    """The lists that an assignment gives a name to, also as a part of something."""
    match value:
        case ast.List():
            value.tp_named = True  # type: ignore[attr-defined]
            parts = value.elts
        case ast.Tuple():
            parts = value.elts
        case ast.Dict():
            parts = value.values
        case ast.BinOp():
            parts = [value.left, value.right]
        case ast.IfExp():
            parts = [value.body, value.orelse]
        case ast.BoolOp():
            parts = value.values
        case _:
            return
    for part in parts:
        _mark_lists(part)


class _WalrusThroughSetter(Transformer):
    def __init__(self, scope: FunctionScope) -> None:
        self._scope = scope

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        self.generic_visit(node)
        identifier = node.target.id
        if identifier not in self._scope.local_names:
            return node
        self._scope.walrus.add(identifier)
        return same_place(ast.Call(func=name(f"tp_set_{identifier}"), args=[node.value], keywords=[]), node)


def _bindings(scope: FunctionScope, at: ast.FunctionDef) -> list[ast.stmt]:
    """`if False: a = b = None`: tells the compiler that names are the function's, although only blocks bind them."""
    targets: list[ast.expr] = [name(n, store=True) for n in sorted(scope.local_names)]
    if not targets:
        return []
    never = ast.If(test=ast.Constant(False), body=[ast.Assign(targets=targets, value=ast.Constant(None))], orelse=[])
    return [same_place(never, at.body[0])]


def _walrus_setters(scope: FunctionScope, at: ast.FunctionDef) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for identifier in sorted(scope.walrus):
        body: list[ast.stmt] = [
            ast.Nonlocal(names=[identifier]),
            ast.Assign(targets=[name(identifier, store=True)], value=name("tp_value")),
            ast.Return(value=name("tp_value")),
        ]
        out.append(same_place(function(f"tp_set_{identifier}", ["tp_value"], body), at.body[0]))
    return out


def _refuse(node: ast.FunctionDef) -> None:
    """`await`, `async for` and `async with` stand in an asynchronous function only, so looking for those is enough."""
    for inner in statements_within(node.body, into_functions=True):
        if isinstance(inner, ast.AsyncFunctionDef):
            raise Unsupported("asynchronous code", inner.lineno, "call it without async")
