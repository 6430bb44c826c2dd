"""The check of an ONNX file against another one that it was made of: simplified, in half precision, or quantised.

The first file is the reference. It runs in a worker of its own, and takes the place of eager: what it refuses is no
test. Both are anybody's files, and neither is ever run in this process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
import torch
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport import temporary
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.rules.tp004_not_deterministic import NotDeterministic
from trueport.diagnostics.rules.tp803_wrong_shape import WrongShape
from trueport.diagnostics.rules.tp804_wrong_dtype import WrongDtype
from trueport.diagnostics.spelling import VALUES, option, told
from trueport.load.file_inputs import FileInput
from trueport.load.job import Job
from trueport.load.request import make_job
from trueport.source import visible
from trueport.verify.check import Opened, check_opened, open_model
from trueport.verify.faults.eager_values import tapped
from trueport.verify.faults.mismatch import Divergence
from trueport.verify.fitted import Fitted, fit
from trueport.verify.judging.compare import judge, tolerance_for
from trueport.verify.judging.reference import Reference
from trueport.verify.options import Insight, Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.origin import written_out
from trueport.verify.runtime.sandbox import Limits, Optimisation, Port, Worker, WorkerFailure, shared_worker
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, dtype_of, element_name, from_torch, to_torch

QUANTISED_BUDGET = 0.05
"""The share of an output's scale by which a quantised file may be off, where nobody says another."""
_MOST_WEIGHTS = 1 << 40
_LARGEST_FILE = 256 << 20
_QUANTISES = re.compile(r"[Qq]uantize|^QLinear|Integer$|NBits$|^Q(Gemm|Attention)")


@dataclass(frozen=True)
class FileFacts:
    """What an ONNX file says of itself, read without running it."""

    floats: frozenset[torch.dtype]
    """The float dtypes that it holds or computes in."""
    quantised: bool
    weight_bytes: int

    @classmethod
    def of(cls, path: Path) -> FileFacts:
        """Of a file that could be loaded."""
        graphs = [onnx.load(path, "protobuf", load_external_data=False).graph]
        floats: set[torch.dtype] = set()
        operators: set[str] = set()
        size = 0
        for graph in graphs:  # grows with those inside
            for tensor in graph.initializer:
                floats.update(_float_dtype(tensor.data_type))
                size += 4 * math.prod(max(length, 0) for length in tensor.dims)
            for node in graph.node:
                operators.add(node.op_type)
                for attribute in node.attribute:
                    if node.op_type == "Cast" and attribute.name == "to":
                        floats.update(_float_dtype(attribute.i))
                    graphs.extend(each for each in (attribute.g, *attribute.graphs) if each.node)
        return cls(frozenset(floats), any(map(_QUANTISES.search, operators)), min(size, _MOST_WEIGHTS))


def _float_dtype(element_type: int) -> Iterator[torch.dtype]:
    dtype = getattr(torch, element_name(element_type), None)
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize > 1:
        yield dtype


class FileModule(torch.nn.Module):
    """An ONNX file in the place of a model: a call runs it in its worker.

    What the other file takes or gives in a smaller float is rounded to it on this side, too: how the numbers are
    handed over is no difference between the two.
    """

    def __init__(self, opened: Opened, other: Opened) -> None:
        super().__init__()
        self._loaded = opened.loaded
        self._inputs = [(port, _twin(port, other.loaded.inputs, at)) for at, port in enumerate(opened.loaded.inputs)]
        outputs = opened.loaded.outputs
        self._outputs = [(_twin(port, outputs, at), port) for at, port in enumerate(other.loaded.outputs)]

    def forward(self, *args: torch.Tensor) -> Any:
        feeds = {
            port.name: from_torch(_rounded(value, twin.type).to(value.dtype))
            for (port, twin), value in zip(self._inputs, args, strict=True)
        }
        given = self._loaded.run(feeds)
        return tuple(_as_torch(given[own.name], theirs.type) for own, theirs in self._outputs)


