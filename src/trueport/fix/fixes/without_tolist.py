"""A tensor that was turned into a list of unknown length."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import called, dotted, imported_as


class WithoutTolist(Fix):
    """`for i in order.tolist()` becomes `for i in order`; `torch.tensor([f(v) for v in x.tolist()])` a `torch.stack`.

    A tensor can be gone through like a list, and stays in the graph. What is made of the items then is a list of
    tensors, which `torch.stack` joins where `torch.tensor` would have needed numbers.
    """

    codes = ("TP104", "TP204")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if case.function is None:
            return
        torch = imported_as(case.source, "torch")
        cuts: list[Edit] = []
        for node in ast.walk(case.function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
                cuts.append(Edit(case.source.path, case.source.span(node.func.value)[1], case.source.span(node)[1], ""))
        if not cuts:
            return
        joined = [
            case.source.replace(node.func, f"{torch}.{_joining(node.args[0])}")
            for node in ast.walk(case.function)
            if isinstance(node, ast.Call)
            and torch
            and dotted(node.func) in (f"{torch}.tensor", f"{torch}.as_tensor", f"{torch}.FloatTensor")
            and len(node.args) == 1
            and not node.keywords
            and _is_of_a_tensor(node.args[0])
        ]
        yield Proposal("go through the tensor itself, without tolist()", (*cuts, *joined))


def _is_of_a_tensor(value: ast.expr) -> bool:
    return isinstance(value, ast.ListComp) or (isinstance(value, ast.Call) and called(value) == "tolist")


def _joining(value: ast.expr) -> str:
    return "stack" if isinstance(value, ast.ListComp) else "clone"
