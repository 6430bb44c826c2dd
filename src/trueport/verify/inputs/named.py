"""The numbers that the model itself names: what values and sizes are compared with, in its code and in the file.

A fault likes to hide at a limit. `x > 0.5` and `x >= 0.5` differ at 0.5 and nowhere else, and a table that was cut at
64 rows shows it at the 65th. Nobody draws these numbers by chance, so they are read from the model and the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from trueport.verify.runtime.origin import graphs_of, model_at, written_out

_DECIDES = frozenset(
    "Greater GreaterOrEqual Less LessOrEqual Equal Clip Min Max Mod Where Range OneHot TopK Slice Div Mul Trilu".split()
)
"""Operators of ONNX to which a constant is a limit; their constants come first."""
_FEW = 8
_MOST_VALUES = 24
_MOST_SIZES = 16
_LARGEST_SIZE = 5_000
_LARGEST_FILE = 16 << 20
_ROUNDS = (20, 37)
"""An integer may say how many rounds a loop makes, and a fault may show after the first dozen only."""


@dataclass(frozen=True, slots=True)
class Named:
    """Numbers to fill inputs with, and sizes to give them; those that were met first come first."""

    values: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    """How many rows each table has that something looks up."""
    lost: tuple[float, ...] = ()
    """Those of the values that the code names and the captured graph does not: they come first."""
    sized_by_values: bool = False
    """Whether an integer may be the size of something."""
    read_by_python: bool = False
    """Whether integers of tensors become integers of Python, which have no end."""
    has_cells: bool = False
    """Whether recurrent cells are among the operators: the runtime's gates are approximations, which a large state
    brings out."""
    makes_wide_integers: bool = False
    """Whether floats become integers of 64 bits: a file may have gone by those of 32."""
    others: tuple[int, ...] = ()
    """The free sizes that an input does not have itself: it may hold lengths along those."""
    trusts_offsets: bool = True
    """Whether an operator may read beyond memory where the offsets that it is given are out of order."""

    @property
    def steps(self) -> tuple[float, ...]:
        """Each number, and one step to both sides."""
        return tuple(dict.fromkeys(near for value in self.values for near in (value, value + 1, value - 1)))

    @property
    def indices(self) -> tuple[int, ...]:
        """The last row of each table, counted from either end; the whole numbers, and one step to both sides."""
        whole = [int(value) for value in self.steps if value == int(value)]
        first = [int(value) for value in self.lost if value == int(value)]
        return tuple(dict.fromkeys([*first, *(rows - 1 for rows in self.rows), -1, *_ROUNDS, *whole]))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Sizes, and one step to both sides; as many as a table has rows; and what is halved to such a size."""
        near = [by for size in self.sizes for by in (size, size + 1, size - 1)]
        twice = [by for size in self.sizes for by in (2 * size, 2 * size - 1)]
        return tuple(dict.fromkeys(size for size in (*near, *self.rows, *twice) if 0 < size <= _LARGEST_SIZE))


NOTHING = Named()


def named(code: Iterable[float], tables: Iterable[int], file: onnx.ModelProto | None) -> Named:
    """Of numbers met in the code, tables that it looks up, and a file."""
    limits, others = ([], []) if file is None else _numbers_of(file)
    every = [number for number in (*code, *limits) if _is_telling(number)]
    values = list(dict.fromkeys(every))
    whole = [int(number) for number in (*every, *others) if number == int(number) and 2 < number <= _LARGEST_SIZE]
    rows = dict.fromkeys(size for size in tables if 2 < size <= _LARGEST_SIZE)
    return Named(tuple(values[:_MOST_VALUES]), tuple(dict.fromkeys(whole))[:_MOST_SIZES], tuple(rows)[:_MOST_SIZES])


def _is_telling(number: float) -> bool:
    """Zero and one are drawn for every model; an end of a dtype is none that an input can go beyond."""
    return math.isfinite(number) and abs(number) < 1e9 and number not in (0, 1, -1)


def small_file(path: Path) -> onnx.ModelProto | None:
    """A file that is read as a whole, with its functions written out; None for one with the weights in it, which takes
    as much memory as they do."""
    model = model_at(path) if path.is_file() and path.stat().st_size <= _LARGEST_FILE else None
    return None if model is None else written_out(model)


def _numbers_of(model: onnx.ModelProto) -> tuple[list[float], list[float]]:
    """The small constants of a file: those that something is compared with or limited by, and the others."""
    limits: dict[float, None] = {}
    others: dict[float, None] = {}
    for graph in graphs_of(model):
        constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                constants.update((node.output[0], each.t) for each in node.attribute if each.name == "value")
        for node in graph.node:
            found = limits if node.op_type in _DECIDES else others
            for name in node.input:
                if name in constants:
                    found.update(dict.fromkeys(_read(constants[name])))
    return list(limits), [number for number in others if number not in limits]


def _read(tensor: onnx.TensorProto) -> list[float]:
    if math.prod(tensor.dims) > _FEW or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return []
    try:
        array = numpy_helper.to_array(tensor)
    except (TypeError, ValueError):  # a foreign file may say anything
        return []
    if array.dtype.kind not in "iuf":
        return []
    return [float(number) for number in np.asarray(array).reshape(-1) if np.isfinite(number)]