def _twin(port: Port, others: Sequence[Port], at: int) -> Port:
    """The input or output of the other file that is this one: by its name, else by its place."""
    named = {each.name: each for each in others}
    return named.get(port.name) or (others[at] if at < len(others) else port)


def _rounded(value: torch.Tensor, runtime_type: str) -> torch.Tensor:
    dtype = getattr(torch, dtype_of(runtime_type), None)
    both = isinstance(dtype, torch.dtype) and dtype.is_floating_point and value.is_floating_point()
    return value.to(dtype) if both else value


def _as_torch(value: RuntimeValue, runtime_type: str) -> Any:
    if isinstance(value, tuple):
        return [_rounded(to_torch(each), runtime_type) for each in value]
    return _rounded(to_torch(value), runtime_type)


Inputs = Callable[[Sequence[FileInput]], Mapping[str, Any]]
"""From the inputs that the reference declares to the arguments of `make_job`."""


@dataclass(frozen=True)
class PairCompared:
    """What the comparison of two files came to."""

    result: CheckResult
    job: Job | None = None
    budget: str = ""
    """How far the file may be off, where it is not the rounding of its dtypes that decides."""
    notes: tuple[str, ...] = field(default=())


def check_two_files(
    reference: Path, path: Path, inputs: Inputs, options: Options, budget: float | None = None
) -> PairCompared:
    """Compare the file at `path` with the one that it was made of. Raises UsageError."""
    worker = Worker()
    try:
        pairs = ((reference, worker), (path, shared_worker()))
        opened = [open_model(each, _limits(each), runs_in) for each, runs_in in pairs]
        for each, name in zip(opened, (reference.name, path.name), strict=True):
            if isinstance(each, Diagnostic):
                found = replace(
                    each, message=f"{name}: {each.message}", fix="mend the tool or the options that made it"
                )
                return PairCompared(CheckResult(diagnostics=(found,)))
        first, second = (each for each in opened if isinstance(each, Opened))
        with first.loaded, second.loaded:
            return _Pair(reference, path, first, second, options).compared(inputs, budget)
    finally:
        worker.close()


def _limits(path: Path) -> Limits:
    """Room for the weights a few times over, as `limits_for` has it for a model."""
    try:
        weights = FileFacts.of(path).weight_bytes
    except (DecodeError, OSError):  # the worker says what is wrong with it
        weights = 0
    return Limits(memory_bytes=(4 << 30) + 4 * weights)


