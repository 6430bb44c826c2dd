"""Mutants that nobody chose: an operator of the list below at whatever node of the graph it fits.

A node and an operator are drawn by the name of the model. Kept is the first file that still agrees with eager on the
example and does not on one of the model's witnesses, which were thought of for other mutants. So neither the fault nor
the place was tuned to what the check draws.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import onnx

from benchmarks.mutants import judge
from benchmarks.mutants.cases import Call, Model
from benchmarks.mutants.edit import At, DoesNotApply, Edit
from benchmarks.mutants.mutations import (
    FLOAT,
    HALF,
    INT8,
    INT16,
    INT32,
    arm_of,
    at_least,
    at_most,
    elements_above,
    first_of_batch,
    half_away,
    half_up,
    index_at_most,
    place_from,
    plus,
    relu,
    rounds_of,
    rows_above,
    size_divides,
    size_is,
    through,
    times,
    truncated,
    when,
    zeroed,
)

Operator = Callable[[Edit, At], None]

NEIGHBOURS = {
    "Greater": "GreaterOrEqual",
    "GreaterOrEqual": "Greater",
    "Less": "LessOrEqual",
    "LessOrEqual": "Less",
    "Floor": "Round",
    "Ceil": "Round",
    "Min": "Max",
    "Max": "Min",
    "And": "Or",
    "Or": "And",
    "Add": "Sub",
    "ReduceMax": "ReduceMin",
    "ReduceSum": "ReduceMean",
}


def neighbour(edit: Edit, at: At) -> None:
    at.node.op_type = NEIGHBOURS[at.node.op_type]


def operands_swapped(edit: Edit, at: At) -> None:
    at.node.input[0], at.node.input[1] = at.node.input[1], at.node.input[0]


def left_out(edit: Edit, at: At) -> None:
    edit.instead(at, lambda op, operands: operands[0])


def _behind(rewrite: object) -> Operator:
    return lambda edit, at: edit.behind(at, rewrite)  # type: ignore[arg-type]


def _before(rewrite: object, operand: int = 0) -> Operator:
    return lambda edit, at: edit.before(at, rewrite, operand)  # type: ignore[arg-type]


def _set(**attributes: object) -> Operator:
    return lambda edit, at: edit.set(at, **attributes)


BY_TYPE: dict[str, Sequence[Operator]] = {
    **{name: [neighbour] for name in NEIGHBOURS},
    "Round": [
        lambda edit, at: edit.instead(at, half_up),
        lambda edit, at: edit.instead(at, half_away),
    ],
    "Floor": [lambda edit, at: edit.instead(at, truncated)],
    "Mod": [_set(fmod=1)],
    "ArgMax": [_set(select_last_index=1)],
    "ArgMin": [_set(select_last_index=1)],
    "CumSum": [_set(exclusive=1)],
    "ReduceMax": [_behind(at_least(-1)), _behind(at_least(-20)), _behind(relu)],
    "ReduceMin": [_behind(at_most(1)), _behind(at_most(30))],
    "MaxPool": [_behind(at_least(-1)), _set(ceil_mode=1)],
    "Gather": [_before(relu, 1), _before(index_at_most(63), 1), _before(index_at_most(99), 1)],
    "Cast": [_before(through(INT32)), _before(through(INT16)), _before(through(INT8))],
    "Mul": [_behind(through(INT32)), _behind(through(FLOAT)), _behind(through(HALF))],
    "Exp": [_before(at_most(20)), _before(at_least(-20))],
    "Log": [_before(at_least(1e-3))],
    "Div": [_behind(through(HALF)), _before(at_least(1e-3), 1)],
    "Sqrt": [_before(at_least(1e-3))],
    "Softmax": [_before(at_least(-40)), _before(at_least(-1000)), _before(at_most(40))],
    "Where": [_before(first_of_batch)],
    "Clip": [left_out],
    "Abs": [left_out],
    "Relu": [left_out],
    "ScatterND": [_set(reduction="none"), _set(reduction="max")],
    "If": [
        lambda edit, at: arm_of(edit, at, "then"),
        lambda edit, at: arm_of(edit, at, "else"),
    ],
    "Loop": [lambda edit, at: rounds_of(edit, at, 13), lambda edit, at: rounds_of(edit, at, 18)],
    "Sub": [operands_swapped],
}

ANYWHERE: Sequence[Operator] = [
    _behind(when(rows_above(66), plus(1))),
    _behind(when(rows_above(101, -1), plus(1))),
    _behind(when(place_from(69, -1), zeroed)),
    _behind(when(place_from(75, -2), times(1.1))),
    _behind(when(elements_above(4500), plus(1))),
    _behind(when(size_is(1), plus(1))),
    _behind(when(size_divides(8, 1, -1), times(1.1))),
    _behind(at_most(50)),
    _behind(at_least(-50)),
]


def changed(base: Path, seed: str) -> Iterator[Edit]:
    """A changed model for each node and operator, in an order that the seed decides."""
    nodes = [node.op_type for node in onnx.load(base).graph.node]  # inside a loop, a change might never end
    special = [(index, op) for index, kind in enumerate(nodes) for op in range(len(BY_TYPE.get(kind, ())))]
    anywhere = [
        (index, -1 - op) for index, kind in enumerate(nodes) if kind != "Constant" for op in range(len(ANYWHERE))
    ]
    draw = random.Random(seed)
    draw.shuffle(special)
    draw.shuffle(anywhere)
    for index, op in [*special, *anywhere[:60]]:
        edit = Edit(onnx.load(base))
        at = At(edit.model.graph, edit.model.graph.node[index])
        try:
            (BY_TYPE[nodes[index]][op] if op >= 0 else ANYWHERE[-1 - op])(edit, at)
        except (DoesNotApply, IndexError):
            continue
        edit.model.doc_string = f"{nodes[index]} {index}, operator {op}"
        yield edit


def derive(model: Model, base: Path, path: Path) -> Callable[[], Call]:
    """Writes the first changed file that is subtly wrong. Gives its witness."""
    witnesses = [mutant.witness for mutant in model.mutants]
    witnesses = [witness for witness in witnesses if not judge.shown(model, base, model.call(witness))]
    for edit in changed(base, model.name):
        onnx.save(edit.model, path)
        if judge.shown(model, path, model.call(model.example)):
            continue
        for witness in witnesses:
            if judge.shown(model, path, model.call(witness)):
                return witness
    raise DoesNotApply("no change that only a witness shows")
