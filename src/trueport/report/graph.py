"""The exported graph as the report holds it: its nodes, what they read and write, and where each comes from.

Plain data, for a picture of the graph. It holds no weights, and no more of a constant than its first few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trueport.source import Where


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node of the exported graph."""

    op: str
    """`MatMul`, or `domain::MatMul` where it is not ONNX's own."""
    name: str
    inputs: tuple[str, ...]
    """Names of values; an input that is left out is ''."""
    outputs: tuple[str, ...]
    module: str = ""
    """The path of the submodule that was running: `encoder.layers.3.attn`."""
    where: Where | None = None
    """The user's line."""
    aten: str = ""
    """The call of torch's that it stands for."""
    constant: str = ""
    """What a constant holds, shortened; '' for all other nodes."""
    bodies: tuple[GraphSummary, ...] = ()
    """The arms of an `If`, the body of a `Loop`."""


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """A graph, or the body of a node; a body may read any value of the graphs around it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[NodeSummary, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    """By the name of a value, weights included: `float32[N, 64]`."""
