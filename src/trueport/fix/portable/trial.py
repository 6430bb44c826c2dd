"""Whether torch's own exporters take the new code, and whether it does what the old code did."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import itertools
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from trueport import temporary
from trueport.examine.limits import within
from trueport.examine.run import run_eager
from trueport.examine.state import Snapshot
from trueport.load.job import Job
from trueport.load.structures import flatten
from trueport.torch_internals import messages
from trueport.verify.foreign import check_file
from trueport.verify.inputs.draw import draw
from trueport.verify.judging.compare import tolerance_for

_EAGER_INPUTS = 6
"""torch.cond compiles its arms for each new size, also in eager: a few inputs tell, all others the exported file."""


_PATIENCE, _PATIENCE_IN_ALL = 2.0, 12.0
"""Seconds for one run of eager, and for all: a loop of the user's need not end on what we have drawn."""


@dataclass(frozen=True)
class PortableOutcome:
    """What became of one form of the code. `refusal` is empty where it holds."""

    refusal: str = ""
    inputs: int = 0
    """On how many inputs torch's own file was equal to the user's model."""


Answer = tuple[tuple[object, ...], list[Any]]
"""Inputs, and the leaves of what the user's model gives for them."""


def answers(job: Job, most: int) -> list[Answer]:
    """Inputs that the model accepts, the example first."""
    example = tuple(leaf.value for leaf in job.leaves)
    giving_up = time.monotonic() + _PATIENCE_IN_ALL
    drawn = (each.values for each in itertools.islice(draw(job, example, seed=0), 8 * most))
    found: list[Answer] = []
    for values in itertools.chain([example], drawn):
        try:
            with within(_PATIENCE):
                returned = run_eager(job, copy.deepcopy(values))
        except Exception:  # what the model refuses, for whatever reason, is no input of it
            if not found:
                raise
        else:
            found.append((values, [leaf.value for leaf in flatten(returned)[0]]))
        if len(found) == most or time.monotonic() > giving_up:
            break
    return found


def in_new_code(job: Job, known: Sequence[Answer], path: Path) -> str:
    """With the new code in place: eager on some inputs, torch.export, torch.onnx into a file. Why it fails, or ''."""
    for values, wanted in known[:_EAGER_INPUTS]:
        try:
            with _quiet():
                got = [leaf.value for leaf in flatten(_run(job, values))[0]]
        except Exception as failure:  # noqa: BLE001  torch raises many types, and all mean that it does not take this
            return f"eager refuses it: {messages.refused_by_export(failure)}"
        differing = _difference(wanted, got)
        if differing:
            return f"eager gives something else: {differing}"
    args, kwargs = job.call.build([leaf.value for leaf in job.leaves])
    sizes = torch_sizes(job)
    before = Snapshot(job.model)
    try:
        with _quiet(), torch.no_grad():
            torch.compiler.reset()
            torch.export.export(job.model, copy.deepcopy(args), copy.deepcopy(kwargs), dynamic_shapes=sizes)
            before.put_back()
            torch.onnx.export(
                job.model,
                copy.deepcopy(args),
                str(path),
                kwargs=copy.deepcopy(kwargs),
                dynamic_shapes=sizes,
                dynamo=True,
                verbose=False,
            )
    except Exception as failure:  # noqa: BLE001  as above
        return f"torch's export refuses it: {messages.refused_by_export(failure)}"
    finally:
        before.put_back()
    return ""


def _run(job: Job, values: Sequence[object]) -> object:
    """As a user runs it: torch compiles the arms of torch.cond, and the steps of its loops, on the way."""
    args, kwargs = job.call.build(copy.deepcopy(values))
    before = Snapshot(job.model)
    try:
        with torch.no_grad():
            torch.compiler.reset()
            return job.model(*args, **kwargs)
    finally:
        before.put_back()


def same_as_before(job: Job, path: Path) -> PortableOutcome:
    """With the user's own code back in place: the file that torch wrote of the new code, against it."""

    def eager(values: Sequence[object], grad: bool = False) -> object:
        with within(_PATIENCE):
            return run_eager(job, values, grad)

    checked = check_file(path, job, eager)
    errors = [finding for finding in checked.diagnostics if finding.is_error]
    if errors:
        return PortableOutcome(f"what torch.onnx writes of it differs: {errors[0].message}")
    return PortableOutcome(inputs=len(checked.checked))


def torch_sizes(job: Job) -> Any:
    """The free sizes as torch.export takes them; None where there are none."""
    if not any(leaf.axes or leaf.declared_free for leaf in job.leaves):
        return None
    declared: list[Any] = []
    for leaf in job.leaves:
        if leaf.axes:
            declared.append(dict.fromkeys(leaf.axes, Dim.DYNAMIC))
        else:
            declared.append(Dim.DYNAMIC if leaf.declared_free else None)
    args, kwargs = job.call.build(declared)
    return dict(inspect.signature(job.model.forward).bind(*args, **kwargs).arguments)


@contextlib.contextmanager
def a_file() -> Iterator[Path]:
    with temporary.folder() as folder:
        yield folder / "portable.onnx"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch prints graphs and warnings about what is only tried here."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _difference(wanted: list[Any], got: list[Any]) -> str:
    if len(wanted) != len(got):
        return f"{len(got)} results instead of {len(wanted)}"
    for mine, theirs in zip(wanted, got, strict=True):
        if not isinstance(mine, torch.Tensor | bool | int | float):
            continue
        # A number that went through torch.cond comes back as a tensor without axes.
        one, other = torch.as_tensor(mine), torch.as_tensor(theirs)
        if one.shape != other.shape or (isinstance(mine, torch.Tensor) and one.dtype is not other.dtype):
            return f"{other.dtype} {list(other.shape)} instead of {one.dtype} {list(one.shape)}"
        allowed = tolerance_for(one.dtype)
        if not torch.allclose(other.to(one.dtype), one, allowed.relative, allowed.absolute, equal_nan=True):
            return f"{_short(other)} instead of {_short(one)}"
    return ""


def _short(tensor: torch.Tensor) -> str:
    return str(tensor.flatten()[:3].tolist())
