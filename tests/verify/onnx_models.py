"""Small ONNX files made by hand, each right or wrong in one known way, and jobs to go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper

from trueport.load.job import AxisSize, FreeSize, Job, Leaf
from trueport.load.values import LeafKind

FLOAT, INT64, BOOL, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.BFLOAT16


def port(name: str, dtype: int = FLOAT, shape: Any = ("batch", 3)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def write(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> Path:
    initializers = [
        helper.make_tensor(name, dtype, shape, values) for name, (dtype, shape, values) in constants.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.save(model, path)
    return path


def scaled(path: Path, factor: float = 2.0, dtype: int = FLOAT) -> Path:
    """y = factor * x, for x of [batch, 3]."""
    node = helper.make_node("Mul", ["x", "factor"], ["y"])
    return write(path, [node], [port("x", dtype)], [port("y", dtype)], {"factor": (dtype, [], [factor])})


def endless(path: Path) -> Path:
    """A Loop whose condition is always true."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Identity", ["v"], ["next"])],
        "body",
        [port("i", INT64, []), port("go", BOOL, []), port("v", FLOAT, None)],
        [port("still", BOOL, []), port("next", FLOAT, None)],
    )
    node = helper.make_node("Loop", ["", "true", "x"], ["y"], body=body)
    return write(path, [node], [port("x")], [port("y", FLOAT, None)], {"true": (BOOL, [], [True])})


def greedy(path: Path) -> Path:
    """Fills a tensor of the size that its input says, and returns the sum."""
    nodes = [
        helper.make_node("ConstantOfShape", ["n"], ["filled"]),
        helper.make_node("ReduceSum", ["filled"], ["y"], keepdims=0),
    ]
    return write(path, nodes, [port("n", INT64, [1])], [port("y", FLOAT, [])], {})


class Call:
    """Stands in for the structure of the arguments: all of them positional."""

    def build(self, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(values), {}


BATCH = AxisSize.of(FreeSize("batch"))


def leaf(name: str, value: object, axes: dict[int, AxisSize] | None = None, **more: Any) -> Leaf:
    kind = LeafKind.TENSOR if isinstance(value, torch.Tensor) else LeafKind.NUMBER
    return Leaf(name, kind, value, axes=axes or {}, **more)


def job(*leaves: Leaf, model: torch.nn.Module | None = None) -> Job:
    return Job(model or torch.nn.Identity(), leaves, Call())  # type: ignore[arg-type]
