"""What the rewriter offers to the constructs that it calls, each of which has a file of its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from trueport.rewrite.scope import FunctionScope


class RewriteContext(Protocol):
    """`Rewriter`, which says what each of these does."""

    can_hoist: bool

    @property
    def scope(self) -> FunctionScope: ...

    @property
    def scopes(self) -> Sequence[FunctionScope]: ...

    def visit(self, node: ast.AST) -> Any: ...

    def generic_visit(self, node: ast.AST) -> Any: ...

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]: ...

    def hoist(self, made: ast.FunctionDef) -> str: ...

    def without_hoisting(self) -> AbstractContextManager[None]: ...

    def lazily(self, value: ast.expr) -> ast.expr: ...
