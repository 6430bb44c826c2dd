"""Runs the user's model as it is. Each call begins in the same state, and leaves model and inputs as they were.

The reference is eager PyTorch under `torch.no_grad()`, in the mode that the user left the model in, with
`torch.compile`d parts run plainly.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from trueport.errors import Unwinding
from trueport.examine.state import Snapshot
from trueport.load.job import Job
from trueport.load.structures import flatten
from trueport.torch_internals.eager_modes import without_compiler


def run_eager(job: Job, values: Sequence[object], grad: bool = False, before: Snapshot | None = None) -> Any:
    """What eager gives for `values`: one per leaf, or one per input (constants are then filled in).

    `grad` leaves autograd on, where some modules of torch take another path (`TransformerEncoder`). `before` is the
    state to begin in, for who makes many calls. Raises what the model raises.
    """
    return run_watched(job, values, before or Snapshot(job.model), grad)[0]


def run_with_state(
    job: Job,
    values: Sequence[object],
    state: Mapping[str, torch.Tensor],
    before: Snapshot | None = None,
    closely: bool = True,
) -> tuple[Any, dict[str, torch.Tensor]]:
    """What eager gives, and what one call leaves in `state`: tensors that the model owns, by name, as they are now.

    A name is the path of an attribute or an item (`memories[0].mean`), where the call may have put another tensor.
    `before` is the state to begin in, for who makes many calls, and `closely` how it is compared (`is_written`).
    """
    before = before or Snapshot(job.model)
    try:
        outputs = call_eagerly(job, values)
        after = {name: _at(job.model, name, tensor).detach().clone() for name, tensor in state.items()}
    except BaseException:
        before.put_back()
        raise
    before.put_back_gradients()
    if before.is_written(closely):
        outputs = _apart_from(before, outputs)
        before.put_back()
    return outputs, after


def _at(model: torch.nn.Module, name: str, otherwise: torch.Tensor) -> torch.Tensor:
    found: Any = model
    try:
        for item, attribute in re.findall(r"\[([^]]*)\]|([^.[]+)", name):
            found = getattr(found, attribute) if attribute else found[ast.literal_eval(item)]
    except (AttributeError, LookupError, ValueError, SyntaxError):  # a weight that no path leads to: `constant_1`
        return otherwise
    return found if isinstance(found, torch.Tensor) else otherwise


def run_watched(
    job: Job, values: Sequence[object], before: Snapshot, grad: bool = False
) -> tuple[Any, tuple[str, ...]]:
    """The outputs of one call and the names of what it wrote; `before` is the state to begin in and to return to."""
    try:
        outputs = call_eagerly(job, values, grad)
    except BaseException:
        before.put_back()
        raise
    before.put_back_gradients()
    written = before.written()
    if written:
        outputs = _apart_from(before, outputs)
        before.put_back()
    return outputs, written


def call_eagerly(job: Job, values: Sequence[object], grad: bool = False) -> Any:
    """One call on copies of the inputs, after which the model is left as the call left it."""
    args, kwargs = job.call.build([copy_of(value) for value in all_leaves(job, values)])
    with torch.set_grad_enabled(grad), without_compiler(), goes_on():
        outputs = job.model(*args, **kwargs)
    _refuse_impossible(outputs)
    return outputs


@contextlib.contextmanager
def goes_on() -> Iterator[None]:
    """What a model raises to end the process (`sys.exit()`) is a failure of this one call, under its own name: a check
    that ends there would have no verdict, and `sys.exit(0)` would say that it had a good one."""
    try:
        yield
    except (Exception, KeyboardInterrupt, Unwinding):
        raise
    except BaseException as ended:  # noqa: BLE001  whatever its class, it is the model's
        same: Exception = type(type(ended).__name__, (RuntimeError,), {})(str(ended))
        raise same.with_traceback(ended.__traceback__) from None


def _refuse_impossible(outputs: Any) -> None:
    """`as_strided` takes a size of -1 of an empty tensor, and no operator takes what it then gives."""
    found = [outputs] if isinstance(outputs, torch.Tensor) else [leaf.value for leaf in flatten(outputs)[0]]
    for value in found:
        if isinstance(value, torch.Tensor) and not value.is_nested and any(size < 0 for size in value.shape):
            raise RuntimeError(f"eager gives a tensor of size {tuple(value.shape)}, which no tensor can have")


def all_leaves(job: Job, values: Sequence[object]) -> list[object]:
    """One value per leaf from one value per input."""
    if len(values) == len(job.leaves):
        return list(values)
    if len(values) != len(job.inputs):
        raise ValueError(f"{len(job.inputs)} values are needed, one per input; got {len(values)}")
    given = iter(values)
    return [next(given) if leaf.is_input else leaf.value for leaf in job.leaves]


def copy_of(value: object) -> object:
    """A tensor that a model may write to, with nothing else different; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def _apart_from(snapshot: Snapshot, outputs: Any) -> Any:
    """The outputs with a memory of their own, where they are views of state that is about to be put back."""
    leaves, structure = flatten(outputs)
    values = [
        leaf.value.clone()
        if isinstance(leaf.value, torch.Tensor) and snapshot.shares_memory(leaf.value)
        else leaf.value
        for leaf in leaves
    ]
    return structure.build(values)
