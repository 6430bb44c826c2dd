"""The runs of a call: which sizes, and which operands.

Fixed in number and drawn by the signature of the call alone, so that every machine runs the same. Operands of eager's
own refusal are no test; those that would end eager's process are never drawn (`_spare_eager`).
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from trueport.graph.regions import Value
from trueport.verify.calls.call import Call, CallOperand
from trueport.verify.calls.edges import Level, edge_values, every_value, within
from trueport.verify.calls.kinds import (
    INDICES,
    MASKED,
    Exactness,
    OperatorKind,
    base_name,
    exactness_of,
    is_spatial,
    named_arguments,
)
from trueport.verify.calls.ranges import Range, whole

Sizes = Mapping[sympy.Symbol, int | float]

_PAIRS = 4097
_PAIRS_OF_LOOPS = 257
_MOST = 20_000
_MOST_IN_FULL = 70_000
_OWN_ELEMENTS = 1 << 20
"""A call that depends on its sizes is run with them up to so many elements."""
_LARGEST = 1 << 17
"""Elements of one tensor, where the call does not depend on its sizes."""
_PRIMES = (3, 5, 7, 11, 13, 2)


@dataclass(frozen=True)
class Trial:
    """One run: the size behind each symbol, and a tensor for each operand."""

    sizes: Sizes
    tensors: tuple[torch.Tensor, ...]
    level: Level | None
    """None where each element has its own: pointwise operators."""
    words: str


class TooLarge(Exception):
    """The call depends on sizes with which it is no small piece."""


def trials(call: Call, full: bool = False, slow: bool = False) -> Iterator[Trial]:
    """`full`: all pairs of 8-bit integers. `slow`: a loop of the file, whose rounds may grow with its operands."""
    draw = _Draw(call, full, slow)
    match call.kind:
        case OperatorKind.POINTWISE:
            yield from draw.pointwise()
        case OperatorKind.ALONG:
            yield from draw.along()
        case _:
            yield from draw.whole_tensors()


def shape_of(value: Value, sizes: Sizes) -> tuple[int, ...]:
    return tuple(
        size
        if isinstance(size, int)
        else int(sizes[size])
        if size in sizes
        else int(size.xreplace({symbol: sympy.sympify(each) for symbol, each in sizes.items()}).doit())
        for size in value.shape
    )


class _Draw:
    def __init__(self, call: Call, full: bool, slow: bool) -> None:
        self.call, self.full, self.slow = call, full, slow
        self.given = named_arguments(call.node)
        self.name = base_name(call.op)
        self.random = torch.Generator().manual_seed(zlib.crc32(call.signature.encode()))
        self._weights: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}

    # Pointwise

    def pointwise(self) -> Iterator[Trial]:
        drawn = [at for at, operand in enumerate(self.call.operands) if not operand.weight]
        scalars = [at for at in drawn if not self.call.operands[at].value.shape]
        levels = (Level.ORDINARY,) if self.slow else (Level.ORDINARY, Level.EXTREME)
        finite = {at: self._values(at, *levels) for at in drawn}
        unusual = {at: self._values(at, Level.NONFINITE, few=True) for at in drawn}
        spread = self._spread()
        if spread is None or len(scalars) == len(drawn):  # nothing but single elements
            sizes = self._sizes({}, 2)
            yield from self._single(sizes, drawn, finite, 8, "single values")
            yield from self._single(sizes, drawn, unusual, 3, "NaN and infinities")
            return
        wanted = math.prod(len(finite[at]) for at in drawn if at not in scalars)
        pairs = max(_PAIRS, min(wanted, _MOST_IN_FULL if self.full else _MOST))
        if self.slow:
            pairs = _PAIRS_OF_LOOPS
        large = self._sizes({spread: pairs}, 2)
        for picked in self._picks(scalars, finite, 6):
            yield self._elements(large, drawn, finite, picked, "edge values")
        if any(len(unusual[at]) > 4 for at in drawn):
            for picked in self._picks(scalars, unusual, 3):
                yield self._elements(large, drawn, unusual, picked, "NaN and infinities")
        ones = self._sizes({}, 1)
        for picked in itertools.islice(self._picks(scalars, finite, 2), 2):
            yield self._elements(ones, drawn, finite, picked, "one element")
        if spread in self.call.free:
            yield self._elements(
                self._sizes({spread: 65}, 2), drawn, finite, self._first(scalars, finite), "65 elements"
            )
            if self.call.free[spread] == 0:
                yield self._elements(self._sizes({spread: 0}, 2), drawn, finite, self._first(scalars, finite), "empty")

    def _values(self, at: int, *levels: Level, few: bool = False) -> torch.Tensor:
        """Edge values of an operand, within what the model can give it."""
        operand = self.call.operands[at]
        dtype, known = operand.value.dtype, self._limited(operand)
        if self.full and dtype in (torch.int8, torch.uint8):
            return within(every_value(dtype), known)
        found = [within(edge_values(dtype, level), known) for level in levels]
        if few:
            found.append(within(edge_values(dtype, Level.ORDINARY), known)[:: 7 if _has_parts(dtype) else 11][:6])
            found.append(within(_tensor([0, 1, -1, 2.5], dtype), known))
        values = torch.cat(found)
        if not len(values):
            values = _tensor([_clamped(0, known.low, known.high)], dtype)
        return self._spare_eager(at, values)

    def _limited(self, operand: CallOperand) -> Range:
        """A float beyond the integers that it is cast to has no defined result, in torch neither."""
        known = operand.known
        if self.name not in ("_to_copy", "to", "type_as") or not operand.value.dtype.is_floating_point:
            return known
        result = self._result().dtype
        if result.is_floating_point or result is torch.bool:
            return known
        target = whole(result)
        return Range(max(known.low, target.low), min(known.high, target.high, 2**62))

    def _spare_eager(self, at: int, values: torch.Tensor) -> torch.Tensor:
        """Without what eager cannot survive or does not define: the lowest integer over -1 ends its process where it
        divides by the machine's instruction, no integer is divided by zero, none shifted by what it does not have."""
        dtype = values.dtype
        if "polynomial" in self.name and at == 1:  # eager counts up to the order
            return torch.arange(6).to(dtype)
        if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
            return values
        divides = self.name in ("div", "divide", "floor_divide", "remainder", "fmod", "__rdiv__")
        numbers = values.tolist()
        if self.name in ("div", "divide", "lcm"):
            numbers = [number for number in numbers if number != torch.iinfo(dtype).min]
        if divides and at == len(self.call.operands) - 1 and len(self.call.operands) > 1:
            numbers = [number for number in numbers if number != 0]
        if "shift" in self.name and at == 1:
            numbers = [number for number in numbers if 0 <= number < torch.iinfo(dtype).bits]
        if self.name in ("pow", "float_power", "ldexp") and at == 1:
            numbers = [number for number in numbers if 0 <= number <= 64]
        return torch.tensor(numbers or [1], dtype=dtype)

    def _spread(self) -> sympy.Symbol | None:
        """The symbol to make large: the one that is on most operands, and the last there."""
        best, score = None, (-1, False, -1)
        for operand in self.call.operands:
            if operand.constant is not None:
                continue
            for axis, size in enumerate(operand.value.shape):
                if isinstance(size, sympy.Symbol):
                    on = sum(size in other.value.shape for other in self.call.operands)
                    fitness = (on, size in self.call.free, axis - len(operand.value.shape))
                    if fitness > score:
                        best, score = size, fitness
        return best

    def _sizes(self, wanted: Mapping[sympy.Symbol, int], rest: int) -> dict[sympy.Symbol, Any]:
        """`wanted` elements in all along one symbol, `rest` along the others."""
        found: dict[sympy.Symbol, Any] = {}
        for symbol in (*self.call.fixed, *self.call.free):
            if symbol.is_integer and symbol.is_nonnegative:
                found[symbol] = max(rest, self.call.free.get(symbol, 0))
            else:
                found[symbol] = 3 if symbol.is_integer else 2.5
        for symbol, count in wanted.items():
            least = max(1 if count else 0, self.call.free.get(symbol, 0))
            found[symbol] = max(least, count)
            while (
                found[symbol] > max(least, 3) and self._elements_of({**found, symbol: found[symbol] // 2 + 1}) >= count
            ):
                found[symbol] = found[symbol] // 2 + 1
            if self._elements_of(found) > 4 * count:  # it is on several axes of the same tensor
                found[symbol] = max(least, found[symbol] // 2)
            found[symbol] |= 1 if count else 0
        return found

    def _elements_of(self, sizes: Sizes) -> int:
        """Of the largest tensor that has a part in the call."""
        shapes = [shape_of(operand.value, sizes) for operand in self.call.operands]
        most = max((math.prod(shape) for shape in shapes), default=1)
        if self.call.kind is not OperatorKind.POINTWISE or not shapes:
            return most
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        return max(most, math.prod(int(max(axis)) for axis in zip(*padded, strict=True)))

    def _picks(
        self, scalars: Sequence[int], values: Mapping[int, torch.Tensor], most: int
    ) -> Iterator[Mapping[int, torch.Tensor]]:
        """One value for each operand without axes, a few times."""
        if not scalars:
            yield {}
            return
        count = max(len(values[at]) for at in scalars)
        for turn in range(min(most, count)):
            yield {
                at: values[at][(turn * len(values[at]) // min(most, count) + 7 * at) % len(values[at])]
                for at in scalars
            }

    def _first(self, scalars: Sequence[int], values: Mapping[int, torch.Tensor]) -> Mapping[int, torch.Tensor]:
        return next(self._picks(scalars, values, 1))

    def _single(
        self, sizes: Sizes, drawn: Sequence[int], values: Mapping[int, torch.Tensor], most: int, words: str
    ) -> Iterator[Trial]:
        for picked in self._picks(drawn, values, most):
            yield self._elements(sizes, drawn, values, picked, words)

    def _elements(
        self,
        sizes: Sizes,
        drawn: Sequence[int],
        values: Mapping[int, torch.Tensor],
        picked: Mapping[int, torch.Tensor],
        words: str,
    ) -> Trial:
        """All combinations where the operands have one shape, and else as they come."""
        spread = [at for at in drawn if at not in picked]
        shapes = {at: shape_of(self.call.operands[at].value, sizes) for at in drawn}
        together = len({shapes[at] for at in spread}) == 1
        stride = 1
        tensors: list[torch.Tensor] = []
        for at, operand in enumerate(self.call.operands):
            if at in picked:
                tensors.append(picked[at].expand(shapes[at]).clone())
                continue
            if at not in spread:
                tensors.append(self._weight(at, operand, sizes))
                continue
            count, mine = math.prod(shapes[at]), values[at]
            if together and stride < max(count, 2):
                index = torch.arange(count) // stride % len(mine)
                stride *= len(mine)
            else:
                index = torch.randint(len(mine), (count,), generator=self.random)
            if count == 1 and len(mine) > 1:
                index = (index + len(mine) // 3) % len(mine)
            tensors.append(mine[index].reshape(shapes[at]))
        return Trial(sizes, tuple(tensors), None, words)

    def _weight(self, at: int, operand: CallOperand, sizes: Sizes) -> torch.Tensor:
        """The same in every trial of these sizes: it becomes a part of the piece."""
        if operand.constant is not None:
            return operand.constant
        shape = shape_of(operand.value, sizes)
        key = (at, shape)
        if key not in self._weights:
            if self.call.kind is OperatorKind.POINTWISE:
                mine = self._values(at, Level.ORDINARY)
                picked = torch.randint(len(mine), (math.prod(shape),), generator=self.random)
                self._weights[key] = mine[picked].reshape(shape)
            else:
                self._weights[key] = self._moderate(at, operand, shape, "normal", sizes)
        return self._weights[key]

    # Along an axis

    def along(self) -> Iterator[Trial]:
        first = self.call.operands[0]
        rank = len(first.value.shape)
        axes = self._axes(rank)
        symbols = [first.value.shape[axis] for axis in axes if isinstance(first.value.shape[axis], sympy.Symbol)]
        is_free = any(symbol in self.call.free for symbol in symbols)
        lengths = (65, 4097, 1, 2, 0) if is_free else (65, 4097, 2)
        rows = {level: self._rows(first, level) for level in Level}
        for at, length in enumerate(lengths if symbols else (1,)):
            others = [size for size in first.value.shape if isinstance(size, sympy.Symbol) and size not in symbols]
            sizes = self._sizes({}, 2)
            for turn, symbol in enumerate(symbols):
                sizes[symbol] = max(length if turn == 0 else min(length, 2), self.call.free.get(symbol, 0))
            for level in Level if at == 0 or length == 4097 else (Level.ORDINARY,):
                if not rows[level]:
                    continue
                if self._elements_of(sizes) > _LARGEST:
                    continue
                if others:
                    fits = max(1, _LARGEST // max(1, self._elements_of({**sizes, others[0]: 1})))
                    some = rows[level][:fits]
                    sizes = {**sizes, others[0]: max(len(some), self.call.free.get(others[0], 0))}
                    yield self._lines(sizes, axes, some, level, length)
                else:
                    most = len(rows[level]) if self.full else (5, 2, 2)[level] if at == 0 else 1
                    for row in rows[level][:most]:
                        yield self._lines(sizes, axes, [row], level, length)

    def _axes(self, rank: int) -> list[int]:
        dim = self.given.get("dim", self.given.get("dims"))
        if not rank:
            return []
        if isinstance(dim, int):
            return [dim % rank]
        if isinstance(dim, tuple | list) and dim:
            return [axis % rank for axis in dim]
        return list(range(rank)) if self.name not in ("cumsum", "sort", "topk") else [rank - 1]

    def _rows(self, operand: CallOperand, level: Level) -> list[str]:
        if level is Level.ORDINARY:
            masked = ["lowest", "half lowest", "-1e9"] if self.name in MASKED else []
            infinite = ["half -inf", "-inf"] if operand.known.infinite and self.name in MASKED else []
            back = ["there and back"] if self.name == "cumprod" and _has_parts(operand.value.dtype) else []
            return [*back, *_FAMILIES, *masked, *infinite]
        if not _has_parts(operand.value.dtype) or (level is Level.EXTREME and "prod" in self.name):
            return []  # whether a long product overflows on its way depends on the order of its factors
        if level is Level.EXTREME:  # the mean of 1e16 and -1e16 is what is left of rounding
            return ["huge", "tiny"] if self.name.startswith(("var", "std")) else ["huge", "tiny", "edges"]
        return ["one NaN", "one inf", "one -inf", "NaN"]

    def _lines(self, sizes: Sizes, axes: Sequence[int], rows: Sequence[str], level: Level, length: int) -> Trial:
        tensors: list[torch.Tensor] = []
        for at, operand in enumerate(self.call.operands):
            if operand.weight:
                tensors.append(self._weight(at, operand, sizes))
                continue
            shape = shape_of(operand.value, sizes)
            mine = [axis for axis in axes if axis < len(shape)] if at == 0 else []
            rest = [axis for axis in range(len(shape)) if axis not in mine]
            count = math.prod(shape[axis] for axis in mine)
            lines = [self._line(operand, rows[turn % len(rows)], count) for turn in range(min(len(rows), 64))]
            many = math.prod(shape[axis] for axis in rest)
            # The first axis that is not reduced has one family after the other.
            per = many // shape[rest[0]] if rest and shape[rest[0]] else 1
            index = (torch.arange(many) // max(1, per)) % len(lines)
            tensor = torch.stack(lines)[index] if many else torch.empty((0, count), dtype=operand.value.dtype)
            order = [*rest, *mine]
            tensor = tensor.reshape([shape[axis] for axis in order])
            back = [order.index(axis) for axis in range(len(shape))]
            tensors.append(tensor.permute(back).contiguous() if shape else tensor.reshape(()))
        words = f"{', '.join(rows) if len(rows) < 4 else 'edge rows'}, {length} along the axis"
        return Trial(sizes, tuple(tensors), level, words)

    def _line(self, operand: CallOperand, family: str, count: int) -> torch.Tensor:
        dtype, known = operand.value.dtype, operand.known
        if dtype is torch.bool:
            return _bool_line(family, count)
        if dtype.is_complex:
            parts = self._complex_line(dtype, family, count)
            return torch.complex(*parts).to(dtype)
        if not dtype.is_floating_point:
            return self._integer_line(operand, family, count)
        wide = self._float_line(dtype, family, count)
        if family in ("lowest", "half lowest", "-1e9", "half -inf", "-inf"):
            return wide.to(dtype)
        most = torch.finfo(dtype).max
        low, high = max(known.low, -most), min(known.high, most)
        finite = wide.isfinite()
        return torch.where(finite, wide.clamp(low, high), wide).to(dtype)

    def _complex_line(self, dtype: torch.dtype, family: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Both parts of one family; what is drawn by a rule is turned, so that one is not the other."""
        part = dtype.to_real()
        real, imaginary = (self._float_line(part, family, count) for _ in range(2))
        return real, imaginary if family == "equal" else imaginary.roll(1)

    def _float_line(self, dtype: torch.dtype, family: str, count: int) -> torch.Tensor:
        facts = torch.finfo(dtype)
        at = torch.arange(count, dtype=torch.float64)
        normal = torch.randn(count, generator=self.random, dtype=torch.float64)
        match family:
            case "normal":
                return normal
            case "ties":
                return (at * 7 % 5).floor() - 2
            case "sorted":
                return at / 8 - count / 16
            case "falling":
                return count / 16 - at / 8
            case "equal":
                return torch.full((count,), 1.5, dtype=torch.float64)
            case "zeros":
                return torch.where(at % 2 == 0, 0.0, -0.0).double()
            case "negative":
                return -2 - normal.abs() * 10
            case "halves":
                return (at * 3 % 11) - 4.5
            case "one hot":
                return torch.where(at == count - 1, 1.0, 0.0).double()
            case "large":
                return normal * 100
            case "there and back":  # in whatever a running product is carried
                return torch.where(at < count // 2, 1e3, 1e-3).double()
            case "lowest":
                return torch.full((count,), facts.min, dtype=torch.float64)
            case "half lowest":
                return torch.where(at % 2 == 0, normal, torch.full_like(normal, facts.min))
            case "-1e9":
                return torch.full((count,), max(-1e9, facts.min), dtype=torch.float64)
            case "half -inf":
                return torch.where(at % 2 == 0, normal, -math.inf)
            case "-inf":
                return torch.full((count,), -math.inf, dtype=torch.float64)
            case "huge":  # what multiplies two of them is to stay finite
                return normal.clamp(-3, 3) * (facts.max / 8 if self._is_exact() else facts.max**0.5 / 1024)
            case "tiny":
                return normal * facts.smallest_normal
            case "edges":
                edges = torch.cat([edge_values(dtype, Level.ORDINARY), edge_values(dtype, Level.EXTREME)]).double()
                if not self._is_exact():
                    edges = edges[edges.abs() <= facts.max**0.5 / 1024]
                return edges[(at.long() * 7) % len(edges)]
            case "one NaN":
                return torch.where(at == count // 2, math.nan, normal)
            case "one inf":
                return torch.where(at == count // 2, math.inf, normal)
            case "one -inf":
                return torch.where(at == count // 2, -math.inf, normal)
            case _:
                return torch.full((count,), math.nan, dtype=torch.float64)

    def _is_exact(self) -> bool:
        return exactness_of(self.call.node, self._result()) is Exactness.EXACT

    def _result(self) -> Value:
        return next(out for out in self.call.node.outputs if isinstance(out, Value))

    def _integer_line(self, operand: CallOperand, family: str, count: int) -> torch.Tensor:
        dtype, known = operand.value.dtype, operand.known
        edges = within(edge_values(dtype, Level.ORDINARY), known)
        if not len(edges):
            edges = torch.tensor([int(_clamped(0, known.low, known.high))], dtype=dtype)
        at = torch.arange(count)
        match family:
            case "normal":
                return edges[torch.randint(len(edges), (count,), generator=self.random)]
            case "sorted" | "falling":
                ordered = edges[(at * len(edges) // max(count, 1)).clamp(max=len(edges) - 1)]
                return ordered if family == "sorted" else ordered.flip(0)
            case "equal":
                return edges[torch.full((count,), len(edges) - 1)]
            case "large":
                return edges[(at * 5) % len(edges)]
        low, high = max(known.low, -9), min(known.high, 9)
        if low > high:
            low = high = known.low
        ends: dict[str, list[float]] = {"negative": [low, -1], "zeros": [0, 0], "one hot": [0, 1]}
        first, last = (int(_clamped(end, known.low, known.high)) for end in ends.get(family, [low, high]))
        small = list(range(first, max(first, last) + 1))
        values = torch.tensor(small, dtype=dtype)
        return values[(at * 7) % len(values)]

    # Whole tensors

    def whole_tensors(self) -> Iterator[Trial]:
        has_float = any(_has_parts(o.value.dtype) and o.constant is None for o in self.call.operands)
        for number, sizes in enumerate(self._size_variants()):
            elements = sum(math.prod(shape_of(o.value, sizes)) for o in self.call.operands)
            if elements > (_LARGEST if number else _OWN_ELEMENTS):
                if number == 0:
                    raise TooLarge
                continue
            families = ["normal"] if number else list(_WHOLE)
            if self.call.kind is OperatorKind.MOVING and not number:
                families = ["distinct", "edges", "NaN"]
            if not has_float:
                families = [family for family in families if family not in ("huge", "tiny", "NaN")]
            if elements > 1 << 16:
                families = families[:2]
            for family in families:
                level = (
                    Level.NONFINITE
                    if family == "NaN"
                    else Level.EXTREME
                    if family in ("huge", "tiny")
                    else Level.ORDINARY
                )
                tensors = [
                    self._weight(at, operand, sizes)
                    if operand.weight
                    else self._moderate(at, operand, shape_of(operand.value, sizes), family, sizes)
                    for at, operand in enumerate(self.call.operands)
                ]
                yield Trial(sizes, tuple(tensors), level, family)

    def _size_variants(self) -> Iterator[dict[sympy.Symbol, Any]]:
        base = self._sizes({}, 2)
        primes = dict(zip((s for s in base if _is_size(s)), itertools.cycle(_PRIMES), strict=False))
        first = {**base, **{symbol: max(size, self.call.free.get(symbol, 0)) for symbol, size in primes.items()}}
        if is_spatial(self.call.node):  # as large as in the model, or larger than the window
            window = [size for each in self.call.operands[1:] for size in each.value.shape[2:] if isinstance(size, int)]
            enough = max([17, *(size + 3 for size in window)])
            for size in self.call.operands[0].value.shape[2:]:
                if isinstance(size, sympy.Symbol):
                    first[size] = min(self.call.own.get(size, enough), enough)
        yield first
        if self.call.kind is OperatorKind.PRODUCT and primes and not is_spatial(self.call.node):
            yield {**first, **{symbol: (65, 2, 3)[at % 3] for at, symbol in enumerate(primes)}}
            yield {**first, **{symbol: (2, 3, 4097)[at % 3] for at, symbol in enumerate(primes)}}
        for count in (1, 65, 0):
            free = {symbol: count for symbol, least in self.call.free.items() if _is_size(symbol) and least <= count}
            if free:
                yield {**first, **free}

    def _moderate(
        self, at: int, operand: CallOperand, shape: tuple[int, ...], family: str, sizes: Sizes
    ) -> torch.Tensor:
        dtype, count = operand.value.dtype, math.prod(shape)
        if dtype is torch.bool:
            made = {"zeros": torch.zeros(count).bool(), "equal": torch.ones(count).bool()}
            found = made.get(family, torch.rand(count, generator=self.random) < 0.6)
            return found.reshape(shape)
        if dtype.is_complex:
            part = replace(operand, value=Value(dtype.to_real(), operand.value.shape))
            real, imaginary = (self._moderate(at, part, shape, family, sizes) for _ in range(2))
            turned = imaginary.reshape(-1).roll(1).reshape(shape)
            return torch.complex(real.double(), turned.double()).to(dtype)
        if not dtype.is_floating_point:
            return self._whole_numbers(at, operand, shape, family, sizes)
        if family == "distinct":
            line = torch.arange(count, dtype=torch.float64) - count // 2
        elif family == "NaN":
            line = self._float_line(torch.float32, "normal", count)
            if count:
                line[:: max(1, count // 3)] = (
                    torch.tensor([math.nan, math.inf, -math.inf])
                    .double()
                    .repeat(count)[: len(line[:: max(1, count // 3)])]
                )
        else:
            line = self._float_line(dtype, family, count)
        if operand.argument in ("running_var", "var", "variance", "input_var", "scale"):
            line = line.abs() + 0.5
        if operand.argument in ("sorted_sequence", "boundaries"):
            line = line.sort().values
        if operand.argument == "grid":  # places in a picture, from -1 to 1
            line = line.clamp(-3, 3)
        known = operand.known
        most = torch.finfo(dtype).max
        inside = line.clamp(max(known.low, -most), min(known.high, most))
        return torch.where(line.isfinite(), inside, line).to(dtype).reshape(shape)

    def _whole_numbers(
        self, at: int, operand: CallOperand, shape: tuple[int, ...], family: str, sizes: Sizes
    ) -> torch.Tensor:
        """Indices stay within what they index: first and last, and each other once where that is possible."""
        dtype, count = operand.value.dtype, math.prod(shape)
        bound = self._bound(operand, sizes)
        where = torch.arange(count)
        if bound is not None:
            if bound <= 0:
                return torch.zeros(shape, dtype=dtype)
            index = {
                "zeros": torch.zeros(count, dtype=torch.int64),
                "equal": torch.full((count,), bound - 1),
                "sorted": where * bound // max(count, 1),
            }.get(family, (bound - 1 - where) % bound)
            if self.name in _DISTINCT_INDICES:
                index = _distinct_along(self._axis_of(shape), shape, bound, family)
            if self.name in _FROM_THE_END and family in ("negative", "halves"):
                index = index - bound
            return index.reshape(shape).to(dtype)
        if operand.argument == "offsets" and isinstance(of := self.given.get("indices"), Value):
            return (where * math.prod(shape_of(of, sizes)) // max(count, 1)).reshape(shape).to(dtype)
        content = operand.argument in ("self", "input", "tensors", "src", "value", "values", "other", "weight")
        if content and self.name not in ("one_hot", "bincount", "repeat_interleave", "nll_loss"):
            known = operand.known
            edges = within(edge_values(dtype, Level.ORDINARY), known)
            wide = self.call.kind is OperatorKind.PRODUCT and family == "large"  # sums wrap around, as they do in eager
            if family == "distinct" or (self.call.kind is not OperatorKind.MOVING and not wide):
                low, high = max(known.low, -20), min(known.high, 20)
                edges = torch.arange(int(min(low, high)), int(high) + 1).to(dtype)
            line = edges[(where * 7) % len(edges)] if len(edges) else torch.zeros(count, dtype=dtype)
            return line.sort().values.reshape(shape) if operand.argument == "sorted_sequence" else line.reshape(shape)
        return (where % 3).reshape(shape).to(dtype)

    def _bound(self, operand: CallOperand, sizes: Sizes) -> int | None:
        """What an index must be below; None where the operand is no index."""
        first = self.given.get("self", self.given.get("input"))
        shape = shape_of(first, sizes) if isinstance(first, Value) else ()
        if operand.argument not in INDICES:
            return None
        match self.name:
            case "embedding" | "embedding_bag":
                weight = self.given["weight"]
                return shape_of(weight, sizes)[0]
            case "take" | "put":
                return math.prod(shape)
            case "index" | "index_put" | "_unsafe_index" | "_unsafe_index_put":
                return shape[operand.at] if operand.at < len(shape) else None
            case "nll_loss" | "nll_loss_nd" | "nll_loss_forward" | "cross_entropy_loss" | "nll_loss2d_forward":
                return shape[1 if len(shape) > 1 else 0]
        dim = self.given.get("dim")
        if isinstance(dim, int) and shape:
            return shape[dim % len(shape)]
        return math.prod(shape) if dim is None else 1

    def _axis_of(self, shape: tuple[int, ...]) -> int:
        dim = self.given.get("dim")
        return dim % max(1, len(shape)) if isinstance(dim, int) else 0


_FAMILIES = ("normal", "ties", "sorted", "falling", "equal", "zeros", "negative", "halves", "one hot", "large")
_WHOLE = ("normal", "ties", "zeros", "equal", "negative", "large", "huge", "NaN")
_DISTINCT_INDICES = frozenset("scatter index_put _unsafe_index_put index_copy put scatter_reduce index_reduce".split())
"""Where two indices are equal, torch does not say whose value stays."""
_FROM_THE_END = frozenset("index index_put _unsafe_index _unsafe_index_put take put".split())


def _bool_line(family: str, count: int) -> torch.Tensor:
    at = torch.arange(count)
    match family:
        case "zeros":
            return at < 0
        case "equal":
            return at >= 0
        case "one hot":
            return at == count - 1
        case _:
            return at % 3 == 0


def _distinct_along(axis: int, shape: tuple[int, ...], bound: int, family: str) -> torch.Tensor:
    if not shape:
        return torch.tensor(bound - 1)
    along = torch.arange(shape[axis]) if family == "sorted" else torch.arange(shape[axis]).flip(0)
    form = [1] * len(shape)
    form[axis] = shape[axis]
    return ((bound - 1 - along) % bound).reshape(form).expand(shape).contiguous()


def _has_parts(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _is_size(symbol: sympy.Symbol) -> bool:
    return bool(symbol.is_integer and symbol.is_nonnegative)


def _clamped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)


def _tensor(numbers: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
    wide = torch.tensor(numbers, dtype=torch.float64)
    if dtype.is_complex:
        return torch.complex(wide, wide.roll(1)).to(dtype)
    if not dtype.is_floating_point:
        low = 0 if dtype in (torch.uint8, torch.bool) or "uint" in str(dtype) else -1
        return torch.tensor([max(low, int(number)) for number in numbers]).to(dtype)
    return wide.to(torch.float32).to(dtype) if dtype.itemsize < 4 else wide.to(dtype)
