"""A number where a free size is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import called, dotted, keyword, parameters

_RESHAPES = frozenset({"view", "reshape"})
_OF_A_TENSOR = _RESHAPES | frozenset(
    {"expand", "repeat", "new_zeros", "new_ones", "new_empty", "new_full", "unflatten", "broadcast_to", "tile"}
)
_MAKES_A_TENSOR = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "arange", "eye", "broadcast_to", "tile"}
)


@dataclass(frozen=True)
class Size:
    """A number in the place of a size: where it stands, and what it is."""

    node: ast.expr
    value: int
    call: ast.Call
    position: int


class LiteralSize(Fix):
    """`x.view(8, 4)` becomes `x.view(x.shape[0], 4)`.

    A number (or an attribute that holds one) stands in `view`, `reshape`, `expand`, `zeros` and the like where a size
    was declared free. It is replaced by that size, taken from a tensor at hand whose axis was seen to move with it; or
    by -1 where the size is not an axis of anything, and a reshape can work it out.
    """

    codes = ("TP301", "TP002")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        told = {int(number) for fact in ("value", "numbers") for number in case.facts.get(fact, "").split()}
        here = [size for size in _sizes(case, case.on_the_line(ast.Call)) if size.value in told]
        above = [size for size in _sizes(case, _calls_before(case)) if size.value in told]
        yield from _all_of_one_number(case, here, above)
        yield from _one_by_one(case, here)
        yield from _one_by_one(case, above)
        yield from _left_to_the_reshape(case, list(_sizes(case, case.on_the_line(ast.Call))))


def _sizes(case: Case, calls: Iterator[ast.Call]) -> Iterator[Size]:
    for call in calls:
        method = isinstance(call.func, ast.Attribute) and dotted(call.func.value) != "torch"
        name = called(call)
        if name not in (_OF_A_TENSOR if method else _MAKES_A_TENSOR | _RESHAPES):
            continue
        given = [*call.args, *(found for word in ("size", "shape", "sizes") if (found := keyword(call, word)))]
        flat = [item for node in given for item in (node.elts if isinstance(node, ast.Tuple | ast.List) else [node])]
        for position, node in enumerate(flat):
            value = _number(case, node)
            if value is not None and value > 1:
                yield Size(node, value, call, position)


def _number(case: Case, node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    held = case.names.get(dotted(node), ())
    numbers = {each.number for each in held}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if type(number) is int else None


def _calls_before(case: Case) -> Iterator[ast.Call]:
    """Calls on the lines of the function above the finding's, nearest first: a tensor may be made there."""
    if case.function is None or case.statement is None:
        return
    above = [
        node
        for node in ast.walk(case.function)
        if isinstance(node, ast.Call) and (node.end_lineno or 0) < case.statement.lineno
    ]
    yield from sorted(above, key=lambda node: -node.lineno)


def _all_of_one_number(case: Case, here: list[Size], above: list[Size]) -> Iterator[Proposal]:
    """One number for one size: where it stands in the place of the moving axis, it is the size wherever it does so."""
    for value in dict.fromkeys(size.value for size in here or above):
        same = [size for size in (*above, *here) if size.value == value]
        texts = [_expression(case, size, only_parameters=size in above) for size in same]
        fitting = [(size, text) for size, text in zip(same, texts, strict=True) if _in_its_place(size, text)]
        if len(fitting) > 1:
            edits = tuple(case.source.replace(size.node, text) for size, text in fitting)
            said = ", ".join(dict.fromkeys(text for _, text in fitting))
            yield Proposal(f"use the size itself: {said}", edits, spread=True)


def _one_by_one(case: Case, sizes: list[Size]) -> Iterator[Proposal]:
    """Each number by itself, those in the place of the moving axis first."""
    found = [(size, text) for size in sizes if (text := _expression(case, size, only_parameters=False))]
    for size, text in sorted(found, key=lambda pair: not _in_its_place(*pair)):
        yield Proposal(f"use the size itself: {text}", (case.source.replace(size.node, text),), spread=True)


def _in_its_place(size: Size, text: str) -> bool:
    return text.endswith(f".shape[{size.position}]")


def _expression(case: Case, size: Size, only_parameters: bool) -> str:
    """An axis of a tensor at hand that has a free size in every run; the tensor that is reshaped first."""
    runs = case.scene.sizes_at((case.where.file, case.where.line))
    if len(runs) < 2:
        return ""
    wanted = case.facts.get("size")
    free = [name for name in runs[0] if wanted in (None, name) and len({run[name] for run in runs}) > 1]
    receiver = dotted(size.call.func.value) if isinstance(size.call.func, ast.Attribute) else ""
    known = parameters(case.function) if case.function else []
    usable = [name for name in case.names if name in known or not only_parameters]
    names = sorted(usable, key=lambda name: (name != receiver, name not in known, name))
    for name in names:
        held = case.names[name]
        if name.startswith("self.") or not all(each.is_tensor for each in held):
            continue
        for axis in range(min(len(each.shape or ()) for each in held)):
            lengths = [(each.shape or ())[axis] for each in held]
            if any(lengths == [run[symbol] for run in runs] for symbol in free):
                return f"{name}.shape[{axis}]"
    return ""


def _left_to_the_reshape(case: Case, sizes: list[Size]) -> Iterator[Proposal]:
    for size in sizes:
        if called(size.call) not in _RESHAPES or _has_an_open_size(size.call):
            continue
        edit: Edit = case.source.replace(size.node, "-1")
        yield Proposal("leave the size to the reshape: -1", (edit,))


def _has_an_open_size(call: ast.Call) -> bool:
    return any(isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) for node in ast.walk(call))
