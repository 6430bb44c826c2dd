"""What users call: `export`, `check` and `verify`.

Each makes a job of what it was given, sends it through the rooms (`run.py`), and reports.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from trueport import progress, summary
from trueport.capture.effects.state import StateMode
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import ExportError, UsageError
from trueport.examine import examine
from trueport.load.faults import refuse_checking
from trueport.load.outputs import refuse_output, refuse_without_room
from trueport.load.request import make_job
from trueport.load.roots import source_roots
from trueport.lower.opsets import opset_to_write
from trueport.optimise.names import Asked, chosen
from trueport.program import Program, prove, save_model
from trueport.report import Report
from trueport.report.versions import installed_versions
from trueport.run import ExportOptions, Run, Stopwatch
from trueport.torch_internals import overloads_of
from trueport.verify.any_file import check_any_file
from trueport.verify.faults.evidence import Evidence
from trueport.verify.judging.comparing import Allowed
from trueport.verify.options import EXPORTED, Options
from trueport.verify.runtime.sandbox import warm_up

_NO_EFFECT = frozenset(
    "artifacts_dir do_constant_folding dump_exported_program dynamo export_params fallback keep_initializers_as_inputs "
    "profile report strict training verbose".split()
)
"""Arguments of torch.onnx.export that mean nothing here; taken so that changing the import is the migration."""


def export(
    model: object,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    external_data: bool | None = None,
    verify: bool = True,
    constants: str | Iterable[str] = (),
    state: str | None = None,
    overwrite: bool = False,
    value_ranges: Mapping[str, tuple[float, float]] | None = None,
    thorough: bool = False,
    seed: int = 0,
    rtol: Allowed = None,
    atol: Allowed = None,
    nonfinite: bool = False,
    proof: bool = False,
    counterexample: str | os.PathLike[str] | None = None,
    random: str | None = None,
    source: bool = True,
    source_root: str | os.PathLike[str] | None = None,
    target: str | None = None,
    optimize: Asked = True,
    **torch_options: Any,
) -> Program:
    """Export a PyTorch model to ONNX, and prove it.

    Takes the arguments of `torch.onnx.export`, and: `constants` (Python-number arguments to bake in; otherwise they are
    inputs), `state` ("inputs-outputs" or "frozen", for buffers that forward writes), `overwrite`, `value_ranges`
    (by input name, for the values to check with), `thorough` (search longer for inputs that go other ways), `seed` (of
    the drawn inputs), `rtol` and `atol` (for all outputs, or by name), `nonfinite` (NaN and infinities among the values
    to try), `proof` (write `<f>.proof.json`: what was compared, and how), `counterexample` (a folder for an input on
    which the exported model differs from eager, with a script that shows it), `random` ("onnx" for a model that draws
    random numbers: the exported one draws its own, and is checked to be distributed as eager is), `source_root` (the
    folder that the lines noted in the file are relative to; else the project's, the nearest above each source file with
    a pyproject.toml or a .git), `source` (False leaves the lines out, for a file that goes to others), `target` (where
    the model will run, "onnxruntime==1.17", which says the opset where `opset_version` does not), `optimize` (False
    runs no pass over the graph, "fold,moves" these two, "-fold" all but this one).

    Raises ExportError, with every finding, where the model cannot be exported faithfully; nothing is written then.
    """
    path = None if f is None else Path(f)
    destination = None if path is None else Path(os.path.realpath(path))  # now: the model may change the working folder
    if path is not None:
        refuse_output(path, overwrite)
    opset = opset_to_write(opset_version, target, checked=verify)
    refuse_checking(seed, rtol, atol)
    evidence = None if counterexample is None else Evidence(Path(counterexample), with_model=True)
    options = ExportOptions(
        opset=opset,
        custom=_translations(custom_translation_table),
        state=_state(state),
        verify=verify,
        checking=Options.asked(thorough, seed, rtol, atol, nonfinite, evidence, EXPORTED),
        random=_random(random),
        source=source,
        source_root=_folder(source_root),
        passes=chosen(optimize),
    )
    _refuse_unknown_arguments(torch_options)
    watch = Stopwatch()
    with watch.stage("load"):
        job = make_job(
            model,
            args,
            kwargs,
            dynamic_shapes=dynamic_shapes,
            dynamic_axes=dynamic_axes,
            input_names=input_names,
            output_names=output_names,
            constants=constants,
            value_ranges=value_ranges,
        )
    _refuse_without_room(job.model, path, verify)
    run, carried = Run(job, options, watch).carry()
    if destination is not None:
        with watch.stage("write"):
            written = save_model(carried.model, destination, external_data, overwrite)
    report = run.report(carried, path)
    if destination is not None and proof and report.verified:
        prove(report, written, run.noting())
    return Program(carried.model, report, run.job, carried.graph, path)


def check(model: object, args: Any = (), **options: Any) -> Report:
    """Everything that `export` does but writing. Returns a Report, also where the model cannot be exported."""
    try:
        return export(model, args, None, **options).report
    except UsageError:
        raise
    except ExportError as refused:
        return Report(model=summary.model_name(model), diagnostics=refused.diagnostics, versions=installed_versions())


def verify(
    path: str | os.PathLike[str],
    model: object,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    constants: str | Iterable[str] = (),
    value_ranges: Mapping[str, tuple[float, float]] | None = None,
    thorough: bool = False,
    seed: int = 0,
    rtol: Allowed = None,
    atol: Allowed = None,
    nonfinite: bool = False,
    counterexample: str | os.PathLike[str] | None = None,
    state: str | None = None,
    source_root: str | os.PathLike[str] | None = None,
) -> Report:
    """Compare an ONNX file, whoever exported it, with the model that it is said to be.

    Inputs and outputs are matched by name or by order. Where no free size is declared, those that the file leaves open
    are free. Where eager draws random numbers, it is compared how the results are distributed; where it remembers its
    calls, several calls are compared, one after the other (`state="frozen"`: each from the model's present state).

    Returns a Report, whose errors are the differences; `counterexample` is a folder in which to keep an input that
    shows them. Lines of source are shown only of Python files below `source_root` and the model's own projects,
    whatever the file notes. The other options are those of `export`.
    """
    file, root = Path(path), _folder(source_root)
    target = file.absolute()  # now: the model may change the working folder
    refuse_checking(seed, rtol, atol)
    if not file.is_file():
        raise UsageError([UsageFault(message=f"there is no file {file}", fix="name an ONNX file")])
    warm_up()
    job = make_job(
        model,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        dynamic_axes=dynamic_axes,
        constants=constants,
        value_ranges=value_ranges,
    )
    progress.stage("examine")
    examined = examine(job)
    found = [summary.of_a_file(finding) for finding in examined.diagnostics]
    checked = None
    if not any(finding.is_error for finding in found):
        evidence = None if counterexample is None else Evidence(Path(counterexample))
        asked = Options.asked(thorough, seed, rtol, atol, nonfinite, evidence)
        progress.stage("verify")
        checked = check_any_file(target, job, examined, asked, _state(state) is StateMode.FROZEN)
        found += summary.with_lines(checked.diagnostics, source_roots(job.model, root))
    return summary.file_report(job, file, found, checked)


def _refuse_unknown_arguments(given: Mapping[str, Any]) -> None:
    unknown = sorted(set(given) - _NO_EFFECT)
    if unknown:
        raise TypeError(f"export() got an unexpected keyword argument {unknown[0]!r}")


def _translations(given: Mapping[Any, Callable[..., Any]] | None) -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for key, function in (given or {}).items():
        try:
            found |= dict.fromkeys(overloads_of(key), function)
        except (TypeError, AttributeError) as unknown:
            message = f"custom_translation_table has the key {key!r}, which is no operator: {unknown}"
            fix = "use torch.ops.mylib.op.default, or the name: 'mylib::op'"
            raise UsageError([UsageFault(message=message, fix=fix)]) from None
    return found


def _refuse_without_room(model: torch.nn.Module, path: Path | None, verify: bool) -> None:
    """A model takes as much room as its weights do, at the least: where it goes, and where it is checked."""
    tensors = [*model.parameters(), *model.buffers()]
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors if not is_lazy(tensor))
    if path is not None:
        refuse_without_room(path.parent, size, "the model", "make room there, or choose another path")
    if verify:
        fix = "make room there, or set TMPDIR to a folder that has it"
        refuse_without_room(Path(tempfile.gettempdir()), size, "the copy that is checked", fix)


def _folder(source_root: str | os.PathLike[str] | None) -> str | None:
    if source_root is None:
        return None
    if not Path(source_root).is_dir():
        fix = "name the folder that the model's source lies in"
        raise UsageError([UsageFault(message=f"source_root={os.fspath(source_root)!r} is no folder", fix=fix)])
    return os.path.abspath(source_root)


def _random(choice: str | None) -> bool:
    if choice not in (None, "onnx"):
        raise UsageError([UsageFault(message=f"random={choice!r} is unknown", fix='use random="onnx"')])
    return choice is not None


def _state(choice: str | None) -> StateMode:
    if choice is None:
        return StateMode.REFUSE
    try:
        return StateMode(choice)
    except ValueError:
        raise UsageError(
            [UsageFault(message=f"state={choice!r} is unknown", fix='use state="inputs-outputs" or state="frozen"')]
        ) from None
