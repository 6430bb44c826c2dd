"""How much work one run of a model is, counted and not timed.

What is tried follows from this count, so that the same inputs are tried on every machine, idle or busy. A unit is about
a microsecond of an ordinary core; nothing depends on how well that is met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import onnx
import torch
from torch.utils.flop_counter import flop_registry

from trueport.torch_internals.eager_modes import EagerMode
from trueport.verify.runtime.origin import subgraphs_of

_OF_AN_OPERATOR = 8
_ELEMENTS = 1_000
_FLOPS = 10_000
_HANDING_OVER = 1_500
"""What one comparison takes besides the two runs: copies, the way to the worker and back, the judging."""

_NODES = 4
"""Of the file for an operator of eager, mostly; only more of them make a run of the file longer than one of eager."""
_ROUNDS = 16
"""That a loop of the file is taken to make."""

_TABLES = ("embedding", "index_select", "index", "gather", "take", "embedding_bag")
"""Operators whose first tensor is looked up by the others."""
_COMPARES = (
    "gt ge lt le eq ne clamp clamp_min clamp_max maximum minimum hardtanh threshold where masked_fill remainder fmod"
    " floor_divide bucketize searchsorted hardshrink softshrink relu6 leaky_relu pow div mul"
).split()
"""Operators to which a number among their arguments is a limit, at which and beside which they do different things."""
_SIZED = ("repeat_interleave", "bincount")
"""Operators whose result is as long as the integers in their argument say."""
_MAKES = re.compile(
    "zeros|ones|empty|full|arange|linspace|eye|rand|expand|repeat|tile|pad|window|indices|unfold|strided"
)
"""Operators that are told how large a result to make."""
_FEW = 8
"""Tensors of no more elements than this are read for the numbers in them."""


@dataclass(frozen=True, slots=True)
class Work:
    """Of one run of eager on the example."""

    operators: int = 0
    data: float = 0.0
    """Units that grow with the input."""
    loops: bool = False
    """Whether the number of operators may grow with the input, too."""
    growth: float = 1.0
    """With which power of the input the data grow: 2 where each row meets each other."""
    nodes: int = 0
    """Of the file: one operator of eager may be a series of a hundred there."""

    @property
    def units(self) -> float:
        return _OF_AN_OPERATOR * self.operators + self.data

    def compared(self, share: float = 1.0) -> float:
        """Of comparing one input that is so many times the example."""
        rounds = max(share, 1.0) if self.loops else 1.0
        data = self.data * (share**self.growth if share > 1 else share)
        in_file = max(1.0, self.nodes / max(_NODES * self.operators, 1))
        return _HANDING_OVER + 2 * _OF_AN_OPERATOR * self.operators * rounds + (1 + in_file) * data

    def grown(self, larger: Work, share: float) -> Work:
        """The same, once a run has been seen whose input was so many times as large."""
        if share <= 1 or not self.data or larger.data <= self.data:
            return self
        return replace(self, growth=max(self.growth, math.log(larger.data / self.data) / math.log(share)))


class Watched(EagerMode):
    """Counts a run of eager, and notes the numbers by which its operators decide."""

    def __init__(self) -> None:
        super().__init__()
        self._data = 0.0
        self._operators = 0
        self.numbers: dict[float, None] = {}
        """What values are compared with, in the order in which they were met."""
        self.tables: dict[int, None] = {}
        """How many rows there are to look up."""
        self._reads_integers = False
        self.sized_by_values = False
        """Whether an integer was read as a number, and something made after that: a huge one may take all memory."""

    @property
    def work(self) -> Work:
        return Work(self._operators, self._data)

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        self._operators += 1
        elements = sum(tensor.numel() for tensor in _tensors(result))
        self._data += elements / _ELEMENTS + _flops(func, args, kwargs, result) / _FLOPS
        name = func.overloadpacket.__name__.rstrip("_")
        if name in _COMPARES:
            for number in _numbers((*args, *kwargs.values())):
                self.numbers.setdefault(number)
        self._reads_integers |= name == "_local_scalar_dense" and type(result) is int
        if name in _SIZED or (self._reads_integers and _MAKES.search(name)):
            self.sized_by_values = True
        if name in _TABLES and args and isinstance(args[0], torch.Tensor) and args[0].dim():
            self.tables.update(dict.fromkeys(args[0].shape))
        return result


def nodes_of(graph: onnx.GraphProto) -> int:
    """Of a file, those of a loop many times."""
    total = len(graph.node)
    for node in graph.node:
        rounds = _ROUNDS if node.op_type in ("Loop", "Scan") else 1
        total += rounds * sum(nodes_of(inner) for inner in subgraphs_of(node))
    return total


def _flops(func: Any, args: Any, kwargs: Any, result: Any) -> float:
    count = flop_registry.get(func.overloadpacket)
    return 0.0 if count is None else float(count(*args, **kwargs, out_val=result))


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)


def _numbers(args: Iterable[object]) -> Iterator[float]:
    for arg in args:
        if isinstance(arg, int | float) and not isinstance(arg, bool):
            yield arg
        elif isinstance(arg, torch.Tensor) and 0 < arg.numel() <= _FEW and not arg.is_complex():
            yield from (number for number in arg.detach().reshape(-1).tolist() if not isinstance(number, bool))
