"""Dtypes of torch that ONNX does not have, found before anything is translated."""

from __future__ import annotations

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp501_dtype_unsupported import DtypeUnsupported
from trueport.graph.regions import Graph, Value
from trueport.lower.dtypes import TO_ONNX
from trueport.source import Place


def without_onnx_dtype(graph: Graph) -> list[Diagnostic]:
    """A finding for each input, weight and line of such a dtype; complex numbers have rules of their own."""
    found: dict[tuple[object, torch.dtype], Diagnostic] = {}

    def judge(key: object, value: object, what: str, place: Place | None = None) -> None:
        if isinstance(value, Value) and value.dtype not in TO_ONNX and not value.dtype.is_complex:
            found.setdefault((key, value.dtype), _refused(what, value.dtype, place))

    for given in graph.inputs:
        judge(given.name, given.value, f"the input `{given.name}` is")
    for weight in graph.weights:
        judge(weight.name, weight.value, f"the weight `{weight.name}` is")
    for node in graph.root.walk():
        for output in node.outputs:
            judge(node.place.where, output, "this line makes a tensor of", node.place)
    return list(found.values())


def _refused(what: str, dtype: torch.dtype, place: Place | None) -> Diagnostic:
    name = str(dtype).removeprefix("torch.")
    return DtypeUnsupported(
        message=f"{what} {name}, a dtype that ONNX does not have",
        place=place,
        label=name,
        fix="use a dtype that ONNX has, such as float32, float16, bfloat16, float8_e4m3fn or uint8",
    )
