"""What a sweep found, one line of JSON per operator and dtype, kept as it goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks import results
from benchmarks.edges.sweep import Seen, Swept

FOLDER = results.FOLDER / "edges"


def add(file: Path, swept: Swept) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(swept), separators=(",", ":")) + "\n")


def read(file: Path) -> Iterator[Swept]:
    """The last line of an operator counts."""
    found: dict[str, Swept] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        content = json.loads(line)
        calls = tuple(Seen(**{**call, "shown": tuple(map(tuple, call["shown"]))}) for call in content.pop("calls"))
        found[content["operator"]] = Swept(calls=calls, **content)
    yield from found.values()
