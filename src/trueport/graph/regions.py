"""The captured program: a graph of regions with lexical scope.

A region is a straight list of nodes. A node may hold regions of its own (`If`: two arms; `Loop`: a body), and a node
may read any value of an enclosing region, as ONNX subgraphs may. Sizes and Python numbers are sympy expressions over
symbols; a symbol is bound by an axis of an input, by an axis of the node output where it first appears (a data-
dependent size), or as a number that a node or an input yields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import sympy
import torch

from trueport.decompositions.arguments import DTYPES, flat, mapped
from trueport.diagnostics.base import Diagnostic
from trueport.load.job import FreeSize, Leaf
from trueport.load.structures import Structure
from trueport.rewrite.functions import Tails
from trueport.source import Place, Where
from trueport.torch_internals import OpOverload

Size: TypeAlias = int | sympy.Expr


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A tensor that flows through the graph. Identity is the object itself."""

    dtype: torch.dtype
    shape: tuple[Size, ...]
    name: str = ""

    @property
    def has_plain_sizes(self) -> bool:
        """Whether all its sizes are known now."""
        return not any(map(symbols_of, self.shape))

    @property
    def free_symbols(self) -> Set[sympy.Basic]:
        """The symbols that its sizes speak of; sympy's word, as of an expression."""
        return symbols_in(self.shape)

    @property
    def binds(self) -> Set[sympy.Basic]:
        """The symbols that it can give their meaning: each as one of its sizes."""
        return {size for size in self.shape if isinstance(size, sympy.Symbol)}

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-4:]}:{str(self.dtype).removeprefix('torch.')}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Number:
    """A Python number that is not the same in every run: an expression over sizes and items."""

    expr: sympy.Basic
    kind: type[int] | type[float] | type[bool]

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.kind]

    @property
    def free_symbols(self) -> Set[sympy.Basic]:
        return symbols_of(self.expr)

    @property
    def binds(self) -> Set[sympy.Basic]:
        return self.free_symbols


def values_in(argument: Any) -> list[Value]:
    """The values that an argument of a node holds."""
    return [each for each in flat(argument) if isinstance(each, Value)]


def numbers_in(argument: Any) -> list[Number]:
    return [each for each in flat(argument) if isinstance(each, Number)]


def filled_in(argument: Any, value: Callable[[Value], Any], number: Callable[[Number], Any]) -> Any:
    """An argument of a node, with what stands for each value and for each number in it."""

    def one(each: Any) -> Any:
        if isinstance(each, Value):
            return value(each)
        return number(each) if isinstance(each, Number) else each

    return mapped(argument, one)


def symbols_of(argument: Any) -> Set[sympy.Basic]:
    """The symbols that a number, a size, or the sizes of a value speak of; none of anything else."""
    return getattr(argument, "free_symbols", frozenset())


def symbols_in(argument: Any) -> Set[sympy.Basic]:
    """The same of all that lists and tuples hold."""
    return {symbol for each in flat(argument) for symbol in symbols_of(each)}


@dataclass(frozen=True, eq=False, slots=True)
class OpenItems:
    """One leaf of every item of a list that forward returns and whose length is open.

    An item is a row of `rows`; or, given `lengths`, a piece of them along an axis, so long. Given a `table` of the
    sizes of each item, `rows` holds the elements of one after the other, each with the axis `axis` first; `sizes` are
    those that are the same in every item, None where they differ.
    Python numbers are one tensor of one axis and not a sequence of tensors: `number` is what they are.
    """

    rows: Value
    axis: int = 0
    lengths: Value | None = None
    table: Value | None = None
    sizes: tuple[Size | None, ...] = ()
    number: type | None = None
    place: Place | None = None
    """Where the length of the list was left open."""

    @property
    def reads(self) -> tuple[Value | Number, ...]:
        """What it is made of."""
        values = [value for value in (self.rows, self.lengths, self.table) if value is not None]
        return (*values, *(Number(size, int) for size in self.sizes if isinstance(size, sympy.Expr)))


class Control(Enum):
    """The two operators that hold regions.

    IF: args = (predicate,), regions = (then, else), one output per region output.
    LOOP: args = (trip count or None, first condition or None, *carried); regions = (body,). The body's params are
    (iteration Number, *carried) and its outputs (condition, *carried next, *scanned); the node's outputs are the last
    carried values, then the scanned ones stacked along a new first axis.
    """

    IF = "If"
    LOOP = "Loop"


class Returns(Enum):
    """How the flat outputs of a node make up what the operator returns."""

    NOTHING = "nothing"
    ONE = "one"
    TUPLE = "tuple"
    LIST = "list"  # a Tensor[] result, e.g. of split


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One ATen call, or one control-flow operator. `args` and `kwargs` nest Values, Numbers and Python constants."""

    op: OpOverload | Control
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: tuple[Value | Number | None, ...]
    returns: Returns
    place: Place
    regions: tuple[Region, ...] = ()

    @property
    def call(self) -> OpOverload | None:
        """The ATen operator that it calls; None of a branch or a loop."""
        return None if isinstance(self.op, Control) else self.op

    @property
    def name(self) -> str:
        return self.op.value if isinstance(self.op, Control) else str(self.op)

    @property
    def given(self) -> tuple[Any, ...]:
        """All that it is given, by position and by name."""
        return (*self.args, *self.kwargs.values())


@dataclass(eq=False, slots=True)
class Region:
    """A scope. Grows while it is being traced, and is left alone afterwards."""

    params: list[Value | Number] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Every node of this region and of the regions inside it."""
        for node in self.nodes:
            yield node
            for inner in node.regions:
                yield from inner.walk()


