"""Calls of Python's builtins that would turn a traced number or tensor into a plain one, lookups, and `super()`."""

from __future__ import annotations

import ast
import math

from trueport.rewrite.booleans import only_asked
from trueport.rewrite.build import name, runtime, same_place
from trueport.rewrite.rewrite_context import RewriteContext

BUILTINS = frozenset(
    "int float bool abs round divmod isinstance max min sum any all sorted"
    " len range enumerate zip reversed map list tuple dict next str repr format getattr hasattr filter type set"
    " reduce accumulate chain product takewhile dropwhile pairwise islice starmap compress zip_longest combinations"
    " iter".split()
)

TENSOR_TYPES = frozenset(
    "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor"
    " BoolTensor Size".split()
)
"""Called, they make a tensor of numbers (or a size), and read each as a plain one."""
ASKING_IN_C = TENSOR_TYPES | {"numel"}
"""`torch.Tensor([n])` and `x.shape.numel()` ask for plain numbers without any Python in between."""
_OF_ALL = frozenset({"zip", "max", "min"})
"""Called with as many arguments as a list of open length has items: `a, b = zip(*pairs)`."""
_MODULES = frozenset({"math", "np", "numpy", "itertools", "functools"})
_MATH = frozenset(name for name in vars(math) if not name.startswith("_"))
"""Imported by name as well: `from math import sqrt`."""


def rewrite_call(rewriter: RewriteContext, node: ast.Call) -> ast.expr:
    called = node.func
    if isinstance(called, ast.Name) and called.id == "bool" and len(node.args) == 1:
        only_asked(node.args[0])
    rewriter.generic_visit(node)
    called = node.func
    if isinstance(called, ast.Name) and called.id == "super" and not node.args and not node.keywords:
        return _explicit_super(rewriter, node)
    if isinstance(called, ast.Name) and called.id == "type" and len(node.args) != 1:
        return node  # a class is made, and belongs to the module that it is made in
    is_builtin = isinstance(called, ast.Name) and called.id in BUILTINS | _MATH | TENSOR_TYPES
    is_builtin |= isinstance(called, ast.Attribute) and called.attr in TENSOR_TYPES | {"is_tensor"}
    by_key = isinstance(called, ast.Attribute) and 1 <= len(node.args) <= 2 and not node.keywords
    if by_key and isinstance(called, ast.Attribute) and called.attr in ("get", "setdefault"):
        return same_place(runtime(called.attr, called.value, *node.args), node)
    if isinstance(called, ast.Attribute) and called.attr == "numel" and not node.args and not node.keywords:
        return same_place(runtime("numel", called.value), node)
    if isinstance(called, ast.Name) and called.id in _OF_ALL and _is_one_star(node):
        return same_place(runtime("of_all", called, node.args[0].value), node)  # type: ignore[attr-defined]
    is_math = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in _MODULES
    if is_builtin or is_math:
        # The name is still looked up where the user wrote it: a function of that name of the user's own stays his.
        node.func = same_place(runtime("traced", called), node)
    elif isinstance(called, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) and (
        not _is_torchs(called) or _has_flag(node)
    ):
        node.func = same_place(runtime("callee", called), node)
    return node


def _is_one_star(node: ast.Call) -> bool:
    return len(node.args) == 1 and isinstance(node.args[0], ast.Starred) and not node.keywords


def _is_torchs(called: ast.expr) -> bool:
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in ("torch", "F", "nn", "super")


def _has_flag(node: ast.Call) -> bool:
    """Something is given by name that may be a traced flag: `is_causal=length > 1`."""
    return any(not isinstance(given.value, ast.Constant) for given in node.keywords)


_PLAIN_KEYS = (ast.Slice, ast.Constant, ast.UnaryOp)


def _is_plain(key: ast.expr) -> bool:
    """Slices, and what is written down plainly."""
    return isinstance(key, _PLAIN_KEYS) or (isinstance(key, ast.Tuple) and any(map(_is_plain, key.elts)))


def rewrite_lookup(rewriter: RewriteContext, node: ast.Subscript) -> ast.expr:
    """`table[key]` where the key may be traced."""
    rewriter.generic_visit(node)
    if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice):
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        if all(bound is None or isinstance(bound, (ast.Constant, ast.UnaryOp)) for bound in bounds):
            return node
        return same_place(runtime("part", node.value, *(bound or ast.Constant(None) for bound in bounds)), node)
    if not isinstance(node.ctx, ast.Load) or _is_plain(node.slice):
        return node
    return same_place(runtime("item", node.value, node.slice), node)


