"""Which opsets a model can be written in."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.spelling import Option, option, told
from trueport.errors import UsageError
from trueport.lower.runtimes import loaded_by, parse_target

DEFAULT_OPSET = 20
"""What is written where nobody says where the model will run: docs/decisions.md says why it is not the newest."""

LOWEST = 13
"""Below it, what a free size needs as an input is an attribute of most operators (axes, the lengths of Split)."""


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
    return 7 if opset < 15 else 8 if opset < 19 else 9 if opset < 21 else 10


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


def opset_to_write(asked: int | None, target: str | None = None, checked: bool = True) -> int:
    """The opset that was asked for, the one for a target, or the default. Raises where it cannot be written or checked.

    For a target that is the newest of which it computes everything (runtimes.py), as far as it can be checked here.
    """
    runtime = None if target is None else parse_target(target)
    if runtime is not None and runtime.opset is not None:
        if asked not in (None, runtime.opset):
            raise _refused(f"opset {asked} is asked for, and opset {runtime.opset} as the target", runtime.opset)
        asked = runtime.opset
    if runtime is not None and runtime.release is not None:
        loads = loaded_by(runtime.release)
        if loads is None:
            raise _refused(f"{runtime} is older than all releases whose opsets are known", None)
        if asked is None:
            return min(loads.complete, highest())
        if asked > loads.opset:
            raise _refused(f"{runtime} does not load opset {asked}", min(loads.complete, highest()))
    if asked is None:
        return DEFAULT_OPSET
    newest = onnx.defs.onnx_opset_version()
    if not LOWEST <= asked <= newest:
        written = f"{LOWEST} to {newest}"
        raise _refused(f"opset {asked} is not written; {written} are", LOWEST if asked < LOWEST else highest())
    if checked and asked > highest():
        raise _refused(
            f"opset {asked} cannot be checked: the installed onnxruntime loads opsets up to {highest()}",
            highest(),
            ("; ", option("verify", False), " writes it unchecked"),
        )
    return asked


def _refused(message: str, nearest: int | None, otherwise: Sequence[str | Option] = ()) -> UsageError:
    fix: Sequence[str | Option] = ("name a newer release, or an opset",)
    if nearest is not None:
        fix = ("pass ", option("opset_version", nearest), ", or leave it out")
    facts = {} if nearest is None else {"opset": str(nearest)}
    return UsageError([OpsetUnsupported(message=message, fix=told(*fix, *otherwise), facts=facts)])


@dataclass(frozen=True, slots=True)
class Newer:
    """What came with an opset, and what becomes of it in a model that is written in an older one."""

    since: int
    operator: str
    instead: str
    """How it is written before; empty where it is refused."""
    needed_by: str = ""
    """The calls of torch that are refused."""


NEWER: tuple[Newer, ...] = (
    Newer(14, "Trilu", "a comparison and Where"),
    Newer(14, "HardSwish", "two nodes"),
    Newer(14, "Reshape of what may be empty", "four nodes more, and a copy"),
    Newer(15, "Shape of some axes", "two nodes"),
    Newer(16, "GridSample", "", "grid_sample"),
    Newer(16, "ScatterElements that adds", "", "scatter_add, index_add, index_put(accumulate=True), bincount"),
    Newer(16, "RoiAlign that is aligned", "", "roi_align(aligned=True)"),
    Newer(17, "LayerNormalization", "its definition, of nine nodes; ONNX Runtime fuses them again"),
    Newer(17, "DFT", "", "fft, stft"),
    Newer(18, "Resize with antialias", "products with matrices of weights"),
    Newer(18, "BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot", "", "&, |, ^ and ~ of integers"),
    Newer(18, "Col2Im", "", "fold"),
    Newer(18, "ScatterElements that takes the max", "", "scatter_reduce and index_reduce by amax and amin"),
    Newer(19, "DeformConv", "", "deform_conv2d"),
    Newer(19, "Cast to float8", "", "float8 dtypes"),
    Newer(20, "Gelu", "its definition, of five nodes or more"),
    Newer(20, "GridSample of volumes", "", "grid_sample of five axes"),
    Newer(23, "Attention", "two products and a softmax"),
    Newer(23, "RMSNormalization", "its definition, of six nodes; ONNX Runtime fuses them again"),
)
"""What translations use of newer opsets; tests hold that what is named as refused is refused, and not before."""
