"""What a name is after two arms, or rounds of a loop, left it with things that no one value can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueport.capture.values.kinds import (
    ANOTHER,
    ONE,
    ONE_LIST,
    Kind,
    Length,
    Nothing,
    NumberKind,
    TensorKind,
    Unbound,
    both_told,
)
from trueport.decompositions.arguments import flat
from trueport.diagnostics.base import Label
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.rewrite.exits import RESULT
from trueport.rewrite.running.asking import TRACE
from trueport.source import Place, assignments, returned_name

_FOR_ALL = "give it the same dtype, number of axes and structure on both sides"
_FOR_LISTS = (
    "append in both arms; or collect tensors of one shape, and stack or concatenate them: that length may be open"
)
_FOR_ONE_LIST = "make the list before the branch or the loop, and only change it there: items = {'a': []}"
_FOR_NONE = "give an empty tensor instead of None, of the dtype and the number of axes of the other side: x[:0]"
_FOR_NUMBERS = "begin with a tensor of the other's shape and dtype instead of the number: torch.zeros_like(...)"
_FOR_UNSET = "set it before the branch, to None for one, and ask `is None` instead of catching the error"
_FOR_TEXTS = "return a number that stands for the text: an ONNX model gives tensors, and this text differs between runs"


class Disagreement:
    """The value of a name on which two arms did not agree. Harmless until somebody uses it."""

    __slots__ = ("_said",)
    is_one_leaf = True
    """In a structure, whatever it holds."""
    is_out_of_date = False
    """Whether it stands in for something that some rounds of a loop changed under another name."""
    _said: tuple[str, Kind, Kind, Place, Callable[[], None] | None, tuple[str, ...]]

    def __init__(
        self,
        name: str,
        then: Kind,
        orelse: Kind,
        place: Place,
        again: Callable[[], None] | None = None,
        by: tuple[str, ...] = (),
    ) -> None:
        """What it is on the two ways. `by` are arguments of the model, Python numbers, which decide it."""
        name = "what it returns" if name.strip("`") == RESULT else name
        object.__setattr__(self, "_said", (name, then, orelse, place, again, by))
        if TRACE.trace is not None:
            TRACE.trace.stands_for_several()

    @property
    def between(self) -> tuple[Kind, Kind]:
        """What it is on the two ways."""
        return self._said[1], self._said[2]

    @property
    def parted_at(self) -> Place:
        """Where the arms part. No name that what it stands for may have, too."""
        return self._said[3]

    def settle(self) -> None:
        """Trace again with the rest in both arms, where that was not done yet."""
        again = self._said[4]
        if again is not None:
            again()

    def complain(self) -> Any:
        """The value is used: trace again with the rest in both arms, or say that the arms disagree."""
        self.settle()
        raise ExportError([self.told()])

    def told(self) -> ArmsDisagree:
        name, *kinds, place, _, by = self._said
        then, orelse = both_told(*kinds)
        return ArmsDisagree(
            message=f"{name} is {then} where the test holds, {orelse} where not, and is used afterwards",
            place=place,
            label="the arms of this branch disagree",
            also=_in_the_arms(place, name, then, orelse),
            fix=_fix(*kinds) if not by else _FOR_ARGUMENTS.format(by[0] if len(by) == 1 else list(by)),
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        refuse_unsure(*flat([*args, *(kwargs or {}).values()]))

    def __getattr__(self, _name: str) -> Any:
        self.complain()

    def _complain_too(self, *_: Any) -> Any:
        self.complain()

    __bool__ = __iter__ = __len__ = __call__ = __getitem__ = __setitem__ = __float__ = __int__ = __index__ = (
        _complain_too
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _complain_too
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __floordiv__ = _complain_too
    __eq__ = __ne__ = __hash__ = __enter__ = __exit__ = _complain_too


def refuse_unsure(*values: Any) -> None:
    """Refuse if one of these is not the same thing on all ways, where nobody can ask which it is."""
    for value in values:
        if isinstance(value, Disagreement):
            value.complain()


_FOR_ARGUMENTS = (
    "say that the argument is part of the model, constants={!r}, and export once for each value that is needed"
)


def _fix(then: Kind, orelse: Kind) -> str:
    kinds = {type(then), type(orelse)}
    if Nothing in kinds:
        return _FOR_NONE
    if Unbound in kinds:
        return _FOR_UNSET
    if then is ONE_LIST:
        return _FOR_ONE_LIST
    if then.is_text and orelse.is_text:
        return _FOR_TEXTS
    return beside_a_tensor(then, orelse) or (_FOR_LISTS if kinds == {Length} else _FOR_ALL)


def beside_a_tensor(*kinds: Kind) -> str | None:
    """The way out where a number becomes a tensor with axes on some way: `total = 0`, then `total + x`."""
    found = {type(side) for kind in kinds for side in kind.sides}
    return _FOR_NUMBERS if found == {NumberKind, TensorKind} else None


def _in_the_arms(place: Place, name: str, then: str, orelse: str) -> tuple[Label, ...]:
    """The lines on which each arm gives the name its value, where it is a plain name of the function."""
    if place.where is None:
        return ()
    plain = name.strip("`")
    lines = assignments(place.where, plain if plain.isidentifier() else returned_name(place.where))
    return tuple(Label(at, what) for at, what in zip(lines, (then, orelse), strict=True) if at is not None)


class OutOfDate(Disagreement):
    """What stands in for a container, or an item of one, that some rounds changed under another name."""

    __slots__ = ()
    is_out_of_date = True

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, ONE, ANOTHER, place)

    def told(self) -> ArmsDisagree:
        name, _, _, place, *_ = self._said
        return ArmsDisagree(
            message=f"`{name}` is another container after a round of this loop than before it, one of them is changed"
            " in place, and is used under another name as well",
            place=place,
            label=f"some of its rounds change what `{name}` was before, or what another name is",
            fix=f"bind `{name}` to a copy before the loop, or change it only in place, or only by binding it",
        )


class RoundsDisagree(Disagreement):
    """A name that rounds of a loop leave as something that it cannot be together with what it was."""

    __slots__ = ()

    def told(self) -> ArmsDisagree:
        name, *kinds, place, _, _ = self._said
        began, left = both_told(*kinds)
        return ArmsDisagree(
            message=f"{name} is {began} before a round of this loop, {left} after it, and is used afterwards",
            place=place,
            label="changes what it is from round to round",
            fix=beside_a_tensor(*kinds)
            or "make it the same dtype, number of axes and structure before the loop and in it",
        )
