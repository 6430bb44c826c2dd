"""A for that fills lists, which are stacked or concatenated afterwards, as scan.

outs = []                                   def step(h, x_t):
for t in range(x.shape[1]):                     h = torch.tanh(self.wx(x_t) + self.wh(h))
    h = torch.tanh(self.wx(x[:, t]) + self.wh(h))       return h, h.clone()
    outs.append(h)                  →
return torch.stack(outs, 1)                 h, outs = scan(step, h, x.movedim(1, 0))
                                            return outs.movedim(0, 1)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueport.fix.portable import loops
from trueport.fix.portable.aliasing import aliases, may_alias
from trueport.fix.portable.branches import leaving, refuse_side_effects
from trueport.fix.portable.liveness import changed, written_in_place
from trueport.fix.portable.rounds import rounds_of, tensor_of
from trueport.fix.portable.text import STEP, NoPortableForm
from trueport.fix.portable.values import SeenValue, ValueKind
from trueport.fix.portable.writing import Inside, Writing
from trueport.rewrite.exits import contains, own_exits
from trueport.rewrite.names import bound_names, read_names

SCAN = "from torch._higher_order_ops import scan"
"""Where torch keeps it: there is no public name yet."""


def appended(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list and the item of `items.append(item)`."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item], keywords=[])
        ):
            return name, item
        case _:
            return None


def fills_lists(node: ast.For) -> bool:
    return any(appended(statement) for statement in node.body)


def starts_list(p: Writing, statement: ast.stmt, rest: list[ast.stmt]) -> bool:
    """`outs = []` before a loop that becomes a scan: the scan makes `outs`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
            filling = [s for s in rest if isinstance(s, ast.For) and p.decides(s)]
            return any((found := appended(s)) and found[0] == name for loop in filling for s in loop.body)
        case _:
            return False


@dataclass(frozen=True)
class _Over:
    """What a scan goes over, and the name of each round's part."""

    name: str
    text: str
    before: tuple[str, ...] = ()


def scan(p: Writing, node: ast.For, indent: str, inside: Inside, rest: list[ast.stmt]) -> list[str]:
    if own_exits(node.body) or contains(node, ast.Return):
        raise NoPortableForm(
            node.lineno, "a list that it fills is as long as the rounds that ran, and a scan runs them all"
        )
    lists = [found[0] for statement in node.body if (found := appended(statement))]
    if len(set(lists)) != len(lists):
        raise NoPortableForm(node.lineno, f"`{lists[0]}` is appended to more than once in a round")
    body = [statement for statement in node.body if not appended(statement)]
    refuse_side_effects(body, node)
    over = _over(p, node)
    for name in lists:
        if name in read_names(body):
            raise NoPortableForm(node.lineno, f"`{name}` is read in the loop that fills it")
        _rewrite_uses(p, name, rest)
    items = _items(p, node, lists)
    targets = bound_names([node.target])
    live, names = loops.carried_names(p, body, None, inside.after, [*targets, *lists])
    carried = loops.carry(p, names, node, ints_as_tensors=True)
    (step,) = p.fresh("step")
    p.imports.add(SCAN)
    return [
        *(indent + line for line in over.before),
        *_step(p, node, step, over, carried, items, indent, replace(inside, after=live)),
        f"{indent}{_left(names)}, {_group(lists)} = scan({step}, {_start(carried)}, {over.text})",
    ]


def _step(
    p: Writing,
    node: ast.For,
    step: str,
    over: _Over,
    carried: list[loops.CarriedName],
    items: dict[str, tuple[str, ast.expr]],
    indent: str,
    inside: Inside,
) -> list[str]:
    names = [each.name for each in carried]
    state = names[0] if len(names) == 1 else "carried" if names else "nothing"
    inner = indent + STEP
    lines = [f"{indent}def {step}({state}, {over.name}):"]
    if len(names) > 1:
        lines.append(f"{inner}{', '.join(names)} = {state}")
    lines += [f"{inner}{name} = {name}.clone()" for name in written_in_place(node.body) if name in names]
    p.loop_depth += 1
    reads = frozenset(read_names(node.body)) | inside.after
    for statement in node.body:
        found = appended(statement)
        if found is None:
            lines += p.block([statement], inner, replace(inside, arm=None, after=reads, augmented=frozenset(names)))
        elif items[found[0]][0]:
            lines.append(f"{inner}{items[found[0]][0]} = {p.write(found[1])}")
    p.loop_depth -= 1
    body = [statement for statement in node.body if not appended(statement)]
    kept = [leaving(p, name, body, frozenset(names)) for name in names]
    ends = kept[0] if len(kept) == 1 else f"({', '.join(kept)})" if kept else "nothing.clone()"
    given = _group([_item(p, name, item, body) for name, item in items.values()])
    return [*lines, f"{inner}return {ends}, {given}", ""]


