"""A file beside the model that it is said to be: which input is which argument, which output which result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.capture.effects.state import state_output
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp803_wrong_shape import WrongShape
from trueport.diagnostics.rules.tp804_wrong_dtype import WrongDtype
from trueport.load.job import Job, Leaf
from trueport.load.structures import Structure
from trueport.verify.check import Opened
from trueport.verify.judging.compare import Expected
from trueport.verify.runtime.matching import (
    DoesNotFit,
    Inputs,
    match_inputs,
    match_outputs,
    with_fixed_numbers,
    with_sizes_of,
)
from trueport.verify.runtime.open_lists import readings
from trueport.verify.runtime.sandbox import Port
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, dtype_of, from_torch


@dataclass(frozen=True)
class Fitted:
    """A file in the worker with all that is needed to run it in the model's stead."""

    opened: Opened
    job: Job
    """With the free sizes that the file leaves open, where the request declares none."""
    missing: tuple[Leaf, ...]
    """Arguments that the file has no input for."""
    _inputs: Inputs
    _outputs: tuple[tuple[str, int], ...]
    _structure: Structure
    _pairs: frozenset[str]
    """Outputs in which a complex tensor is one of real numbers with an axis of two more: the runtime has no other."""
    _of_numbers: Mapping[str, torch.dtype]
    """Outputs that are tensors in which a list of Python numbers is held."""
    _state: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @property
    def output_names(self) -> list[str]:
        return [name for name, _ in self._outputs]

    @property
    def keeps_state(self) -> bool:
        """Whether what the model writes to itself is an input and an output of the file."""
        return bool(self._state)

    def feed(self, values: Sequence[object]) -> dict[str, TensorData]:
        """What to hand to the file, its state as the model's is now."""
        return {**self._inputs.feed(values), **self.state()}

    def state(self, after: Mapping[str, RuntimeValue] | None = None) -> dict[str, TensorData]:
        """What to feed for the model's state: as it is now, or as a run of the file has left it."""
        if after is None:
            return {name: from_torch(tensor) for name, tensor in self._state.items()}
        found = {name: after[state_output(name)] for name in self._state}
        return {name: value for name, value in found.items() if isinstance(value, TensorData)}

    def expected(self, returned: object) -> list[Expected]:
        """What eager returned, one value per output of the file."""
        values = self._structure.flatten(returned)
        return [self._carried(name, values[at]) for name, at in self._outputs]

    def _carried(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            if name in self._of_numbers:
                return torch.tensor(value, dtype=self._of_numbers[name])
            return [self._carried(name, item) for item in value]
        if name in self._pairs and isinstance(value, torch.Tensor) and value.is_complex():
            return torch.view_as_real(value.resolve_conj())
        return value


def fit(
    opened: Opened, job: Job, returned: object, owned: Mapping[str, torch.Tensor] | None = None
) -> Fitted | Diagnostic:
    """Match a file with a model that gave `returned` on its example; or say that it is none of this model's.

    Inputs and outputs are matched by name or by order. `owned` are the tensors that the model keeps, by name: a file
    may have them as inputs, and what becomes of them as outputs.
    """
    loaded = opened.loaded
    state = _lifted(loaded.inputs, loaded.outputs, job, owned or {})
    arguments = [port for port in loaded.inputs if port.name not in state]
    gives = [port for port in loaded.outputs if port.name not in {state_output(name) for name in state}]
    try:
        inputs = match_inputs(arguments, job.leaves)
        outputs, structure, of_numbers = _read(gives, returned)
    except DoesNotFit as misfit:
        return WrongShape(
            message=f"the file is not this model: {misfit}",
            fix="give the inputs in the order of the file, or with its names",
        )
    texts = [port.name for port in (*arguments, *gives) if dtype_of(port.type) == "string"]
    if texts:
        return WrongDtype(
            message=f"`{texts[0]}` of the file is text, and no tensor of torch holds text",
            fix="compare a file without the operators that read or write text",
        )
    missing = inputs.missing(job)
    real = frozenset(port.name for port in loaded.outputs if not dtype_of(port.type).startswith("complex"))
    return Fitted(
        opened,
        with_fixed_numbers(with_sizes_of(inputs, job), missing),
        tuple(missing),
        inputs,
        outputs,
        structure,
        real,
        of_numbers,
        state,
    )


def _lifted(
    inputs: Sequence[Port], outputs: Sequence[Port], job: Job, owned: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Inputs that are the model's own tensors, where their next values are outputs."""
    arguments = {leaf.name for leaf in job.leaves}
    given = {port.name for port in outputs}
    return {
        port.name: owned[port.name]
        for port in inputs
        if port.name in owned and port.name not in arguments and state_output(port.name) in given
    }


def _read(
    ports: Sequence[Port], returned: object
) -> tuple[tuple[tuple[str, int], ...], Structure, dict[str, torch.dtype]]:
    """Each output with the place of its value among what eager returned; the structure of that, in which a list may be
    one value; and the dtypes of outputs that hold a list of numbers. Raises DoesNotFit."""
    misfit: DoesNotFit | None = None
    for results, structure in readings(returned):
        values = [leaf.value for leaf in results]
        try:
            outputs = match_outputs(ports, [leaf.name for leaf in results], values)
        except DoesNotFit as wrong:
            misfit = misfit or wrong
            continue
        types = {port.name: port.type for port in ports if not port.type.startswith("seq(")}
        lists = [name for name, at in outputs if name in types and isinstance(values[at], list)]
        return outputs, structure, {name: getattr(torch, dtype_of(types[name])) for name in lists}
    assert misfit is not None
    raise misfit
