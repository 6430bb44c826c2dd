"""What was found, one row for each setting and part, kept as it goes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.matrix.venvs import ROOT

FOLDER = ROOT / "build" / "matrix"


class Outcome(NamedTuple):
    """What became of one test or case; `detail` is why, and is not compared."""

    verdict: str
    detail: str = ""


@dataclass(frozen=True)
class Row:
    setting: str
    part: str
    outcomes: Mapping[str, Outcome]
    versions: Mapping[str, str]
    """What was installed, exactly."""
    commit: str


class Ledger:
    """Rows in a file; one that is there is not measured again."""

    def __init__(self, path: Path = FOLDER / "ledger.json") -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Row] = {}
        if path.exists():
            for fields in json.loads(path.read_text()):
                outcomes = {name: Outcome(*outcome) for name, outcome in fields.pop("outcomes").items()}
                row = Row(outcomes=outcomes, **fields)
                self._rows[row.setting, row.part] = row

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def get(self, setting: str, part: str) -> Row | None:
        return self._rows.get((setting, part))

    def keep(self, row: Row) -> None:
        self._rows[row.setting, row.part] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps([asdict(one) for one in self], indent=0))
        new.replace(self._path)  # a run that is killed here leaves the old one
