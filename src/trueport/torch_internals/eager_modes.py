"""Dispatch modes around a run of the user's own model, which may use torch's compiler.

`torch.cond` and its kin compile what they are given. Where the compiler meets an ordinary dispatch mode, it gives the
function up for the rest of the process: the user's next `torch.export` of such a model would fail. So the compiler is
set aside while such a mode is on, and the control flow runs in Python, under the mode.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import torch
from torch._higher_order_ops.cond import cond_op as _cond
from torch._higher_order_ops.scan import generic_scan as _generic_scan
from torch._higher_order_ops.scan import scan_op as _scan
from torch._ops import HigherOrderOperator as _HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode as _TorchDispatchMode

from trueport.torch_internals.without_dynamo import compiler_is_loaded, when_compiler_is_loaded


class _Compiler:
    """Torch's compiler, which the whole process shares: set aside while any thread of ours needs it aside.

    The first that comes sets it aside and the last that goes takes it back. If each thread restored what it had found,
    one that came second and went last would leave the compiler off for good.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._stance: Any = None
        self._when_loaded = contextlib.ExitStack()

    def set_aside(self) -> None:
        if compiler_is_loaded():
            import torch._dynamo  # noqa: F401  # where another thread is at it, that is awaited before the lock is taken
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._when_loaded = when_compiler_is_loaded(self._turn_off)

    def _turn_off(self) -> None:
        with self._lock:
            if self._users and self._stance is None:
                self._stance = torch.compiler.set_stance("force_eager")

    def take_back(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self._when_loaded.close()
            if self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


_COMPILER = _Compiler()


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """What the user compiles runs as it is written, on this thread and, meanwhile, on others."""
    _COMPILER.set_aside()
    try:
        yield
    finally:
        _COMPILER.take_back()


class EagerMode(_TorchDispatchMode):
    """Sees each operator of a run, those inside of `torch.cond`, `while_loop`, `scan` and `map` among them."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it is set aside, and to skip it torch would import it

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What the operator gives."""
        return func(*args, **kwargs)

    def __enter__(self) -> Self:
        _COMPILER.set_aside()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]
        _COMPILER.take_back()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not isinstance(func, _HigherOrderOperator):
            return self.operator(func, args, kwargs or {})
        with self:
            return _in_python(func)(*args, **(kwargs or {}))


def _in_python(func: Any) -> Callable[..., Any]:
    """Torch's own way to run it without compiling. Two of these refuse to run where any mode is on."""
    if func is _cond:
        return lambda pred, true_fn, false_fn, operands: (true_fn if pred else false_fn)(*operands)
    if func is _scan:
        return lambda combine, init, xs, others: _generic_scan(combine, init, xs, additional_inputs=others)
    kernel: Callable[..., Any] = func.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd]
    return kernel