@dataclass(frozen=True)
class _Pair:
    """Two files in their workers."""

    reference: Path
    path: Path
    first: Opened
    second: Opened
    options: Options

    def compared(self, inputs: Inputs, budget: float | None) -> PairCompared:
        ports = [FileInput(port.name, _dtype(port), port.shape) for port in self.first.loaded.inputs]
        model = FileModule(self.first, self.second)
        names = [port.name for port in ports]
        job = make_job(model, **{"input_names": names, **inputs(ports)})
        example = [leaf.value for leaf in job.leaves]

        def run(values: Sequence[object]) -> Any:
            return model(*values)

        try:
            returned, again = run(example), run(example)
        except WorkerFailure as failure:
            return PairCompared(CheckResult(diagnostics=(self._refused(failure),)), job)
        if not _same(returned, again):
            found = NotDeterministic(
                message=f"{self.reference.name} gives other results when it is run again",
                fix="compare files that draw no random numbers",
            )
            return PairCompared(CheckResult(diagnostics=(found,)), job)
        if len(self.first.loaded.outputs) != len(self.second.loaded.outputs):
            theirs, ours = (len(each.loaded.outputs) for each in (self.first, self.second))
            found_shape = WrongShape(message=f"{self.path.name} has {ours} outputs, {self.reference.name} has {theirs}")
            return PairCompared(CheckResult(diagnostics=(found_shape,)), job)
        fitted = fit(self.second, job, returned)
        if isinstance(fitted, Diagnostic):
            return PairCompared(CheckResult(diagnostics=(fitted,)), job)
        return self._checked(fitted, run, returned, budget)

    def _checked(
        self, fitted: Fitted, run: Callable[[Sequence[object]], Any], returned: Any, budget: float | None
    ) -> PairCompared:
        before, facts = FileFacts.of(self.reference), FileFacts.of(self.path)
        options, said, notes, job = self.options, "", [], fitted.job
        quantised = facts.quantised and not before.quantised
        if (quantised or budget is not None) and options.atol is None:
            share = QUANTISED_BUDGET if budget is None else budget
            allowed = {name: share * _scale(value) for name, value in zip(fitted.output_names, returned, strict=True)}
            options = replace(options, atol=allowed)
            why = "the file is quantised" if budget is None else "as asked for"
            each = ", ".join(f"`{name}` ±{bound:.2g}" for name, bound in allowed.items())
            said = f"{share:.3g} of the largest value on the example ({why}): {each}"
        if quantised:
            job, kept = _within_the_example(job)
            notes += [f"{name}: values of the example's range, {low:.3g}..{high:.3g}" for name, low, high in kept]
        floats = tuple(facts.floats)

        def feed(values: Sequence[object]) -> dict[str, TensorData]:
            """Numbers in the smaller float of the file, where it has one."""
            ports = {port.name: port.type for port in self.second.loaded.inputs}
            return {name: _in(value, ports[name]) for name, value in fitted.feed(values).items()}

        locator = _Locator(self, feed, floats)
        insight = Insight(working_dtypes=floats, locate=locator)
        reference = Reference(run, fitted.expected)
        result = check_opened(self.second, job, reference, feed, fitted.output_names, options=options, insight=insight)
        found = tuple(self._in_words(each) for each in (*result.diagnostics, *self._rounded_ports()))
        return PairCompared(replace(result, diagnostics=found), job, said, tuple(notes))

    def _rounded_ports(self) -> Iterator[Diagnostic]:
        """Inputs and outputs of another float than the reference's."""
        sides = (
            (self.first.loaded.inputs, self.second.loaded.inputs),
            (self.first.loaded.outputs, self.second.loaded.outputs),
        )
        for theirs, ours in sides:
            for at, port in enumerate(ours):
                was, now = dtype_of(_twin(port, theirs, at).type), dtype_of(port.type)
                if was != now:
                    said = f"`{port.name}` is {now}, and {was} in {self.reference.name}: both were compared in {now}"
                    yield WrongDtype(message=said, severity=Severity.NOTE)

    def _refused(self, failure: WorkerFailure) -> Diagnostic:
        return EagerRefuses(
            message=f"{self.reference.name} refuses the example: {' '.join(failure.detail.split())[:400]}",
            fix=told("give inputs that it takes: ", VALUES),
        )

    def _in_words(self, found: Diagnostic) -> Diagnostic:
        """Findings speak of eager, which is the reference here."""
        fix = told(
            f"the tool that made {self.path.name} changed what it computes: leave out the pass that did; or say how "
            "much is to be allowed: ",
            option("budget", ...),
        )
        return replace(
            found,
            message=self._named(found.message),
            seen=tuple(map(self._named, found.seen)),
            fix=fix if found.is_error else found.fix,
        )

    def _named(self, text: str) -> str:
        """`eager 1.0, ONNX 2.0` with the names of the files; what stands in backticks is a name of the file's own."""
        names = {"eager": self.reference.name, "ONNX": self.path.name}
        return re.sub(r"`[^`]*`|\beager\b|\bONNX\b(?! Runtime)", lambda match: names.get(match[0], match[0]), text)


def _dtype(port: Port) -> torch.dtype:
    found = getattr(torch, dtype_of(port.type), None)
    return found if isinstance(found, torch.dtype) else torch.float32


def _in(value: TensorData, runtime_type: str) -> TensorData:
    return value if value.dtype == dtype_of(runtime_type) else from_torch(_rounded(to_torch(value), runtime_type))


