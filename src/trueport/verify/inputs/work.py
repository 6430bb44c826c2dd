"""How much work one run of a model is, counted and not timed.

What is tried follows from this count, so that the same inputs are tried on every machine, idle or busy. A unit is about
a microsecond of an ordinary core; nothing depends on how well that is met.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import flop_registry

from trueport.torch_internals import OpOverload, is_composite
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
_CELLS = re.compile("lstm|gru|rnn_")
_TRUSTS_OFFSETS = re.compile("embedding_bag|segment|jagged|nested|sparse|csr|csc|as_strided")
_WEIGHTS_OF_A_LAYER = 2
"""An operator that takes so many is a whole layer (`_transformer_encoder_layer_fwd`): each row meets each of them."""
COUNTS = torch.ops.aten.arange
_READS_A_NUMBER = torch.ops.aten._local_scalar_dense.default
FEW_NUMBERS = 8
"""Tensors of no more elements than this are read for the numbers in them."""


@dataclass(frozen=True, slots=True)
class Growth:
    """With which powers of a free size the work grows."""

    rounds: float = 0.0
    """Of the number of operators: 1 where a loop goes through the rows."""
    data: float = 1.0
    """Of the data: 2 where each row meets each other."""


Ratios = Mapping[str, float]
"""By free size, how many times the example's a size is."""


@dataclass(frozen=True, slots=True)
class Work:
    """Of one run of eager on the example."""

    operators: int = 0
    data: float = 0.0
    """Units that grow with the input."""
    usual: Growth = Growth()
    """With sizes of which nothing else was seen."""
    growths: Mapping[str, Growth] = field(default_factory=dict)
    """By free size, as it was seen."""
    nodes: int = 0
    """Of the file: one operator of eager may be a series of a hundred there."""

    @property
    def units(self) -> float:
        return _OF_AN_OPERATOR * self.operators + self.data

    def compared(self, share: float = 1.0, ratios: Ratios | None = None) -> float:
        """Of comparing one input that is so many times the example, with free sizes that are so many times its own.

        The data grow with the input at least. The sizes tell where they grow faster, since one size may be a small part
        of the input and most of the work (a token beside a cache).
        """
        rounds, times = 1.0, 1.0
        for name, ratio in (ratios or {}).items():
            growth = self.growths.get(name, self.usual)
            rounds *= _power(max(ratio, 1.0), growth.rounds)
            times *= _power(max(ratio, 1.0), growth.data)
        data = self.data * (max(share, times) if share > 1 or times > 1 else share)
        in_file = max(1.0, self.nodes / max(_NODES * self.operators, 1))
        return _HANDING_OVER + 2 * _OF_AN_OPERATOR * self.operators * rounds + (1 + in_file) * data

    def grown(self, larger: Mapping[str, tuple[Work, float]]) -> Work:
        """The same, once runs have been seen in which one free size was so many times the example's."""
        found: dict[str, Growth] = {}
        for name, (work, ratio) in larger.items():
            if ratio > 1 and self.data and self.operators:
                rounds = math.log(max(work.operators, self.operators) / self.operators) / math.log(ratio)
                data = math.log(max(work.data, self.data) / self.data) / math.log(ratio)
                found[name] = Growth(rounds, data)
        return replace(self, growths=found)


def work_of(operators: int, elements: float, flops: float) -> Work:
    """Of so many operators, of the elements that they make and of the multiplications and additions for them."""
    return Work(operators, elements / _ELEMENTS + flops / _FLOPS)


