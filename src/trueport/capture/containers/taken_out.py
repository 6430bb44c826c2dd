"""Items that were taken out of a list of open length.

Such a list holds tensors; a dict or an object of the user's is made anew each time one is taken out. What is then done
to it (`track.age += 1`) does not reach the list. Whether something was done is looked at when the trace ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trueport.diagnostics.rules.tp104_open_length import OpenLength
from trueport.errors import refusal
from trueport.load.structures import Structure, flatten
from trueport.source import Place
from trueport.torch_internals.symbolic import is_traced, same_value


@dataclass(frozen=True)
class _Taken:
    item: Any
    structure: Structure
    values: tuple[Any, ...]
    place: Place

    @property
    def is_changed(self) -> bool:
        leaves, structure = flatten(self.item, "item")
        if len(leaves) != len(self.values) or not structure.same_as(self.structure):
            return True
        return not all(same_value(leaf.value, value) for leaf, value in zip(leaves, self.values, strict=True))


@dataclass
class TakenOut:
    taken: list[_Taken] = field(default_factory=list)

    def note(self, item: Any, structure: Structure, values: tuple[Any, ...], place: Place) -> None:
        if not is_traced(item) and not isinstance(item, (int, float, str, tuple, type(None))):
            self.taken.append(_Taken(item, structure, values, place))

    def put_back(self, item: Any) -> None:
        """The list holds it as it is now."""
        self.taken = [each for each in self.taken if each.item is not item]

    def refuse_changed(self) -> None:
        changed = next((each for each in self.taken if each.is_changed), None)
        if changed is not None:
            raise refusal(
                OpenLength(
                    message="an item of a list whose length is known only when the model runs is changed after"
                    " it was taken out of the list",
                    place=changed.place,
                    label="the change does not reach the list",
                    fix="make a new list of the changed items, or put each back: items[i] = item",
                )
            )
