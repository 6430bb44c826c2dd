"""Dropout that is on in eval()."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.handed_over import in_eval
from trueport.fix.syntax import called, keyword

_DROPS = {
    "dropout": "training",
    "dropout1d": "training",
    "dropout2d": "training",
    "dropout3d": "training",
    "alpha_dropout": "training",
    "feature_alpha_dropout": "training",
    "rrelu": "training",
}
_THIRD = frozenset(_DROPS) - {"rrelu"}
"""Their third argument says whether it is training."""


class DropoutOff(Fix):
    """`F.dropout(x, 0.5)` becomes `F.dropout(x, 0.5, training=self.training)`, and attention's `dropout_p` likewise.

    The functional form drops in eval(), too, unless it is told not to. Outside a module it is told `training=False`.
    """

    codes = ("TP004",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        in_training = "self.training" if _has_self(case) else "False"
        edits: list[Edit] = []
        for call in case.on_the_line(ast.Call):
            edits += _switched(case, call, in_training)
        said, changes = f"drop in training only: training={in_training}", "in eval() nothing is dropped any more"
        if edits:
            yield Proposal(said, tuple(edits), changes=changes)
        if edits and (handed_over := in_eval(case)):
            yield Proposal(f"{said}; and hand the model over in eval()", (*edits, *handed_over), changes=changes)


def _has_self(case: Case) -> bool:
    return bool(case.function and case.function.args.args[:1] and case.function.args.args[0].arg == "self")


def _switched(case: Case, call: ast.Call, in_training: str) -> Iterator[Edit]:
    name = called(call)
    if name == "scaled_dot_product_attention":
        share = keyword(call, "dropout_p") or (call.args[4] if len(call.args) > 4 else None)
        if share is not None:
            off = "0.0" if in_training == "False" else f"{case.source.text_of(share)} if {in_training} else 0.0"
            yield case.source.replace(share, off)
    elif name in _DROPS:
        said = keyword(call, _DROPS[name]) or keyword(call, "train")
        if said is None and name in _THIRD and len(call.args) > 2:
            said = call.args[2]
        if said is not None and case.source.text_of(said) != in_training:
            yield case.source.replace(said, in_training)
        elif said is not None:
            return
        else:
            end = case.source.span(call)[1] - 1
            before = case.source.text[:end].rstrip()
            comma = "" if before.endswith((",", "(")) else ", "
            yield case.source.insert(len(before), f"{comma}{_DROPS[name]}={in_training}")
