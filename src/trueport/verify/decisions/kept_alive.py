"""Which places of the user's code the exported graph decides at when it runs."""

from __future__ import annotations

from trueport.graph.regions import Control, Graph
from trueport.rewrite.running.probe_runtime import Site
from trueport.verify.decisions.tally import Relevant


def kept_alive(graph: Graph) -> Relevant:
    """Whether an `If` (for a loop, a `Loop`) of the graph comes from a place."""
    lines: dict[bool, set[tuple[str, int]]] = {False: set(), True: set()}
    for node in graph.root.walk():
        if isinstance(node.op, Control) and node.place.where is not None:
            lines[node.op is Control.LOOP].add((node.place.where.file, node.place.where.line))

    def holds(site: Site) -> bool:
        own = range(site.line, site.end_line + 1)
        return any((site.file, line) in lines[site.kind.is_loop] for line in own)

    return holds
