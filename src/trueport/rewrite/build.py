"""Making pieces of syntax that stand at the user's own line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from trueport.rewrite.walking import children

Node = TypeVar("Node", bound=ast.AST)

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")

RUNTIME = "\0trueport.rewrite.running.runtime\0"
"""Stands for the runtime in the syntax tree; replaced by the runtime itself in the compiled code's constants."""


def same_place(node: Node, at: ast.AST) -> Node:
    """`node` and all that it holds without a place of its own, at the place of `at`."""
    place = {word: getattr(at, word) for word in _PLACE}
    waiting: list[Any] = [node]
    while waiting:
        inner = waiting.pop()
        has = inner.__dict__
        if "lineno" in has:
            continue  # and so has everything in it: whoever makes a node gives it its place
        if inner._attributes:
            has.update(place)
        waiting += children(inner)
    return node


def place_the_rest(node: ast.AST) -> None:
    """Whatever still has no place takes that of the node around it; what has none around it, the first line."""
    waiting: list[tuple[Any, dict[str, Any]]] = [(node, dict(zip(_PLACE, (1, 0, 1, 0), strict=True)))]
    while waiting:
        inner, place = waiting.pop()
        has = inner.__dict__
        if "lineno" in has:
            place = has
        elif inner._attributes:
            has.update({word: place[word] for word in _PLACE})
        waiting += [(child, place) for child in children(inner)]


def name(identifier: str, store: bool = False) -> ast.Name:
    return ast.Name(id=identifier, ctx=ast.Store() if store else ast.Load())


def assign(identifier: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return same_place(ast.Assign(targets=[name(identifier, store=True)], value=value), at)


def negation(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(op=ast.Not(), operand=value)


def runtime(function: str, *args: ast.expr) -> ast.Call:
    """A call of one of the runtime's functions."""
    return ast.Call(func=runtime_attribute(function), args=list(args), keywords=[])


def runtime_attribute(attribute: str) -> ast.Attribute:
    return ast.Attribute(value=ast.Constant(RUNTIME), attr=attribute, ctx=ast.Load())


def thunk(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(args=_no_args(), body=value)


def function(identifier: str, params: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = _no_args()
    args.args = [ast.arg(arg=param) for param in params]
    made: dict[str, Any] = {"name": identifier, "args": args, "body": body, "decorator_list": [], "returns": None}
    return ast.FunctionDef(**made)


def _no_args() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])
