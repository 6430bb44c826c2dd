"""A statement with a ternary in it, as a branch with the statement in both arms.

    h = f(a) + (b if t() else c)        →       tp_before = f(a)
                                                if t(): h = tp_before + b
                                                else:   h = tp_before + c

Python evaluates `f(a)` before `t()`, and so does the branch: what stands to the left of the ternary gets a name first.
A ternary that the statement may not evaluate (`a and (b if t else c)`), evaluates more than once (in a comprehension)
or leaves for later (in a lambda) has no such form.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator

from trueport.rewrite.build import assign, name, same_place

_EVALUATED_ELSEWHERE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_ONE_VALUE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def unfolded(statement: ast.stmt, lines: Collection[int]) -> list[ast.stmt] | None:
    """The statement as statements of which the last is a branch on a ternary that stands on one of these lines."""
    if not isinstance(statement, _OF_ONE_VALUE) or statement.value is None:
        return None
    ternary = _ternary(statement.value, lines)
    if ternary is None:
        return None
    before: list[ast.stmt] = []
    statements: list[ast.stmt] = [statement]
    if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Name):
        statements = _updated_apart(statement, before)
    _Naming(ternary, before).before_it(statement.value)
    ternary.tp_unfold = True  # type: ignore[attr-defined]
    arms = [[_Choosing(choice).visit(copy.deepcopy(s)) for s in statements] for choice in ("body", "orelse")]
    branch = same_place(ast.If(test=ternary.test, body=arms[0], orelse=arms[1]), ternary)
    branch.tp_wants_rest = True  # type: ignore[attr-defined]
    return [*before, branch]


def _ternary(value: ast.expr, lines: Collection[int]) -> ast.IfExp | None:
    """The first ternary that is surely evaluated, once, and is on one of the lines or decides about one that is."""
    if isinstance(value, ast.IfExp) and any(
        isinstance(inner, ast.IfExp) and inner.lineno in lines for inner in (value, *_walk(value.body, value.orelse))
    ):
        return value
    return next((found for part in _parts(value) if (found := _ternary(part, lines)) is not None), None)


def _walk(*values: ast.expr) -> Iterator[ast.AST]:
    for value in values:
        yield from ast.walk(value)


def _parts(value: ast.AST) -> list[ast.expr]:
    """The parts of an expression that are evaluated whenever it is, in order."""
    match value:
        case ast.BoolOp(values=values):
            return values[:1]
        case ast.IfExp(test=test):
            return [test]
        case ast.Compare(left=left, comparators=comparators):
            return [left, comparators[0]]
        case ast.Dict(keys=keys, values=values):
            return [part for pair in zip(keys, values, strict=True) for part in pair if part is not None]
        case ast.NamedExpr(value=inner):
            return [inner]
        case ast.Call(func=func, args=args, keywords=keywords):
            return [func, *args, *(keyword.value for keyword in keywords)]
    if isinstance(value, _EVALUATED_ELSEWHERE):
        return []
    return [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]


def _updated_apart(statement: ast.AugAssign, before: list[ast.stmt]) -> list[ast.stmt]:
    """`a[i] += v` reads `a[i]` before v: as `item = a[i]`, `item += v` and `a[i] = item`, which is what Python does."""
    target = statement.target
    item = f"tp_item_{target.lineno}_{target.col_offset}"
    naming = _Naming(target, before)
    for part in _parts(target):
        naming.named(part, target)
    read = copy.deepcopy(target)
    read.ctx = ast.Load()
    before.append(assign(item, read, statement))
    statement.target = same_place(name(item, store=True), target)
    store = ast.Assign(targets=[target], value=name(item))
    return [statement, same_place(store, statement)]


class _Naming:
    """Gives names to what is evaluated before a ternary."""

    def __init__(self, ternary: ast.AST, before: list[ast.stmt]) -> None:
        self._ternary, self._before = ternary, before
        walrus = ternary.test if isinstance(ternary, ast.IfExp) else ternary
        self._rebinds = any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(walrus))

    def before_it(self, around: ast.expr) -> None:
        """`around` is the ternary or holds it: name its parts to the left of it."""
        if around is self._ternary:
            return
        for part in _parts(around):
            if any(inner is self._ternary for inner in ast.walk(part)):
                self.before_it(part)
                return
            self.named(part, around)

    def named(self, part: ast.expr, holder: ast.AST) -> None:
        """Evaluate a part now, unless nothing can change what it is."""
        called = isinstance(holder, ast.Call) and holder.func is part
        if isinstance(part, (ast.Constant, ast.Lambda)) or (isinstance(part, ast.Name) and not self._rebinds):
            return
        if isinstance(part, (ast.Starred, ast.Slice, ast.FormattedValue)) or (
            isinstance(part, ast.Tuple) and isinstance(holder, ast.Subscript)
        ):
            for inner in _parts(part):
                self.named(inner, part)
        elif called and isinstance(part, ast.Name):
            return
        elif called and isinstance(part, ast.Attribute):
            self.named(part.value, part)
        else:
            identifier = f"tp_before_{part.lineno}_{part.col_offset}_{part.end_col_offset}"
            self._before.append(assign(identifier, part, part))
            _Exchanging(part, same_place(name(identifier), part)).generic_visit(holder)


class _Exchanging(ast.NodeTransformer):
    """Puts a name in the place of one expression."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else node


class _Choosing(ast.NodeTransformer):
    """Leaves one side of the ternary that is unfolded."""

    def __init__(self, choice: str) -> None:
        self._choice = choice

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if hasattr(node, "tp_unfold"):
            chosen: ast.AST = getattr(node, self._choice)
            return chosen
        self.generic_visit(node)
        return node
