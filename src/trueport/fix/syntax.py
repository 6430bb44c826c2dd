"""Small questions about syntax that several fixes ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.edit import Edit, SourceFile

_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.Tuple, ast.List, ast.Dict)


def dotted(node: ast.AST) -> str:
    """`torch.nn.functional.dropout` of the expression that spells it; '' where it is not a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def called(call: ast.Call) -> str:
    """The last word of what is called: `view` of `x[0].view(2)`, `zeros` of `torch.zeros(2)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def atom(source: SourceFile, node: ast.expr) -> str:
    """An expression as written, in parentheses where a `.method()` could not follow it."""
    text = source.text_of(node)
    plain = isinstance(node, _ATOMS) and not (isinstance(node, ast.Constant) and isinstance(node.value, int | float))
    return text if plain else f"({text})"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of a function's parameters, without `self`."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def imported_as(source: SourceFile, module: str) -> str:
    """How the file calls a module that it imports: `np` for numpy; '' where it does not import it."""
    parent, _, last = module.rpartition(".")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == module and (alias.asname or "." not in module):
                    return alias.asname or module
        elif isinstance(node, ast.ImportFrom) and node.module == parent and not node.level:
            for alias in node.names:
                if alias.name == last:
                    return alias.asname or last
    head, _, rest = module.partition(".")
    outer = imported_as(source, head) if rest else ""
    return f"{outer}.{rest}" if outer else ""


def importing(source: SourceFile, statement: str) -> Iterator[Edit]:
    """The edit that adds an import where the file does not have it: after the last plain import at the top."""
    wanted = ast.dump(ast.parse(statement).body[0])
    body = source.tree.body
    if any(ast.dump(node) == wanted for node in body):
        return
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    docstring = [node for node in body[:1] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    after = (imports or docstring)[-1:]
    line = (after[0].end_lineno or 0) + 1 if after else 1
    yield source.insert(source.line_start(line), f"{statement}{source.newline}")
