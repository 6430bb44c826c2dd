"""Every private name of torch that trueport relies on, and nothing else.

A torch upgrade is this folder's work alone: each name is here because no public one does the job, and says which job.
"""

from __future__ import annotations

from trueport.versions import refuse_unsupported

refuse_unsupported()  # what comes next is private, and may be missing in a release that was not tried

import contextlib
import functools
import itertools
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._higher_order_ops as _higher_order
import torch.compiler
from torch._C import DispatchKey as _DispatchKey
from torch._C._onnx import OperatorExportTypes as OperatorExportTypes  # as torch.onnx has them, without importing that
from torch._C._onnx import TrainingMode as TrainingMode
from torch._decomp import decomposition_table as _decompositions
from torch._dispatch.python import enable_python_dispatcher as symbolic_kernels
from torch._ops import HigherOrderOperator as HigherOrderOperator
from torch._ops import OpOverload as OpOverload
from torch._subclasses.fake_tensor import DataDependentOutputException as DataDependentOutputException
from torch._subclasses.fake_tensor import DynamicOutputShapeException as DynamicOutputShapeException
from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
from torch._subclasses.fake_tensor import UnsupportedOperatorException as UnsupportedOperatorException
from torch._subclasses.functional_tensor import FunctionalTensor as FunctionalTensor
from torch._subclasses.functional_tensor import FunctionalTensorMode as FunctionalTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode as GuardOnDataDependentSymNode
from torch.utils._mode_utils import no_dispatch as no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as outside_all_modes

from trueport.torch_internals.arrays import Array as Array
from trueport.torch_internals.arrays import array as array
from trueport.torch_internals.arrays import numpy_leads_to as numpy_leads_to
from trueport.torch_internals.arrays import on_tensors as on_tensors
from trueport.torch_internals.arrays import torch_dtype as torch_dtype
from trueport.torch_internals.float_arithmetic import float_floor_division as float_floor_division
from trueport.torch_internals.float_arithmetic import floats_step_by_step as floats_step_by_step
from trueport.torch_internals.frames import TORCH_FOLDER as TORCH_FOLDER
from trueport.torch_internals.multiples import multiples_told as multiples_told
from trueport.torch_internals.releases import no_proxies
from trueport.torch_internals.shapes import DecidingShapes as DecidingShapes
from trueport.torch_internals.shapes import size_oblivious as size_oblivious
from trueport.torch_internals.shapes import sizes_by_example as sizes_by_example
from trueport.torch_internals.without_dynamo import FakeTensorMode as FakeTensorMode
from trueport.torch_internals.without_dynamo import compiler_is_loaded
from trueport.torch_internals.without_dynamo import nothing_to_disable as nothing_to_disable

__all__ = [
    "BelowAutograd",
    "DataDependentOutputException",
    "DecidingShapes",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "FunctionalTensor",
    "FunctionalTensorMode",
    "GuardOnDataDependentSymNode",
    "HigherOrderOperator",
    "OpOverload",
    "ProxySlotMode",
    "TorchDispatchMode",
    "UnseenByModes",
    "UnsupportedOperatorException",
    "copy_fake",
    "copy_functional",
    "decomposition_of",
    "einsum_in_order",
    "fake_from_real",
    "from_functional",
    "is_composite",
    "lists_as_calls",
    "no_dispatch",
    "nothing_to_disable",
    "outside_all_modes",
    "saying_exporting",
    "set_functional_value",
    "size_oblivious",
    "sizes_by_example",
    "symbolic_kernels",
    "to_functional",
]

BelowAutograd = torch._C._AutoDispatchBelowAutograd
"""A guard object: while it lives, composite operators reach dispatch modes whole, as autograd is skipped."""

UnseenByModes = torch._C.DisableTorchFunction
"""A context: no torch-function mode sees what is done meanwhile. What is ours and not the model's goes faster so."""


@contextlib.contextmanager
def saying_exporting(answer: bool = True) -> Iterator[None]:
    """`torch.compiler.is_compiling()` and `is_exporting()` say True: libraries then take their traceable path."""
    compiling, exporting = torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag
    torch.compiler._is_compiling_flag = torch.compiler._is_exporting_flag = answer
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag = compiling, exporting


