"""Writes in place inside arms and loop bodies.

A write inside an arm belongs to that arm: the tensor gets its old value back before the other arm is traced, and the
merged one afterwards. Functionalisation keeps one base per memory and makes views of it anew when they are next read;
so it is enough to keep the bases, and to have every view up to date before a region begins (a view that is made anew
inside a region would be a value of that region, and of no use outside).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.recording.sharing import Sharing
from trueport.decompositions.arguments import flat
from trueport.source import Place
from trueport.torch_internals import FunctionalTensor, from_functional, memory_of, set_functional_value


@dataclass(frozen=True, slots=True)
class Write:
    """A tensor that a region wrote: its base, and the values before and after."""

    base: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor


class Writes:
    """The memories of one trace, and the writes to them in the regions that are open."""

    def __init__(self) -> None:
        self._bases: dict[int, tuple[int, torch.Tensor]] = {}
        self._views: list[weakref.ref[torch.Tensor]] = []
        self._open: list[tuple[int, dict[int, tuple[torch.Tensor, torch.Tensor]]]] = []
        self.sharing = Sharing()

    def own(self, wrapper: torch.Tensor) -> None:
        """A new memory. Kept alive, so that its address is never another's."""
        self._bases[memory_of(wrapper)] = (len(self._bases), wrapper)

    def was_there(self, wrapper: torch.Tensor) -> None:
        """A memory of the model's own, met just now: it is older than every region, also than the one that met it."""
        self._bases[memory_of(wrapper)] = (-1, wrapper)

    def base(self, wrapper: torch.Tensor) -> torch.Tensor:
        """The tensor that is all of a memory."""
        return self._bases[memory_of(wrapper)][1]

    def view(self, returned: Any) -> None:
        for item in flat(returned):
            if isinstance(item, FunctionalTensor):
                self._views.append(weakref.ref(item))

    def settle(self) -> None:
        """Bring every tensor up to date where it is needed next: here, and not inside the region that begins."""
        alive = []
        for reference in self._views:
            view = reference()
            if view is not None:
                # An arm's own view may be of sizes that only its test lets in (`x[4] if len(x) > 4`): not made here.
                with contextlib.suppress(IndexError):
                    from_functional(view)
                alive.append(reference)
        self._views = alive
        for _, base in self._bases.values():
            from_functional(base)

    def mark(self) -> int:
        """A point in the trace, for `is_old`."""
        return len(self._bases)

    def is_old(self, memory: int, mark: int) -> bool:
        """Whether a memory is older than `mark`."""
        return self._bases.get(memory, (mark,))[0] < mark

    def about_to_write(self, wrapper: torch.Tensor, place: Place) -> None:
        memory = memory_of(wrapper)
        self.sharing.write(memory, place)
        self._note(memory)

    def _note(self, memory: int) -> None:
        if not self._open or memory not in self._bases:
            return
        number, base = self._bases[memory]
        born_before, noted = self._open[-1]
        if number < born_before and memory not in noted:
            noted[memory] = (base, from_functional(base))

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[Write]]:
        """Collects the writes of a region to tensors from outside it, and undoes them at its end."""
        found: list[Write] = []
        self._open.append((len(self._bases), {}))
        try:
            yield found
            _, noted = self._open[-1]
            for base, before in noted.values():
                after = from_functional(base)
                if after is not before:
                    found.append(Write(base, before, after))
        finally:
            _, noted = self._open.pop()
            for base, before in noted.values():
                set_functional_value(base, before)

    def written_here(self) -> set[int]:
        """The memories from outside the innermost open region that it wrote."""
        return set(self._open[-1][1]) if self._open else set()

    def put(self, base: torch.Tensor, fake: torch.Tensor) -> None:
        """Give a tensor the value that a branch or a loop left it with."""
        self._note(memory_of(base))
        set_functional_value(base, fake)
