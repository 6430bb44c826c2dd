"""A list or a dict that is asked with a value of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.syntax import atom, dotted, imported_as

_MOST_CHOICES = 8


class ChoiceByValue(Fix):
    """`{True: a, False: b}[bool(c)]` becomes `(a if c else b)`; `[0.5, 2.0][i]` becomes `torch.tensor([0.5, 2.0])[i]`.

    A Python container can only be asked with a real number; a ternary is kept alive as `If`, and a tensor can be
    indexed with a traced number. What the index can be must show in the source: a comparison, `i % 3`, or the length of
    the container that is written there.
    """

    codes = ("TP101", "TP204", "TP302")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        for node in case.on_the_line(ast.Subscript):
            if isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant) or isinstance(node.ctx, ast.Store):
                continue
            for text in (_two_ways(case, node), _as_tensor(case, node), _several_ways(case, node)):
                if text:
                    yield Proposal(f"choose with what can be kept alive: {text}", (case.source.replace(node, text),))


def _two_ways(case: Case, node: ast.Subscript) -> str:
    """Where the index is a truth value."""
    test, plain = _stripped(node.slice)
    if not _is_truth(test) and plain != "bool":
        return ""
    then, other = _item(case, node.value, 1, plain), _item(case, node.value, 0, plain)
    return f"({then} if {case.source.text_of(test)} else {other})" if then and other else ""


def _item(case: Case, container: ast.expr, index: int, plain: str) -> str:
    written = _written(container)
    if written is not None:
        found = written.get(index)
        return atom(case.source, found) if found is not None else ""
    if isinstance(container, ast.Dict):
        return ""
    return f"{atom(case.source, container)}[{bool(index) if plain == 'bool' else index}]"


def _as_tensor(case: Case, node: ast.Subscript) -> str:
    """Numbers in a list, or in something that may be a list of numbers."""
    torch = imported_as(case.source, "torch")
    index, _ = _stripped(node.slice)
    is_list = isinstance(node.value, ast.List | ast.Tuple)
    if not torch or _is_truth(index):
        return ""
    if is_list and not all(_is_number(item) for item in getattr(node.value, "elts", [])):
        return ""
    if not is_list and not isinstance(node.value, ast.Name | ast.Attribute):
        return ""
    if not is_list and dotted(node.value) in case.names:  # a tensor already
        return ""
    return f"{torch}.tensor({case.source.text_of(node.value)})[{case.source.text_of(index)}]"


def _several_ways(case: Case, node: ast.Subscript) -> str:
    """A chain of ternaries over what is written there, or over what `% n` leaves."""
    index, _ = _stripped(node.slice)
    written = _written(node.value)
    if written is None:
        count = _remainders(index)
        choices = {at: f"{atom(case.source, node.value)}[{at}]" for at in range(count)}
    else:
        choices = {at: atom(case.source, item) for at, item in written.items()}
    if not 2 <= len(choices) <= _MOST_CHOICES or _is_truth(index):
        return ""
    asked = atom(case.source, index)
    *first, last = choices.items()
    chain = " else ".join(f"{text} if {asked} == {at}" for at, text in first)
    return f"({chain} else {last[1]})"


def _stripped(index: ast.expr) -> tuple[ast.expr, str]:
    """The index without `int(...)`, `bool(...)` or `.item()` around it, and which of the first two there was."""
    plain = ""
    while isinstance(index, ast.Call):
        if dotted(index.func) in ("int", "bool") and len(index.args) == 1:
            plain, index = dotted(index.func), index.args[0]
        elif isinstance(index.func, ast.Attribute) and index.func.attr == "item" and not index.args:
            index = index.func.value
        else:
            break
    return index, plain


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def _written(container: ast.expr) -> dict[int, ast.expr] | None:
    """The items of a list, tuple or dict that is written there, by index; None where it is not."""
    if isinstance(container, ast.List | ast.Tuple):
        starred = any(isinstance(item, ast.Starred) for item in container.elts)
        return None if starred else dict(enumerate(container.elts))
    if isinstance(container, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in container.keys]
        if all(isinstance(key, int) for key in keys):
            return {int(key): item for key, item in zip(keys, container.values, strict=True) if isinstance(key, int)}
    return None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _remainders(index: ast.expr) -> int:
    """3 for `i % 3`."""
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Mod) and isinstance(index.right, ast.Constant):
        return index.right.value if type(index.right.value) is int else 0
    return 0