class WeightKind(Enum):
    PARAMETER = "parameter"
    BUFFER = "buffer"
    ATTRIBUTE = "attribute"  # a plain tensor attribute of a module
    CONSTANT = "constant"  # a tensor from anywhere else: a closure, a global, torch.tensor(...)


@dataclass(frozen=True, eq=False, slots=True)
class Weight:
    """A tensor that the model owns. `tensor` is the user's own storage, never a copy."""

    name: str
    kind: WeightKind
    value: Value
    tensor: torch.Tensor


@dataclass(frozen=True, eq=False, slots=True)
class GraphInput:
    """A leaf of the arguments (or a lifted state buffer, where `leaf` is None) and the value that it feeds."""

    name: str
    value: Value | Number
    leaf: Leaf | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """A bool or an integer among the attributes of an object that forward returned (`cache.is_initialized`,
    `cache.max_cache_len`): part of the object, and the same in every run, which the check sees to."""

    value: bool | int


@dataclass(frozen=True, eq=False, slots=True)
class GraphOutput:
    """A leaf of what forward returned: a Value, a Number, OpenItems, a Switch, or a constant of Python."""

    name: str
    value: Any

    @property
    def reads(self) -> tuple[Any, ...]:
        """What of the graph it is made of."""
        return self.value.reads if isinstance(self.value, OpenItems) else (self.constant,)

    @property
    def constant(self) -> Any:
        """What it is where it is no output of the ONNX model: a switch is a plain bool or integer."""
        return self.value.value if isinstance(self.value, Switch) else self.value


def is_carried(value: Any) -> bool:
    """Whether an output of forward is an output of the ONNX model (None, strings and switches are not)."""
    return isinstance(value, (Value, Number, OpenItems, bool, int, float))


@dataclass(frozen=True, slots=True)
class SizeAssumption:
    """Something that the trace had to assume about free sizes to go on.

    `user_code` tells a decision of the user's (or a library's) Python from one inside torch's own kernels.
    """

    expr: sympy.Basic
    place: Place
    user_code: bool
    symbols: tuple[str, ...]
    """Names of the free sizes that it speaks of."""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a submodule, and the tensors that went in and came out, by the names that its forward has for them.

    Names are all that this is for: a tensor inside of an object, or one that was written in place, may be missing.
    """

    path: str
    kind: type[torch.nn.Module]
    place: Place
    """Who called it."""
    given: dict[Value, str] = field(default_factory=dict)
    returned: dict[Value, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Restart:
    """Why a trace was not the last one."""

    number: int
    """Of the trace that ended, from 1 on."""
    why: str
    where: Where | None
    """The user's line that asked for another, where there is one."""

    def __str__(self) -> str:
        return f"trace {self.number} ends{f' at {self.where}' if self.where else ''}: {self.why}"


@dataclass(frozen=True, eq=False)
class Graph:
    """The whole captured program."""

    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    root: Region
    weights: tuple[Weight, ...]
    returns: Structure
    """Rebuilds what forward returned from one value per output."""
    size_symbols: Mapping[sympy.Symbol, FreeSize]
    """The symbol of each free size."""
    number_symbols: Mapping[sympy.Symbol, str]
    """Symbols that stand for Python-number inputs, with the input's name."""
    examples: Mapping[sympy.Symbol, int | float]
    """The value of each input symbol in the example."""
    assumptions: tuple[SizeAssumption, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    state: Mapping[str, Value] = field(default_factory=dict)
    """Last values of the buffers that forward wrote, by name."""
    lifted: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """The present values of the state that became inputs, by input name."""
    rewritten: tuple[CodeType, ...] = ()
    """The user's functions whose decisions are held by regions."""
    functions: tuple[FunctionType, ...] = ()
    """The function objects that ran them, or made functions that did."""
    tails: Mapping[CodeType, Tails] = field(default_factory=dict)
    """Of those, the lines of the branches that hold the rest of their block."""
    one_sided: Mapping[CodeType, tuple[Any, ...]] = field(default_factory=dict)
    """Functions of installed libraries that branched on a free size, and of which only the example's side was captured,
    with objects near which they are found."""
    careful: bool = False
    """Whether all that is written in place had to be seen."""
    restarts: tuple[Restart, ...] = ()
    """Why the traces before this one were begun anew, in order."""
    calls: tuple[ModuleCall, ...] = ()
    """The calls of submodules, where those were to be noted; the places of nodes name them by number."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """Of the outputs that the ONNX model has."""
        return tuple(output.name for output in self.outputs if is_carried(output.value))
