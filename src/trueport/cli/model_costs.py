"""What an older opset costs one model: for `trueport doctor MODEL --target`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueport.cli.request import Request
from trueport.diagnostics.base import Diagnostic

if TYPE_CHECKING:
    from trueport.graph.regions import Graph


@dataclass(frozen=True)
class ModelCosts:
    """One model in one opset."""

    opset: int
    newest: int
    """The newest opset that can be written here."""
    lowest: int
    """The oldest opset that can say the model."""
    operators: Counter[str] | None
    """By operator, the nodes in that opset; None where it cannot say the model."""
    at_best: Counter[str]
    """The same in the newest opset."""
    findings: tuple[Diagnostic, ...]
    """Why it cannot."""

    def facts(self) -> Iterator[tuple[str, str]]:
        yield "needs", f"opset {self.lowest} or newer"
        if self.operators is None:
            yield f"in opset {self.opset}", "cannot be written, see below"
            return
        told = [f"{count} {name}{_instead(name)}" for name, count in self._lost()]
        yield f"in opset {self.opset}", f"{self.operators.total()} nodes; {self.at_best.total()} in opset {self.newest}"
        yield "written otherwise", told[0] if told else "nothing"
        for each in told[1:]:
            yield "", each

    def _lost(self) -> Iterator[tuple[str, int]]:
        """Operators that the newest opset would have used, and this one does not have."""
        import onnx

        for name, count in sorted(self.at_best.items()):
            if onnx.defs.has(name, self.newest) and not onnx.defs.has(name, self.opset):
                yield name, count


def _instead(operator: str) -> str:
    from trueport.lower.opsets import NEWER

    found = [newer for newer in NEWER if newer.operator == operator and newer.instead]
    return f" (opset {found[0].since}): {found[0].instead}" if found else ""


def costs_of(request: Request, opset: int) -> ModelCosts:
    """Capture a model once, and write it in this opset and in the newest. Raises ExportError where it is refused."""
    from trueport import export
    from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
    from trueport.lower.lower import lower
    from trueport.lower.opsets import LOWEST, highest

    given = {name: each for name, each in request.options.items() if name not in ("opset_version", "target")}
    captured = export(request.given, request.args, opset_version=highest(), verify=False, **given).captured
    there = lower(captured, opset)
    refused = [found for found in lower(captured, LOWEST).diagnostics if isinstance(found, OpsetUnsupported)]
    return ModelCosts(
        opset,
        highest(),
        int(refused[0].facts["opset"]) if refused else LOWEST,
        None if there.model is None else _operators(captured, opset),
        _operators(captured, highest()),
        tuple(found for found in there.diagnostics if found.is_error),
    )


def _operators(captured: Graph, opset: int) -> Counter[str]:
    """The nodes that an export would write."""
    from trueport.lower.lower import lower
    from trueport.lower.noted import every_node
    from trueport.optimise.names import NAMES
    from trueport.optimise.sequence import optimise

    model = lower(captured, opset).model
    assert model is not None, "it has been written in this opset before"
    optimise(model, NAMES)
    return Counter(node.op_type for node in every_node(model))
