"""What users call: `export`, `check` and `verify`.

Each makes a job of what it was given, sends it through the rooms (`run.py`), and reports.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard, cast

import torch
from torch.nn.parameter import is_lazy

from trueport import progress, summary
from trueport.capture.effects.state import StateMode
from trueport.errors import ExportError, UsageError
from trueport.examine import examine
from trueport.examine.unheard import unheard
from trueport.functions.asked import Wanted, functions_wanted
from trueport.load.faults import refuse_checking, usage_error
from trueport.load.file_inputs import FileInput, parse_file_inputs
from trueport.load.kinds_of_arguments import told_by_kind
from trueport.load.outputs import refuse_output, refuse_without_room
from trueport.load.request import make_job
from trueport.load.roots import source_roots
from trueport.load.torch_arguments import custom_domains, read_torch_arguments, unused_domain
from trueport.lower.opsets import opset_to_write
from trueport.optimise.names import Asked, chosen
from trueport.program import Program, prove, refuse_open_file, save_into, save_model
from trueport.report import Report
from trueport.report.versions import installed_versions
from trueport.run import ExportOptions, Run, Stopwatch
from trueport.temporary import Written
from trueport.torch_internals import OperatorExportTypes, TrainingMode, overloads_of
from trueport.verify.any_file import check_any_file
from trueport.verify.faults.evidence import Evidence
from trueport.verify.judging.comparing import Allowed
from trueport.verify.options import EXPORTED, Options
from trueport.verify.runtime.sandbox import warm_up
from trueport.verify.two_files import Inputs, check_two_files


@told_by_kind
def export(
    model: object,
    args: Any = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: Asked = True,
    verify: bool = True,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = TrainingMode.EVAL,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Wanted = False,
    autograd_inlining: bool = True,
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
    functions: Wanted = False,
    **older: Any,
) -> Program:
    """Export a PyTorch model to ONNX, and prove it.

    The arguments up to `autograd_inlining` are those of `torch.onnx.export`, so that changing the name of the function
    is the migration. Each is honoured, or refused by its name; none is passed over. Those of older releases, too.

    Args:
        model: The model: a module, a function, an `ExportedProgram` or the path of a `.pt2` file. What `torch.compile`,
            `DataParallel` or `DistributedDataParallel` wraps is taken out, and the report says so (TP009).
        args: The example's positional arguments; what is no tuple is the one argument. Python numbers become inputs.
        f: Where to write the model: a path, a file that is open for writing bytes, or None for nowhere.
        kwargs: The example's keyword arguments.
        verbose: True prints the report.
        input_names: Names for the inputs, in order; else they are named after the parameters of `forward`.
        output_names: Names for the outputs, in order.
        opset_version: The ONNX opset to write; else the one of `target`, else 20.
        dynamo: Chooses among the exporters of torch; without effect here, and noted if False (TP008).
        external_data: True keeps the weights in a file beside the model; None where one file cannot hold them.
        dynamic_shapes: The free sizes, as `torch.export` takes them: `({0: "batch"},)` or `{"x": {0: Dim("batch")}}`.
        custom_translation_table: Translations for operators, by operator or name (`"mylib::op"`).
        report: True writes the report to `artifacts_dir` as `<name>.report.html`, also where the model is refused.
        optimize: Whether passes make the ONNX model smaller before it is checked: True, False, `"fold,moves"` for
            these two, `"-fold"` for all but this one. None run with `keep_initializers_as_inputs`.
        verify: Whether the model is compared with eager in ONNX Runtime. Not comparing it is a warning of the report.
        profile: Refused if True: `program.report.seconds` has the time of each stage.
        dump_exported_program: Refused if True: there is none.
        artifacts_dir: The folder for the report.
        export_params: Refused if False: a file without weights cannot be checked.
        keep_initializers_as_inputs: True lists the weights among the inputs, so that a caller may give others.
        dynamic_axes: The free sizes in the older form: `{"x": {0: "batch"}}`.
        training: EVAL and PRESERVE export the model as it is, TRAINING is refused. A model that is in training mode
            and acts otherwise there is refused by TP003.
        operator_export_type: Refused unless ONNX.
        do_constant_folding: False leaves out the pass `fold`.
        custom_opsets: The versions of your own operator domains, by domain.
        export_modules_as_functions: The same as `functions`.
        autograd_inlining: Refused if False: the forward of an `autograd.Function` is always followed.
        constants: Python-number arguments to bake in, by name; otherwise they are inputs.
        state: What becomes of buffers that `forward` writes: `"inputs-outputs"`, `"frozen"`; None refuses them.
        overwrite: Whether a file that is there already is replaced.
        value_ranges: By input name, the least and the largest value to check with.
        thorough: Search longer for inputs that go other ways.
        seed: Of the inputs that are drawn.
        rtol: How far an output may be off, as a share of it: for all outputs, or by name. None goes by the dtype.
        atol: The same as a plain difference.
        nonfinite: Whether NaN and infinities are among the values to try.
        proof: Whether to write `<f>.proof.json`: what was compared, and how. `trueport audit <f>` reads it.
        counterexample: A folder for an input on which the two differ, with a script that shows it.
        random: `"onnx"` for a model that draws random numbers: the exported one draws its own, and is checked to be
            distributed as eager is. None refuses it.
        source: Whether the file notes from which line each node comes.
        source_root: The folder that those lines are relative to; else the nearest above each source file with a
            pyproject.toml or a .git.
        target: Where the model will run, `"onnxruntime==1.17"`: says the opset where `opset_version` does not.
        functions: True makes an ONNX function of each kind of module that the model is made of, which all layers of
            that kind call; `{Block, Attention}` of the modules of these classes. Needs opset 15.
        **older: Arguments of older releases of torch, at their default or with what there is instead.

    Returns:
        The `Program`: it can be called as the model can, has the `report`, the ONNX model (`model`, `model_proto`), and
        can be written again (`save`).

    Raises:
        ExportError: The model cannot be exported faithfully; `.diagnostics` has every finding. Nothing is written.
        UsageError: The call cannot be understood or carried out; the model was not judged.

    Example:
        >>> import torch, trueport
        >>> model = torch.nn.Linear(4, 2).eval()
        >>> program = trueport.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: "batch"},))
        >>> program
        <Program Linear(input: float32[batch, 4]) -> output: float32[batch, 2]; 1 nodes, opset 20, verified on ...>
        >>> program(torch.zeros(5, 4)).shape
        torch.Size([5, 2])
    """
    told = read_torch_arguments(
        {
            "dynamo": dynamo,
            "profile": profile,
            "dump_exported_program": dump_exported_program,
            "export_params": export_params,
            "training": training,
            "operator_export_type": operator_export_type,
            "autograd_inlining": autograd_inlining,
        },
        older,
        _names_of(export),
    )
    path = Path(f) if isinstance(f, str | os.PathLike) else None
    destination = None if path is None else Path(os.path.realpath(path))  # now: the model may change the working folder
    if path is not None:
        refuse_output(path, overwrite)
    elif f is not None:
        refuse_open_file(f, external_data)
    if proof and path is None:
        raise usage_error("proof=True needs a path: the certificate lies beside the model", fix='give f="model.onnx"')
    opset = opset_to_write(opset_version, target, checked=verify)
    refuse_checking(seed, rtol, atol)
    artefacts = _artefacts(artifacts_dir, path, model) if report else None
    evidence = None if counterexample is None else Evidence(Path(counterexample), with_model=True)
    passes = tuple(name for name in chosen(optimize) if do_constant_folding or name != "fold")
    options = ExportOptions(
        opset=opset,
        custom=_translations(custom_translation_table),
        state=_state(state),
        verify=verify,
        checking=Options.asked(thorough, seed, rtol, atol, nonfinite, evidence, EXPORTED),
        random=_random(random),
        source=source,
        source_root=_folder(source_root),
        passes=() if keep_initializers_as_inputs else passes,
        functions=functions_wanted(functions, export_modules_as_functions, opset),
        weights_as_inputs=keep_initializers_as_inputs,
        domains=custom_domains(custom_opsets),
    )
    watch = Stopwatch()
    with _reported(artefacts, model, verbose), watch.stage("load"):
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
        job = replace(job, diagnostics=(*told, *job.diagnostics))
    _refuse_without_room(job.model, path, verify)
    with _reported(artefacts, model, verbose):
        run, carried = Run(job, options, watch).carry()
    unused = [name for name in options.domains if name not in carried.model.opset_imports]
    carried = replace(carried, found=(*carried.found, *map(unused_domain, unused)))
    written: tuple[Written, ...] = ()
    with watch.stage("write"):
        if destination is not None:
            written = save_model(carried.model, destination, external_data, overwrite)
        elif f is not None:
            save_into(carried.model, cast(BinaryIO, f))
    summed_up = run.report(carried, path)
    _tell(summed_up, artefacts, verbose)
    if written and proof and summed_up.verified:
        prove(summed_up, written, run.noting())
    return Program(carried.model, summed_up, run.job, carried.graph, path)


@told_by_kind
def check(
    model: object,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    optimize: Asked = True,
    verify: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    constants: str | Iterable[str] = (),
    state: str | None = None,
    value_ranges: Mapping[str, tuple[float, float]] | None = None,
    thorough: bool = False,
    seed: int = 0,
    rtol: Allowed = None,
    atol: Allowed = None,
    nonfinite: bool = False,
    counterexample: str | os.PathLike[str] | None = None,
    random: str | None = None,
    source: bool = True,
    source_root: str | os.PathLike[str] | None = None,
    target: str | None = None,
    functions: Wanted = False,
) -> Report:
    """Say whether a model can be exported faithfully: everything that `export` does but writing.

    Args:
        model: The model, as `export` takes it.
        args: The example's positional arguments.
        kwargs: The example's keyword arguments.
        input_names: As in `export`, and so are all that follow.
        output_names: Names for the outputs, in order.
        opset_version: The ONNX opset.
        dynamic_shapes: The free sizes.
        custom_translation_table: Translations for operators.
        optimize: Whether passes make the ONNX model smaller before it is checked: True, False, `"fold,moves"` for
            these two, `"-fold"` for all but this one. None run with `keep_initializers_as_inputs`.
        verify: Whether it is compared with eager; without it, only what stands in the way of an export is found.
        dynamic_axes: The free sizes in the older form.
        constants: Python-number arguments to bake in.
        state: What becomes of buffers that `forward` writes.
        value_ranges: By input name, the least and the largest value to check with.
        thorough: Search longer for inputs that go other ways.
        seed: Of the inputs that are drawn.
        rtol: How far an output may be off, as a share of it.
        atol: The same as a plain difference.
        nonfinite: Whether NaN and infinities are among the values to try.
        counterexample: A folder for an input on which the two differ.
        random: `"onnx"` for a model that draws random numbers.
        source: Whether nodes note the lines that they come from.
        source_root: The folder that those lines are relative to.
        target: Where the model will run.
        functions: Whether functions are made of modules.

    Returns:
        The `Report`, also where the model cannot be exported: `report.ok` and `report.diagnostics` tell.

    Raises:
        UsageError: The call cannot be understood.

    Example:
        >>> import torch, trueport
        >>> report = trueport.check(lambda x: x.reshape(2, 3), (torch.ones(2, 3),), dynamic_shapes=({0: "rows"},))
        >>> report.ok, [found.code for found in report.errors]
        (False, ['TP301'])
    """
    try:
        program = export(
            model,
            args,
            None,
            kwargs=kwargs,
            input_names=input_names,
            output_names=output_names,
            opset_version=opset_version,
            dynamic_shapes=dynamic_shapes,
            custom_translation_table=custom_translation_table,
            optimize=optimize,
            verify=verify,
            dynamic_axes=dynamic_axes,
            constants=constants,
            state=state,
            value_ranges=value_ranges,
            thorough=thorough,
            seed=seed,
            rtol=rtol,
            atol=atol,
            nonfinite=nonfinite,
            counterexample=counterexample,
            random=random,
            source=source,
            source_root=source_root,
            target=target,
            functions=functions,
        )
    except UsageError:
        raise
    except ExportError as refused:
        return _refused(model, refused)
    return program.report


@told_by_kind
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
    budget: float | None = None,
) -> Report:
    """Compare an ONNX file, whoever exported it, with the model that it is said to be.

    Inputs and outputs are matched by name or by order. Where no free size is declared, those that the file leaves open
    are free. Where eager draws random numbers, it is compared how the results are distributed; where it remembers its
    calls, several calls are compared, one after the other.

    The model may be another ONNX file: the one that this was made of, by a simplifier, a converter to half precision or
    a quantiser. Then it is the reference, and no torch model is needed.

    Args:
        path: The ONNX file.
        model: The model, as `export` takes it; with its weights. Or the path of an ONNX file that is the reference.
        args: The example's positional arguments. Of two files, one for each input, in order; none draws them from what
            the reference says of its inputs.
        kwargs: The example's keyword arguments; of two files, by the name of the input.
        dynamic_shapes: The free sizes, as in `export`.
        dynamic_axes: The free sizes in the older form.
        constants: Python-number arguments that the file has baked in.
        value_ranges: By input name, the least and the largest value to check with.
        thorough: Search longer for inputs that go other ways.
        seed: Of the inputs that are drawn.
        rtol: How far an output may be off, as a share of it: for all outputs, or by name. None goes by the dtype.
        atol: The same as a plain difference.
        nonfinite: Whether NaN and infinities are among the values to try.
        counterexample: A folder for an input on which the two differ, with a script that shows it.
        state: `"frozen"` where the file is meant to begin each call in the model's present state.
        source_root: Lines of source are shown only of Python files below this folder and the model's own projects,
            whatever the file notes.
        budget: Of two files: the share of an output's largest value on the example by which it may be off. None goes by
            the dtypes of the file; a file that is quantised may be off by 0.05, and the report says so.

    Returns:
        The `Report`, whose errors are the differences.

    Raises:
        UsageError: The call cannot be understood, or there is no such file.

    Example:
        >>> import torch, trueport
        >>> model = torch.nn.Linear(4, 2).eval()
        >>> _ = torch.onnx.export(model, (torch.randn(3, 4),), "linear.onnx", verbose=False)
        >>> trueport.verify("linear.onnx", model, (torch.randn(3, 4),)).ok
        True
    """
    file, root = Path(path), _folder(source_root)
    target = file.absolute()  # now: the model may change the working folder
    refuse_checking(seed, rtol, atol)
    if not file.is_file():
        raise usage_error(f"there is no file {file}", fix="name an ONNX file")
    warm_up()
    if is_onnx_file(model):
        _refuse_of_models(constants=constants, state=state)
        given = FileCall(args, dict(kwargs or {}), dynamic_shapes, dynamic_axes, dict(value_ranges or {}))
        asked: dict[str, Any] = {"thorough": thorough, "seed": seed, "rtol": rtol, "atol": atol, "nonfinite": nonfinite}
        return verify_files(Path(model), file, given.arguments, budget=budget, counterexample=counterexample, **asked)
    if budget is not None:
        raise usage_error("budget= is for two files: what is compared with eager is judged by its dtypes", fix="atol=")
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
        wanted = Options.asked(thorough, seed, rtol, atol, nonfinite, evidence)
        progress.stage("verify")
        with unheard():
            checked = check_any_file(target, job, examined, wanted, _state(state) is StateMode.FROZEN)
        found += summary.with_lines(checked.diagnostics, source_roots(job.model, root))
    return summary.file_report(job, file, found, checked)


def is_onnx_file(model: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(model, str | os.PathLike) and Path(model).suffix.lower() == ".onnx"


def verify_files(
    reference: Path,
    path: Path,
    inputs: Inputs,
    *,
    budget: float | None = None,
    thorough: bool = False,
    seed: int = 0,
    rtol: Allowed = None,
    atol: Allowed = None,
    nonfinite: bool = False,
    counterexample: str | os.PathLike[str] | None = None,
) -> Report:
    """Compare a file with the one that it was made of; `inputs` says what they are given. Users call `verify`."""
    if not reference.is_file():
        raise usage_error(f"there is no file {reference}", fix="name an ONNX file")
    refuse_checking(seed, rtol, atol)
    if budget is not None and not 0 <= budget < math.inf:
        raise usage_error(f"budget={budget!r} is no share", fix="give a number that is not negative: 0.05")
    evidence = None if counterexample is None else Evidence(Path(counterexample))
    asked = Options.asked(thorough, seed, rtol, atol, nonfinite, evidence)
    warm_up()
    progress.stage("verify")
    compared = check_two_files(reference.absolute(), path.absolute(), inputs, asked, budget)
    return summary.pair_report(reference, path, compared)


def _refuse_of_models(**given: object) -> None:
    for name, value in given.items():
        if value:
            raise usage_error(f"{name}= is for a torch model, and both are files", fix="leave it out")


@dataclass(frozen=True)
class FileCall:
    """What `verify` was given for a file: the arguments of its inputs, in order or by name."""

    args: Any
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    dynamic_axes: Mapping[str, Any] | None
    value_ranges: Mapping[str, tuple[float, float]]

    def arguments(self, inputs: Sequence[FileInput]) -> dict[str, Any]:
        positional = self.args if isinstance(self.args, tuple) else (self.args,)
        if not positional and not self.kwargs:
            return parse_file_inputs(inputs, ()).as_call() | {"value_ranges": self.value_ranges}
        rest = [each.name for each in inputs[len(positional) :]]
        if len(positional) > len(inputs) or set(rest) != set(self.kwargs):
            names = ", ".join(each.name for each in inputs)
            raise usage_error(f"the example does not fit the file, which takes {names}", fix="give one for each input")
        values = (*positional, *(self.kwargs[name] for name in rest))
        sizes = {"dynamic_shapes": self.dynamic_shapes, "dynamic_axes": self.dynamic_axes}
        return {"args": values, **sizes, "value_ranges": self.value_ranges}


def _refused(model: object, refused: ExportError) -> Report:
    return Report(model=summary.model_name(model), diagnostics=refused.diagnostics, versions=installed_versions())


@contextlib.contextmanager
def _reported(artefacts: Path | None, model: object, verbose: bool | None) -> Iterator[None]:
    """Where the model is refused, the report is written all the same."""
    try:
        yield
    except UsageError:
        raise
    except ExportError as refused:
        _tell(_refused(model, refused), artefacts, verbose)
        raise


def _tell(report: Report, artefacts: Path | None, verbose: bool | None) -> None:
    if verbose:
        print(report.text())
    if artefacts is not None:
        try:
            report.save(artefacts)
        except OSError as failure:
            why = failure.strerror or failure
            raise usage_error(f"cannot write the report to {artefacts}: {why}", fix="give artifacts_dir=") from failure


def _artefacts(folder: str | os.PathLike[str], path: Path | None, model: object) -> Path:
    """Where the report goes: named after the file that is written, or after the model."""
    name = summary.model_name(model) if path is None else path.name
    target = Path(os.path.realpath(folder)) / f"{name}.report.html"
    refuse_output(target, overwrite=True, what="report.html")
    return target


def _names_of(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _translations(given: Mapping[Any, Callable[..., Any]] | None) -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for key, function in (given or {}).items():
        try:
            found |= dict.fromkeys(overloads_of(key), function)
        except (TypeError, AttributeError) as unknown:
            message = f"custom_translation_table has the key {key!r}, which is no operator: {unknown}"
            fix = "use torch.ops.mylib.op.default, or the name: 'mylib::op'"
            raise usage_error(message, fix=fix) from None
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
        raise usage_error(f"source_root={os.fspath(source_root)!r} is no folder", fix=fix)
    return os.path.abspath(source_root)


def _random(choice: str | None) -> bool:
    if choice not in (None, "onnx"):
        raise usage_error(f"random={choice!r} is unknown", fix='use random="onnx"')
    return choice is not None


def _state(choice: str | None) -> StateMode:
    if choice is None:
        return StateMode.REFUSE
    try:
        return StateMode(choice)
    except ValueError:
        raise usage_error(f"state={choice!r} is unknown", fix='use state="inputs-outputs" or state="frozen"') from None
