"""Something that forward leaves behind for the next call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import imported_as


class StateKept(Fix):
    """`--state inputs-outputs`: what forward writes becomes an input and an output of the exported model.

    A tensor needs no edit. A plain number (`self.calls = 0`, `self.calls += 1`) has to be a buffer first, in
    `__init__`: `self.register_buffer("calls", torch.tensor(0))`.
    """

    codes = ("TP203",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if case.command.given("state"):
            return
        lifted = case.command.with_option("state", "inputs-outputs")
        name = case.facts.get("state", "")
        if case.facts.get("kind") != "attribute":
            yield Proposal(f"carry `{name}` from call to call: --state inputs-outputs", command=lifted)
            return
        edits = tuple(_as_buffer(case, name))
        if edits:
            yield Proposal(f"make `{name}` a buffer, and carry it: --state inputs-outputs", edits, lifted)


def _as_buffer(case: Case, name: str) -> Iterator[Edit]:
    """The assignment of a number in `__init__` of the class whose forward this is, as a buffer."""
    torch = imported_as(case.source, "torch")
    makers = [
        node
        for node in (case.owner.body if case.owner else ())
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    if not makers or not torch:
        return
    for node in ast.walk(makers[0]):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Constant)):
            continue
        target, value = node.targets[0], node.value.value
        own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        if own and isinstance(target, ast.Attribute) and target.attr == name and type(value) in (int, float):
            number = case.source.text_of(node.value)
            yield case.source.replace(node, f'self.register_buffer("{name}", {torch}.tensor({number}))')
