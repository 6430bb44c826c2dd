"""while, and for over what has an open length, as torch.while_loop; a for that fills lists as scan (`scans.py`).

while b != 0:                   def keep_going(a, b):
    a, b = b, a % b                 return b != 0
                        →       def step(a, b):
                                    a, b = b, a % b
                                    return a.clone(), b
                                a, b = torch.while_loop(keep_going, step, (a, b))
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueport.fix.portable import scans
from trueport.fix.portable.branches import leaving, refuse_side_effects
from trueport.fix.portable.exits import Unrolled, without_exits
from trueport.fix.portable.liveness import changed, needed, written_in_place
from trueport.fix.portable.rounds import CountedRounds, rounds_of
from trueport.fix.portable.text import STEP, NoPortableForm, call_lines
from trueport.fix.portable.values import SeenValue, ValueKind
from trueport.fix.portable.writing import Inside, Writing
from trueport.rewrite.exits import contains
from trueport.rewrite.names import bound_names, read_names


@dataclass(frozen=True)
class CarriedName:
    """A name that goes from round to round, and what the first round is given for it."""

    name: str
    start: str


def while_loop(p: Writing, node: ast.While, indent: str, inside: Inside) -> list[str]:
    loop = without_exits(p, node)
    assert isinstance(loop.node, ast.While)
    test = _with_flag(loop, loop.node.test)
    after = inside.after | frozenset(read_names(loop.after))
    live, carried = _carried(p, loop.node, test, after)
    lines = [indent + line for line in loop.before]
    names = [each.name for each in carried]
    keep, step = p.fresh("keep_going", "step")
    asked = p.test(test)
    text = f"{asked.text}.clone()" if asked.text in names else asked.text
    lines += [f"{indent}def {keep}({', '.join(names)}):", f"{indent}{STEP}return {text}", ""]
    lines += [f"{indent}def {step}({', '.join(names)}):"]
    lines += _round(p, loop.node.body, carried, [], indent + STEP, replace(inside, after=live))
    start = _tuple([each.start for each in carried])
    lines += ["", *call_lines(indent, f"{_targets(names)} = torch.while_loop", [keep, step, start])]
    return [*lines, *p.block(loop.after, indent, inside)]


def for_loop(p: Writing, node: ast.For, indent: str, inside: Inside, rest: list[ast.stmt]) -> list[str]:
    if scans.fills_lists(node):
        return scans.scan(p, node, indent, inside, rest)
    loop = without_exits(p, node)
    assert isinstance(loop.node, ast.For)
    rounds = rounds_of(p, loop.node)
    targets = bound_names([node.target])
    if set(targets) & inside.after:
        raise NoPortableForm(node.lineno, f"`{ast.unparse(node.target)}` is read after the loop")
    after = inside.after | frozenset(read_names(loop.after))
    flag = ast.Name(loop.broke, ast.Load()) if loop.broke else None
    live, carried = _carried(p, loop.node, flag, after, not_carried=targets)
    as_tensor = bool(loop.broke) or p.style.tensor_counters
    if as_tensor:
        p.tensors[rounds.counter] = SeenValue(ValueKind.TENSOR)
        p.counters.add(rounds.counter)
    keep, step = p.fresh("keep_going", "step")
    names = [rounds.counter, *(each.name for each in carried)]
    test = f"{rounds.counter} < {rounds.stop}"
    if loop.broke:
        test = f"({test}) & torch.logical_not({loop.broke})"
    lines = [indent + line for line in (*loop.before, *rounds.before)]
    lines += [f"{indent}def {keep}({', '.join(names)}):", f"{indent}{STEP}return {test}", ""]
    lines += [f"{indent}def {step}({', '.join(names)}):"]
    lines += [f"{indent}{STEP}{line}" for line in _items(p, rounds, as_tensor)]
    count = f"{rounds.counter} + {rounds.step}"
    lines += _round(p, loop.node.body, carried, [count], indent + STEP, replace(inside, after=live))
    start = _tuple([f"torch.tensor({rounds.start})" if as_tensor else rounds.start, *(c.start for c in carried)])
    kept = _targets(["_", *(each.name for each in carried)])
    lines += ["", *call_lines(indent, f"{kept} = torch.while_loop", [keep, step, start])]
    return [*lines, *p.block(loop.after, indent, inside)]


def row(p: Writing, node: ast.Subscript) -> str | None:
    """`x[:, i]` where i is counted by a tensor: x[:, i.reshape(1)].squeeze(1)."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    at = [k for k, part in enumerate(parts) if set(read_names([part])) & p.counters and not isinstance(part, ast.Slice)]
    if not at:
        return None
    if len(at) > 1 or any(isinstance(part, ast.Constant) and part.value is ... for part in parts):
        raise NoPortableForm(node.lineno, f"`{ast.unparse(node)}` takes a place that only the loop knows")
    axis = sum(isinstance(part, ast.Slice) for part in parts[: at[0]])
    texts = [p.write(part) for part in parts]
    counted = parts[at[0]]
    texts[at[0]] = f"{texts[at[0]]}.reshape(1)" if isinstance(counted, ast.Name) else f"({texts[at[0]]}).reshape(1)"
    return f"{p.write(node.value)}[{', '.join(texts)}].squeeze({axis})"