def _power(base: float, exponent: float) -> float:
    """Beyond any number where a row more doubles the work."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


class Counted(EagerMode):
    """Counts a run of eager."""

    def __init__(self) -> None:
        super().__init__()
        self._data = 0.0
        self._operators = 0
        self._parts_of_another = False
        self.times = 1
        """How often what is called now counts."""

    @property
    def work(self) -> Work:
        return Work(self._operators, self._data)

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        kind = _kind_of(func)
        if kind.is_composite:  # under inference mode `linear` and `conv2d` come whole, and hide their products
            return self._in_parts(func, args, kwargs)
        result = func(*args, **kwargs)
        given, made = _tensors((*args, *kwargs.values())), _tensors(result)
        self._operators += self.times
        elements = sum(tensor.numel() for tensor in made)
        flops = _flops(func, kind, args, kwargs, result, given)
        self._data += self.times * work_of(1, elements, flops).data
        self._saw(func, kind, given, made, result)
        return result

    def _saw(
        self, func: Any, kind: _Kind, given: Sequence[torch.Tensor], made: Sequence[torch.Tensor], result: Any
    ) -> None:
        """What an operator was given, and what it made of it: for who wants to know more than how much it was."""

    def _in_parts(self, func: Any, args: Any, kwargs: Any) -> Any:
        outermost, self._parts_of_another = not self._parts_of_another, True
        try:
            with self:
                return func.decompose(*args, **kwargs)
        finally:
            self._parts_of_another = not outermost


class Watched(Counted):
    """Counts a run of eager, and notes the numbers by which its operators decide."""

    def __init__(self, inputs: Iterable[object] = ()) -> None:
        super().__init__()
        self._computed = {id(value) for value in inputs}
        """Tensors that inputs or their sizes have a part in: the numbers in them are none of the model's own. What an
        operator makes is put in or out, since it may have the id of one that is gone."""
        self.numbers: dict[float, None] = {}
        """What values are compared with, in the order in which they were met."""
        self.tables: dict[int, None] = {}
        """How many rows there are to look up."""
        self.reads_integers = False
        """Whether Python reads integers out of a tensor."""
        self.sized_by_values = False
        """Whether an integer was read as a number, and something made after that: a huge one may take all memory."""
        self.has_cells = False
        self.trusts_offsets = False
        self.makes_wide_integers = False
        """Whether floats become integers of 64 bits, which hold more than those of 32."""

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not self._parts_of_another and (kind := _kind_of(func)).is_telling:
            self._read(kind, args, kwargs)
        return super().operator(func, args, kwargs)

    def _saw(
        self, func: Any, kind: _Kind, given: Sequence[torch.Tensor], made: Sequence[torch.Tensor], result: Any
    ) -> None:
        if kind.counts or not self._computed.isdisjoint(map(id, given)):
            self._computed.update(map(id, made))
        else:
            self._computed.difference_update(map(id, made))
        self.reads_integers |= func is _READS_A_NUMBER and type(result) is int
        self.makes_wide_integers |= (
            kind.casts and made[0].dtype is torch.int64 and any(each.is_floating_point() for each in given)
        )

    def lists(self) -> TorchFunctionMode:
        """A mode to enter beside this one: `tolist` is no operator."""
        return _Lists(self)

    def _read(self, kind: _Kind, args: Any, kwargs: Any) -> None:
        """The numbers and tables that an operator is given."""
        if kind.compares:
            given = (arg for arg in (*args, *kwargs.values()) if id(arg) not in self._computed)
            for number in _numbers(map(self._content, given)):
                self.numbers.setdefault(number)
        self.sized_by_values |= kind.is_sized or (self.reads_integers and kind.makes)
        self.has_cells |= kind.is_cell
        self.trusts_offsets |= kind.trusts_offsets
        table = args[0] if kind.looks_up and args else None
        if isinstance(table, torch.Tensor) and table.dim() and id(table) not in self._computed:
            self.tables.update(dict.fromkeys(table.shape))

    def _content(self, argument: Any) -> Any:
        """What holds the numbers of an argument."""
        return argument


class Planned(Watched):
    """Of calls on tensors without memory, that stand for those of a model."""

    def __init__(self) -> None:
        super().__init__()
        self._contents: dict[int, torch.Tensor] = {}

    def stands_for(self, made: torch.Tensor, computed: bool, content: torch.Tensor | None) -> None:
        """That inputs have a part in a tensor, or what it holds. It has to be kept as long as this is."""
        if computed:
            self._computed.add(id(made))
        elif content is not None:
            self._contents[id(made)] = content

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._parts_of_another and (kind := _kind_of(func)).is_telling:
            self._read(kind, args, kwargs)  # a run would only have come to the parts
        return super().operator(func, args, kwargs)

    def _content(self, argument: Any) -> Any:
        return self._contents.get(id(argument), argument)


WatchedAt = Callable[[Mapping[str, int]], Watched | None]
"""What a run at free sizes by name would show; None where that cannot be said."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known of an operator by its name; asked once for each, since a model calls it a thousand times."""

    compares: bool
    is_sized: bool
    makes: bool
    is_cell: bool
    trusts_offsets: bool
    looks_up: bool
    is_composite: bool
    counts: bool
    casts: bool
    has_formula: bool
    """Whether torch knows how many multiplications it makes."""

    @property
    def is_telling(self) -> bool:
        """Whether what it is given says something about the model."""
        return self.compares or self.is_sized or self.makes or self.is_cell or self.trusts_offsets or self.looks_up


