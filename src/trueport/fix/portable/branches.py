"""if, and the ternary, as torch.cond; inside a loop of torch's, or where asked for, both arms and torch.where.

if mask.any():                         def true_branch(x, mask):
    x = x.masked_fill(mask, 0)             x = x.masked_fill(mask, 0)
                                           return x
                               →       def false_branch(x, mask):
                                           return x.clone()
                                       x = torch.cond(mask.any(), true_branch, false_branch, (x, mask))
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueport.fix.portable.aliasing import aliases
from trueport.fix.portable.liveness import changed, needed, written_in_place
from trueport.fix.portable.tests import Test
from trueport.fix.portable.text import STEP, NoPortableForm, call_lines
from trueport.fix.portable.values import SeenValue, ValueKind, is_number
from trueport.fix.portable.writing import Inside, Writing
from trueport.rewrite.exits import always_leaves, contains

_CHEAP = (
    ast.Name,
    ast.Constant,
    ast.Attribute,
    ast.BinOp,
    ast.UnaryOp,
    ast.Subscript,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)


@dataclass(frozen=True)
class ArmOperand:
    """A name that an arm is given, and what is given for it."""

    name: str
    text: str


def branch(p: Writing, node: ast.If, indent: str, inside: Inside) -> list[str]:
    """An `if` whose arms go on behind it."""
    arms = (node.body, node.orelse)
    refuse_side_effects([*node.body, *node.orelse], node)
    outs = p.in_order(name for name in changed([*node.body, *node.orelse]) if name in inside.after)
    if not outs:
        raise NoPortableForm(
            node.lineno, "nothing that its arms assign is read afterwards, so there is nothing to choose"
        )
    test = p.test(node.test)
    if p.both_arms:
        _needs_tensor(test, node)
        values = [_only_value(p, arm, outs) for arm in arms]
        if len(outs) == 1 and values[0] is not None and values[1] is not None:
            _becomes_tensor(p, outs)
            return [f"{indent}{outs[0]} = {_either(p, outs[0], test, values[0], values[1])}"]
    operands = _operands(p, node, [needed(arm, outs) for arm in arms], outs)
    names = p.fresh("true_branch", "false_branch")
    defined: list[str] = []
    for name, arm in zip(names, arms, strict=True):
        with p.in_arm():
            lines = _arm(p, arm, outs, operands, indent + STEP, replace(inside, after=frozenset(outs)))
        defined += [f"{indent}def {name}({_listed(operands)}):", *lines, ""]
    _becomes_tensor(p, outs)
    if p.both_arms:
        return [*defined, *_chosen(p, test, names, operands, outs, indent)]
    head = f"{', '.join(outs)} = torch.cond"
    return [*defined, *call_lines(indent, head, [test.text, *names, _given(operands)])]


def returning(p: Writing, node: ast.If, rest: list[ast.stmt], indent: str, inside: Inside) -> list[str]:
    """An `if` with a `return` in it: what follows it is the rest of the arm that does not return."""
    body, orelse = [*node.body], [*node.orelse]
    body += [] if always_leaves(body) else rest
    orelse += [] if always_leaves(orelse) else rest
    if p.loop_depth:
        raise NoPortableForm(node.lineno, "it returns from inside a loop")
    for arm in (body, orelse):
        refuse_side_effects(arm, node)
        if not always_leaves(arm):
            raise NoPortableForm(
                node.lineno, "one arm returns, and what the other goes on with stands outside this block"
            )
    test = p.test(node.test)
    operands = _operands(p, node, [needed(body), needed(orelse)], [])
    names = p.fresh("true_branch", "false_branch")
    lines: list[str] = []
    for name, arm in zip(names, (body, orelse), strict=True):
        written = [n for n in written_in_place(arm) if n in {o.name for o in operands}]
        within = replace(
            inside, after=frozenset(), arm=aliases(arm, p.decides), augmented=frozenset(o.name for o in operands)
        )
        lines += [f"{indent}def {name}({_listed(operands)}):"]
        lines += [f"{indent}{STEP}{n} = {n}.clone()" for n in written]
        with p.in_arm():
            lines += [*p.block(arm, indent + STEP, within), ""]
    if p.both_arms and test.is_tensor and _return_one_tensor(body) and _return_one_tensor(orelse):
        given = ", ".join(operand.text for operand in operands)
        return [*lines, f"{indent}return torch.where({test.text}, {names[0]}({given}), {names[1]}({given}))"]
    return [*lines, *call_lines(indent, "return torch.cond", [test.text, *names, _given(operands)])]


def _return_one_tensor(arm: Sequence[ast.stmt]) -> bool:
    returned = [n.value for s in arm for n in ast.walk(s) if isinstance(n, ast.Return)]
    return not any(isinstance(value, ast.Tuple | ast.Dict | ast.List) for value in returned)


def ternary(p: Writing, node: ast.IfExp) -> str:
    test = p.test(node.test)
    arms = [p.write(node.body), p.write(node.orelse)]
    values = [p.value(node.body), p.value(node.orelse)]
    cheap = all(isinstance(n, _CHEAP) for a in (node.body, node.orelse) for n in ast.walk(a))
    if test.is_tensor and (cheap or p.both_arms):
        return f"torch.where({test.text}, {arms[0]}, {arms[1]})"
    if not test.is_tensor and all(value is not None and value.kind.is_number for value in values):
        return f"torch.sym_ite({test.text}, {arms[0]}, {arms[1]})"
    if p.both_arms:
        raise NoPortableForm(node.lineno, "a number decides here, inside a loop of torch's")
    given = [p.apart(arm, {}) for arm in (node.body, node.orelse)]
    return f"torch.cond({test.text}, lambda: {given[0]}, lambda: {given[1]}, ())"


def leaving(p: Writing, name: str, statements: Sequence[ast.stmt], given: frozenset[str]) -> str:
    """A name as the last line of an arm or a round gives it: never the very tensor that it was given."""
    if name not in changed(statements):
        return f"{name}.clone()"
    value = p.seen.name(name)
    plain = value is not None and value.kind.is_number and name not in given and name not in p.tensors
    if plain or _assigned_number(name, statements):
        return f"torch.full((), {name})"
    if name in written_in_place(statements) and name not in aliases(statements, p.decides):
        return name  # a copy was made before it was written to
    return f"{name}.clone()" if p.style.clone_all or aliases(statements, p.decides).get(name, True) else name


def folded(body: list[str], ends: str, indent: str) -> list[str]:
    """`y = x * 2` and `return y` are `return x * 2`."""
    last = body[-1] if body else ""
    name = ends.removesuffix(".clone()")
    assigned = last.removeprefix(f"{indent}{name} = ")
    plain_line = (
        assigned != last and name.isidentifier() and "#" not in last and not assigned.startswith(("(", "lambda"))
    )
    if plain_line and (name == ends or assigned.endswith((")", "]"))) and assigned.count("(") == assigned.count(")"):
        return [*body[:-1], f"{indent}return {assigned}{ends.removeprefix(name)}"]
    return [*body, f"{indent}return {ends}"]


def refuse_side_effects(statements: Sequence[ast.stmt], at: ast.stmt) -> None:
    """What an arm does beside giving values cannot be undone where the other arm is the right one."""
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            raise NoPortableForm(node.lineno, f"`{ast.unparse(node)}` is assigned where only a value decides whether")
        if isinstance(node, ast.Raise):
            raise NoPortableForm(node.lineno, "an exception is raised by a value, and no graph can raise")
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
            raise NoPortableForm(node.lineno, "a generator waits here")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend")
        ):
            raise NoPortableForm(node.lineno, f"`{ast.unparse(node)}` grows a list where only a value decides whether")
    if any(
        contains(statement, (ast.Break, ast.Continue)) for statement in [at] if not isinstance(at, ast.While | ast.For)
    ):
        raise NoPortableForm(at.lineno, "it leaves a loop that Python itself runs")


def _arm(
    p: Writing, arm: list[ast.stmt], outs: list[str], operands: list[ArmOperand], indent: str, inside: Inside
) -> list[str]:
    given = frozenset(operand.name for operand in operands)
    head = [f"{indent}{name} = {name}.clone()" for name in written_in_place(arm) if name in given]
    body = p.block(arm, indent, replace(inside, augmented=given)) if arm else []
    body = [line for line in body if line.strip() != "pass"]
    ends = ", ".join(leaving(p, name, arm, given) for name in outs)
    return [*head, *folded(body, ends, indent)]


def _operands(p: Writing, node: ast.If, reads: Sequence[set[str]], outs: list[str]) -> list[ArmOperand]:
    """Tensors are given; other things an arm may look at where they are, but not change."""
    found: list[ArmOperand] = []
    bound = set(changed([*node.body, *node.orelse]))
    for name in p.in_order(set().union(*reads)):
        value = p.name(name, node.lineno)
        if not p.is_known(name, node.lineno):
            if name in outs:
                raise NoPortableForm(node.lineno, f"`{name}` has a value in one arm only")
            continue
        if value is not None and value.kind is ValueKind.TENSOR:
            found.append(ArmOperand(name, name))
        elif name in bound and value is not None and value.kind.is_number:
            p.tensors[name] = SeenValue(ValueKind.TENSOR, value.kind is ValueKind.BOOL)
            found.append(ArmOperand(name, f"torch.tensor({name})"))
        elif name in bound and name in outs:
            raise NoPortableForm(node.lineno, f"`{name}` is neither a tensor nor a number, and an arm changes it")
    return found


def _only_value(p: Writing, arm: list[ast.stmt], outs: list[str]) -> str | None:
    """What an arm of one assignment assigns; the name as it is for an arm that does nothing."""
    match arm:
        case [] | [ast.Pass()]:
            return outs[0]
        case [ast.Assign(targets=[ast.Name()], value=value)]:
            return p.write(value)
        case _:
            return None


def _chosen(
    p: Writing, test: Test, names: list[str], operands: list[ArmOperand], outs: list[str], indent: str
) -> list[str]:
    given = ", ".join(operand.text for operand in operands)
    if len(outs) == 1:
        sides_text = [f"{name}({given})" for name in names]
        return [f"{indent}{outs[0]} = {_either(p, outs[0], test, *sides_text)}"]
    (holds,) = p.fresh("holds")
    sides = [p.fresh(*(f"{name}_{side}" for name in outs)) for side in ("if_true", "if_false")]
    lines = [f"{indent}{holds} = {test.text}"]
    lines += [f"{indent}{', '.join(side)} = {name}({given})" for side, name in zip(sides, names, strict=True)]
    chosen = Test(holds, is_tensor=True, is_atom=True)
    return lines + [f"{indent}{out} = {_either(p, out, chosen, a, b)}" for out, a, b in zip(outs, *sides, strict=True)]


def _either(p: Writing, name: str, test: Test, if_true: str, if_false: str) -> str:
    """torch.where; truths are joined by logic, since ONNX Runtime has no Where of them."""
    value = p.tensors.get(name) or p.seen.name(name)
    if value is None or not (value.truth or value.kind is ValueKind.BOOL):
        return f"torch.where({test.text}, {if_true}, {if_false})"
    against = f"torch.logical_not({test.text})"
    match if_true, if_false:
        case "True", _:
            return f"{test.operand} | {if_false}"
        case "False", _:
            return f"{against} & {if_false}"
        case _, "True":
            return f"{against} | {if_true}"
        case _, "False":
            return f"{test.operand} & {if_true}"
        case _:
            return f"({test.operand} & {if_true}) | ({against} & {if_false})"


def _becomes_tensor(p: Writing, names: list[str]) -> None:
    for name in names:
        value = p.seen.name(name)
        if value is None or value.kind.is_number:
            p.tensors.setdefault(name, SeenValue(ValueKind.TENSOR, value is None or value.kind is ValueKind.BOOL))


def _assigned_number(name: str, statements: Sequence[ast.stmt]) -> bool:
    last = [s for s in statements if isinstance(s, ast.Assign) and any(_is(t, name) for t in s.targets)]
    return bool(last) and is_number(last[-1].value)


def _is(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _needs_tensor(test: Test, node: ast.If) -> None:
    if not test.is_tensor:
        raise NoPortableForm(node.lineno, "a number decides here, inside a loop of torch's")


def _listed(operands: list[ArmOperand]) -> str:
    return ", ".join(operand.name for operand in operands)


def _given(operands: list[ArmOperand]) -> str:
    texts = [operand.text for operand in operands]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
