"""Which opsets a model can be written in."""

from __future__ import annotations

import functools

import onnx

from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.errors import UsageError

LOWEST = 18
"""Below it, operators take as attributes what a free size needs as inputs (the axes of reductions, of Split)."""


@functools.cache
def highest() -> int:
    """The newest opset that the installed runtime loads. It is asked: its own tables know opsets that it then refuses."""
    newest: int = onnx.defs.onnx_opset_version()
    return next((opset for opset in range(newest, LOWEST, -1) if _loads(opset)), LOWEST)


def _loads(opset: int) -> bool:
    import onnxruntime

    given = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", given[:1], given[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001  the runtime's exceptions have no common type; any of them is a no
        return False
    return True


def refuse_opset(opset: int | None) -> None:
    """Raise where a model cannot be written in the opset that was asked for."""
    if opset is None or LOWEST <= opset <= highest():
        return
    raise UsageError(
        [
            OpsetUnsupported(
                message=f"opset {opset} is not written; {LOWEST} to {highest()} are",
                fix=f"pass opset_version={LOWEST if opset < LOWEST else highest()}, or leave it out",
            )
        ]
    )
