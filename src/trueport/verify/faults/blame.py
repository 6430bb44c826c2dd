"""Whose fault is it? The file is run again as it stands, with the runtime's optimisations switched off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trueport.verify.judging.compare import Expected, Tolerance, judge
from trueport.verify.runtime.sandbox import FailureKind, Limits, Optimisation, Worker, WorkerFailure
from trueport.verify.runtime.tensors import RuntimeValue, TensorData

_OFF = "with the runtime's optimisations off: "
_WORTH_ASKING = (FailureKind.CANNOT_LOAD, FailureKind.REFUSES_INPUT, FailureKind.CRASH)
"""A second hang or a second flood of memory would cost as much as the first, and tell no more."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Asks the same file again, plainly. Each answer is a fact for the finding."""

    worker: Worker
    path: Path
    limits: Limits

    def of_load(self, failure: WorkerFailure) -> tuple[str, ...]:
        if failure.kind not in _WORTH_ASKING:
            return ()
        try:
            self.worker.load(self.path, self.limits, Optimisation.NONE).close()
        except WorkerFailure:
            return (_OFF + "the same",)
        return (_OFF + "it loads, so its optimiser is at fault",)

    def of_run(self, failure: WorkerFailure, feeds: Mapping[str, TensorData]) -> tuple[str, ...]:
        if failure.kind not in _WORTH_ASKING:
            return ()
        if self._outputs(feeds) is None:
            return (_OFF + "the same",)
        return (_OFF + "it runs, so its optimiser is at fault",)

    def of_difference(
        self, feeds: Mapping[str, TensorData], expected: Mapping[str, Expected], tolerances: Sequence[Tolerance]
    ) -> tuple[str, ...]:
        outputs = self._outputs(feeds)
        if outputs is None:
            return (_OFF + "it does not run",)
        verdicts = [
            judge(value, outputs[name], tolerance)
            for (name, value), tolerance in zip(expected.items(), tolerances, strict=True)
        ]
        if all(verdict.difference is None for verdict in verdicts):
            return (_OFF + "it agrees, so its optimiser is at fault",)
        return (_OFF + "the same",)

    def _outputs(self, feeds: Mapping[str, TensorData]) -> dict[str, RuntimeValue] | None:
        try:
            with self.worker.load(self.path, self.limits, Optimisation.NONE) as plain:
                return plain.run(feeds)
        except WorkerFailure:
            return None
