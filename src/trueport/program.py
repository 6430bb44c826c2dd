"""The exported model, ready to be called, saved and asked about."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
import onnx_ir as ir
import torch

from trueport import temporary
from trueport.diagnostics.base import Diagnostic
from trueport.graph.regions import Graph, Number, OpenItems, Value, is_carried
from trueport.load.faults import usage_error
from trueport.load.job import Job
from trueport.load.outputs import refuse_output
from trueport.load.values import LeafKind
from trueport.lower.write import write, write_for_a_while, write_into
from trueport.optimise.sequence import PassResult
from trueport.report import Report
from trueport.report.certificate import save_certificate
from trueport.rewrite.readable import readable
from trueport.source import SourceRoots
from trueport.temporary import Written
from trueport.verify.results import CheckResult
from trueport.verify.runtime.child import outputs_of
from trueport.verify.runtime.tensors import as_pairs, tensor_data, to_torch

_BITS = {1: torch.uint8, 2: torch.uint16}
"""As what the bits of a dtype are handed to numpy that numpy has no name for (bfloat16, 8-bit floats)."""


@dataclass(frozen=True)
class CarriedModel:
    """A model on the other side, and what was found on the way."""

    found: tuple[Diagnostic, ...]
    graph: Graph
    model: ir.Model
    checked: CheckResult | None
    passes: tuple[PassResult, ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """What `trueport.export` returns.

    Calling it runs the ONNX model in ONNX Runtime, with arguments and results in the structure of the original model.
    """

    model: ir.Model
    report: Report
    _job: Job
    _graph: Graph
    _path: Path | None = None

    def __repr__(self) -> str:
        """One line: the graph and all that was checked are asked for by name."""
        report = self.report
        inputs, outputs = (", ".join(map(str, side)) for side in (report.inputs, report.outputs))
        checked = f"verified on {len(report.checks)} inputs" if report.verified else "not verified"
        return f"<Program {report.model}({inputs}) -> {outputs}; {report.nodes} nodes, opset {report.opset}, {checked}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: the signature, and what the report says."""
        inputs, outputs = (", ".join(map(str, side)) for side in (self.report.inputs, self.report.outputs))
        from trueport.report.html import report_fragment  # and what it is made with

        return report_fragment(self.report, f"{self.report.model}({inputs}) -> {outputs}")

    def save(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        external_data: bool | None = None,
        overwrite: bool = False,
    ) -> tuple[Path, ...]:
        """Write the model once more.

        Args:
            path: Where to; a file that is open for writing bytes (`io.BytesIO`) will do.
            external_data: True keeps the weights in a file of their own; None does so where one file cannot hold them.
            overwrite: Whether a file that is there already is replaced.

        Returns:
            The files that were written, the model first; none for an open file.

        Raises:
            UsageError: The file cannot be written there.
        """
        if not isinstance(path, str | os.PathLike):
            refuse_open_file(path, external_data)
            save_into(self.model, path)
            return ()
        written = save_model(self.model, Path(path), external_data, overwrite)
        return tuple(file.path for file in written)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as the `onnx` package has it, with a copy of the weights. `model` is the same as `onnx_ir` has it,
        which shares them."""
        whole = io.BytesIO()
        save_into(self.model, whole)
        return onnx.load_from_string(whole.getvalue())

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(given.name for given in self._graph.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return self._graph.output_names

    @property
    def captured(self) -> Graph:
        """The graph of regions that the model was traced into, before it became ONNX: for tests and tools that look
        inside. `captured.root.walk()` goes through its nodes, `captured.restarts` tells why the trace began again.
        What a graph is made of (`trueport.graph.regions`) may change with any version."""
        return self._graph

    @property
    def rewritten(self) -> tuple[str, ...]:
        """The functions whose branches and loops became part of the graph, as they were traced."""
        return shown_functions(self._graph)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the ONNX model. State that was lifted to inputs starts from the model's own buffers at each call."""
        import onnxruntime

        declared = {value.name: value.dtype for value in self.model.graph.inputs}
        feeds = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(as_bits(array), int(declared[name] or 0))
            for name, array in self.feeds(args, kwargs).items()
        }
        outputs = outputs_of(onnxruntime, self._session(), feeds)
        given = {output["name"]: [to_torch(tensor_data(*tensor)) for tensor in output["tensors"]] for output in outputs}
        return self._rebuild([given[name] for name in self.output_names])

    def feeds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """What to hand to a runtime for these arguments, by input name."""
        values = self._job.call.flatten((tuple(args), dict(kwargs)))
        by_name = {
            leaf.name: value
            for leaf, value in zip(self._job.leaves, values, strict=True)
            if leaf.kind is not LeafKind.CONSTANT
        }
        by_name |= initial_state(self._graph)
        declared = {value.name: value.dtype for value in self.model.graph.inputs}
        return {name: as_array(value, declared[name]) for name, value in by_name.items()}

    def _rebuild(self, outputs: Sequence[list[torch.Tensor]]) -> Any:
        """`outputs` are the tensors of each: one, or as many as a sequence holds."""
        given = iter(outputs)
        values: list[Any] = []
        for output in self._graph.outputs[: self._graph.returns.count]:
            if not is_carried(output.value):
                values.append(output.constant)
                continue
            tensors = next(given)
            if isinstance(output.value, OpenItems) and output.value.number is None:
                values.append([_like(output.value.rows, tensor) for tensor in tensors])
                continue
            (tensor,) = tensors
            if isinstance(output.value, OpenItems):
                values.append(tensor)
            elif isinstance(output.value, Value):
                values.append(_like(output.value, tensor))
            elif isinstance(output.value, Number):
                values.append(output.value.kind(tensor.item()))
            else:
                values.append(output.value)
        return self._graph.returns.build(values)

    def _session(self) -> Any:
        known = getattr(self, "_opened", None)
        if known is None:
            import onnxruntime

            with temporary.folder() as folder:
                written = write_for_a_while(self.model, folder)
                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3  # what it has to say of weights among the inputs is no news
                known = onnxruntime.InferenceSession(str(written), options, providers=["CPUExecutionProvider"])
            object.__setattr__(self, "_opened", known)
        return known


