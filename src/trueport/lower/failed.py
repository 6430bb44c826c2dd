"""A call that could not be translated, told to who can mend it."""

from __future__ import annotations

import os
import traceback
from typing import Any

import onnx_ir as ir
import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp110_too_deep import TooDeep
from trueport.diagnostics.rules.tp402_translation_failed import TranslationFailed
from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import Control, Node, Value
from trueport.lower.scope import DEEPEST, NestedTooDeep
from trueport.lower.signature import NeedsOpset
from trueport.lower.table import name_of
from trueport.source import Place

_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = (_OUR_FOLDER, os.path.dirname(torch.__file__), os.path.dirname(ir.__file__))


class NeedsOnnxscript(Exception):
    """A translation is a function of onnxscript's, which is not installed."""

    def __str__(self) -> str:
        return "it takes no builder, so it is called with onnxscript, which is not installed"

    fix = (
        "pip install 'trueport[onnxscript]'; or write it with the builder, which needs no package: "
        "def translate(op, x): return op.Mul(x, 2)"
    )


def not_translated(node: Node, error: Exception) -> Diagnostic:
    """What is told where a translation, or a control-flow operator, ended with this error."""
    if isinstance(error, NestedTooDeep):
        return nested_too_deep(node)
    if isinstance(error, NeedsOpset):
        return needs_opset(error, node.place, node.op.value if isinstance(node.op, Control) else name_of(node.op))
    return translation_failed(node, error)


def needs_opset(needed: NeedsOpset, place: Place | None, name: str) -> OpsetUnsupported:
    return OpsetUnsupported(
        message=f"`{name}` needs {needed.what}, which ONNX has since opset {needed.opset}",
        place=place,
        label=f"calls {name}",
        facts={"opset": str(needed.opset)},
        fix=told("pass ", option("opset_version", needed.opset)),
    )


def translation_failed(node: Node, error: Exception) -> TranslationFailed:
    name = node.op.value if isinstance(node.op, Control) else name_of(node.op)
    frames = traceback.extract_tb(error.__traceback__)
    shown = [_brief(arg) for arg in node.args] + [f"{name}={_brief(arg)}" for name, arg in node.kwargs.items()]
    return TranslationFailed(
        message=f"`{name}` could not be translated: {type(error).__name__}: {error}",
        place=node.place,
        label=f"calls {name}",
        seen=(f"called with ({', '.join(shown)})", f"raised at {frames[-1].filename}:{frames[-1].lineno}"),
        fix=error.fix if isinstance(error, NeedsOnnxscript) else _way_out(frames),
    )


def nested_too_deep(node: Node) -> TooDeep:
    return TooDeep(
        message=f"more than {DEEPEST} branches and loops lie within each other here, more than an ONNX file can hold",
        place=node.place,
        label="the innermost that has room",
        seen=(f"protobuf, the format of ONNX files, reads {DEEPEST} graphs within each other",),
        facts={"most": str(DEEPEST)},
        fix="write a loop, choose with torch.where or by an index, or leave the function early",
    )


def _way_out(frames: traceback.StackSummary) -> str:
    """Who can mend a translation: the user, where the traceback passes through a file of theirs."""
    for frame in frames:
        if not frame.filename.startswith(_LIBRARIES) and f"{os.sep}onnxscript{os.sep}" not in frame.filename:
            return f"mend the translation in {os.path.basename(frame.filename)}"
    return (
        "eager runs this call, so this is a limit of trueport: please report it; or override it with @trueport.op(...)"
    )


def _brief(arg: Any) -> str:
    """An argument as a user knows it: `x: float32[3, batch]` for a tensor."""
    if isinstance(arg, Value):
        sizes = ", ".join(map(str, arg.shape))
        return f"{arg.name or 'tensor'}: {str(arg.dtype).removeprefix('torch.')}[{sizes}]"
    text = repr(arg)
    return text if len(text) < 60 else text[:57] + "..."
