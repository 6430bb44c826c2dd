"""Where a truth came from: `flag = (ids == 7).any()` some lines before `if flag:`.

Remembers the comparisons that tensors went through while eager runs, so that a test can be measured by what it was
made of. Only for the runs that guide the search: torch takes other paths under a mode (the fast path of
`TransformerEncoder`), so the runs that are compared with are made without one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from trueport.torch_internals import UnseenByModes
from trueport.verify.decisions.distance import Distance, both, either, every, negated, of_comparison, of_truth, some

_REMEMBERED = 256
"""How many results are kept; a test mostly speaks of the latest."""
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_OTHER_NAMES = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
    "invert": "not",
    "logical_not": "not",
    "bitwise_not": "not",
    "and": "and",
    "logical_and": "and",
    "bitwise_and": "and",
    "or": "or",
    "logical_or": "or",
    "bitwise_or": "or",
}
_ASKED_PLAINLY = frozenset(("bool", "item", "int", "float", "tolist"))


class Provenance(TorchFunctionMode):
    """Notes comparisons, and what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self._made: OrderedDict[int, tuple[torch.Tensor, Callable[[], Distance | None]]] = OrderedDict()
        self._asked: Callable[[], Distance | None] | None = None
        self.questions = 0
        """How often a tensor was asked for a plain number or truth."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = getattr(func, "__name__", "").strip("_")
        name = _OTHER_NAMES.get(name, name)
        if name in _ASKED_PLAINLY and args and isinstance(args[0], torch.Tensor):
            self.questions += 1
            asked = args[0]
            self._asked = (lambda: self.measured(asked)) if name == "bool" or asked.dtype is torch.bool else None
        elif isinstance(result, torch.Tensor) and result.dtype is torch.bool:
            how = self._how(name, args, given)
            if how is not None:
                self._made[id(result)] = (result, how)
                if len(self._made) > _REMEMBERED:
                    self._made.popitem(last=False)
        elif name in ("equal", "allclose") and len(args) > 1:
            self.questions += 1
            self._asked = lambda: self._equal(args[0], args[1])
        return result

    def asked(self) -> Distance | None:
        """Of the tensor that was last asked for its truth or number. Measured only now: most are never looked at."""
        return None if self._asked is None else self._asked()

    def measured(self, value: Any) -> Distance | None:
        """The distance of a value's truth, by what it was made of where that is known."""
        with UnseenByModes():  # our own measuring, and not the model's
            known = self._made.get(id(value))
            found = known[1]() if known is not None and known[0] is value else None
            return of_truth(value) if found is None else found

    def _how(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Distance | None] | None:
        if name in _COMPARISONS and len(args) > 1:
            return lambda: of_comparison(name, args[0], args[1])
        if name in ("not", "and", "or"):
            return lambda: self._joined(name, args)
        if name in ("any", "all"):
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            keepdim = bool(kwargs.get("keepdim", args[2] if len(args) > 2 else False))
            return lambda: self._reduced(name, args[0], dim, keepdim)
        return None

    def _equal(self, one: Any, other: Any) -> Distance | None:
        with UnseenByModes():
            same = of_comparison("eq", one, other)
            return None if same is None else every(same)

    def _joined(self, name: str, args: tuple[Any, ...]) -> Distance | None:
        parts = [self.measured(arg) for arg in args]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        if name == "not":
            return negated(known[0])
        return both(known) if name == "and" else either(known)

    def _reduced(self, name: str, tensor: torch.Tensor, dim: Any, keepdim: bool) -> Distance | None:
        inner = self.measured(tensor)
        if inner is None or inner.to_true.shape != tensor.shape:
            return None
        return (every if name == "all" else some)(inner, dim, keepdim)
