"""The passes as a stage of an export: what they made, and what becomes of a pass that does harm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp701_pass_left_out import PassLeftOut
from trueport.diagnostics.spelling import option, told
from trueport.optimise.sequence import PassFailed, PassResult, optimise


@dataclass(frozen=True)
class Optimised:
    """The model after the passes of these names."""

    model: ir.Model
    names: tuple[str, ...]
    results: tuple[PassResult, ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    @property
    def is_changed(self) -> bool:
        return any(result.changes for result in self.results)

    def unchecked(self) -> tuple[str, ...]:
        """What is to be said of the passes where nobody compares the model with anything."""
        if not self.is_changed:
            return ()
        return ("the passes over the graph were not compared either; all that is known is that the graph is legal",)

    def without(self, gone: Sequence[str], seen: Sequence[Diagnostic]) -> Optimised:
        """With a finding for each pass that made the model wrong. `seen` is what the check found while it ran."""
        first = next((finding for finding in seen if finding.is_error), None)
        found = tuple(_made_it_wrong(name, first) for name in gone)
        return replace(self, findings=(*self.findings, *found))


def optimised(model: ir.Model, anew: Callable[[], ir.Model], names: Sequence[str]) -> Optimised:
    """Run the passes. One that fails is left out, and the others run on a model made anew."""
    left, each = list(names), False
    findings: list[Diagnostic] = []
    while True:
        try:
            return Optimised(model, tuple(left), optimise(model, left, each=each), tuple(findings))
        except PassFailed as fault:
            model = anew()
            if fault.name in left:
                findings.append(_failed(fault))
                left.remove(fault.name)
            each = True  # a fault that shows in the end may be of any of them


def left_out(names: Sequence[str], is_wrong: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """The passes without which a model is right; none where it is wrong without any of them, too.

    `is_wrong` makes the model with passes of these names and checks it. The first pass that makes it wrong is found by
    halving, and left out; then the next one.
    """
    if is_wrong(()):
        return ()
    kept, gone = list(names), []
    while kept and is_wrong(kept):
        right, wrong = 0, len(kept)  # with the first `right` it is right, with the first `wrong` it is wrong
        while wrong - right > 1:
            middle = (right + wrong) // 2
            right, wrong = (right, middle) if is_wrong(kept[:middle]) else (middle, wrong)
        gone.append(kept.pop(wrong - 1))
    return tuple(gone)


def _failed(fault: PassFailed) -> PassLeftOut:
    return PassLeftOut(
        message=f"the pass {fault.name!r} failed and was left out: {fault.why}",
        fix=told("please report it; ", option("optimize", fault.name), " shows it again"),
    )


def _made_it_wrong(name: str, seen: Diagnostic | None) -> PassLeftOut:
    facts = () if seen is None else (f"with it, the check found {seen.code}: {seen.message}",)
    return PassLeftOut(
        message=f"the pass {name!r} would have changed what the model gives, and was left out",
        place=None if seen is None else seen.place,
        seen=(*facts, "without it, the check finds nothing"),
        fix=told("none is needed; please report it: ", option("optimize", name), " shows it again"),
    )
