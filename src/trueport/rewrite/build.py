"""Making pieces of syntax that stand at the user's own line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

RUNTIME = "\0trueport.rewrite.runtime\0"
"""Stands for the runtime in the syntax tree; replaced by the runtime itself in the compiled code's constants."""


def same_place(node: Node, at: ast.AST) -> Node:
    """`node` and all that it holds without a place of its own, at the place of `at`."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            ast.copy_location(inner, at)
    return node


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


def texts(words: Sequence[str]) -> ast.Tuple:
    return ast.Tuple(elts=[ast.Constant(word) for word in words], ctx=ast.Load())


def function(identifier: str, params: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = _no_args()
    args.args = [ast.arg(arg=param) for param in params]
    made: dict[str, Any] = {"name": identifier, "args": args, "body": body, "decorator_list": [], "returns": None}
    return ast.FunctionDef(**made)


def _no_args() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])
