"""and, or, not, chained comparisons, `is`, `in`, and equality of tuples of sizes."""

from __future__ import annotations

import ast

from trueport.rewrite.build import runtime, same_place
from trueport.rewrite.rewrite_context import RewriteContext

_CALLED = {ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in"}
_ORDERED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


def rewrite_bool_op(rewriter: RewriteContext, node: ast.BoolOp) -> ast.expr:
    first, *others = [rewriter.visit(value) for value in node.values]
    function = "and" if isinstance(node.op, ast.And) else "or"
    function += "_" if hasattr(node, "tp_asked") else "_value"
    return same_place(runtime(function, first, *(rewriter.lazily(value) for value in others)), node)


def only_asked(test: ast.expr) -> ast.expr:
    """Mark a test: of `a or b` in it nobody wants a or b themselves, only whether one of them holds."""
    match test:
        case ast.BoolOp(values=values):
            test.tp_asked = True  # type: ignore[attr-defined]
            for value in values:
                only_asked(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            only_asked(operand)
    return test


def rewrite_not(rewriter: RewriteContext, node: ast.UnaryOp) -> ast.expr:
    if isinstance(node.op, ast.Not):
        only_asked(node.operand)
    rewriter.generic_visit(node)
    if not isinstance(node.op, ast.Not):
        return node
    return same_place(runtime("not_", node.operand), node)


def rewrite_compare(rewriter: RewriteContext, node: ast.Compare) -> ast.expr:
    if len(node.ops) == 1:
        left, right = rewriter.visit(node.left), rewriter.visit(node.comparators[0])
        return _one(node.ops[0], left, right, node)
    words = [ast.Constant(_word(op)) for op in node.ops]
    later = [rewriter.lazily(rewriter.visit(c)) for c in node.comparators[1:]]
    first, second = rewriter.visit(node.left), rewriter.visit(node.comparators[0])
    operators = ast.Tuple(elts=list(words), ctx=ast.Load())
    return same_place(runtime("chain", operators, first, second, *later), node)


def _one(operator: ast.cmpop, left: ast.expr, right: ast.expr, at: ast.Compare) -> ast.expr:
    function = _CALLED.get(type(operator))
    if function is None and any(isinstance(side, (ast.Tuple, ast.List)) for side in (left, right)):
        function = _ORDERED[type(operator)]
    if function is None:
        return same_place(ast.Compare(left=left, ops=[operator], comparators=[right]), at)
    return same_place(runtime(function, left, right), at)


def _word(operator: ast.cmpop) -> str:
    return _ORDERED.get(type(operator)) or _CALLED[type(operator)]
