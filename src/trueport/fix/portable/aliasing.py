"""Whether what an arm gives may share memory with what it was given: torch.cond and torch.while_loop refuse that."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

VIEWS = frozenset(
    "view reshape transpose permute squeeze unsqueeze expand expand_as flatten narrow select chunk split unbind t"
    " movedim moveaxis swapaxes swapdims contiguous to float double half type type_as detach real imag diagonal unfold"
    " view_as reshape_as unflatten ravel broadcast_to atleast_1d atleast_2d long int bool cpu data".split()
)
"""Methods and functions whose result may be a view of their argument, or it itself."""


def may_alias(node: ast.expr, names: Mapping[str, bool]) -> bool:
    """`names` says of the arm's own names whether they may; any other name is something that the arm was given."""
    match node:
        case ast.Name(id=name):
            return names.get(name, True)
        case ast.Attribute() | ast.Subscript() | ast.Starred():
            return True
        case ast.Call(func=ast.Attribute(attr=called)) | ast.Call(func=ast.Name(id=called)):
            return called in VIEWS
        case ast.IfExp(body=body, orelse=orelse):
            return may_alias(body, names) or may_alias(orelse, names)
        case _:
            return False


def aliases(statements: Sequence[ast.stmt], is_chosen: Callable[[ast.stmt], bool]) -> dict[str, bool]:
    """Of each name that the statements bind: whether its value may be, or share memory with, something given.

    `is_chosen` tells the branches and loops that are torch's: what comes out of them is new.
    """
    found: dict[str, bool] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = isinstance(value, ast.Name) or may_alias(value, found)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                now = [isinstance(value, ast.Name) or may_alias(value, found) for value in values]
                found |= {name.id: now[at] for at, name in enumerate(names) if isinstance(name, ast.Name)}
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Call() as value):
                found |= {name.id: may_alias(value, found) for name in names if isinstance(name, ast.Name)}
            case ast.AugAssign(target=ast.Name(id=name)):
                found[name] = False  # written as `y = y + …`
            case _:
                stored = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
                found |= {name.id: not is_chosen(statement) for name in stored}
    return found
