"""Fake tensors and symbolic sizes without torch's compiler.

An export compiles nothing. But to import `torch._dynamo` takes longer than to export a small model, and torch does so
in passing: for two settings that a fake mode reads, around each function that the compiler shall not look into, for
the name of a size, for the files of its own that it leaves out of a log. Here are forms of these that do without.

Whatever else torch asks of the compiler is imported as ever, so that a release in which more is asked is slower, and
not wrong. And nothing stays: whoever compiles in the same process, before or after, finds torch as it was.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch
import torch._compile
from torch._guards import GuardSource as _GuardSource
from torch._guards import SLoc as _SLoc
from torch._guards import Source as _Source
from torch._subclasses.fake_tensor import FakeTensorMode as _FakeTensorMode

_COMPILER = "torch._dynamo"
_RESHAPES = (torch.ops.aten.reshape.default, torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)

NOWHERE = _SLoc(None, None)
"""The line that torch would log for what it assumes of a size. It looks for it on the stack, each time."""


def compiler_is_loaded() -> bool:
    """Whether torch's compiler was imported. Before that, nothing in this process is compiled."""
    return _COMPILER in sys.modules


def when_compiler_is_loaded(act: Callable[[], object]) -> contextlib.ExitStack:
    """Do it now if torch's compiler is there, else as soon as something imports it. To close what is returned is to
    wait no longer.
    """
    waiting = contextlib.ExitStack()
    if compiler_is_loaded():
        act()
        return waiting
    finder = _Waiting(act)
    sys.meta_path.insert(0, finder)
    waiting.callback(lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None)
    return waiting


class _Waiting:
    """Finds the compiler where Python would, and acts when its module has run."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _COMPILER:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        run = loader.exec_module

        def run_and_act(module: ModuleType) -> None:
            run(module)
            self._act()

        loader.exec_module = run_and_act


class NameOnly(_Source):
    """Where a size or a number comes from, for torch: it has a name. (Torch's own such class is in the compiler.)"""

    def __init__(self, name: str) -> None:
        self.source_name = name

    @property
    def guard_source(self) -> _GuardSource:
        return _GuardSource.CONSTANT

    @property
    def _name_template(self) -> str:
        return self.source_name


class _Settings:
    """The compiler's settings that fake tensors read, as they are where nobody changed them; else torch's own."""

    fake_tensor_cache_enabled = False
    fake_tensor_cache_crosscheck_enabled = False
    _custom_ops_profile = None

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{_COMPILER}.config"), name)


class _Compiler:
    config = _Settings()

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(_COMPILER), name)


class _Torch:
    """`torch`, where `torch._dynamo` is imported only for more than these settings."""

    def __init__(self) -> None:
        self.__dict__ = vars(torch)  # the same dict, not a copy: what is changed in torch is changed here

    @property
    def _dynamo(self) -> Any:
        return sys.modules.get(_COMPILER, _Compiler())

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


_TORCH = _Torch()
_INSTEAD: dict[str, Any] = {
    f"{_COMPILER}.config": _TORCH,
    "torch.fx.experimental.validator": SimpleNamespace(translation_validation_enabled=lambda: False),
}
"""What `import` gives to the functions of torch that go without the compiler. (The validator is a tool of torch's
authors, which proves what was assumed of sizes. It must be switched on, and needs z3.)"""


def _imported(name: str, *args: Any, **kwargs: Any) -> Any:
    found = _INSTEAD[name] if name in _INSTEAD else builtins.__import__(name, *args, **kwargs)
    return _TORCH if found is torch else found


def without_compiler_in(function: Any) -> Any:
    """The same function of torch's, with another meaning of `torch` and of `import`.

    It is a copy, so that no other code of torch's, and no other thread, sees anything of it.
    """
    if not isinstance(function, FunctionType):
        return function
    names = {**function.__globals__, "torch": _TORCH, "__builtins__": {**vars(builtins), "__import__": _imported}}
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def log_nothing_of_sizes() -> None:
    """Torch decides with its first structured log record whether there is such a log. Each record of a size holds a
    traceback, for which torch imports the compiler. So the first one is another."""
    torch._logging.trace_structured(  # type: ignore[attr-defined]
        "artifact", lambda: {"name": "trueport", "encoding": "string"}, suppress_context=True, expect_trace_id=False
    )


@contextlib.contextmanager
def nothing_to_disable() -> Iterator[None]:
    """Torch has functions that the compiler shall not look into, and the first call of each imports it to say so.

    Where it is not there, it looks into nothing: meanwhile these functions are called as they are. `inner` of
    `torch/_compile.py` asks `getattr` whether it did so before, and so it asks this.
    """

    def disabled(function: Any, name: str, default: Any) -> Any:
        return getattr(function, name, default if compiler_is_loaded() else function)

    names = vars(torch._compile)
    if "getattr" in names or compiler_is_loaded():
        yield
        return
    names["getattr"] = disabled
    with contextlib.closing(when_compiler_is_loaded(lambda: names.pop("getattr", None))):
        try:
            yield
        finally:
            names.pop("getattr", None)


class FakeTensorMode(_FakeTensorMode):
    """Torch's fake mode, without its memory of results."""

    _make = without_compiler_in(_FakeTensorMode.__init__)
    _dispatch_impl = without_compiler_in(_FakeTensorMode._dispatch_impl)

    def __init__(self, shape_env: Any) -> None:
        log_nothing_of_sizes()
        self._make(shape_env=shape_env, static_shapes=False)
        # Our own memory of results (`memory.py`) replaces torch's, whose symbolic keys cost more than they save.
        self.cache_enabled = False

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Also where torch itself reshapes, to see what another operator gives (an im2col, a product of batches)."""
        plainly = super().dispatch
        if func not in _RESHAPES:
            return plainly(func, types, args, kwargs or {})
        shapes: Any = self.shape_env
        return shapes.by_usual_strides(lambda: plainly(func, types, args, kwargs or {}))
