"""Loops that Python ran while tracing: each round is in the graph, which is told where there are very many."""

from __future__ import annotations

from collections import Counter

from trueport.capture import limits
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp106_long_unrolling import LongUnrolling
from trueport.graph.regions import Graph


def written_out(graph: Graph) -> list[Diagnostic]:
    """One warning per function that holds lines of which the graph has very many copies.

    The same operator called from the same line, by the same path of calls and in the same submodule, is a round of a
    loop; layers of a model differ in their submodule.
    """
    copies = Counter((node.place, node.op) for node in graph.root.walk() if node.place.where)
    found: dict[tuple[str, str], Diagnostic] = {}
    for (place, _), count in copies.items():
        if count > limits.COPIES and place.where is not None:
            found.setdefault(
                (place.where.file, place.where.function),
                LongUnrolling(
                    message=f"this line is in the graph {count} times: a Python loop with a plain count runs it",
                    place=place,
                    label=f"written out {count} times",
                    fix="loop as often as a tensor, a free size or a number argument says, and it becomes one Loop",
                ),
            )
    return list(found.values())
