"""List comprehensions, generator expressions, and lists with `*items` in them.

    [f(a) for a in xs]                 →   runtime.comprehension(xs, lambda a: f(a), False)

    [f(a) for a in xs if test(a)]      →   def tp_list_1(tp_over):          (before the statement)
                                               tp_items = []
                                               for a in tp_over:
                                                   if test(a): tp_items.append(f(a))
                                               return tp_items
                                           tp_list_1(xs)

The second form is rewritten like any other function. It stands before the statement, so it is not used inside a lambda,
whose parameters it could not see; there, what is not the first form stays as it is.
"""

from __future__ import annotations

import ast

from trueport.rewrite.build import assign, function, name, runtime, same_place
from trueport.rewrite.names import bound_names
from trueport.rewrite.rewrite_context import RewriteContext
from trueport.rewrite.walking import walk

_OVER, _ITEMS = "tp_over", "tp_items"
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rewrite_comprehension(rewriter: RewriteContext, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
    if _is_simple(node) and not _holds_others(node):
        return _as_call(rewriter, node)
    if rewriter.can_hoist and not any(generator.is_async for generator in node.generators):
        return _as_function(rewriter, node)
    if _is_simple(node):
        return _as_call(rewriter, node)
    with rewriter.without_hoisting():
        rewriter.generic_visit(node)
    return node


def _is_simple(node: ast.ListComp | ast.GeneratorExp) -> bool:
    first = node.generators[0]
    target = first.target
    named = isinstance(target, ast.Name) or (
        isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts)
    )
    return len(node.generators) == 1 and not first.ifs and not first.is_async and named


def _holds_others(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether the element holds a comprehension that needs a function, which must see the names of this one."""
    inner = (n for n in walk(node.elt) if isinstance(n, (ast.ListComp, ast.GeneratorExp)))
    return any(not _is_simple(each) for each in inner)


def _as_call(rewriter: RewriteContext, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
    """One `for` without `if`s."""
    first = node.generators[0]
    over = rewriter.visit(first.iter)
    with rewriter.without_hoisting():
        element = rewriter.visit(node.elt)
    unpack = isinstance(first.target, ast.Tuple)
    targets = first.target.elts if isinstance(first.target, ast.Tuple) else [first.target]
    params = [part.id for part in targets if isinstance(part, ast.Name)]
    each = ast.Lambda(args=function("f", params, []).args, body=element)
    kind = "comprehension" if isinstance(node, ast.ListComp) else "generator"
    return same_place(runtime(kind, over, each, ast.Constant(unpack)), node)


def _as_function(rewriter: RewriteContext, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
    over = rewriter.visit(node.generators[0].iter)
    made = _collecting(node) if isinstance(node, ast.ListComp) else _yielding(node)
    walrus = [n for n in bound_names([node]) if n in rewriter.scope.local_names]
    if walrus:
        made.body.insert(0, ast.Nonlocal(names=walrus))
    return same_place(ast.Call(func=name(rewriter.hoist(same_place(made, node))), args=[over], keywords=[]), node)


def _collecting(node: ast.ListComp) -> ast.FunctionDef:
    append = ast.Attribute(value=name(_ITEMS), attr="append", ctx=ast.Load())
    add = ast.Expr(value=ast.Call(func=append, args=[node.elt], keywords=[]))
    start = assign(_ITEMS, ast.List(elts=[], ctx=ast.Load()), node)
    give = same_place(ast.Return(value=name(_ITEMS)), node)
    return function("tp_list", [_OVER], [start, _nested(node, same_place(add, node.elt)), give])


def _yielding(node: ast.GeneratorExp) -> ast.FunctionDef:
    item = ast.Expr(value=ast.Yield(value=node.elt))
    return function("tp_generator", [_OVER], [_nested(node, same_place(item, node.elt))])


def _nested(node: ast.ListComp | ast.GeneratorExp, innermost: ast.stmt) -> ast.stmt:
    body = innermost
    for i, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            body = same_place(ast.If(test=test, body=[body], orelse=[]), test)
        over = name(_OVER) if i == 0 else generator.iter
        body = same_place(ast.For(target=generator.target, iter=over, body=[body], orelse=[]), generator.iter)
    return body


def rewrite_unpacking(node: ast.List | ast.Tuple) -> ast.expr:
    """`[a, *items]`, `(a, *items)`: what is unpacked may have an open length."""
    parts: list[ast.expr] = []
    for part in node.elts:
        unpacked = isinstance(part, ast.Starred)
        value = runtime("spread", part.value) if isinstance(part, ast.Starred) else part
        parts.append(ast.Tuple(elts=[ast.Constant(unpacked), value], ctx=ast.Load()))
    return same_place(runtime("unpacked" if isinstance(node, ast.List) else "unpacked_tuple", *parts), node)


def rewrite_dict(node: ast.Dict) -> ast.expr:
    """`{"a": x}`, and `{**other, "a": x}`: what is unpacked may have keys that are not there on every way."""
    if all(key is not None for key in node.keys):
        return same_place(runtime("dict_", node), node)
    parts: list[ast.expr] = [ast.Dict(keys=[], values=[])]
    for key, value in zip(node.keys, node.values, strict=True):
        parts.append(value if key is None else ast.Dict(keys=[key], values=[value]))
    return same_place(runtime("dict_", *parts), node)


def rewrite_taking_apart(node: ast.Assign) -> ast.Assign:
    """`a, *b = items`: what is taken apart may have an open length."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, (ast.Tuple, ast.List)):
        return node
    if isinstance(node.value, (ast.Tuple, ast.List, ast.Constant)):
        return node
    star = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
    rest = 0 if star is None else len(target.elts) - star - 1
    first = len(target.elts) if star is None else star
    target.elts = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
    counts = [ast.Constant(first), ast.Constant(None if star is None else rest)]
    node.value = same_place(runtime("taken_apart", node.value, *counts), node.value)
    return node