def _like(value: Value, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the runtime's as eager has it: complex numbers are pairs there."""
    return torch.view_as_complex(tensor) if value.dtype.is_complex else tensor


def save_model(model: ir.Model, path: Path, external_data: bool | None, overwrite: bool) -> tuple[Written, ...]:
    """Write a model where the user asked for it; what stands in the way is told, not thrown away."""
    refuse_output(path, overwrite)
    try:
        return write(model, path, external_data)
    except OSError as failure:
        raise usage_error(f"cannot write {path}: {failure.strerror or failure}", fix="choose another path") from failure


def refuse_open_file(file: object, external_data: bool | None) -> None:
    """Raise UsageError where a model cannot be written into this object."""
    fix = 'give a path, io.BytesIO(), or open("model.onnx", "wb")'
    if not callable(getattr(file, "write", None)):
        raise usage_error(f"f is neither a path nor an open file, but of type {type(file).__name__}", fix=fix)
    if isinstance(file, io.TextIOBase) or "b" not in getattr(file, "mode", "b"):
        raise usage_error("f is a file for text, and a model is bytes", fix=fix)
    if getattr(file, "closed", False):
        raise usage_error("f is a file that is closed already", fix=fix)
    if external_data:
        raise usage_error(
            "external_data=True needs a path: the weights go to a file beside the model", fix='give f="model.onnx"'
        )


def save_into(model: ir.Model, file: BinaryIO) -> None:
    """Write a model into an open file."""
    try:
        whole = write_into(model, file)
    except (OSError, ValueError, TypeError) as failure:
        raise usage_error(f"cannot write into {type(file).__name__}: {failure}", fix="give a path") from failure
    if not whole:
        raise usage_error("a model of more than 2 GB is several files", fix='give a path: f="model.onnx"')


def prove(report: Report, written: Sequence[Written], roots: SourceRoots | None) -> None:
    """Write the certificate beside the model; without `roots`, with nothing of the source."""
    try:
        save_certificate(report, written, roots)
    except OSError as failure:
        raise usage_error(
            f"the model is written, its certificate cannot be: {failure.strerror or failure}",
            fix="make room, or leave the certificate out",
        ) from failure


def initial_state(graph: Graph) -> dict[str, torch.Tensor]:
    """The buffers' present values, for inputs that are lifted state."""
    return dict(graph.lifted)


def as_array(value: Any, dtype: ir.DataType | None) -> np.ndarray[Any, Any]:
    """A value as numpy has it; of a dtype that numpy does not know by itself, in that of `ml_dtypes`."""
    kind = dtype.numpy() if dtype is not None else None
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=kind)
    plain = as_pairs(value.detach()).cpu().resolve_neg().contiguous()
    if kind is None or kind.isbuiltin == 1:
        return plain.numpy()
    return plain.view(_BITS[plain.element_size()]).numpy().view(kind)


def as_bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as the runtime takes it: it knows no dtype that numpy does not have of its own, only its bits."""
    plain = np.ascontiguousarray(array).reshape(array.shape)
    return plain if array.dtype.isbuiltin == 1 else plain.view(np.dtype(f"u{array.dtype.itemsize}"))


def shown_functions(graph: Graph) -> tuple[str, ...]:
    """The functions that were rewritten for a graph, as they were traced."""
    return tuple(readable(code, graph.tails.get(code, frozenset())) for code in graph.rewritten)