def carried_names(
    p: Writing, body: Sequence[ast.stmt], test: ast.expr | None, after: frozenset[str], not_carried: Sequence[str] = ()
) -> tuple[frozenset[str], list[str]]:
    """What is alive where a round begins, and which of that the round changes."""
    live = set(after) | (set(read_names([test])) if test is not None else set())
    live |= needed(body, live)
    return frozenset(live), [n for n in p.in_order(changed(body)) if n in live and n not in not_carried]


def carry(p: Writing, names: Sequence[str], node: ast.While | ast.For, ints_as_tensors: bool) -> list[CarriedName]:
    found: list[CarriedName] = []
    branches = [inner for statement in node.body for inner in ast.walk(statement) if isinstance(inner, ast.If)]
    chosen = {name for branch in branches for name in changed([branch])}
    for name in names:
        value = p.name(name, node.lineno)
        if not p.is_known(name, node.lineno):
            raise NoPortableForm(node.lineno, f"`{name}` has no value before the loop, and the loop may run not at all")
        if value is None or value.kind is ValueKind.OTHER:
            raise NoPortableForm(node.lineno, f"`{name}` goes from round to round and is neither a tensor nor a number")
        if value.kind is ValueKind.TENSOR:
            given = f"{name}.clone()" if p.style.clone_all else name
            found.append(CarriedName(name, f"torch.tensor({name})" if name in p.flags else given))
        elif value.kind is ValueKind.INT and not ints_as_tensors and name not in chosen:
            found.append(CarriedName(name, name))
        else:
            p.tensors[name] = SeenValue(ValueKind.TENSOR, value.kind is ValueKind.BOOL)
            if value.kind is ValueKind.INT:
                p.counters.add(name)
            found.append(CarriedName(name, f"torch.tensor({name})"))
    return found


def _carried(
    p: Writing,
    node: ast.While | ast.For,
    test: ast.expr | None,
    after: frozenset[str],
    not_carried: Sequence[str] = (),
) -> tuple[frozenset[str], list[CarriedName]]:
    for statement in node.body:
        if contains(statement, ast.Return) or isinstance(statement, ast.Return):
            raise NoPortableForm(statement.lineno, "it returns from inside a loop")
    refuse_side_effects(node.body, node)
    live, names = carried_names(p, node.body, test, after, not_carried)
    as_tensors = p.style.tensor_counters or (test is not None and _mixes(p, test))
    return live, carry(p, names, node, as_tensors)


def _mixes(p: Writing, test: ast.expr) -> bool:
    """Whether a test joins a tensor to a number: torch wants two of a kind."""
    if not isinstance(test, ast.BoolOp):
        return False
    values = [p.value(part) for part in ast.walk(test) if isinstance(part, (ast.Name, ast.Compare, ast.Call))]
    kinds = {value.kind for value in values if value is not None}
    return ValueKind.TENSOR in kinds or ValueKind.BOOL in {
        v.kind for v in values if v is not None and v.kind is ValueKind.BOOL
    }


def _with_flag(loop: Unrolled, test: ast.expr) -> ast.expr:
    if not loop.broke:
        return test
    going = ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=ast.Name(loop.broke, ast.Load())), test)
    if isinstance(test, ast.Constant) and test.value:
        return ast.fix_missing_locations(going)
    return ast.fix_missing_locations(ast.copy_location(ast.BoolOp(op=ast.And(), values=[going, test]), test))


def _items(p: Writing, rounds: CountedRounds, as_tensor: bool) -> list[str]:
    place = f"{rounds.counter}.reshape(1)" if as_tensor else rounds.counter
    taken = f"[{place}].squeeze(0)" if as_tensor else f"[{place}]"
    return [f"{target} = {tensor}{taken}" for target, tensor in rounds.rows]


def _round(
    p: Writing, body: list[ast.stmt], carried: list[CarriedName], first: list[str], indent: str, inside: Inside
) -> list[str]:
    names = frozenset(each.name for each in carried)
    lines = [f"{indent}{name} = {name}.clone()" for name in written_in_place(body) if name in names]
    p.loop_depth += 1
    lines += [
        line for line in p.block(body, indent, replace(inside, arm=None, augmented=names)) if line.strip() != "pass"
    ]
    p.loop_depth -= 1
    given = [each.name if _stays_number(p, each) else leaving(p, each.name, body, names) for each in carried]
    return [*lines, f"{indent}return {', '.join([*first, *given])}"]


def _stays_number(p: Writing, each: CarriedName) -> bool:
    return each.name == each.start and each.name not in p.tensors and _is_int(p.seen.name(each.name))


def _is_int(value: SeenValue | None) -> bool:
    return value is not None and value.kind is ValueKind.INT


def _tuple(texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _targets(names: list[str]) -> str:
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)
