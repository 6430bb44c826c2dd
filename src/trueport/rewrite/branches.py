"""if, the ternary, and assert.

if test: A                      def tp_then(): nonlocal …; A
else: B              →          def tp_else(): nonlocal …; B
                                runtime.if_(test, tp_then, tp_else, runtime.names(lambda: (…), (…)))
"""

from __future__ import annotations

import ast
from typing import Any

from trueport.rewrite.booleans import only_asked
from trueport.rewrite.build import name, runtime, same_place, thunk
from trueport.rewrite.forks import is_fork
from trueport.rewrite.rewrite_context import RewriteContext


def rewrite_if(rewriter: RewriteContext, node: ast.If) -> list[ast.stmt]:
    returns = hasattr(node, "tp_returns")
    if is_fork(node):
        return _rewrite_fork(rewriter, node, returns)
    names = rewriter.scope.state([node.body, node.orelse])
    bound, otherwise = rewriter.scope.bound_by(node.body), rewriter.scope.bound_by(node.orelse)
    test = rewriter.visit(only_asked(node.test))
    then, then_name = rewriter.scope.block("then", [], bound, rewriter.block(node.body), node.test)
    orelse, else_name = rewriter.scope.block("else", [], otherwise, rewriter.block(node.orelse), node.test)
    call = runtime("if_return" if returns else "if_", test, name(then_name), name(else_name), names)
    last = ast.Return(value=call) if returns else ast.Expr(value=call)
    return [then, orelse, same_place(last, node.test)]


def _rewrite_fork(rewriter: RewriteContext, node: ast.If, returns: bool) -> list[ast.stmt]:
    names, bound = rewriter.scope.state([node.body]), rewriter.scope.bound_by(node.body)
    block, block_name = rewriter.scope.block("block", [], bound, rewriter.block(node.body), node.test)
    call = runtime("forked", name(block_name), names)
    last = ast.Return(value=call) if returns else ast.Expr(value=call)
    return [block, same_place(last, node.test)]


def rewrite_ternary(rewriter: RewriteContext, node: ast.IfExp) -> ast.expr:
    test = rewriter.visit(only_asked(node.test))
    body, orelse = rewriter.visit(node.body), rewriter.visit(node.orelse)
    return same_place(runtime("ternary", test, rewriter.lazily(body), rewriter.lazily(orelse)), node)


def rewrite_assert(rewriter: RewriteContext, node: ast.Assert) -> Any:
    test = rewriter.visit(only_asked(node.test))
    message = thunk(rewriter.visit(node.msg) if node.msg is not None else ast.Constant(None))
    return same_place(ast.Expr(value=runtime("assert_", test, message)), node)
