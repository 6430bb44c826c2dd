"""Carries a function through capture and lower, runs it in ONNX Runtime and compares it with eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch

from trueport.capture.trace import capture
from trueport.graph.regions import Graph, Number
from trueport.load.request import make_job
from trueport.lower.lower import Lowered, lower
from trueport.lower.table import is_leaf
from trueport.optimise.sequence import optimise

Inputs = Sequence[Any]
Free = dict[int, dict[int, str]]
"""For each argument, its free axes and their names."""


def graph_of(function: Callable[..., Any], inputs: Inputs, free: Free | None = None) -> Graph:
    shapes = tuple(free.get(i) for i in range(len(inputs))) if free else None
    return capture(make_job(function, tuple(inputs), dynamic_shapes=shapes), is_leaf)


def model_of(function: Callable[..., Any], inputs: Inputs, free: Free | None = None, opset: int = 20) -> ir.Model:
    lowered: Lowered = lower(graph_of(function, inputs, free), opset)
    assert lowered.model is not None, "\n".join(map(str, lowered.diagnostics))
    return lowered.model


def run(model: ir.Model, inputs: Inputs, threads: int = 1) -> list[Any]:
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    feed = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(*_content(x))
        for name, x in zip(names, inputs, strict=True)
    }
    return session.run_with_ort_values(None, feed)


def _content(x: Any) -> tuple[np.ndarray, int]:
    if isinstance(x, float):
        x = torch.tensor(x, dtype=torch.float64)
    tensor = torch.as_tensor(x).detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy(), onnx.TensorProto.BFLOAT16
    array = tensor.contiguous().numpy()
    return array, onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return [leaf for item in result.values() for leaf in _leaves(item)]
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in _leaves(item)]
    return [] if result is None or isinstance(result, str) else [result]


def check(
    function: Callable[..., Any],
    inputs: Inputs,
    *more: Inputs,
    free: Free | None = None,
    opset: int = 20,
    rtol: float | None = None,
    atol: float | None = None,
    passes: Sequence[str] = (),
) -> ir.Model:
    """Export on `inputs`; eager and ONNX Runtime must then agree on them and on each of `more`."""
    model = model_of(function, inputs, free, opset)
    optimise(model, passes, each=True)
    for given in (inputs, *more):
        with torch.no_grad():
            expected = _leaves(function(*[x.clone() if isinstance(x, torch.Tensor) else x for x in given]))
        got = run(model, given)
        assert len(got) == len(expected), f"{len(got)} outputs, eager gives {len(expected)}"
        for ours, theirs in zip(got, expected, strict=True):
            _compare(ours, theirs, rtol, atol)
    return model


def _as_pairs(value: Any) -> Any:
    is_complex = isinstance(value, torch.Tensor) and value.is_complex()
    return torch.view_as_real(value.resolve_conj()) if is_complex else value


_CLOSE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 1e-1}


def agree(expected: Any, got: list[Any], rtol: float | None = None) -> None:
    """Eager's result and what the runtime gave are the same: exactly where they are exact, else to a few digits."""
    leaves = [_as_pairs(leaf) for leaf in _leaves(expected)]
    assert len(got) == len(leaves), f"{len(got)} outputs, eager gives {len(leaves)}"
    for ours, theirs in zip(got, leaves, strict=True):
        dtype = theirs.dtype if isinstance(theirs, torch.Tensor) else torch.float64
        close = _CLOSE.get(dtype, 0.0) if rtol is None else rtol
        _compare(ours, theirs, close, close / 10)


def _compare(ours: Any, theirs: Any, rtol: float | None, atol: float | None) -> None:
    if isinstance(theirs, float):
        theirs = torch.tensor(theirs, dtype=torch.float64)
    theirs = torch.as_tensor(theirs)
    mine = _as_torch(ours)
    assert mine.dtype == theirs.dtype, f"dtype {mine.dtype}, eager gives {theirs.dtype}"
    assert mine.shape == theirs.shape, f"shape {tuple(mine.shape)}, eager gives {tuple(theirs.shape)}"
    torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)


def _as_torch(value: Any) -> torch.Tensor:
    if value.element_type() == onnx.TensorProto.BFLOAT16:
        return torch.from_dlpack(value._ortvalue.to_dlpack()) if hasattr(value, "_ortvalue") else torch.tensor([])
    return torch.from_numpy(np.asarray(value.numpy()).copy())


__all__ = ["Number", "agree", "check", "graph_of", "model_of", "run"]