def rewrite_storing(node: ast.Assign) -> ast.stmt | list[ast.stmt]:
    """`table[key] = value`, after its parts were rewritten."""
    target = node.targets[0]
    if len(node.targets) > 1:
        return _one_by_one(node)
    if not isinstance(target, ast.Subscript) or _is_plain(target.slice):
        return node
    return same_place(ast.Expr(value=runtime("put_item", node.value, target.value, target.slice)), node)


def _one_by_one(node: ast.Assign) -> ast.stmt | list[ast.stmt]:
    """`row = table[key] = value`: the name first, and the table from the name, if nothing else there reads it."""
    names = [target for target in node.targets if isinstance(target, ast.Name)]
    stores = [target for target in node.targets if isinstance(target, ast.Subscript) and not _is_plain(target.slice)]
    read = {part.id for target in stores for part in ast.walk(target) if isinstance(part, ast.Name)}
    first = next((each for each in names if each.id not in read), None)
    if not stores or first is None or len(names) + len(stores) != len(node.targets):
        return node
    statements: list[ast.stmt] = [same_place(ast.Assign(targets=list(names), value=node.value), node)]
    for target in stores:
        stored = rewrite_storing(same_place(ast.Assign(targets=[target], value=name(first.id)), node))
        statements += stored if isinstance(stored, list) else [stored]
    return statements


def rewrite_updating(rewriter: RewriteContext, node: ast.AugAssign) -> ast.stmt:
    """`table[key] += value`: the table and the key are evaluated once, and the item before the value."""
    rewriter.generic_visit(node)
    target = node.target
    if not isinstance(target, ast.Subscript) or _is_plain(target.slice):
        return node
    word = ast.Constant(_IN_PLACE[type(node.op)])
    update = runtime("update_item", target.value, target.slice, word, rewriter.lazily(node.value))
    return same_place(ast.Expr(value=update), node)


def rewrite_changing(rewriter: RewriteContext, node: ast.Expr) -> ast.stmt:
    """`table[key].append(value)`: a traced key tells which of several lists is changed."""
    match node.value:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=table, slice=key), attr=word), args=given, keywords=[]
        ):
            starred = any(isinstance(each, ast.Starred) for each in given)
            if word in _CHANGES and not starred and not _is_plain(key):
                values = ast.Tuple([rewriter.visit(each) for each in given], ast.Load())
                given_later = rewriter.lazily(same_place(values, node))
                parts = (rewriter.visit(table), rewriter.visit(key), ast.Constant(word), given_later)
                return same_place(ast.Expr(value=runtime("change_item", *parts)), node)
    rewriter.generic_visit(node)
    return node


_CHANGES = frozenset({"append", "extend", "insert", "clear", "remove", "reverse", "sort"})
"""Methods of a list that give nothing."""
_IN_PLACE = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.MatMult: "imatmul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.BitAnd: "iand",
}
"""The functions of `operator` that augmented assignments call."""


def rewrite_text(rewriter: RewriteContext, node: ast.JoinedStr) -> ast.expr:
    """An f-string with one plain `{value}` in it, which may be a traced number."""
    rewriter.generic_visit(node)
    values = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    if len(values) != 1 or values[0].format_spec is not None or values[0].conversion not in (-1, ord("s")):
        return _message(node) if values else node
    at = node.values.index(values[0])
    before, after = (ast.JoinedStr(values=part) for part in (node.values[:at], node.values[at + 1 :]))
    return same_place(runtime("text", before, values[0].value, after), node)


def _message(node: ast.JoinedStr) -> ast.expr:
    """Any other f-string: its pieces, so that it is known whether a traced number is among them."""
    pieces: list[ast.expr] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            form = part.format_spec or ast.Constant("")
            pieces.append(ast.Tuple(elts=[part.value, ast.Constant(part.conversion), form], ctx=ast.Load()))
        else:
            pieces.append(part)
    return same_place(runtime("message", *pieces), node)


def rewrite_percent(rewriter: RewriteContext, node: ast.BinOp) -> ast.expr:
    """`"%.2f" % value`."""
    rewriter.generic_visit(node)
    is_number = isinstance(node.left, ast.Constant) and not isinstance(node.left.value, str)
    if not isinstance(node.op, ast.Mod) or is_number:
        return node
    return same_place(runtime("percent", node.left, node.right), node)


def _explicit_super(rewriter: RewriteContext, node: ast.Call) -> ast.expr:
    """`super()` finds its arguments in the frame of the method; a block of ours has another frame."""
    outermost = next((s for s in rewriter.scopes if s.first_parameter is not None), None)
    if outermost is None or outermost.first_parameter is None:
        return node
    node.args = [same_place(name("__class__"), node), same_place(name(outermost.first_parameter), node)]
    return node
