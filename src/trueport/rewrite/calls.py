"""Calls of Python's builtins that would turn a traced number or tensor into a plain one, and `super()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trueport.rewrite.build import name, runtime, same_place

if TYPE_CHECKING:
    from trueport.rewrite.rewriter import Rewriter

BUILTINS = frozenset(
    "int float bool abs round divmod isinstance max min sum any all sorted"
    " len range enumerate zip reversed map list tuple next".split()
)


def rewrite_call(rewriter: Rewriter, node: ast.Call) -> ast.expr:
    rewriter.generic_visit(node)
    called = node.func
    if isinstance(called, ast.Name) and called.id == "super" and not node.args and not node.keywords:
        return _explicit_super(rewriter, node)
    is_builtin = isinstance(called, ast.Name) and called.id in BUILTINS
    is_math = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "math"
    if is_builtin or is_math:
        # The name is still looked up where the user wrote it: a function of that name of the user's own stays his.
        node.func = same_place(runtime("traced", called), node)
    return node


def _explicit_super(rewriter: Rewriter, node: ast.Call) -> ast.expr:
    """`super()` finds its arguments in the frame of the method; a block of ours has another frame."""
    outermost = next((s for s in rewriter.scopes if s.first_parameter is not None), None)
    if outermost is None or outermost.first_parameter is None:
        return node
    node.args = [same_place(name("__class__"), node), same_place(name(outermost.first_parameter), node)]
    return node
