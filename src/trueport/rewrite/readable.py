"""A rewritten function as a person reads it: without the plumbing by which its blocks share names."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from trueport.rewrite.build import RUNTIME, name
from trueport.rewrite.functions import Tails, rewritten_definition

_PLUMBING = "tp_set_"
_WITH_STATE = ("if_", "if_return", "while_", "for_", "forked")


def readable(code: CodeType, tails: Tails = frozenset()) -> str:
    """The rewritten form of a function, under its file and line. `trueport.…` is what decides in a trace."""
    shown = _Readable().visit(rewritten_definition(code, tails))
    text = ast.unparse(ast.fix_missing_locations(shown))
    return f"# {code.co_filename}:{code.co_firstlineno}  {code.co_qualname}\n{text}\n"


class _Readable(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name.startswith(_PLUMBING):
            return None
        self.generic_visit(node)
        ours = node.name.startswith("tp_")
        node.body = [s for s in node.body if not (ours and isinstance(s, (ast.Nonlocal, ast.Global)))] or [ast.Pass()]
        return node

    def visit_If(self, node: ast.If) -> Any:
        """`if False: …` only tells the compiler which names are the function's own."""
        if isinstance(node.test, ast.Constant) and node.test.value is False:
            return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(attr=called) if called in _WITH_STATE and _is_ours(node.func.value):
                *node.args, names = node.args
                if isinstance(names, ast.Call) and isinstance(names.args[1], ast.Constant) and names.args[1].value:
                    node.keywords = [ast.keyword(arg="names", value=names.args[1])]
            case ast.Call(func=ast.Attribute(value=runtime, attr="traced"), args=[ast.Name(id=builtin)]) if _is_ours(
                runtime
            ):
                node.func = ast.Attribute(value=runtime, attr=builtin, ctx=ast.Load())
            case ast.Call(func=ast.Attribute(value=runtime, attr="callee"), args=[called]) if _is_ours(runtime):
                node.func = called
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        return name("trueport") if node.value == RUNTIME else node


def _is_ours(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "trueport"
