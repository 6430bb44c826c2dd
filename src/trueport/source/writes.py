"""The line of a function that sets an attribute, or changes the list or dict that it holds; and one that reads it."""

from __future__ import annotations

import ast

from trueport.source.functions import function_at

_CHANGING = frozenset(
    "append appendleft extend extendleft insert pop popleft popitem remove discard clear update setdefault add sort"
    " reverse __setitem__".split()
)
_TELLING = frozenset(("log", "logger", "logging", "warnings"))


def line_that_writes(file: str, first_line: int, attribute: str) -> int | None:
    """The first line of the function at `first_line` of `file` that writes to an `….attribute`; None if there is none.

    Written is what is assigned (`self.n += 1`, `y, self.h = …`, `setattr(self, "n", 1)`), an item of it that is
    (`self.cache[k] = v`), and a list, set or dict on which something is called that changes it (`self.seen.append(x)`).
    """
    function = function_at(file, first_line)
    if function is None:
        return None
    lines = [node.lineno for node in ast.walk(function) if isinstance(node, ast.expr) and _writes(node, attribute)]
    return min(lines, default=None)


def line_that_reads(file: str, first_line: int, attribute: str) -> int | None:
    """The first line of a function that reads an `….attribute` for something else than to write it anew.

    `self.n += 1`, `self.n = self.n + 1` and `self.seen.append(x)` read it for its own sake; printing changes nothing.
    """
    function = function_at(file, first_line)
    if function is None:
        return None
    excused: set[ast.AST] = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[target], value=value) if _is_of(target, attribute):
                excused.update(ast.walk(value))
                excused.update(ast.walk(target))
            case ast.AugAssign(target=target, value=value) if _is_of(target, attribute):
                excused.update(ast.walk(value))
                excused.update(ast.walk(target))
            case ast.Delete(targets=targets):
                excused.update(inner for target in targets for inner in ast.walk(target))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr=method)) as call):
                changes = method in _CHANGING and _is_of(holder, attribute)
                tells = isinstance(holder, ast.Name) and holder.id in _TELLING
                excused.update(ast.walk(call) if changes or tells else ())
            case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call):
                excused.update(ast.walk(call))
    lines = [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.ctx, ast.Load)
        and node not in excused
    ]
    return min(lines, default=None)


def _writes(node: ast.expr, attribute: str) -> bool:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            return name == attribute
        case ast.Subscript(value=container, ctx=ast.Store() | ast.Del()):
            return _is_of(container, attribute)
        case ast.Call(func=ast.Attribute(value=container, attr=method)) if method in _CHANGING:
            return _is_of(container, attribute)
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_]):
            return bool(name == attribute)
    return False


def _is_of(container: ast.expr, attribute: str) -> bool:
    """Whether this is the attribute, or something in it: `self.cache`, `self.cache["k"]`."""
    while isinstance(container, ast.Subscript):
        container = container.value
    return isinstance(container, ast.Attribute) and container.attr == attribute
