"""What an inspection found: plain data, and the same as `--output-format json` gives it (docs/inspect.schema.json)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1
"""Raised when a key changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class FilePort:
    """An input or output. A size is a number, a name or formula, or None where the file does not tell."""

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True)
class NamedSize:
    """A free size (`N`), or a formula of such (`2*N + 1`), and the axes that it is the length of: `x.0`."""

    text: str
    is_formula: bool
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorCount:
    name: str
    """`Add`, or with its domain where that is not ONNX's own: `com.microsoft::FusedMatMul`."""
    count: int


@dataclass(frozen=True, slots=True)
class LineCount:
    """A line of the model's source, as the file notes it, and the nodes that come from it."""

    line: str
    count: int
    operators: tuple[OperatorCount, ...]


@dataclass(frozen=True, slots=True)
class FileWeight:
    name: str
    type: str
    shape: tuple[int, ...]
    bytes: int
    file: str | None
    """The file beside the model that holds it; None where it is in the model."""


@dataclass(frozen=True, slots=True)
class SubgraphNode:
    """A node that holds graphs: `If`, `Loop`, `Scan`, and those inside of it."""

    operator: str
    name: str
    line: str
    module: str
    bodies: tuple[GraphInside, ...]


@dataclass(frozen=True, slots=True)
class GraphInside:
    """`then_branch`, `else_branch`, `body`; `nodes` counts those of graphs further inside, too."""

    name: str
    nodes: int
    control_flow: tuple[SubgraphNode, ...]


@dataclass(frozen=True, slots=True)
class FileFunction:
    name: str
    inputs: int
    outputs: int
    nodes: int
    calls: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that the model says its weights are in. It is not opened. Of one that would lie outside of the model's
    folder, not even the size is asked."""

    path: str
    weights: int
    referred: int
    """How many bytes of it belong to weights."""
    outside: bool
    bytes: int | None
    """How large it is; None where there is none, or it is outside."""


@dataclass(frozen=True, slots=True)
class Inspection:
    file: str
    bytes: int
    producer: str
    ir_version: int
    opsets: dict[str, int]
    """By domain; ONNX's own is `ai.onnx`."""
    inputs: tuple[FilePort, ...]
    outputs: tuple[FilePort, ...]
    sizes: tuple[NamedSize, ...]
    nodes: int
    operators: tuple[OperatorCount, ...]
    lines: tuple[LineCount, ...]
    weights: tuple[FileWeight, ...]
    control_flow: tuple[SubgraphNode, ...]
    functions: tuple[FileFunction, ...]
    data_files: tuple[DataFile, ...]
    passes: dict[str, int]
    """By the name of a pass: how many nodes it removed. Empty where the file does not tell."""
    metadata: tuple[str, ...]
    """The keys of the model's metadata."""

    def describe(self) -> dict[str, Any]:
        """For JSON."""
        return {"schema": SCHEMA, **asdict(self)}
