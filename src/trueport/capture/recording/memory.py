"""Remembering what an operator gives for tensors of the same sizes.

A model repeats its layers, and torch answers the same question about the same symbolic sizes again for each of them,
at up to a millisecond a time (strides and contiguity are symbolic arithmetic). The answer depends only on the operator,
the signatures of its tensors and its other arguments, so it is kept; a repeated layer then costs microseconds.
"""

from __future__ import annotations

import contextlib
from collections import ChainMap
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from trueport.capture.recording.symbols import Symbols
from trueport.graph.regions import Number, Size, Value, symbols_in
from trueport.torch_internals import FakeTensor, OpOverload, copy_fake, copy_functional, to_functional
from trueport.torch_internals.symbolic import is_symbolic


@dataclass(eq=False, slots=True)
class TensorSignature:
    """What torch knows of a tensor that has no data: dtype, sizes, strides. Interned, so identity is equality."""

    dtype: torch.dtype
    shape: tuple[Size, ...]
    template: torch.Tensor
    wrapper: torch.Tensor | None = None

    @property
    def free_symbols(self) -> Set[sympy.Basic]:
        return symbols_in(self.shape)


class Unhashable(Exception):
    """An argument that cannot be part of a key; the operator is then asked anew."""


_PLAIN = (bool, int, float, str, complex, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class ResultCache:
    """Signatures of the fake tensors of one trace, and the results known for them."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._signatures: dict[tuple[Any, ...], TensorSignature] = {}
        self._results: ChainMap[tuple[Any, ...], tuple[type, tuple[TensorSignature | None, ...]]] = ChainMap()

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """For a region: what torch learns about sizes there holds there only, and so do answers that rely on it."""
        shapes, around = self._symbols.shapes, self._results
        known, self._results = shapes.knowledge(), around.new_child()
        try:
            yield
        finally:
            own, self._results = self._results, around
            if not shapes.forget_since(known):
                around.update(own.maps[0])

    def let_go(self) -> None:
        """Forget every tensor. A wrapper holds its fake tensor in C++, where the collector sees no reference: a ring
        through the two (fake, its mode, the trace, wrapper, fake) would stay for ever, and the model with it."""
        for signature in self._signatures.values():
            signature.wrapper = None
        self._signatures.clear()
        self._results = ChainMap()

    def signature(self, fake: torch.Tensor) -> TensorSignature:
        known: TensorSignature | None = getattr(fake, "_trueport_signature", None)
        if known is None:
            shape = tuple(self._symbols.size(s) for s in fake.shape)
            strides = tuple(self._symbols.size(s) for s in fake.stride()) if fake.layout is torch.strided else ()
            key = (fake.dtype, fake.device, fake.layout, shape, strides, fake.is_conj(), fake.is_neg())
            known = self._signatures.get(key)
            if known is None:
                template = copy_fake(fake, self._symbols.fake_mode)
                known = self._signatures[key] = TensorSignature(fake.dtype, shape, template)
            fake._trueport_signature = known  # type: ignore[attr-defined]
        return known

    def new_fake(self, signature: TensorSignature) -> torch.Tensor:
        fake = copy_fake(signature.template, self._symbols.fake_mode)
        fake._trueport_signature = signature  # type: ignore[attr-defined]
        return fake

    def wrap(self, fake: torch.Tensor) -> torch.Tensor:
        """The functional wrapper that the user's code sees for a fake tensor."""
        signature = self.signature(fake)
        if signature.wrapper is None:
            signature.wrapper = to_functional(signature.template)
        return copy_functional(signature.wrapper, fake)

    def results(self, op: OpOverload, args: Any, kwargs: Any, ask: Callable[[], Any]) -> Any:
        """What `op` returns for these fake arguments: remembered, or asked of torch and kept if it may be."""
        try:
            key = (op, self._key(args), self._key(tuple(kwargs.items())) if kwargs else None)
            hash(key)
        except (Unhashable, TypeError):
            key = None
        if key is not None and (known := self._results.get(key)) is not None:
            kind, signatures = known
            made = [None if s is None else self.new_fake(s) for s in signatures]
            return made[0] if kind is torch.Tensor else kind(made)
        returned = ask()
        fresh = self._symbols.shapes.forget_pending()
        if key is not None and not fresh:
            self._keep(key, returned)
        return returned

    def _keep(self, key: tuple[Any, ...], returned: Any) -> None:
        """Unless a size of it is of no argument's: how many a mask chooses, torch remembers with the mask itself."""
        several = returned if type(returned) in (tuple, list) else (returned,)
        if not all(t is None or isinstance(t, FakeTensor) for t in several):
            return
        kept = tuple(None if t is None else self.signature(t) for t in several)
        if symbols_in(kept) <= symbols_in(key):
            self._results[key] = (torch.Tensor if several is not returned else type(returned), kept)

    def _key(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.signature(value)
        if is_symbolic(value):
            number = self._symbols.number_of(value)
            return number if isinstance(number, Number) else (type(number), number)
        if isinstance(value, (list, tuple)):
            return (type(value), tuple(self._key(v) for v in value))
        if isinstance(value, _PLAIN):
            return (type(value), value)  # 1, 1.0 and True are equal, and not the same argument
        raise Unhashable


def value_of(fake: torch.Tensor) -> Value | None:
    """The graph's value that a fake tensor stands for."""
    return getattr(fake, "_trueport_value", None)


def set_value(fake: torch.Tensor, value: Value) -> None:
    fake._trueport_value = value  # type: ignore[attr-defined]
