"""Which operators the installed ONNX Runtime can compute on the CPU, in which dtypes: asked, not listed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from trueport.lower.signature import TENSOR_NAMES, Signature, signature_of

_CPU = "CPUExecutionProvider"
_OPEN = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """One implementation, of the operator's versions first..last, for the types named."""

    first: int
    last: int
    types: Mapping[str, frozenset[str]]

    def is_of(self, since_version: int) -> bool:
        """Whether it is taken for this version. One without an end is for its first only, until the next is written."""
        return self.first == since_version or (self.first < since_version <= self.last < _OPEN)

    def computes(self, dtypes: Mapping[str, ir.DataType]) -> bool:
        return all(
            name not in dtypes or TENSOR_NAMES.get(dtypes[name], "") in allowed for name, allowed in self.types.items()
        )


@functools.cache
def kernels_of(name: str, since_version: int) -> tuple[Kernel, ...]:
    """The kernels of an operator of the standard domain, as of the version that a model means by its name."""
    return tuple(kernel for kernel in _all().get(name, ()) if kernel.is_of(since_version))


def has_kernel(signature: Signature, dtypes: Mapping[str, ir.DataType]) -> bool:
    """Whether the runtime computes the operator, given the dtype behind each shared name of its schema."""
    return any(kernel.computes(dtypes) for kernel in kernels_of(signature.name, signature.since_version))


def newest_opset_with(name: str, below: int) -> int | None:
    """The newest opset below one of which the runtime has a kernel for an operator, where it has none in that one."""
    for opset in range(below, 0, -1):
        try:
            known = kernels_of(name, signature_of(name, opset).since_version)
        except LookupError:
            return None
        if known:
            return None if opset == below else opset
    return None


@functools.cache
def _all() -> dict[str, list[Kernel]]:
    # Imported when the first model is legalised: the command line's help need not wait for it.
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found: dict[str, list[Kernel]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.provider == _CPU and kernel.domain in ("", "ai.onnx"):
            first, last = kernel.version_range
            types = {name: frozenset(allowed) for name, allowed in kernel.type_constraints.items()}
            found.setdefault(kernel.op_name, []).append(Kernel(first, last, types))
    return found
