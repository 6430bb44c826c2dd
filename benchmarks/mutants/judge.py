"""The judge: eager against ONNX Runtime, without any code of trueport.

It says whether a mutant is one (its witness is a call that eager accepts, within what was declared, and the file
answers otherwise, beyond rounding) and whether a control is one (it agrees on every witness).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.compare import Array, Tolerance, differences
from benchmarks.leaves import Leaf, flatten, named_leaves
from benchmarks.mutants.cases import Call, Model
from benchmarks.runtime import OnnxModel

TOLERANCE = {torch.float64: Tolerance(1e-9, 1e-10), torch.float16: Tolerance(1e-2, 1e-3)}
FLOAT32 = Tolerance(1e-4, 1e-5)
"""Three orders of magnitude more than one rounding. What differs by less is no mutant here."""

ROUNDINGS = 20
"""How many times eager's own distance from float64 a file may be off. It does the same sums in another order."""

MOST_BYTES, LARGEST_SIZE = 1 << 20, 1000
"""A wrong file that only larger inputs show is out of scope."""

DOES_NOT_RUN = "does not run"
THE_EXAMPLE, OTHER_VALUES, OTHER_SIZES = "the example", "other values", "other sizes"
"""What it takes to show a mutant, as far as its witness tells."""


class NotAWitness(Exception):
    """The call is not one that the user has declared, or eager refuses it."""


def shown(model: Model, path: Path, call: Call) -> str:
    """How the file differs from eager on this call; empty where it agrees."""
    module = model.built()
    expected = _eager(module, call)
    try:
        actual = OnnxModel(path)(named_leaves(module, copy.deepcopy(call), {}))
    except Exception as error:  # noqa: BLE001 onnxruntime raises many unrelated types; all mean "does not run"
        return f"{DOES_NOT_RUN}: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    found = differences(expected, actual, _tolerance(expected))
    if found and _explained_by_rounding(model, call, expected, actual):
        return ""
    return "; ".join(found)


def _explained_by_rounding(model: Model, call: Call, expected: Sequence[Leaf], actual: Sequence[Array]) -> bool:
    """Whether eager itself is about as far from its own answer in float64: then nothing is wrong with the file.

    `softmax(q @ (k - b))` is `softmax(q @ k)`, but for rounding, which large values make large.
    """
    try:
        exact = _eager(model.built().double(), tuple(_doubled(leaf) for leaf in call))
    except NotAWitness:
        return False  # eager has no float64 way: the tolerance alone decides
    for wanted, got, true in zip(expected, actual, exact, strict=True):
        if not isinstance(wanted, torch.Tensor) or not isinstance(true, torch.Tensor):
            return False
        if not wanted.is_floating_point():
            if not np.array_equal(wanted.numpy(), got):
                return False
            continue
        if wanted.shape != got.shape or wanted.shape != true.shape:
            return False
        moved = np.abs(wanted.double().numpy() - true.double().numpy())
        off = np.abs(got.astype(np.float64) - wanted.double().numpy())
        if off.size and not off.max() <= ROUNDINGS * moved.max():  # NaN is never explained
            return False
    return True


def _doubled(leaf: object) -> object:
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def needed(model: Model, call: Call) -> str:
    """What a witness has that the example has not."""
    module = model.built()
    calls = [named_leaves(module, one, {}) for one in (model.call(model.example), call)]
    sizes = [[leaf.shape for _, leaf in leaves if isinstance(leaf, torch.Tensor)] for leaves in calls]
    return OTHER_VALUES if sizes[0] == sizes[1] else OTHER_SIZES


def refuse_witness(model: Model, call: Call) -> None:
    """Raises unless the call has the example's structure and dtypes, and its sizes where they are not free."""
    module = model.built()
    example = named_leaves(module, model.call(model.example), {})
    given = named_leaves(module, call, {})
    if [name for name, _ in example] != [name for name, _ in given]:
        raise NotAWitness(f"{model.name}: other arguments than the example's")
    free: dict[str, int] = {}
    for (name, like), (_, leaf), axes in zip(example, given, _axes(model, len(example)), strict=True):
        _refuse_leaf(f"{model.name}: {name}", like, leaf, axes, free)
        if name in model.ranges:
            low, high = model.ranges[name]
            if not bool(((torch.as_tensor(leaf) >= low) & (torch.as_tensor(leaf) <= high)).all()):
                raise NotAWitness(f"{model.name}: {name} is outside {low}..{high}")
    tensors = [leaf for _, leaf in given if isinstance(leaf, torch.Tensor)]
    if sum(leaf.numel() * leaf.element_size() for leaf in tensors) > MOST_BYTES:
        raise NotAWitness(f"{model.name}: more than {MOST_BYTES} bytes")
    _eager(module, call)


def _refuse_leaf(where: str, like: Leaf, leaf: Leaf, axes: Mapping[int, str], free: dict[str, int]) -> None:
    if not isinstance(like, torch.Tensor) or not isinstance(leaf, torch.Tensor):
        if type(like) is not type(leaf):
            raise NotAWitness(f"{where}: a {type(leaf).__name__} where the example has a {type(like).__name__}")
        return
    if like.dtype != leaf.dtype or like.dim() != leaf.dim():
        raise NotAWitness(f"{where}: {leaf.dtype}, {leaf.dim()} axes; the example: {like.dtype}, {like.dim()}")
    for axis, (had, has) in enumerate(zip(like.shape, leaf.shape, strict=True)):
        if axis not in axes and had != has:
            raise NotAWitness(f"{where}: axis {axis} is not free")
        if axis in axes and free.setdefault(axes[axis], has) != has:
            raise NotAWitness(f"{where}: the size {axes[axis]} has two values")
        if has > LARGEST_SIZE and axis in axes:
            raise NotAWitness(f"{where}: size {has}")


def _axes(model: Model, leaves: int) -> Sequence[Mapping[int, str]]:
    return [axes or {} for axes in (model.free or [None] * leaves)]


def _eager(module: torch.nn.Module, call: Call) -> list[Leaf]:
    try:
        with torch.no_grad():
            return flatten(module(*copy.deepcopy(call)))
    except Exception as error:
        raise NotAWitness(f"eager refuses: {type(error).__name__}: {error}") from error


def _tolerance(expected: Sequence[Leaf]) -> Tolerance:
    floats = [leaf.dtype for leaf in expected if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return max((TOLERANCE.get(dtype, FLOAT32) for dtype in floats), key=lambda one: one.relative, default=FLOAT32)
