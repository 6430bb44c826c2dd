"""A loop that is left by break or continue, as one that a flag ends."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trueport.fix.portable.text import NoPortableForm
from trueport.fix.portable.values import SeenValue, ValueKind
from trueport.fix.portable.writing import Writing
from trueport.rewrite.exits import contains, own_exits, without_own_exits


@dataclass(frozen=True)
class Unrolled:
    """A loop without exits: what to write before it, the flag that ends it, and what follows where nothing did."""

    node: ast.While | ast.For
    before: tuple[str, ...] = ()
    broke: str = ""
    after: tuple[ast.stmt, ...] = ()


def without_exits(p: Writing, node: ast.While | ast.For) -> Unrolled:
    if contains(node, ast.Return):
        raise NoPortableForm(node.lineno, "it returns from inside a loop")
    if not own_exits(node.body):
        return Unrolled(node, after=tuple(node.orelse))
    statements = without_own_exits(node)
    at = statements.index(node)
    made = _flags(statements)
    renamed = dict(zip(made, p.fresh(*(_NAMES[name.rsplit("_", 1)[0]] for name in made)), strict=True))
    for name in (n for statement in statements for n in ast.walk(statement) if isinstance(n, ast.Name)):
        name.id = renamed.get(name.id, name.id)
    broke = renamed.get(getattr(node, "tp_broke", ""), "")
    for flag in renamed.values():
        p.tensors[flag] = SeenValue(ValueKind.TENSOR, truth=True)
        p.flags.add(flag)
    p.restructured.update(id(inner) for statement in node.body for inner in ast.walk(statement))
    return Unrolled(node, tuple(ast.unparse(s) for s in statements[:at]), broke, tuple(statements[at + 1 :]))


_NAMES = {"tp_broke": "stopped", "tp_skip": "skipped"}


def _flags(statements: list[ast.stmt]) -> list[str]:
    names = (n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name))
    return list(dict.fromkeys(name for name in names if name.startswith(("tp_broke_", "tp_skip_"))))
