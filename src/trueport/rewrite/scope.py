"""What the rewriter knows of the function that it is in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from trueport.rewrite.build import function, name, runtime, same_place, texts, thunk
from trueport.rewrite.names import bound_names, declared, parameters, read_names


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

    @classmethod
    def of(cls, node: ast.FunctionDef, around: frozenset[str]) -> FunctionScope:
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        outer, shared = declared(node.body), declared(node.body, ast.Global)
        # Names declared nonlocal are bound too: a block must pass the declaration on.
        own = {*parameters(node.args), *bound_names(node.body), *outer} - shared
        return cls(names[0] if names else None, own, shared, outer_names=around)

    def new_number(self) -> int:
        self.blocks += 1
        return self.blocks

    def block(self, stem: str, params: list[str], body: list[ast.stmt], at: ast.AST) -> tuple[ast.FunctionDef, str]:
        """A piece of the function's code as a function, sharing the names that it binds."""
        identifier = f"tp_{stem}_{self.new_number()}"
        return same_place(function(identifier, params, self._sharing(body, body) or [ast.Pass()]), at), identifier

    def _sharing(self, code: list[ast.stmt], body: list[ast.stmt]) -> list[ast.stmt]:
        bound = bound_names(code)
        mine = [n for n in bound if n in self.local_names]
        shared = [n for n in bound if n in self.global_names]
        head: list[ast.stmt] = [ast.Nonlocal(names=mine)] if mine else []
        head += [ast.Global(names=shared)] if shared else []
        return [*head, *body]

    def state(self, blocks: list[list[ast.stmt]], at: ast.AST) -> tuple[list[ast.stmt], list[ast.expr]]:
        """How the runtime reads and sets the names of the blocks: those they bind, and those they only read, since what
        they hold (a list) may change. What the function takes from functions around it can be looked at.

        Gives the functions to define beforehand, and the arguments (get, put, names, look) to pass.
        """
        code = [statement for block in blocks for statement in block]
        bound = [n for n in bound_names(code) if n in self.local_names or n in self.global_names]
        written = [*bound, *(n for n in read_names(code) if n in self.local_names and n not in bound)]
        seen = [n for n in read_names(code) if n not in written and n in self.outer_names]
        put = f"tp_put_{self.new_number()}"
        values = "tp_values"
        targets = ast.Tuple(elts=[name(n, store=True) for n in written], ctx=ast.Store())
        body: list[ast.stmt] = [ast.Assign(targets=[targets], value=name(values))] if written else [ast.Pass()]
        defined = same_place(function(put, [values], self._sharing(body, body)), at)
        get = thunk(runtime("values", *(thunk(name(n)) for n in written)))
        look = thunk(runtime("values", *(thunk(name(n)) for n in seen)))
        return [defined], [get, name(put), texts(written), look]