def _items(p: Writing, node: ast.For, lists: Sequence[str]) -> dict[str, tuple[str, ast.expr]]:
    """What each list is given, and the name it waits under where the round goes on after the append."""
    found: dict[str, tuple[str, ast.expr]] = {}
    for at, statement in enumerate(node.body):
        each = appended(statement)
        if each is None:
            continue
        later = set(changed(node.body[at + 1 :]))
        waits = p.fresh(f"{each[0]}_item")[0] if later & set(read_names([each[1]])) else ""
        found[each[0]] = (waits, each[1])
    return {name: found[name] for name in lists}


def _item(p: Writing, waiting: str, item: ast.expr, body: list[ast.stmt]) -> str:
    text = waiting or p.write(item)
    # A name of the round leaves with the state as well: the list has a copy.
    shares = isinstance(item, ast.Name) or p.style.clone_all or may_alias(item, aliases(body, p.decides))
    simple = waiting or isinstance(item, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    return f"{text if simple else f'({text})'}.clone()" if shares else text


def _over(p: Writing, node: ast.For) -> _Over:
    match node.iter, node.target:
        case ast.Call(func=ast.Name(id="range"), args=[_]), ast.Name(id=counter):
            rows = _rows_by_counter(p, node, counter)
            if rows is not None:
                return rows
            rounds = rounds_of(p, node)
            p.tensors[counter] = SeenValue(ValueKind.TENSOR)
            p.counters.add(counter)
            return _Over(counter, f"torch.arange({rounds.stop})", rounds.before)
        case ast.Call(func=ast.Name(id="zip"), args=overs), ast.Tuple():
            raise NoPortableForm(node.lineno, f"a scan goes over one tensor, and this over {len(overs)}")
        case over, ast.Name(id=target):
            return _Over(target, tensor_of(p, over))
        case _:
            raise NoPortableForm(node.lineno, f"no scan goes over `{ast.unparse(node.iter)}`")


def _rows_by_counter(p: Writing, node: ast.For, counter: str) -> _Over | None:
    """`x[:, t]` and nothing else of t, over the length of that axis of x: the rows of x themselves."""
    uses = [
        n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Subscript) and counter in read_names([n.slice])
    ]
    texts = {ast.unparse(use) for use in uses}
    mentions = sum(isinstance(n, ast.Name) and n.id == counter for s in node.body for n in ast.walk(s))
    if len(texts) != 1 or mentions != len(uses) or not isinstance(uses[0].value, ast.Name):
        return None
    tensor, index = uses[0].value.id, uses[0].slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    axis = len(parts) - 1
    whole = all(isinstance(part, ast.Slice) and ast.unparse(part) == ":" for part in parts[:-1])
    lengths = {f"{tensor}.shape[{axis}]", f"{tensor}.size({axis})", *([f"len({tensor})"] if axis == 0 else [])}
    assert isinstance(node.iter, ast.Call)
    if not whole or not isinstance(parts[-1], ast.Name) or tensor in changed(node.body):
        return None
    if p.source_of(node.iter.args[0]) not in lengths:
        return None
    (name,) = p.fresh(f"{tensor}_{counter}")
    p.replaced |= {id(use): name for use in uses}
    return _Over(name, tensor if axis == 0 else f"{tensor}.movedim({axis}, 0)")


def _rewrite_uses(p: Writing, name: str, rest: list[ast.stmt]) -> None:
    """The list is a tensor now, its items along the first axis."""
    known: set[int] = set()
    for node in (node for statement in rest for node in ast.walk(statement)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="stack" | "cat" as called),
                args=[ast.Name(id=used) as mention, *more],
            ) if used == name:
                p.replaced[id(node)] = _joined(name, called, _axis(node, more))
                known.add(id(mention))
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=used) as mention]) if used == name:
                p.replaced[id(node)] = f"{name}.shape[0]"
                known.add(id(mention))
            case ast.Subscript(value=ast.Name(id=used) as mention) if used == name:
                known.add(id(mention))
            case ast.Name(id=used) if used == name and id(node) not in known:
                raise NoPortableForm(node.lineno, f"`{name}` is used as a list, and a scan gives one tensor")


def _axis(call: ast.Call, more: list[ast.expr]) -> int:
    written = [*more, *(k.value for k in call.keywords if k.arg == "dim")]
    if not written:
        return 0
    try:
        return int(ast.literal_eval(written[0]))
    except ValueError:
        raise NoPortableForm(call.lineno, "the axis to join along must be written down") from None


def _joined(name: str, called: str, axis: int) -> str:
    if called == "stack":
        return name if axis == 0 else f"{name}.movedim(0, {axis})"
    if axis == 0:
        return f"{name}.flatten(0, 1)"
    first = axis if axis > 0 else axis - 1
    return f"{name}.movedim(0, {first}).flatten({first}, {first + 1})"


def _group(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _left(names: list[str]) -> str:
    return _group(names) if names else "_"


def _start(carried: list[loops.CarriedName]) -> str:
    return _group([each.start for each in carried]) if carried else "torch.zeros(())"
