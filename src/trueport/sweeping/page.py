"""All rows of a sweep as one page, without network: sorted by a click on a column, filtered by what is typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import jinja2

from trueport.source import visible
from trueport.sweeping.rows import Outcome, SweepRow


def sweep_page(rows: Sequence[SweepRow]) -> str:
    """What is not faithful comes first."""
    template = jinja2.Environment(
        loader=jinja2.PackageLoader("trueport.sweeping", "."), autoescape=True, undefined=jinja2.StrictUndefined
    ).get_template("page.html.jinja")
    peers = sorted({peer for row in rows for peer in row.peers})
    counts = Counter(row.outcome for row in rows)
    worst_first = sorted(rows, key=lambda row: (row.outcome is Outcome.FAITHFUL, row.code, row.name))
    return template.render(
        rows=worst_first,
        peers=peers,
        counts=[(each.value, counts[each]) for each in Outcome if counts[each]],
        visible=visible,
    )
