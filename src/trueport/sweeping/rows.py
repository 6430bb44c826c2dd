"""What came of a model: one row, plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """How a model of a sweep ended. Only the first is good."""

    FAITHFUL = "faithful"
    PARTLY = "checked in part"
    REFUSED = "refused"
    USAGE = "usage"  # the entry does not name a model that can be loaded
    CRASHED = "crashed"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    OUR_FAULT = "our fault"


@dataclass(frozen=True, kw_only=True)
class PeerRow:
    """What another exporter made of the model, by `trueport verify` of its file."""

    outcome: str
    """`faithful`, `different`, `does not load`, `no file`, or how its process ended."""
    code: str = ""
    message: str = ""
    cpu_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """One model. `code`, `message` and `where` are those of the first error."""

    name: str
    key: str
    target: str
    outcome: Outcome
    code: str = ""
    message: str = ""
    where: str = ""
    inputs: int = 0
    """On how many inputs the file was compared with eager."""
    undecided: int = 0
    warnings: tuple[str, ...] = ()
    nodes: int | None = None
    size: int | None = None
    """Bytes of the file and its data."""
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    peak_memory: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    peers: Mapping[str, PeerRow] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"outcome": self.outcome.value}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SweepRow:
        peers = {name: PeerRow(**peer) for name, peer in content["peers"].items()}
        warnings = tuple(content["warnings"])
        return cls(**content | {"outcome": Outcome(content["outcome"]), "peers": peers, "warnings": warnings})
