"""What a legal graph is: the spec between the stages, asserted in tests and with `--debug`.

    1. A value is made once: by a parameter, a weight, or one node.
    2. A value that is read was made before, in the same region or in one around it.
    3. A symbol that a number speaks of is bound there: by a free size, by an axis of a value, or as a number that a
       node or a parameter gives.
    4. An `If` has two arms without parameters, and an output for each of theirs.
    5. A `Loop` has one body. Its parameters are the number of the round and what is carried; its outputs are whether to
       go on, what is carried, and what is scanned. The node takes a start for each carried value and gives them all.
    6. What a region hands out has the dtype and the number of axes that its node says.
    7. An operator has as many outputs as it returns.

It costs a walk over the graph, so nobody pays for it who did not ask (`TRUEPORT_VALIDATE=1`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sympy

from trueport.graph.regions import Control, Graph, Node, Region, Returns, Value, numbers_in, symbols_of, values_in

ASKED = "TRUEPORT_VALIDATE"
"""The variable of the environment that asks for it."""


class InvalidGraph(RuntimeError):
    """A stage of ours left a graph that no graph may be."""


def check_if_asked(graph: Graph, stage: str, tidied: bool = True) -> None:
    """Raise InvalidGraph where `stage` broke a rule, if somebody wants to know."""
    if os.environ.get(ASKED, "0") in ("", "0"):
        return
    try:
        check(graph, tidied)
    except InvalidGraph as broken:
        raise InvalidGraph(f"the {stage} graph is not legal: {broken}") from None


def check(graph: Graph, tidied: bool = True) -> None:
    """Raise InvalidGraph where a rule does not hold.

    Before `tidy`, rules 2 and 3 are not asked. A loop is traced in several attempts, which leave behind what nobody
    reads: a view of an earlier attempt that was brought up to date (`Writes.settle`), with the number of a round that
    is over; a carried value that begins as something of an earlier attempt.
    """
    scope = _Scope(symbols={*graph.size_symbols, *graph.number_symbols}, all_is_read=tidied)
    for weight in graph.weights:
        scope.make(weight.value, f"weight `{weight.name}`")
    if [id(given.value) for given in graph.inputs] != [id(param) for param in graph.root.params]:
        raise InvalidGraph("the parameters of the outermost region are not the inputs")
    for given in graph.inputs:
        scope.make(given.value, f"input `{given.name}`")
    _check_nodes(graph.root, scope)
    for output in graph.outputs:
        scope.read(output.reads, f"output `{output.name}`")


@dataclass
class _Scope:
    """What can be read at a point of the graph."""

    values: set[Value] = field(default_factory=set)
    symbols: set[sympy.Basic] = field(default_factory=set)
    made: set[Value] = field(default_factory=set)
    """In the whole graph, also in regions that are left."""
    all_is_read: bool = True
    """Whether what nobody reads was left out, so that what is read must be there."""

    def inner(self) -> _Scope:
        return _Scope(set(self.values), set(self.symbols), self.made, self.all_is_read)

    def make(self, output: Any, who: str) -> None:
        """Rule 1. Every axis tells the symbols of its length, as far as they can be solved for."""
        for value in values_in(output):
            if value in self.made:
                raise InvalidGraph(f"{value!r} is made a second time by {who}")
            self.made.add(value)
            self.values.add(value)
        self.symbols |= symbols_of(output)

    def read(self, argument: Any, who: str) -> None:
        """Rules 2 and 3."""
        if not self.all_is_read:
            return
        for value in values_in(argument):
            if value not in self.values:
                why = "is made in a region that has ended" if value in self.made else "is not made before"
                raise InvalidGraph(f"{value!r} {why}, and {who} reads it")
        for number in numbers_in(argument):
            if unbound := number.free_symbols - self.symbols:
                raise InvalidGraph(f"{_names(unbound)} in {number.expr} is not bound where {who} reads it")


def _check_nodes(region: Region, scope: _Scope) -> None:
    """The nodes of a region, and what it hands out. `scope` has its parameters already, and gets what it makes."""
    for node in region.nodes:
        who = f"{node.name} at {node.place.where}"
        scope.read(node.given, who)
        if node.op is Control.IF:
            _check_if(node, scope, who)
        elif node.op is Control.LOOP:
            _check_loop(node, scope, who)
        else:
            _check_arity(node, who)
        for output in node.outputs:
            scope.make(output, who)
    scope.read(region.outputs, "the end of its region")


def _check_if(node: Node, scope: _Scope, who: str) -> None:
    """Rules 4 and 6."""
    if len(node.regions) != 2 or len(node.args) != 1:
        raise InvalidGraph(f"{who} has {len(node.regions)} arms and {len(node.args)} tests")
    for arm in node.regions:
        if arm.params:
            raise InvalidGraph(f"an arm of {who} has parameters")
        _same_number(f"outputs of an arm of {who}", arm.outputs, node.outputs)
        _check_nodes(arm, scope.inner())
        for given, said in zip(arm.outputs, node.outputs, strict=True):
            _same_kind(given, said, who)


def _check_loop(node: Node, scope: _Scope, who: str) -> None:
    """Rules 5 and 6. What is scanned has one axis more outside than in a round."""
    if len(node.regions) != 1 or len(node.args) < 2:
        raise InvalidGraph(f"{who} has {len(node.regions)} bodies and {len(node.args)} arguments")
    (body,), starts = node.regions, node.args[2:]
    if not numbers_in(body.params[:1]):
        raise InvalidGraph(f"the body of {who} is not given the number of the round")
    carried = body.params[1:]
    _same_number(f"what {who} starts with", starts, carried)
    _same_number(f"outputs of the body of {who}", body.outputs[1:], node.outputs)
    if len(body.outputs) < 1 + len(carried):
        raise InvalidGraph(f"the body of {who} does not hand on all that it carries")
    inside = scope.inner()
    for param in body.params:
        inside.make(param, who)
    _check_nodes(body, inside)
    handed_on, scanned = body.outputs[1 : 1 + len(carried)], body.outputs[1 + len(carried) :]
    for given in (starts, handed_on, node.outputs[: len(carried)]):
        for each, said in zip(given, carried, strict=True):
            _same_kind(each, said, who)
    for each, row in zip(node.outputs[len(carried) :], scanned, strict=True):
        _same_kind(each, row, who, axes=1)


def _check_arity(node: Node, who: str) -> None:
    """Rule 7."""
    most = {Returns.NOTHING: 0, Returns.ONE: 1}.get(node.returns)
    if node.regions or (most is not None and len(node.outputs) != most):
        raise InvalidGraph(f"{who} returns {node.returns.value} and has {len(node.outputs)} outputs")


def _same_number(what: str, found: Iterable[Any], wanted: Iterable[Any]) -> None:
    have, want = len(list(found)), len(list(wanted))
    if have != want:
        raise InvalidGraph(f"{what}: {have}, and not {want}")


def _same_kind(one: Any, other: Any, who: str, axes: int = 0) -> None:
    """Rule 6, between two values; a Python number may stand for a tensor without axes."""
    for value, said in zip(values_in(one), values_in(other), strict=False):
        if value.dtype is not said.dtype or len(value.shape) != len(said.shape) + axes:
            raise InvalidGraph(f"{who} takes {value!r} for {said!r}")


def _names(symbols: Iterable[sympy.Basic]) -> str:
    return ", ".join(sorted(map(str, symbols)))
