"""Generators, turned around: the generator calls the body of the `for` that goes through it.

    def gen(a):                     def gen(a):
        while test:                     def tp_run(tp_emit, tp_stopped, a):
            yield a          →              while test:
                                                tp_emit(a)
                                                if tp_stopped(): return
                                        def tp_plain(a): …as it was…
                                        return runtime.generated(tp_run, tp_plain, (a,))

A frame that waits at its `yield` cannot be split into arms, but a call can: the generator's own branches and loops then
hold the body of the consumer, what happens first in eager happens first here, and one without end ends with the
consumer's `break`. Outside a trace the generator is what it was.
"""

from __future__ import annotations

import ast
from typing import Any

from trueport.rewrite.build import function, name, runtime, same_place
from trueport.rewrite.exits import contains
from trueport.rewrite.names import parameters
from trueport.rewrite.unsupported import Unsupported
from trueport.rewrite.walking import FUNCTIONS, Transformer, copied

_EMIT, _STOPPED = "tp_emit", "tp_stopped"
_RUN, _PLAIN = "tp_run", "tp_plain"


def is_generator(node: ast.FunctionDef) -> bool:
    return contains(node, (ast.Yield, ast.YieldFrom))


def is_as_it_was(node: ast.FunctionDef) -> bool:
    """The form of a generator for outside of a trace."""
    return node.name == _PLAIN


def turned_around(node: ast.FunctionDef) -> ast.FunctionDef:
    """A generator as a function that makes something to be gone through. Raises Unsupported. `node` is changed."""
    if not _is_context_manager(node):
        _refuse_try(node.body, inside=False)
    names = parameters(node.args)
    plain = same_place(function(_PLAIN, names, [copied(each) for each in node.body]), node.body[0])
    body = [part for statement in node.body for part in _Emitting().statement(statement)]
    run = same_place(function(_RUN, [_EMIT, _STOPPED, *names], body), node.body[0])
    given = ast.Tuple(elts=[name(n) for n in names], ctx=ast.Load())
    made = ast.Return(value=runtime("generated", name(_RUN), name(_PLAIN), given))
    node.body = [run, plain, same_place(made, node.body[0])]
    return node


class _Emitting(Transformer):
    """`yield v` as a call of the consumer's body, and a return where that has left its loop."""

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        made: Any = self.visit(node)
        return made if isinstance(made, list) else [made]

    def visit_Expr(self, node: ast.Expr) -> Any:
        match node.value:
            case ast.Yield(value=value):
                return self._emitted(value or ast.Constant(None), node)
            case ast.YieldFrom(value=value):
                self.visit(value)
                each = "tp_each"
                loop = ast.For(
                    target=name(each, store=True), iter=value, body=self._emitted(name(each), node), orelse=[]
                )
                return [same_place(loop, node)]
        return self.generic_visit(node)

    def _emitted(self, value: ast.expr, at: ast.Expr) -> list[ast.stmt]:
        self.visit(value)
        emit = ast.Expr(value=ast.Call(func=name(_EMIT), args=[value], keywords=[]))
        stopped = ast.Call(func=name(_STOPPED), args=[], keywords=[])
        leave = ast.If(test=stopped, body=[ast.Return(value=None)], orelse=[])
        return [same_place(emit, at), same_place(leave, at)]

    def visit_Yield(self, node: ast.Yield) -> Any:
        raise Unsupported("a `yield` whose value is used (`send`)", node.lineno, "pass the value as an argument")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        raise Unsupported(
            "a `yield from` whose value is used", node.lineno, "collect the values in a list and return it"
        )

    def _leave(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _leave


def _is_context_manager(node: ast.FunctionDef) -> bool:
    """An error in the block of a `with` is raised at the `yield`, in a call too."""
    names = (d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in node.decorator_list)
    return "contextmanager" in names


def _refuse_try(statements: list[ast.stmt], inside: bool) -> None:
    """An error of the consumer's never reaches the generator; in a call it would reach the `except` around it."""
    for statement in statements:
        if isinstance(statement, FUNCTIONS):
            continue
        handled = inside or (isinstance(statement, ast.Try) and bool(statement.handlers))
        if handled and contains(statement, (ast.Yield, ast.YieldFrom)):
            raise Unsupported("a `yield` inside `try`/`except`", statement.lineno, "yield behind the `try`")
        for field in ("body", "orelse", "finalbody"):
            _refuse_try(getattr(statement, field, None) or [], handled)