@functools.cache
def _kind_of(func: OpOverload) -> _Kind:
    name = func.overloadpacket.__name__.rstrip("_")
    return _Kind(
        compares=name in _COMPARES,
        is_sized=name in _SIZED,
        makes=bool(_MAKES.search(name)),
        is_cell=bool(_CELLS.match(name)),
        # nobody knows what an operator of others does
        trusts_offsets=func.namespace != "aten" or bool(_TRUSTS_OFFSETS.search(name)),
        looks_up=name in _TABLES,
        is_composite=is_composite(func),
        counts=func.overloadpacket is COUNTS,
        casts=name in ("_to_copy", "to"),
        has_formula=func.overloadpacket in flop_registry,
    )


class _Lists(TorchFunctionMode):
    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self._watched = watched

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.tolist:
            self._watched.reads_integers |= not args[0].is_floating_point()
        return func(*args, **(kwargs or {}))


def nodes_of(graph: onnx.GraphProto) -> int:
    """Of a file, those of a loop many times."""
    total = len(graph.node)
    for node in graph.node:
        rounds = _ROUNDS if node.op_type in ("Loop", "Scan") else 1
        total += rounds * sum(nodes_of(inner) for inner in subgraphs_of(node))
    return total


def _flops(func: Any, kind: _Kind, args: Any, kwargs: Any, result: Any, given: Sequence[torch.Tensor]) -> float:
    if kind.has_formula:
        if not kwargs and len(given) == len(args):
            return _flops_of_shapes(func, *[tensor.shape for tensor in given], result=result.shape)
        return float(flop_registry[func.overloadpacket](*args, **kwargs, out_val=result))
    if len(given) < _WEIGHTS_OF_A_LAYER:
        return 0.0
    weights = [tensor.numel() for tensor in given if isinstance(tensor, nn.Parameter) and tensor.dim() == 2]
    if len(weights) < _WEIGHTS_OF_A_LAYER:
        return 0.0
    rows = max((tensor.numel() / max(tensor.shape[-1], 1) for tensor in _tensors(result) if tensor.dim()), default=0)
    return 2.0 * rows * sum(weights)


@functools.lru_cache(maxsize=1_000)
def _flops_of_shapes(func: OpOverload, *shapes: torch.Size, result: torch.Size) -> float:
    """Layers are alike, and torch's formulas first go through trees of arguments."""
    made = [torch.empty(shape, device="meta") for shape in (*shapes, result)]
    return float(flop_registry[func.overloadpacket](*made[:-1], out_val=made[-1]))


def _tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    if isinstance(value, tuple | list):
        for each in value:
            if isinstance(each, torch.Tensor):
                found.append(each)
            elif isinstance(each, tuple | list):
                found += _tensors(each)
    return found


def _numbers(args: Iterable[object]) -> Iterator[float]:
    for arg in args:
        if isinstance(arg, int | float) and not isinstance(arg, bool):
            yield arg
        elif isinstance(arg, torch.Tensor) and 0 < arg.numel() <= FEW_NUMBERS and not arg.is_complex():
            yield from (number for number in arg.detach().reshape(-1).tolist() if not isinstance(number, bool))
