"""One call by itself: the runtime against eager, on its trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.graph.regions import Graph, Value
from trueport.verify.calls.call import Call
from trueport.verify.calls.edges import Level, level_of
from trueport.verify.calls.judging import differing
from trueport.verify.calls.kinds import (
    OperatorKind,
    axis_in_any_order,
    exactness_of,
    gives_any_of_ties,
    named_arguments,
    position_error,
)
from trueport.verify.calls.piece import eager_on, feeds_of, graph_of
from trueport.verify.calls.trials import TooLarge, Trial, trials
from trueport.verify.runtime.onnx_program import Laboratory
from trueport.verify.runtime.sandbox import FailureKind, WorkerFailure
from trueport.verify.runtime.tensors import TensorData, to_torch

_SHOWN = 6
_LARGEST_RESULT = 1 << 22
_VECTOR = 64
"""Elements of any vector of a processor, and no fewer."""


@dataclass(frozen=True)
class Shown:
    """A difference, and what shows it."""

    level: Level
    operands: str
    eager: str
    runtime: str
    trial: Trial
    failure: WorkerFailure | None = None


@dataclass
class CallOutcome:
    """What the trials of a call have shown: at most one difference for each level."""

    runs: int = 0
    refused: int = 0
    shown: dict[Level, Shown] = field(default_factory=dict)
    not_run: str = ""
    left_out: str = ""
    """Operands on which it was not run, and why."""

    def note(self, shown: Shown) -> None:
        self.shown.setdefault(shown.level, shown)


def run_call(call: Call, laboratory: Laboratory, whole: Graph, full: bool = False) -> CallOutcome:
    """Until an ordinary operand shows a difference. A call that we do not know how to try is one that was not run."""
    try:
        return _run_call(call, laboratory, whole, full)
    except Exception as error:  # noqa: BLE001  one of a thousand operators; what there is to say of the others stands
        return CallOutcome(not_run=f"no way to try it ({type(error).__name__}: {error})")


def _run_call(call: Call, laboratory: Laboratory, whole: Graph, full: bool) -> CallOutcome:
    outcome = CallOutcome()
    pieces: dict[tuple[Any, ...], list[tuple[Trial, Sequence[Any]]]] = {}
    try:
        slow = _is_slow(call, laboratory, whole)
        outcome.left_out = "only on everyday operands: it is a loop in the file" if slow else ""
        for trial in trials(call, full, slow):
            expected = _expected(call, trial, trial.tensors)
            if expected is None:
                outcome.refused += 1
            elif sum(each.numel() for each in expected if isinstance(each, torch.Tensor)) > _LARGEST_RESULT:
                raise TooLarge
            else:
                pieces.setdefault(tuple(trial.sizes[symbol] for symbol in call.fixed), []).append((trial, expected))
    except TooLarge:
        outcome.not_run = "depends on large sizes"
    for piece in pieces.values():
        if Level.ORDINARY not in outcome.shown and not outcome.not_run:
            _run_piece(call, piece, laboratory, whole, outcome)
    if not outcome.runs and not outcome.not_run and not outcome.shown:
        outcome.not_run = "eager refuses the operands that were drawn"
    return outcome


def _is_slow(call: Call, laboratory: Laboratory, whole: Graph) -> bool:
    """Whether an operator on elements is a loop in the file (a series): how long that takes is up to the operands."""
    if call.kind is not OperatorKind.POINTWISE:
        return False
    trial = next(trials(call, slow=True))
    expected = _expected(call, trial, trial.tensors)
    return expected is not None and laboratory.has_loops(graph_of(call, trial, expected, whole))


def _run_piece(
    call: Call,
    piece: Sequence[tuple[Trial, Sequence[Any]]],
    laboratory: Laboratory,
    whole: Graph,
    outcome: CallOutcome,
) -> None:
    """The trials that have the fixed sizes in common, in one go; one by one where the process did not survive that."""
    first, results = piece[0]
    graph = graph_of(call, first, results, whole)
    try:
        answers = laboratory.run_once(graph, [feeds_of(call, trial) for trial, _ in piece])
    except WorkerFailure as failure:
        if failure.kind is FailureKind.CANNOT_LOAD:
            outcome.not_run = "ONNX Runtime does not load it by itself"
        elif len(piece) == 1:
            _failed(first, failure, outcome)
        elif failure.kind is FailureKind.HANG:  # each may be slow, or one may never end: the first has every edge value
            _run_piece(call, piece[:1], laboratory, whole, outcome)
            outcome.not_run = "" if outcome.shown else "takes ONNX Runtime too long"
        else:
            for each in piece:
                if Level.ORDINARY not in outcome.shown:
                    _run_piece(call, [each], laboratory, whole, outcome)
        return
    if answers is None:
        outcome.not_run = "cannot be lowered by itself"
        return
    for (trial, expected), outputs in zip(piece, answers, strict=True):
        if isinstance(outputs, WorkerFailure):
            _failed(trial, outputs, outcome)
            continue
        outcome.runs += 1
        for at, (right, used) in enumerate(zip(expected, call.results, strict=True)):
            got = outputs.get(f"result_{at}")
            if used is not None and isinstance(right, torch.Tensor) and isinstance(got, TensorData):
                _compare(call, trial, at, right, got, outcome)


def _expected(call: Call, trial: Trial, tensors: Sequence[torch.Tensor]) -> Sequence[Any] | None:
    try:
        found = eager_on(call, trial.sizes, tensors)
    except Exception:  # noqa: BLE001  torch raises what it likes; operands that eager refuses are no test
        return None
    if len(found) != len(call.node.outputs):  # `unbind` of another size is another call, and so is `squeeze`
        return None
    pairs = zip(call.node.outputs, found, strict=True)
    same_rank = all(len(out.shape) == got.dim() for out, got in pairs if isinstance(out, Value))
    return found if same_rank else None


def _failed(trial: Trial, failure: WorkerFailure, outcome: CallOutcome) -> None:
    """No answer is a finding of the call; but what refuses an empty tensor says so aloud, and the check of the whole
    model tells it. What ends the process on one is a warning: nothing says that the model ever comes there."""
    nothing = any(not tensor.numel() for tensor in trial.tensors)
    if nothing and failure.kind is FailureKind.REFUSES_INPUT:
        return
    level = trial.level if trial.level is not None else _highest(trial)
    if nothing and failure.kind is FailureKind.CRASH:
        level = max(level, Level.EXTREME)
    said = failure.detail.splitlines()[0] if failure.detail else failure.kind.value
    outcome.note(Shown(level, _operands_words(trial, None), "an answer", said, trial, failure))


def _compare(call: Call, trial: Trial, at: int, right: torch.Tensor, data: TensorData, outcome: CallOutcome) -> None:
    output = call.node.outputs[at]
    got = to_torch(data)
    if right.is_complex() and not got.is_complex() and got.shape[-1:] == (2,):
        got = torch.view_as_complex(got)
    level = trial.level if trial.level is not None else _highest(trial)
    if right.numel() == 0 and got.numel() == 0:  # the shape of nothing is told by the check of the whole model
        return
    if got.dtype != right.dtype or got.shape != right.shape:
        right_form, form = (f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)}" for each in (right, got))
        outcome.note(Shown(level, _operands_words(trial, None), right_form, form, trial))
        return
    if gives_any_of_ties(call.node, at):
        right, got = _where_they_point(call, trial, right), _where_they_point(call, trial, got)
    if right.dim() and (axis := axis_in_any_order(call.node)) is not None:
        right, got = right.sort(axis).values, got.sort(axis).values
    exactness = exactness_of(call.node, output if isinstance(output, Value) else Value(right.dtype, ()))

    def again(change: Callable[[torch.Tensor], torch.Tensor]) -> Sequence[torch.Tensor] | None:
        found = _expected(call, trial, [change(tensor) for tensor in trial.tensors])
        return None if found is None or found[at].shape != right.shape else found

    between = position_error(call.node, trial.tensors)
    wrong = differing(right.detach(), got, exactness, at, again, call.kind is OperatorKind.OTHER, between)
    if wrong is not None and call.kind is OperatorKind.POINTWISE:
        for other in _laid_out_otherwise(call, trial, at, right):
            also = differing(other, got, exactness, at, again)
            wrong = torch.zeros_like(wrong) if also is None else wrong & also
    if wrong is None or not bool(wrong.any()):
        return
    levels = _levels(trial, right) if call.kind is OperatorKind.POINTWISE else None
    for each in Level:
        of_level = wrong if levels is None else wrong & (levels == int(each))
        if (levels is None and each is not level) or not bool(of_level.any()):
            continue
        index = tuple(int(i) for i in of_level.nonzero()[0])
        where = index if levels is not None else None
        outcome.note(
            Shown(each, _operands_words(trial, where, right.shape), _word(right[index]), _word(got[index]), trial)
        )


def _laid_out_otherwise(call: Call, trial: Trial, at: int, right: torch.Tensor) -> Iterator[torch.Tensor]:
    """What eager gives for the same elements elsewhere in memory. Its code for vectors of them is another than that for
    single ones, and so may be the result: the remainder of 1e10 by 1e-308 is NaN in a vector, and 0 alone."""
    apart = [torch.stack((tensor, tensor), -1)[..., 0] for tensor in trial.tensors]
    together = [
        tensor.unsqueeze(-1).expand(*tensor.shape, _VECTOR).contiguous() if tensor.dim() else tensor
        for tensor in trial.tensors
    ]
    for tensors in (apart, together):
        try:
            found = eager_on(call, trial.sizes, tensors)[at]
        except Exception:  # noqa: BLE001  an operator that depends on its sizes after all
            continue
        found = found.detach()[..., 0] if tensors is together and found.dim() else found.detach()
        if found.shape == right.shape:
            yield found


def _where_they_point(call: Call, trial: Trial, index: torch.Tensor) -> torch.Tensor:
    """Of equal values torch may give any: what counts is that the index leads to the value."""
    given = named_arguments(call.node)
    source, dim = trial.tensors[0], given.get("dim", -1)
    if not isinstance(dim, int) or not source.dim():
        return source.reshape(-1)[index.clamp(0, max(0, source.numel() - 1))]
    keeps = index.dim() == source.dim()
    found = index if keeps else index.unsqueeze(dim)
    inside = found.clamp(0, max(0, source.shape[dim] - 1))
    values = torch.where(found == inside, source.gather(dim, inside), torch.zeros_like(source.gather(dim, inside)))
    return values if keeps else values.squeeze(dim)


def _levels(trial: Trial, result: torch.Tensor) -> torch.Tensor:
    """Of each element of a pointwise result: the highest of its operands'. Beyond a narrower result all are extreme."""
    found = torch.zeros(result.shape, dtype=torch.int64)
    most = torch.finfo(result.dtype).max if result.is_floating_point() else math.inf
    for tensor in trial.tensors:
        found = torch.maximum(found, level_of(tensor).expand(result.shape))
        if tensor.is_floating_point() and tensor.element_size() > result.element_size():
            beyond = (tensor.abs() > most) & tensor.isfinite()
            found = torch.maximum(found, torch.where(beyond, int(Level.EXTREME), 0).expand(result.shape))
    return found


def _highest(trial: Trial) -> Level:
    levels = [int(level_of(tensor).max()) for tensor in trial.tensors if tensor.numel()]
    return Level(max(levels, default=0))


def _operands_words(trial: Trial, index: tuple[int, ...] | None, shape: Sequence[int] = ()) -> str:
    if index is not None:
        return ", ".join(_word(tensor.expand(tuple(shape))[index]) for tensor in trial.tensors)
    return "; ".join(_tensor_words(tensor) for tensor in trial.tensors) + f" ({trial.words})"


def _tensor_words(tensor: torch.Tensor) -> str:
    flat = tensor.reshape(-1)
    shown = ", ".join(_word(each) for each in flat[:_SHOWN])
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}{list(tensor.shape)} of {shown}{', …' if flat.numel() > _SHOWN else ''}"


def _word(element: torch.Tensor) -> str:
    plain = element.float() if element.is_floating_point() and element.element_size() < 2 else element
    value = plain.item()
    return f"{value:.9g}" if isinstance(value, float) else str(value)
