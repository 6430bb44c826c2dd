"""Python sets that two arms may leave with different items.

No value of ONNX tells which items a set has. A set that rewritten code makes is one of these: after a branch whose arms
left it with different items nobody may look at it, and whoever does has the rest of the block traced in both arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import ContainerChange, Join, SetStore, TracedContainer, TracedStore, store_for


@dataclass(frozen=True, eq=False)
class Unsure:
    """What a set holds that is one thing on one way and another on another: equal to nothing but itself."""

    told_as: ClassVar[str] = "a set with other items"
    why: Disagreement


class TracedSet(set, TracedContainer):  # type: ignore[type-arg]
    """A set of rewritten code."""

    stands_for = set

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._unsure: Unsure | None = None

    @property
    def held(self) -> Any:
        """What it holds: a plain set, or what tells that nobody knows."""
        return set(set.__iter__(self)) if self._unsure is None else self._unsure

    def hold(self, held: Any) -> None:
        set.clear(self)
        self._unsure = held if isinstance(held, Unsure) else None
        if self._unsure is None:
            set.update(self, held)

    def must_be_sure(self) -> None:
        if self._unsure is not None:
            self._unsure.why.complain()

    def clear(self) -> None:
        self.hold(())

    def __reduce_ex__(self, _protocol: Any) -> Any:
        self.must_be_sure()
        return (set, (list(set.__iter__(self)),))

    __hash__ = None  # type: ignore[assignment]


def _asking(name: str) -> Callable[..., Any]:
    plain = getattr(set, name)

    def method(self: TracedSet, *others: Any) -> Any:
        for each in (self, *others):
            if isinstance(each, TracedSet):
                each.must_be_sure()
        made = plain(self, *others)
        return TracedSet(made) if type(made) is set else made

    return method


for _name in (
    "add discard remove pop update copy union intersection difference symmetric_difference issubset issuperset"
    " isdisjoint difference_update intersection_update symmetric_difference_update __contains__ __iter__ __len__"
    " __or__ __ror__ __and__ __rand__ __sub__ __rsub__ __xor__ __rxor__ __ior__ __iand__ __isub__ __ixor__"
    " __eq__ __ne__ __lt__ __le__ __gt__ __ge__"
).split():
    setattr(TracedSet, _name, _asking(_name))


@store_for(TracedSet)
class TracedSetStore(TracedStore, SetStore):
    def same(self, container: Any, content: Any) -> bool:
        return bool(container.held == content)

    def parts(self, content: Any) -> Iterable[Any]:
        return () if isinstance(content, Unsure) else iter(content)

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        return then if then == orelse else Unsure(join.disagreement("a set"))

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        return Unsure(why)

    def why_spoiled(self, content: Any) -> Disagreement | None:
        return content.why if isinstance(content, Unsure) and content.why.is_out_of_date else None