def _scale(value: Any) -> float:
    """The largest finite magnitude."""
    tensors = value if isinstance(value, list) else [value]
    finite = [each[each.isfinite()].abs().max().item() for each in tensors if each.isfinite().any()]
    return float(max(finite, default=0.0))


def _same(one: Any, other: Any) -> bool:
    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, list):
            return len(a) == len(b) and all(map(equal, a, b))
        return a.shape == b.shape and bool(torch.allclose(a.double(), b.double(), equal_nan=True))

    return all(map(equal, one, other))


def _within_the_example(job: Job) -> tuple[Job, list[tuple[str, float, float]]]:
    """A file that was calibrated holds for numbers such as those that it was calibrated with."""
    leaves, kept = list(job.leaves), []
    for at, leaf in enumerate(leaves):
        value = leaf.value
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() and leaf.value_range is None:
            low, high = value.min().item(), value.max().item()
            leaves[at] = replace(leaf, value_range=(low, high))
            kept.append((leaf.name, low, high))
    return replace(job, leaves=tuple(leaves)), kept


@dataclass(frozen=True)
class _Locator:
    """Where two files part: the first node of the file whose value is not the reference's of the same name; where none
    has the name of another, after the last of the reference's values that the file has."""

    pair: _Pair
    feed: Callable[[Sequence[object]], Mapping[str, TensorData]]
    working: tuple[torch.dtype, ...]

    def __call__(self, values: Sequence[object], agreeing: Sequence[object] | None, hangs: bool) -> Divergence | None:
        if hangs:
            return None
        right, wrong = self._values(self.pair.reference, values, True), self._values(self.pair.path, values, False)
        if right is None or wrong is None:
            return None
        for name, (operator, value) in wrong.items():
            if name in right and self._differs(right[name][1], value):
                return Divergence(None, _begins(operator, name, "which has another value in the reference"))
        known = [name for name, (_, value) in right.items() if any(self._is(value, got) for _, got in wrong.values())]
        order = list(right)
        if not known or known[-1] == order[-1]:
            return None
        after = order[order.index(known[-1]) + 1]
        return Divergence(None, _begins(right[after][0], after, "of the reference: the file has its value no more"))

    def _values(self, path: Path, values: Sequence[object], is_reference: bool) -> dict[str, tuple[str, Any]] | None:
        """What each node gives, by the name of its output, in the order of the nodes."""
        if path.stat().st_size > _LARGEST_FILE:
            return None
        made = {name: node.op_type for node in _nodes(path) for name in node.output if name}
        feeds = self.feed(values)
        if is_reference:
            names = [port.name for port in self.pair.first.loaded.inputs]
            feeds = {
                name: from_torch(value)
                for name, value in zip(names, values, strict=True)
                if isinstance(value, torch.Tensor)
            }
        with temporary.folder() as folder:
            try:
                whole = tapped(path, Path(folder, "tapped.onnx"))
                with shared_worker().load(whole, self.pair.second.limits, Optimisation.NONE) as loaded:
                    given = loaded.run(feeds)
            except (WorkerFailure, OSError, ValueError):
                return None
        return {name: (operator, given[name]) for name, operator in made.items() if name in given}

    def _differs(self, right: Any, got: Any) -> bool:
        if not isinstance(right, TensorData) or not isinstance(got, TensorData) or right.shape != got.shape:
            return False
        return not self._is(right, got)

    def _is(self, right: Any, got: Any) -> bool:
        if not isinstance(right, TensorData) or not isinstance(got, TensorData) or right.shape != got.shape:
            return False
        try:
            expected = _rounded(to_torch(right), f"tensor({got.dtype})")
            return judge(expected, got, tolerance_for(expected.dtype, self.working)).difference is None
        except (TypeError, ValueError, RuntimeError):  # a dtype that torch has not
            return True


def _nodes(path: Path) -> Any:
    return written_out(onnx.load(path, "protobuf", load_external_data=False)).graph.node


def _begins(operator: str, name: str, how: str) -> str:
    return visible(f"begins at the node {operator} that makes `{name}`, {how}")
