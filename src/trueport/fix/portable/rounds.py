"""What a `for` goes over, as a counter: where it starts, ends, and which rows of which tensors each round has."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trueport.fix.portable.liveness import changed
from trueport.fix.portable.tests import plain
from trueport.fix.portable.text import NoPortableForm
from trueport.fix.portable.values import ValueKind
from trueport.fix.portable.writing import Writing
from trueport.rewrite.names import read_names


@dataclass(frozen=True)
class CountedRounds:
    """`counter` runs from `start` while it is below `stop`; each round has rows of tensors under names."""

    counter: str
    stop: str
    start: str = "0"
    step: str = "1"
    rows: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()


def rounds_of(p: Writing, node: ast.For) -> CountedRounds:
    match node.iter, node.target:
        case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), ast.Name(id=counter):
            return _counted(p, node, counter, bounds)
        case ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]), ast.Tuple(
            elts=[ast.Name(id=counter), ast.Name(id=target)]
        ):
            return _rows(p, node, counter, [(target, over)])
        case ast.Call(func=ast.Name(id="zip"), args=overs, keywords=[]), ast.Tuple(elts=targets) if all(
            isinstance(target, ast.Name) for target in targets
        ):
            (counter,) = p.fresh("i")
            return _rows(p, node, counter, [(ast.unparse(t), o) for t, o in zip(targets, overs, strict=True)])
        case over, ast.Name(id=target):
            (counter,) = p.fresh("i")
            return _rows(p, node, counter, [(target, over)])
        case _:
            raise NoPortableForm(node.lineno, f"no counter goes over `{ast.unparse(node.iter)}`")


def _counted(p: Writing, node: ast.For, counter: str, bounds: list[ast.expr]) -> CountedRounds:
    start, stop, step = "0", bounds[0], "1"
    if len(bounds) > 1:
        start, stop = p.write(plain(bounds[0])), bounds[1]
    if len(bounds) > 2:
        if not (isinstance(bounds[2], ast.Constant) and isinstance(bounds[2].value, int)):
            raise NoPortableForm(node.lineno, "the step of the range must be a positive number that is written down")
        step = str(bounds[2].value)
    text = p.write(plain(stop))
    if counter in changed(node.body):
        raise NoPortableForm(node.lineno, f"the loop assigns `{counter}`, which counts it")
    if set(read_names([stop])) & set(changed(node.body)) or _computes(stop):
        (name,) = p.fresh("rounds")
        return CountedRounds(counter, name, start, step, before=(f"{name} = {text}",))
    return CountedRounds(counter, text, start, step)


def _rows(p: Writing, node: ast.For, counter: str, items: list[tuple[str, ast.expr]]) -> CountedRounds:
    rows: list[tuple[str, str]] = []
    before: list[str] = []
    for target, over in items:
        text = tensor_of(p, over)
        if not isinstance(over, ast.Name) or over.id in changed(node.body):
            (name,) = p.fresh("rows")
            before.append(f"{name} = {text}")
            text = name
        rows.append((target, text))
    lengths = [f"{text}.shape[0]" for _, text in rows]
    stop = lengths[0]
    for length in lengths[1:]:
        stop = f"torch.sym_min({stop}, {length})"
    return CountedRounds(counter, stop, rows=tuple(rows), before=tuple(before))


def tensor_of(p: Writing, over: ast.expr) -> str:
    """What is gone over, as a tensor whose first axis is the rounds."""
    match over:
        case ast.Call(func=ast.Attribute(value=tensor, attr="unbind"), args=[], keywords=[]):
            return p.write(tensor)
        case (
            ast.Call(func=ast.Attribute(value=tensor, attr="unbind"), args=[ast.Constant(value=int(axis))])
            | ast.Call(
                func=ast.Attribute(value=tensor, attr="unbind"),
                args=[],
                keywords=[ast.keyword(value=ast.Constant(value=int(axis)))],
            )
        ):
            return p.write(tensor) if axis == 0 else f"{p.write(tensor)}.movedim({axis}, 0)"
        case _:
            value = p.value(over)
            if value is None or value.kind is not ValueKind.TENSOR:
                raise NoPortableForm(over.lineno, f"`{ast.unparse(over)}` is not a tensor whose rows could be counted")
            return p.write(over)


def _computes(node: ast.expr) -> bool:
    """Whether an expression should be computed once, before the loop: anything but names, sizes and arithmetic."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    known = ("size", "len", "int", "item")
    named = [c.func.attr if isinstance(c.func, ast.Attribute) else getattr(c.func, "id", "") for c in calls]
    return any(name not in known for name in named)
