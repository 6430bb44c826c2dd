"""What the rewriter knows of the function that it is in."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from trueport.rewrite.build import function, name, runtime, same_place, thunk
from trueport.rewrite.names import Known, declared, names_of, parameters


@dataclass
class FunctionScope:
    """One function: its own names, which a block made into a function must declare as not its own."""

    first_parameter: str | None
    local_names: set[str]
    global_names: set[str]
    walrus: set[str] = field(default_factory=set)
    """Names bound by `:=` inside a lambda of ours, where `:=` would bind the lambda's own."""
    outer_names: frozenset[str] = frozenset()
    """Locals of the functions around this one."""
    blocks: int = 0
    known: Known = field(default_factory=dict)
    """The names of its statements, as they were before they were rewritten."""

    @classmethod
    def of(cls, node: ast.FunctionDef, around: frozenset[str]) -> FunctionScope:
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        outer, shared = declared(node.body), declared(node.body, ast.Global)
        # Names declared nonlocal are bound too: a block must pass the declaration on.
        known: Known = {}
        own = {*parameters(node.args), *names_of(node.body, known).bound, *outer} - shared
        return cls(names[0] if names else None, own, shared, outer_names=around, known=known)

    def new_number(self) -> int:
        self.blocks += 1
        return self.blocks

    def bound_by(self, statements: Iterable[ast.stmt]) -> list[str]:
        """The names that statements bind, asked before they are rewritten."""
        return list(names_of(statements, self.known).bound)

    def block(
        self, stem: str, params: list[str], bound: list[str], body: list[ast.stmt], at: ast.AST
    ) -> tuple[ast.FunctionDef, str]:
        """A piece of the function's code as a function, sharing the names that it binds."""
        identifier = f"tp_{stem}_{self.new_number()}"
        return same_place(function(identifier, params, self._sharing(bound, body)), at), identifier

    def _sharing(self, bound: list[str], body: list[ast.stmt]) -> list[ast.stmt]:
        mine = [n for n in bound if n in self.local_names]
        shared = [n for n in bound if n in self.global_names]
        head: list[ast.stmt] = [ast.Nonlocal(names=mine)] if mine else []
        head += [ast.Global(names=shared)] if shared else []
        return [*head, *body]

    def state(self, blocks: list[list[ast.stmt]]) -> ast.expr:
        """How the runtime reads and sets the names of the blocks: those they bind, and those they only read, since what
        they hold (a list) may change. What the function takes from functions around it can be looked at.
        """
        code = [statement for block in blocks for statement in block]
        names = names_of(code, self.known)
        bound = [n for n in names.bound if n in self.local_names or n in self.global_names]
        written = [*bound, *(n for n in names.read if n in self.local_names and n not in bound)]
        seen = [n for n in names.read if n not in written and n in self.outer_names]
        words: Any = tuple(written)
        return runtime("names", _naming(written), ast.Constant(words), *([_naming(seen)] if seen else []))


def _naming(names: list[str]) -> ast.expr:
    return thunk(ast.Tuple(elts=[name(n) for n in names], ctx=ast.Load()))
