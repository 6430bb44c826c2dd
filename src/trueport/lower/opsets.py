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
    """The newest opset that the installed runtime loads. It is asked: its tables know opsets that it then refuses."""
    newest: int = onnx.defs.onnx_opset_version()
    return next((opset for opset in range(newest, LOWEST, -1) if _loads(opset)), LOWEST)


@functools.cache
def highest_ir_version() -> int:
    """The newest version of the file format that the installed runtime loads."""
    newest: int = onnx.IR_VERSION
    lowest = ir_version_for(LOWEST)
    return next((version for version in range(newest, lowest, -1) if _loads(LOWEST, version)), lowest)


def ir_version_for(opset: int) -> int:
    """The version of the file format to write: the one that came with the opset, so that runtimes which have the opset
    can read the file. From opset 21 on it stays at 10, which holds all that we write.
    """
    return {18: 8, 19: 9, 20: 9}.get(opset, 10)


def _loads(opset: int, ir_version: int = 10) -> bool:
    import onnxruntime

    given = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", given[:1], given[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=ir_version)
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
                facts={"opset": str(LOWEST if opset < LOWEST else highest())},
            )
        ]
    )
