"""A captured graph lowered and run in the worker, with any of its values to be looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch

from trueport import temporary
from trueport.graph.regions import Graph, Number, Value
from trueport.lower.lower import Lowered
from trueport.lower.write import write_for_a_while
from trueport.verify.runtime.sandbox import Limits, Worker, WorkerFailure
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, from_torch

Lower = Callable[[Graph], Lowered]
"""How the model under examination was lowered: its opset, and the user's own translations."""


@dataclass(frozen=True)
class Laboratory:
    """What is needed to run a graph in the runtime."""

    lower: Lower
    worker: Worker
    limits: Limits

    def run(self, graph: Graph, inputs: Mapping[str, Any], taps: Iterable[Value] = ()) -> Ran | None:
        """The outputs by name, and the tapped values. None where the graph cannot be lowered.

        Raises WorkerFailure where the runtime gives no answer.
        """
        with self.opened(graph, taps) as run:
            return None if run is None else run(inputs)

    @contextlib.contextmanager
    def opened(self, graph: Graph, taps: Iterable[Value] = ()) -> Iterator[Callable[[Mapping[str, Any]], Ran] | None]:
        """The same for several inputs: lowering and loading cost more than a run."""
        lowered = self.lower(graph)
        if lowered.model is None:
            yield None
            return
        names = _tap(lowered, taps)
        with temporary.folder() as folder:
            path = write_for_a_while(lowered.model, folder)
            with self.worker.load(path, self.limits) as loaded:

                def run(inputs: Mapping[str, Any]) -> Ran:
                    outputs = loaded.run(feeds(graph, inputs))
                    tapped = {value: outputs[name] for value, name in names.items()}
                    return Ran({name: got for name, got in outputs.items() if name not in names.values()}, tapped)

                yield run

    def has_loops(self, graph: Graph) -> bool:
        model = self.lower(graph).model
        return model is not None and any(node.op_type == "Loop" for node in model.graph.all_nodes())

    def run_once(
        self, graph: Graph, inputs: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, RuntimeValue] | WorkerFailure] | None:
        """The outputs of a small graph on several inputs, in memory and in one go: for each, or why it was refused."""
        lowered = self.lower(graph)
        if lowered.model is None:
            return None
        model = ir.to_proto(lowered.model).SerializeToString()
        return list(self.worker.run_once(model, [feeds(graph, each) for each in inputs], self.limits))


@dataclass(frozen=True)
class Ran:
    outputs: Mapping[str, RuntimeValue]
    tapped: Mapping[Value, RuntimeValue]


def feeds(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, TensorData]:
    """Python numbers take the dtype that they were captured with."""
    found: dict[str, TensorData] = {}
    for given in graph.inputs:
        value = inputs[given.name]
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=given.value.dtype)
        elif isinstance(given.value, Number):
            value = value.to(given.value.dtype)
        found[given.name] = from_torch(value)
    return found


def _tap(lowered: Lowered, values: Iterable[Value]) -> dict[Value, str]:
    """Add an output for each value of the outermost graph; what only exists inside a subgraph is left out."""
    assert lowered.model is not None
    graph = lowered.model.graph
    here = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
    here |= {value.name: value for node in graph for value in node.outputs}
    names: dict[Value, str] = {}
    for at, value in enumerate(values):
        found = here.get(lowered.names.get(value, ""))
        if found is None or found.dtype is None:
            continue
        name = f"trueport_tap_{at}"
        copy = ir.Value(name=name, type=ir.TensorType(found.dtype))
        graph.append(ir.Node("", "Identity", [found], outputs=[copy], name=f"node_{name}"))
        graph.outputs.append(copy)
        names[value] = name
    return names
