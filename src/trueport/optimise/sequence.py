"""The passes in their order, and how they are run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from trueport.graph.validate import ASKED
from trueport.lower.passes.exact_factors import keep_factors_exact
from trueport.lower.passes.graphs import every_graph
from trueport.lower.passes.padded_pools import keep_padding
from trueport.optimise.base import Pass
from trueport.optimise.branches import ConstantBranches
from trueport.optimise.common import CommonSubexpressions
from trueport.optimise.constants import LiftedConstants
from trueport.optimise.conv_batch_norm import ConvBatchNorm
from trueport.optimise.dead_code import DeadCode
from trueport.optimise.fold import Fold
from trueport.optimise.gelu import HandwrittenGelu
from trueport.optimise.heads import HeadsInside
from trueport.optimise.identities import Identities
from trueport.optimise.loop_invariants import LoopInvariants
from trueport.optimise.moves import Moves
from trueport.optimise.norms import Norms
from trueport.optimise.products import JoinedProducts
from trueport.optimise.rotary import HandwrittenRotary
from trueport.optimise.shapes import SizesAsked
from trueport.optimise.slow_fusions import SlowFusions
from trueport.optimise.validate import Broken, Interface, validate

PASSES: tuple[type[Pass], ...] = (
    LiftedConstants,
    Fold,
    ConstantBranches,
    Identities,
    Moves,
    SizesAsked,
    CommonSubexpressions,
    Norms,
    HandwrittenGelu,
    HeadsInside,
    JoinedProducts,
    HandwrittenRotary,
    LoopInvariants,
    ConvBatchNorm,
    SlowFusions,
    DeadCode,
)
"""In the order in which they run."""
_ROUNDS = 3
"""One pass may leave something for another; after so many rounds what is left is left."""


class PassFailed(Exception):
    """A pass that raised, or left a model that breaks a rule. The model is of no use any more."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name, self.why = name, why


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one pass did to a model, over all rounds."""

    name: str
    changes: int
    nodes_removed: int
    """Fewer nodes after it; below 0 where it left more."""


def optimise(model: ir.Model, names: Iterable[str], *, each: bool = False) -> tuple[PassResult, ...]:
    """Run the passes of these names, in place. The model is validated in the end; after every pass with `each`, or
    where somebody asked for it (`TRUEPORT_VALIDATE=1`).

    Raises PassFailed, after which the model must not be used.
    """
    wanted, each = set(names), each or bool(os.environ.get(ASKED))
    passes = [kind() for kind in PASSES if kind.name in wanted]
    before = Interface.of(model)
    done = {made.name: [0, 0] for made in passes}
    count, any_changes = _count(model), 0
    for _ in range(_ROUNDS):
        changed = 0
        for made in passes:
            changes, left = _run(made, model, before if each else None)
            done[made.name][0] += changes
            done[made.name][1] += count - left
            changed, count = changed + changes, left
        any_changes += changed
        if not changed:
            break
    _validated(model, before, "")
    if any_changes:
        keep_factors_exact(model)  # two nodes may have met that the runtime must not join
        keep_padding(model)
    return tuple(PassResult(name, *numbers) for name, numbers in done.items())


def _run(made: Pass, model: ir.Model, before: Interface | None) -> tuple[int, int]:
    try:
        changes = made.run(model)
    except Exception as fault:
        raise PassFailed(made.name, f"{type(fault).__name__}: {fault}") from fault
    if before is not None:
        _validated(model, before, made.name)
    return changes, _count(model)


def _validated(model: ir.Model, before: Interface, name: str) -> None:
    try:
        validate(model, before)
    except Broken as fault:
        raise PassFailed(name, str(fault)) from fault


def _count(model: ir.Model) -> int:
    return sum(len(graph) for graph in every_graph(model.graph))
