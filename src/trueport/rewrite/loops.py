"""while and for.

while test: B        →          def tp_body(): nonlocal …; B
                                runtime.while_(lambda: test, tp_body, runtime.names(lambda: (…), (…)))
"""

from __future__ import annotations

import ast

from trueport.rewrite.booleans import only_asked
from trueport.rewrite.build import name, negation, runtime, same_place, thunk
from trueport.rewrite.rewrite_context import RewriteContext

_ITEM = "tp_item"


def rewrite_while(rewriter: RewriteContext, node: ast.While) -> list[ast.stmt]:
    test = node.test
    broke = getattr(node, "tp_broke", None)
    if broke is not None:
        going = same_place(negation(name(broke)), test)
        always = isinstance(test, ast.Constant) and bool(test.value)
        test = going if always else same_place(ast.BoolOp(op=ast.And(), values=[going, test]), node.test)
    names = rewriter.scope.state([node.body, [same_place(ast.Expr(value=test), node)]])
    bound = rewriter.scope.bound_by(node.body)
    asked = rewriter.lazily(rewriter.visit(only_asked(test)))
    body, body_name = rewriter.scope.block("body", [], bound, rewriter.block(node.body), node.test)
    call = runtime("while_", asked, name(body_name), names)
    return [body, same_place(ast.Expr(value=call), node.test)]


def rewrite_for(rewriter: RewriteContext, node: ast.For) -> list[ast.stmt]:
    take = same_place(ast.Assign(targets=[node.target], value=name(_ITEM)), node.target)
    names = rewriter.scope.state([[take], node.body])
    bound = rewriter.scope.bound_by([take, *node.body])
    over = rewriter.visit(node.iter)
    body, body_name = rewriter.scope.block("body", [_ITEM], bound, [take, *rewriter.block(node.body)], node.target)
    broke = getattr(node, "tp_broke", None)
    stop = thunk(name(broke) if broke is not None else ast.Constant(False))
    call = runtime("for_", over, name(body_name), stop, names)
    return [body, same_place(ast.Expr(value=call), node.iter)]
