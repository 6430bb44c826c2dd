"""The arguments of `torch.onnx.export` that are none of ours: each has a meaning here, or is refused by its name.

An argument at torch's own default asks for nothing, and is taken without a word. So do those of older releases.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp008_no_effect import NoEffect
from trueport.load.faults import usage_error
from trueport.torch_internals import OperatorExportTypes, TrainingMode

_CHOICES = {"dynamo": True, "fallback": False, "strict": False}
_CHOOSES = "it chooses among the exporters of torch, and trueport has one of its own"

_REFUSED: Mapping[str, tuple[Callable[[Any], bool], str, str]] = {
    "profile": (
        bool,
        "no profile is written",
        "program.report.seconds has the time of each stage; for more, run the export under cProfile",
    ),
    "dump_exported_program": (
        bool,
        "there is no ExportedProgram to dump: trueport captures the model itself",
        "program.captured is what it captured; torch.export.export(model, args) makes an ExportedProgram",
    ),
    "export_params": (
        lambda given: not given,
        "a file without weights computes nothing that could be checked",
        "keep_initializers_as_inputs=True lets a caller give other weights; external_data=True keeps them in a file "
        "of their own",
    ),
    "operator_export_type": (
        lambda given: given != OperatorExportTypes.ONNX,
        "only standard ONNX is written, no ATen operators",
        "for an operator that ONNX lacks write a translation: @trueport.op or custom_translation_table=",
    ),
    "autograd_inlining": (
        lambda given: not given,
        "there is no PythonOp: the forward of an autograd.Function is always followed",
        "leave it out; to keep such a function whole, make it a torch.library.custom_op with a translation",
    ),
}
"""By argument: whether what was given is refused, why, and the way out."""

_RETIRED = {
    "_retain_param_name": (True, "weights keep the names of the state dict"),
    "aten": (False, "write a translation for the operator: @trueport.op"),
    "enable_onnx_checker": (True, "every model is loaded and run by ONNX Runtime"),
    "example_outputs": (None, "eager's outputs are computed here"),
    "export_raw_ir": (False, "program.captured is what was captured"),
    "fallback": (False, ""),
    "strict": (False, ""),
    "strip_doc_string": (True, "source=False leaves the lines of the source out of the file"),
    "use_external_data_format": (False, "external_data=True keeps the weights in a file of their own"),
}
"""Arguments of older releases: their default, and what there is instead."""


def read_torch_arguments(
    given: Mapping[str, Any], older: Mapping[str, Any], known: Collection[str]
) -> list[Diagnostic]:
    """What there is to note of these arguments. Raises UsageError for the first that asks for what cannot be had.

    `given` are arguments of today's signature, `older` are all others; `known` are the names of our own.
    """
    for name, (is_refused, why, fix) in _REFUSED.items():
        if name in given and is_refused(given[name]):
            raise usage_error(f"{name}={given[name]!r} is refused: {why}", fix=fix)
    _refuse_training(given.get("training"))
    for name, value in older.items():
        if name not in _RETIRED:
            near = difflib.get_close_matches(name, [*known, *_RETIRED], n=1)
            fix = f"did you mean {near[0]}?" if near else "leave it out"
            raise usage_error(f"export has no argument {name!r}", fix=fix)
        default, instead = _RETIRED[name]
        if value != default and instead:
            raise usage_error(
                f"{name}={value!r} is refused: torch.onnx.export has no such argument any more", fix=instead
            )
    every = {**given, **older}
    return [
        NoEffect(message=f"{name}={every[name]!r} has no effect: {_CHOOSES}", fix="leave it out")
        for name, default in _CHOICES.items()
        if name in every and bool(every[name]) is not default
    ]


def _refuse_training(mode: Any) -> None:
    """EVAL and PRESERVE mean what is done anyway: the model is exported as it is, and TP003 tells of training mode."""
    modes = TrainingMode
    if mode in (None, modes.EVAL, modes.PRESERVE):
        return
    raise usage_error(
        f"training={mode!r} is refused: a model that is exported in training mode drops or normalises at random",
        fix='leave it out, and call model.eval(); to keep dropout on purpose: model.train() and random="onnx"',
    )


def custom_domains(given: Mapping[str, int] | None) -> dict[str, int]:
    """The versions of users' own operator domains. Raises UsageError where there is none to be understood."""
    for domain, version in (given or {}).items():
        if not isinstance(domain, str) or domain in ("", "ai.onnx") or isinstance(version, bool):
            raise usage_error(
                f"custom_opsets names the domain {domain!r}, which is ONNX's own", fix="use opset_version= for that"
            )
        if not isinstance(version, int) or version < 1:
            raise usage_error(
                f"custom_opsets gives {domain!r} the version {version!r}", fix="give a whole number from 1 on"
            )
    return dict(given or {})


def unused_domain(name: str) -> Diagnostic:
    return NoEffect(
        message=f"custom_opsets names the domain {name!r}, and no node of the model is of it", fix="leave it out"
    )