class ProxySlotMode(TorchDispatchMode):
    """A dispatch mode below functionalisation.

    Functional mode is an infrastructure mode and runs after ordinary ones; the slot of the proxy tracer is the one
    below it, so a recorder takes that slot and offers the two attributes that torch expects of its owner.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._mode_key = torch._C._TorchDispatchModeKey.PROXY
        self.enable_tracing = True
        self.pre_dispatch = False
        self.tracer = _NoProxies()

    def __sym_dispatch__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **(kwargs or {}))


class _NoProxies:
    """What torch finds when it asks the proxy tracer for a tensor: nothing."""

    def __init__(self) -> None:
        self.tensor_tracker = no_proxies()


def to_functional(fake: torch.Tensor) -> torch.Tensor:
    """Wrap a fake tensor for functionalisation. Needs FunctionalTensorMode on the stack."""
    return FunctionalTensor.to_functional(fake)


def from_functional(wrapped: torch.Tensor) -> torch.Tensor:
    """The fake tensor that a functional one holds now, with all pending writes applied."""
    torch._sync(wrapped)  # type: ignore[attr-defined,no-untyped-call]
    inner: torch.Tensor = torch._from_functional_tensor(wrapped.elem)  # type: ignore[attr-defined]
    return inner


def inside_functional(wrapped: torch.Tensor) -> torch.Tensor:
    """The fake tensor that a functional one holds, pending writes or not: nothing is computed for the answer."""
    inner: torch.Tensor = torch._from_functional_tensor(wrapped.elem)  # type: ignore[attr-defined]
    return inner


def set_functional_value(wrapped: torch.Tensor, fake: torch.Tensor) -> None:
    """Give a functional tensor another value without recording anything."""
    with outside_all_modes():
        elem = wrapped.elem  # type: ignore[attr-defined]
        torch._functionalize_replace(elem, fake)
        torch._functionalize_commit_update(elem)
        torch._functionalize_sync(elem)


def copy_fake(template: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """A new fake tensor of the same metadata, without asking for symbolic strides again (12 instead of 300 µs)."""
    device = template.device
    with no_dispatch():
        return FakeTensor(mode, torch.ops.aten.detach.default(template), device)


_FEW_WRAPPERS = 300
_WRAPPERS = itertools.count()


def copy_functional(template: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """A new functional wrapper of the template's metadata around another fake tensor (6 instead of 350 µs).

    Without dispatch modes, torch asks whether the fake tensor is a distributed one, and imports `torch.distributed`'s
    tensors to ask (0.1 to 0.2 s). With them it does not, and takes 100 µs more. So the first ones go that way: a small
    model never pays for the import, and a large one hardly more than that.
    """
    with no_dispatch():
        wrapped = torch.Tensor._make_subclass(FunctionalTensor, template)
        if "torch.distributed.tensor" in sys.modules or next(_WRAPPERS) >= _FEW_WRAPPERS:
            wrapped.elem = torch._to_functional_tensor(fake)
            return wrapped
    wrapped.elem = torch._to_functional_tensor(fake)
    return wrapped


@functools.cache
def is_composite(op: OpOverload) -> bool:
    """Whether the operator is defined by other operators (CompositeImplicitAutograd), without a kernel for the CPU."""
    has_cpu_kernel = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CPU")
    return op._can_decompose() and not has_cpu_kernel


def decomposition_of(op: OpOverload) -> Callable[..., Any] | None:
    """How torch would compute the operator by others: its composite definition, a registered decomposition, or, of one
    of the primitives that those may end in, what torch itself runs for it."""
    if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _DispatchKey.CompositeImplicitAutograd):
        return op.decompose
    return _decompositions.get(op) or getattr(op, "impl_aten", None)


def fake_from_real(real: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """A fake tensor of a real one's fixed sizes and strides (a tenth of the cost of `FakeTensorMode.from_tensor`)."""
    with no_dispatch():
        empty = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="meta")
        return FakeTensor(mode, empty, real.device)


