"""Which function translates which ATen operator.

The `custom_translation_table` of the call comes before what was registered with `@op` (ours in `lower/ops/`, then the
user's packages, which may replace them). An operator found here is a leaf of the capture.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from trueport.torch_internals import OpOverload

F = TypeVar("F", bound=Callable[..., Any])
ENTRY_POINTS = "trueport.ops"


@dataclass(frozen=True, slots=True)
class Translation:
    name: str
    function: Callable[..., Any]

    @property
    def takes_builder(self) -> bool:
        """translate(op, *args, **kwargs): `op` is the Builder, sizes are Numbers, dtypes torch's. Others are called by
        `onnxscript_functions.py`."""
        return _takes_builder(self.function)


@functools.cache
def _takes_builder(function: Callable[..., Any]) -> bool:
    """Asked where a function is used: there are 600, and a model has a dozen."""
    if hasattr(function, "op_signature"):  # onnxscript's
        return False
    return next(iter(inspect.signature(function).parameters), None) == "op"


_REGISTERED: dict[str, Translation] = {}
_DROPPED: set[str] = set()
_OF_COMPLEX: set[str] = set()
_OF_PARTS: set[str] = set()


def op(*names: str) -> Callable[[F], F]:
    """Register the translation of one or more operators, written `namespace::name` or `namespace::name.overload`.

    A function whose first parameter is called `op` gets the builder for it, and then the arguments of the ATen call:

        @trueport.op("mylib::twice")
        def twice(op, x):
            return op.Mul(x, 2)

    Any other function gets the arguments only, and builds its nodes with onnxscript's opsets (`trueport[onnxscript]`).
    """

    def register(function: F) -> F:
        for name in names:
            name = name.removesuffix(".default")
            _REGISTERED[name] = Translation(name, function)
        return function

    return register


def dropped(*names: str) -> None:
    """Operators that compute nothing (assertions): their calls leave no trace in ONNX."""
    _DROPPED.update(names)


def translation_for(
    target: OpOverload, custom: Mapping[OpOverload, Callable[..., Any]] | None = None
) -> Translation | None:
    """How to translate a call of this operator; None when nobody knows."""
    if custom and (function := custom.get(target)) is not None:
        return Translation(name_of(target), function)
    _discover()
    return _REGISTERED.get(name_of(target))


def of_complex(names: Iterable[str], by_parts: bool = False) -> None:
    """Operators that are carried for complex numbers: by a translation of their own, or by the one for real numbers
    on their parts (`complex/numbers.py`)."""
    (_OF_PARTS if by_parts else _OF_COMPLEX).update(names)


def is_leaf(target: OpOverload, complex_numbers: bool = False) -> bool:
    """Whether capture should keep the operator whole: it has a translation, or computes nothing.

    Of complex numbers, only what is carried for them: torch's definition of anything else ends in operators that are.
    """
    is_known = translation_for(target) is not None or is_dropped(target)
    if not complex_numbers:
        return is_known
    name = name_of(target)
    return name in _OF_COMPLEX or is_dropped(target) or (name in _OF_PARTS and is_known)


def is_dropped(target: OpOverload) -> bool:
    _discover()
    return name_of(target) in _DROPPED


def name_of(target: OpOverload) -> str:
    """`aten::linear`, `aten::add.Tensor`."""
    return str(target.name()).removesuffix(".default")


@functools.cache
def _discover() -> None:
    """Import our families of operators, then the packages that offer theirs."""
    ours = importlib.import_module("trueport.lower.ops")
    for module in pkgutil.walk_packages(ours.__path__, f"{ours.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("trueport.lower.complex.parts")  # which says what is carried by its parts
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        _load(entry)


def _load(entry: importlib.metadata.EntryPoint) -> None:
    """Import what a package offers. One that is broken is told; it may have nothing to do with the model at hand."""
    try:
        entry.load()
    except Exception as error:  # noqa: BLE001  # whatever a foreign package raises
        package = entry.dist.name if entry.dist is not None else "a package"
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"the translations of {package} ({entry.value}) cannot be imported: {reason}", stacklevel=2)