SET_GRAD_ENABLED = torch._C._set_grad_enabled
"""What `torch.enable_grad()` calls, as torch function modes see it."""

PAD_SEQUENCE = torch._C._nn.pad_sequence
"""What `torch.nn.utils.rnn.pad_sequence` calls."""


def before_compile(model: Any) -> Any:
    """What a `torch.compile`d module or function was made of; anything else as it is."""
    if not compiler_is_loaded():
        return model
    from torch._dynamo.eval_frame import OptimizedModule

    if isinstance(model, OptimizedModule):
        return model._orig_mod
    return getattr(model, "_torchdynamo_orig_callable", model)


def is_sharded(model: torch.nn.Module) -> bool:
    """Whether weights are spread over processes. Who has no sharded tensor has never imported what they are made of."""
    fsdp, tensors = (sys.modules.get(f"torch.distributed.{name}") for name in ("fsdp", "tensor"))
    if fsdp is not None and any(isinstance(each, fsdp.FullyShardedDataParallel) for each in model.modules()):
        return True
    return tensors is not None and any(isinstance(each, tensors.DTensor) for each in model.parameters())


def is_inside_vmap(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of `vmap` or `grad` on their way: nobody may look at it once they have ended."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def registered_pytree_node(cls: type) -> tuple[Callable[[Any], tuple[Any, Any]], Callable[[Any, Any], Any]] | None:
    """How a user said that a class is taken apart and put together (`torch.utils._pytree.register_pytree_node`)."""
    from torch.utils._pytree import SUPPORTED_NODES

    node = SUPPORTED_NODES.get(cls)
    return (node.flatten_fn, node.unflatten_fn) if node is not None else None


def memory_of(wrapped: torch.Tensor) -> int:
    """Equal for a functional tensor and all views of it."""
    with no_dispatch():
        storage: int = wrapped.elem.untyped_storage()._cdata  # type: ignore[attr-defined]
    return storage


@contextlib.contextmanager
def quiet_fake_tensors() -> Iterator[None]:
    """Torch logs a traceback for every fake kernel or range that fails; the failure reaches us by itself anyway."""
    logs = [logging.getLogger(f"torch.{name}") for name in ("_subclasses.fake_tensor", "utils._sympy.interp")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def write_count(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written in place; None where torch does not count (inference tensors)."""
    return None if tensor.is_inference() else tensor._version


def _symbolic_math() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2"):
        function = getattr(torch, f"_sym_{name}", None)
        if function is not None:
            found[getattr(math, name)] = function
    found[math.pow] = lambda x, y: torch.sym_float(x) ** y
    found[math.prod] = lambda items: _product(items)
    return found


def _product(items: Any) -> Any:
    result: Any = 1
    for item in items:
        result = result * item
    return result


SYMBOLIC_MATH = _symbolic_math()
"""Functions of `math` for symbolic numbers."""


HIGHER_ORDER: dict[str, Any] = {
    "cond": torch.cond,
    "while_loop": _higher_order.while_loop,
    "scan": _higher_order.scan,
    "map": _higher_order.map,
    "associative_scan": _higher_order.associative_scan,
}
"""Torch's control-flow functions, as users call them."""


_COUNTS = ("nonzero_memo", "unique_memo", "unique_consecutive_memo")


def is_uncounted(value: Any) -> bool:
    """Whether it is a fake tensor without a symbol for how many of its elements are not zero, or are different."""
    return isinstance(value, FakeTensor) and all(getattr(value, name) is None for name in _COUNTS)


def forget_numbers(fake: torch.Tensor) -> None:
    """Let the next `.item()` or `nonzero()` of a fake tensor be a new symbol."""
    for name in ("item_memo", *_COUNTS):
        setattr(fake, name, None)


def share_functional_value(wrapped: torch.Tensor, other: torch.Tensor) -> None:
    """Make a functional tensor the same memory as another one (`tensor.data = other`)."""
    wrapped.elem = other.elem  # type: ignore[attr-defined]


def size_functions() -> dict[str, Any]:
    """The functions that torch writes sizes with (`FloorDiv`, `IntTrueDiv`, ...), by name."""
    import torch.utils._sympy.functions as functions

    return {name: value for name, value in vars(functions).items() if isinstance(value, type)}


def known_to_hold(relation: Any) -> None:
    """Tell torch what is true of a data-dependent number, so that it need not ask."""
    torch._check(relation)


def padded_sequence_of_packed() -> Callable[..., Any]:
    """The function behind `pad_packed_sequence`, as a torch function mode sees it."""
    return torch._pad_packed_sequence


@contextlib.contextmanager
def lists_as_calls() -> Iterator[None]:
    """On this thread, `.tolist()` of a functional tensor is a call that modes see; its own goes through rows."""
    own, thread = FunctionalTensor.tolist, threading.get_ident()

    def tolist(tensor: FunctionalTensor) -> Any:
        return torch.Tensor.tolist(tensor) if threading.get_ident() == thread else own(tensor)

    FunctionalTensor.tolist = tolist  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        FunctionalTensor.tolist = own  # type: ignore[method-assign]


@contextlib.contextmanager
def no_inference_tensors() -> Iterator[None]:
    """On this thread, `torch.inference_mode()` turns gradients off and no more, and says that it is on.

    What is made in it has no counter of its writes, without which a write cannot be made functional.
    """
    enter, is_on, thread = torch.inference_mode.__enter__, torch.is_inference_mode_enabled, threading.get_ident()
    modes: list[bool] = []

    @contextlib.contextmanager
    def without_gradients(mode: bool) -> Iterator[None]:
        modes.append(mode)
        with torch.no_grad() if mode else contextlib.nullcontext():
            try:
                yield
            finally:
                modes.pop()

    def entered(self: Any) -> None:
        if threading.get_ident() != thread:
            enter(self)
        else:
            self._inference_mode_context = without_gradients(self.mode)
            self._inference_mode_context.__enter__()

    torch.inference_mode.__enter__ = entered  # type: ignore[method-assign]
    torch.is_inference_mode_enabled = lambda: modes[-1] if modes and threading.get_ident() == thread else is_on()
    try:
        yield
    finally:
        torch.inference_mode.__enter__ = enter  # type: ignore[method-assign]
        torch.is_inference_mode_enabled = is_on


@contextlib.contextmanager
def unvalidated_distributions() -> Iterator[None]:
    """`torch.distributions` raises on parameters outside their range; an ONNX model cannot, and eager refuses them."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)


@contextlib.contextmanager
def einsum_in_order() -> Iterator[None]:
    """Where `opt_einsum` is installed, torch asks it which operands to multiply first, and that depends on all sizes.

    The result is the same. (`torch.backends.opt_einsum.flags` cannot restore what the user has switched off.)
    """
    before = torch.backends.opt_einsum.enabled
    torch.backends.opt_einsum.enabled = False
    try:
        yield
    finally:
        torch.backends.opt_einsum.enabled = before


def quantised_operators() -> Any:
    """`torch.ops.quantized_decomposed`, which torch defines when it is first asked for."""
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed


def is_custom(op: OpOverload) -> bool:
    """Whether an operator was defined by `torch.library.custom_op` or in C++, and not by torch."""
    return op.namespace not in ("aten", "prims", "prim", "quantized", "quantized_decomposed", "inductor", "mkldnn")


def overloads_of(key: Any) -> list[OpOverload]:
    """The operators that a user means by `torch.ops.mylib.op`, `.default` of it, the function that
    `torch.library.custom_op` gave, or the name."""
    if isinstance(key, str):
        namespace, _, name = key.partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name)
        return [getattr(packet, overload)] if overload else overloads_of(packet)
    if isinstance(key, OpOverload):
        return [key]
    if isinstance(key, torch._ops.OpOverloadPacket):
        return [getattr(key, name) for name in key.overloads()]
    if isinstance(key, torch._library.custom_ops.CustomOpDef):
        return [key._opoverload]
    raise TypeError(f"{key!r} is not an operator")
