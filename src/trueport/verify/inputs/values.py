"""What to put into an input: families of values that tell a faithful model from one that fits its example."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch

from trueport.load.job import Leaf
from trueport.load.values import LeafKind
from trueport.verify.inputs.named import NOTHING, Named
from trueport.verify.inputs.offsets import like_offsets

_TIMES_LARGE = 30.0
_LITTLE = 0.05
"""Of the example's spread, by which its rows are moved."""
_MANY = 37
"""Rounds that a loop of a number given to it should also run: faults may show after the first dozen."""

# torch cannot select elements of the wide unsigned integers; their bits are the same either way.
_SELECTABLE = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


class Family(Enum):
    """A way to fill all inputs at once. Each kind of input has its own reading of it."""

    SEEN = "like the example's"
    RESAMPLED = "the example's rows, moved a little"
    NORMAL = "normal"
    ZEROS = "zeros"
    ONES = "ones"
    NEGATED = "negated"
    LARGE = "large"
    TINY = "tiny"
    ONE_HOT = "one hot"
    CONSTANT = "all the same"
    SORTED = "sorted"
    PADDED = "some rows of zeros"
    BELOW = "all below -1"
    ABOVE = "all far above"
    SINGLE = "one number that the model names among zeros"
    HALVES = "halves and whole numbers"
    TIES = "few different values"
    NAMED = "numbers that the model names"
    FILLED = "all a number that the model names"
    EDGES = "ends of the dtype"
    ROWS = "any row of a table"
    LENGTHS = "lengths up to another input's"
    ON = "masks all on"
    OFF = "masks all off"
    RAGGED = "masks ragged"
    NUMBERS = "numbers near the example's"
    BEYOND = "integers beyond the example's"
    WIDE = "floats beyond integers of 32 bits"
    REPEATED = "the example's repeated"
    LOW = "integers at their lowest"
    NAN = "some of them NaN"
    INFINITE = "some of them infinite"
    NONFINITE = "NaN and infinities"

    @property
    def strange(self) -> tuple[float, ...]:
        """The values that are put among the others; only tried on request."""
        return _STRANGE.get(self, ())


_STRANGE = {
    Family.NAN: (math.nan,),
    Family.INFINITE: (math.inf, -math.inf),
    Family.NONFINITE: (math.nan, math.inf, -math.inf),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What an example says about its input."""

    low: float
    high: float
    mean: float
    spread: float
    declared: bool

    @property
    def is_unit(self) -> bool:
        """Probabilities, images and the like: never negative, never above one."""
        return self.low >= 0 and self.high <= 1


def facts_of(leaf: Leaf, example: torch.Tensor) -> Facts:
    if example.numel() and example.dtype is not torch.bool:
        plain = example.detach().abs() if example.is_complex() else example.detach()
        wide = plain.cpu().float().double() if plain.element_size() == 1 else plain.cpu().double()
        wide = wide[wide.isfinite()]
    else:
        wide = torch.empty(0)
    if not wide.numel():
        low, high, mean, spread = 0.0, 1.0, 0.0, 1.0
    else:
        low, high, mean = float(wide.min()), float(wide.max()), float(wide.mean())
        spread = float(wide.std(correction=0)) or max(abs(mean), 1.0)
    if leaf.value_range is not None:
        return Facts(*leaf.value_range, mean, spread, declared=True)
    return Facts(low, high, mean, spread, declared=False)


def is_mask(leaf: Leaf, example: object) -> bool:
    """A bool tensor, or an integer tensor that only holds 0 and 1, as attention masks come."""
    if not isinstance(example, torch.Tensor):
        return False
    if example.dtype is torch.bool:
        return True
    if not is_integer(example) or example.numel() < 2:
        return False
    if leaf.value_range is not None:
        return leaf.value_range == (0, 1)
    return bool(((example == 0) | (example == 1)).all())


class Filling(NamedTuple):
    """A family, and the how-manieth of its choices where it leaves some."""

    family: Family
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Manner:
    """How all inputs of one set are filled: each kind of input in its own way, so that large numbers also meet masks
    that are partly on."""

    floats: Filling
    integers: Filling
    masks: Filling

    def of(self, kind: InputKind) -> Filling:
        return {InputKind.FLOATS: self.floats, InputKind.INTEGERS: self.integers, InputKind.MASK: self.masks}[kind]

    def words(self, kinds: Collection[InputKind]) -> str:
        """As the report has it, for a model that has inputs of these kinds."""
        return _words(*(self.of(kind).family for kind in InputKind if kind in kinds)) or self.floats.family.value


@functools.cache
def _words(*families: Family) -> str:
    """Many more are drawn than are tried."""
    return ", ".join(dict.fromkeys(family.value for family in families))


def everywhere(family: Family) -> Manner:
    return Manner(Filling(family), Filling(family), Filling(family))


class InputKind(Enum):
    """What an input holds; Python numbers go with the integers or the floats."""

    FLOATS = "floats"
    INTEGERS = "integers"
    MASK = "mask"


def kind_of(leaf: Leaf, example: object) -> InputKind:
    if isinstance(example, bool) or is_mask(leaf, example):
        return InputKind.MASK
    if isinstance(example, int) or (isinstance(example, torch.Tensor) and is_integer(example)):
        return InputKind.INTEGERS
    return InputKind.FLOATS


def draw_tensor(
    leaf: Leaf,
    example: torch.Tensor,
    shape: Sequence[int],
    family: Family,
    chance: torch.Generator,
    nth: int = 0,
    named: Named = NOTHING,
    facts: Facts | None = None,
) -> torch.Tensor:
    """A tensor like the example, of another shape, filled in the manner of the family. `facts` are those of the
    example, where they are known already."""
    if family is Family.REPEATED:
        return _repeated(example, shape)
    if example.dtype is torch.bool or is_mask(leaf, example):
        declared = leaf.value_range is not None and family is Family.BEYOND
        filled = _mask(shape, Family.SEEN if declared else family, chance, example, nth)
    elif example.is_floating_point() or example.is_complex():
        filled = _floats(shape, family, chance, facts or facts_of(leaf, example), example, nth, named)
    else:
        filled = _integers(shape, family, chance, facts or facts_of(leaf, example), example.dtype, nth, named)
        if named.trusts_offsets and example.dim() == 1 and like_offsets(example):
            filled = filled.sort().values
            filled[:1] = 0
    return filled.to(device=example.device, dtype=example.dtype)


def _picked(
    shape: Sequence[int], among: torch.Tensor | list[int], chance: torch.Generator, nth: int = 0
) -> torch.Tensor:
    """Elements drawn from these, each of which comes if there is room for all; if not, the first the first time, and
    those that follow the next."""
    from_these = torch.as_tensor(among)
    count = math.prod(shape)
    every = (torch.arange(count) + nth * count) % len(from_these)
    return from_these[every[torch.randperm(count, generator=chance)]].reshape(tuple(shape))


def _named_floats(named: Named, dtype: torch.dtype) -> torch.Tensor:
    """Each number as the dtype has it, its two neighbours there, and one step to both sides."""
    of = torch.tensor(named.values, dtype=torch.float64).to(dtype if dtype.itemsize > 1 else torch.float32)
    if of.dtype in (torch.float32, torch.float64):
        ends = torch.tensor([math.inf, -math.inf], dtype=of.dtype)
        of = torch.cat([of, torch.nextafter(of, ends[0]), torch.nextafter(of, ends[1])])
    return torch.cat([of.double(), torch.tensor(named.steps, dtype=torch.float64)])


def _floats(
    shape: Sequence[int],
    family: Family,
    chance: torch.Generator,
    facts: Facts,
    example: torch.Tensor,
    nth: int,
    named: Named,
) -> torch.Tensor:
    dtype = torch.complex128 if example.is_complex() else torch.float64
    normal = torch.randn(tuple(shape), dtype=dtype, generator=chance)
    # 1e3 squared still fits float16's range only just; its "large" is smaller.
    large = 30.0 if example.element_size() <= 2 and example.dtype is not torch.bfloat16 else 1e3
    larger = large * (_TIMES_LARGE if nth % 2 and large > _TIMES_LARGE and not named.has_cells else 1)
    match family:
        case Family.NORMAL:
            drawn = normal
        case Family.ZEROS:
            drawn = torch.zeros_like(normal) * (-1) ** nth
        case Family.ONES:
            drawn = torch.ones_like(normal)
        case Family.LARGE:  # every other time so large that a loop which halves it makes many rounds
            drawn = normal * larger
        case Family.TINY if nth % 2 and not example.is_complex():  # down to what underflows when it is squared
            drawn = normal * 10.0 ** torch.empty_like(normal).uniform_(-36, -4, generator=chance)
        case Family.TINY:
            drawn = normal * 1e-4
        case Family.NEGATED:
            drawn = -(normal.abs() * facts.spread + abs(facts.mean))
        case Family.ONE_HOT:
            drawn = _one_hot(shape, chance).to(dtype)
        case Family.CONSTANT:
            drawn = torch.full_like(normal, normal.reshape(-1)[0].item() if normal.numel() else 0.0)
        case Family.SORTED if not example.is_complex() and shape:
            drawn = (normal * facts.spread + facts.mean).sort().values
        case Family.PADDED:
            drawn = normal * facts.spread + facts.mean
            rows = torch.arange(math.prod(shape[:-1]) if len(shape) > 1 else drawn.numel())
            drawn.reshape(len(rows), -1 if drawn.numel() else 0)[rows % 3 == 1] = 0
        case Family.RESAMPLED if example.numel():  # what holds within a row still does: a box has its corners in order
            drawn = _resampled(example, shape, chance).to(dtype) + normal * facts.spread * _LITTLE
            drawn = drawn.clamp(0, 1) if facts.is_unit and not example.is_complex() else drawn
        case Family.BELOW if not example.is_complex():
            drawn = -1.5 - normal.abs() * 4 - (larger if nth % 2 else 0) * 3
        case Family.HALVES if not example.is_complex():
            drawn = torch.randint(-9, 10, tuple(shape), generator=chance).double() / 2
            if nth % 4 == 3:  # a hundred eighths are a half
                drawn = torch.randint(-99, 100, tuple(shape), generator=chance).double() / 8
            elif nth % 4 and named.values:  # halves of the steps that it rounds to, or of what is multiplied before
                step = named.values[nth // 4 % len(named.values)]
                drawn = drawn * step if nth % 4 == 1 else drawn / step
        case Family.SINGLE if named.values and not example.is_complex():
            drawn = torch.zeros_like(normal)  # then the sum is that number, and mostly the largest is, too
            drawn.reshape(-1)[-1:] = named.values[nth // 2 % len(named.values)] + 0.25 * (nth % 2)
        case Family.TIES if not example.is_complex():
            drawn = _picked(shape, torch.tensor([-1.0, 0.0, 0.25, 1.0], dtype=dtype), chance)
        case Family.NAMED if named.values and not example.is_complex():
            drawn = _picked(shape, _named_floats(named, example.dtype), chance, nth)
        case Family.FILLED if named.values and not example.is_complex():
            drawn = torch.full_like(normal, named.values[nth % len(named.values)])
        case Family.WIDE if not example.is_complex():
            drawn = min(3e9, torch.finfo(example.dtype).max / 8) * (normal + torch.sign(normal))
        case _ if facts.is_unit and not example.is_complex():
            drawn = torch.rand(tuple(shape), dtype=dtype, generator=chance)
        case _:
            drawn = normal * facts.spread + facts.mean
    if facts.declared and not example.is_complex():
        if family in (Family.NORMAL, Family.SEEN, Family.RAGGED, Family.ON, Family.OFF):
            drawn = facts.low + (facts.high - facts.low) * torch.rand(tuple(shape), dtype=dtype, generator=chance)
        drawn = drawn.clamp(facts.low, facts.high)
    return _with_some(drawn, family.strange or _strange_in(example, family), chance)


def _strange_in(example: torch.Tensor, family: Family) -> tuple[float, ...]:
    """What the example has of NaN and infinities: it shows that they may come, and they may come at any place."""
    if family not in (Family.NORMAL, Family.SEEN, Family.SORTED, Family.LARGE) or example.is_complex():
        return ()
    plain = example.detach().double()
    return tuple(plain[~plain.isfinite()].unique().tolist())


def _with_some(drawn: torch.Tensor, strange: Sequence[float], chance: torch.Generator) -> torch.Tensor:
    """About every fifth element is one of these, and at least one is."""
    if not strange or not drawn.numel():
        return drawn
    flat = drawn.reshape(-1)
    order = torch.randperm(flat.numel(), generator=chance)
    for nth, at in enumerate(order[: 1 + flat.numel() // 5].tolist()):
        flat[at] = strange[nth % len(strange)]
    return flat.reshape(drawn.shape)


_OF_EDGES = 3
"""The ends of dtypes, the same ends in all inputs that are alike, and large multiples of the model's own numbers."""


def are_alike(filling: Filling) -> bool:
    """Whether inputs of one shape and dtype hold the same: a comparison of two is hardly ever equal by chance."""
    return filling.family in (Family.EDGES, Family.TIES) and filling.nth % _OF_EDGES == 1


def _everything(named: Named) -> tuple[int, int]:
    """What may be drawn of integers whose range is not declared."""
    if named.sized_by_values:
        return -_LARGEST_SIZE, _LARGEST_SIZE
    return (-_LARGEST_READ, _LARGEST_READ) if named.read_by_python else (-(1 << 63), (1 << 63) - 1)


def _edges(dtype: torch.dtype, low: int, high: int) -> list[int]:
    """Whole numbers at which a dtype, or one that they were put through on the way, ends."""
    ends = torch.iinfo(dtype)
    powers = [power for bits in (7, 8, 15, 16, 24, 31, 32, 53, 62) for power in (1 << bits, (1 << bits) + 1)]
    every = [*powers, *(-power for power in powers), ends.min, ends.max, ends.max - 1, -1, 0, 1, low, high]
    return _within(every, dtype, low, high)


def _multiples(named: Named) -> list[int]:
    """Both sides of where a quotient by one of the model's numbers jumps, so large that a coarser dtype blurs it."""
    numbers = [int(value) for value in named.values if value == int(value) and value > 2]
    near = [((1 << bits) // number + 1) * number for number in numbers for bits in (24, 31, 56)]
    return [by for multiple in near for by in (multiple - 1, multiple, -multiple, 1 - multiple)]


def _within(numbers: Sequence[int], dtype: torch.dtype, low: int, high: int) -> list[int]:
    ends = torch.iinfo(dtype)
    return [each for each in dict.fromkeys(numbers) if max(low, ends.min) <= each <= min(high, ends.max)]


_SMALL = 512
"""Elements of all inputs together: larger ones are hardly drawn twice."""
_LARGEST = (1 << 63) - 2
"""That torch draws."""
_LARGEST_SIZE = 4_100
"""Of integers that may be sizes."""
_LARGEST_READ = 1 << 26
"""Of integers that Python reads out of a tensor. Its own have no end, and ONNX's have 64 bits: the product of two of
these still fits, and float32 does not hold them."""


def _integers(
    shape: Sequence[int],
    family: Family,
    chance: torch.Generator,
    facts: Facts,
    dtype: torch.dtype,
    nth: int,
    named: Named,
) -> torch.Tensor:
    low, high = int(facts.low), int(facts.high)
    if family is Family.LENGTHS and not named.others:
        family = Family.ROWS
    if family is Family.ROWS and named.rows and not facts.declared:
        rows = min(named.rows[nth % len(named.rows)], torch.iinfo(dtype).max)
        return _with_last(0, max(rows - 1, 0), shape, chance)
    if family is Family.LENGTHS and not facts.declared:
        longest = min(named.others[nth % len(named.others)], torch.iinfo(dtype).max)
        return _with_last(min(1, longest), longest, shape, chance)
    if family is Family.EDGES and dtype is not torch.uint64:
        range_ = (low, high) if facts.declared else _everything(named)
        multiples = _multiples(named) if nth % _OF_EDGES == _OF_EDGES - 1 else ()
        edges = torch.tensor(_within(multiples, dtype, *range_) or _edges(dtype, *range_))
        return _picked(shape, edges[torch.randperm(len(edges), generator=chance)], chance)
    if family in (Family.NAMED, Family.FILLED) and named.indices:
        ends = torch.iinfo(dtype)
        most = _everything(named)
        bounds = (low, high) if facts.declared else (max(ends.min, most[0]), min(ends.max, most[1]))
        inside = [each for each in named.indices if bounds[0] <= each <= bounds[1]]
        if inside and family is Family.FILLED:
            return torch.full(tuple(shape), inside[nth % len(inside)])
        if inside:
            return _picked(shape, inside, chance, nth)
    if family is Family.BELOW and not facts.declared:
        low, high = -max(abs(high), 40) - 2, -2
    if family is Family.SINGLE and named.indices:
        bounds = (low, high) if facts.declared else _everything(named)
        single = torch.zeros(tuple(shape), dtype=torch.int64)
        single.reshape(-1)[-1:] = named.indices[nth % len(named.indices)]
        return single.clamp(*bounds)
    if family is Family.ABOVE and not facts.declared:
        far = min(_LARGEST_SIZE if named.sized_by_values else 3_000_000, torch.iinfo(dtype).max)
        low, high = far // 2, far
    if low == high and not facts.declared:
        # A single value shows no range; its neighbours and zero are the likeliest to be valid.
        low, high = min(low - 1, 0) if low > 0 else low, high + 1
    if family is Family.BEYOND and not facts.declared:
        low, high = -abs(high) - 2, 2 * abs(high) + 3
    high = min(high, _LARGEST)
    low = min(max(low, -_LARGEST), high)
    drawn = torch.randint(low, high + 1, tuple(shape), generator=chance)
    match family:
        case Family.ZEROS | Family.ONES:
            return torch.full_like(drawn, min(max(0 if family is Family.ZEROS else 1, low), high))
        case Family.LARGE:
            return torch.full_like(drawn, high)
        case Family.TINY | Family.LOW:
            return torch.full_like(drawn, low)
        case Family.NEGATED:
            return low + high - drawn
        case Family.TIES if drawn.numel():
            return _picked(shape, [low, (low + high) // 2, high], chance)
        case Family.CONSTANT if drawn.numel():
            return torch.full_like(drawn, int(drawn.reshape(-1)[0]))
        case Family.ONE_HOT:
            return torch.where(_one_hot(shape, chance), high, low)
        case Family.SORTED if shape:
            return drawn.sort().values
        case _:
            return drawn


def _with_last(low: int, high: int, shape: Sequence[int], chance: torch.Generator) -> torch.Tensor:
    """Any of these, the highest among them."""
    drawn = torch.randint(low, high + 1, tuple(shape), generator=chance)
    drawn.reshape(-1)[-1:] = high
    return drawn


def _resampled(example: torch.Tensor, shape: Sequence[int], chance: torch.Generator) -> torch.Tensor:
    """The example's own rows in any order, along each axis that has another length; some come more than once."""
    rows = example.detach()
    for axis, size in enumerate(shape):
        if size != rows.shape[axis]:
            rows = rows.index_select(axis, torch.randint(rows.shape[axis], (size,), generator=chance))
    return rows


def _one_hot(shape: Sequence[int], chance: torch.Generator) -> torch.Tensor:
    """One of each row is on, as a bool; a row is along the last axis."""
    if not shape or not shape[-1]:
        return torch.ones(tuple(shape), dtype=torch.bool)
    at = torch.randint(0, shape[-1], (*shape[:-1], 1), generator=chance)
    return torch.arange(shape[-1]) == at


def _mask(
    shape: Sequence[int], family: Family, chance: torch.Generator, example: torch.Tensor, nth: int
) -> torch.Tensor:
    match family:
        case Family.ON | Family.ONES | Family.LARGE:
            return torch.ones(tuple(shape))
        case Family.OFF | Family.ZEROS | Family.TINY:
            return torch.zeros(tuple(shape))
        case Family.NEGATED:
            return 1 - _repeated(example, shape).to(torch.int64)
        case Family.ONE_HOT:
            return _one_hot(shape, chance)
        case Family.BEYOND if example.dtype is not torch.bool:  # `mask == 1`, or whatever is not 0; or rows of a table
            return _picked(shape, [0, 1, 2, 3, -1] if nth % 2 else [2, 0, 1], chance)
        case Family.RAGGED if shape and shape[-1] > 0:
            lengths = torch.randint(1, shape[-1] + 1, (*shape[:-1], 1), generator=chance)
            return torch.arange(shape[-1]) < lengths
        case _:
            return torch.randint(0, 2, tuple(shape), generator=chance)


def _repeated(example: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The example's own elements in another shape, each axis cut off or begun again, which keeps order and patterns."""
    if not example.numel():
        return torch.zeros(tuple(shape), dtype=example.dtype, device=example.device)
    result = example.detach().view(_SELECTABLE.get(example.dtype, example.dtype))
    for axis, size in enumerate(shape):
        if size != result.shape[axis]:
            result = result.index_select(axis, torch.arange(size, device=result.device) % result.shape[axis])
    return result.view(example.dtype).clone()


def draw_number(
    leaf: Leaf, example: bool | int | float, family: Family, nth: int, named: Named = NOTHING
) -> bool | int | float:
    """A Python number as the family has it; Family.NUMBERS walks through the neighbours of the example."""
    whole = isinstance(example, int)
    step = 1 if whole else 0.5
    match family:
        case Family.NUMBERS if isinstance(example, bool):
            chosen: float = nth % 2 != example
        case Family.NUMBERS:
            near = (example + step, example - step, 0, 1, example + 3 * step, 2, -example, -step, _MANY * step)
            chosen = near[nth % len(near)] + (nth // len(near)) * step
        case Family.NAMED | Family.FILLED if steps := [
            each for each in named.steps if not whole or abs(each) <= _LARGEST_SIZE
        ]:
            chosen = steps[nth % len(steps)]
        case Family.ZEROS | Family.TINY:
            chosen = 1e-3 if family is Family.TINY and not whole else 0
        case Family.ONES:
            chosen = 1
        case Family.NEGATED:
            chosen = not example if isinstance(example, bool) else -example
        case Family.LARGE | Family.ABOVE if not isinstance(example, bool):
            chosen = example + 300 if whole else example * 1e3
        case Family.BELOW if not isinstance(example, bool):
            chosen = -300 if whole else -abs(example) * 1e3 - 1
        case _:
            chosen = example
    if leaf.value_range is not None:
        chosen = min(max(chosen, leaf.value_range[0]), leaf.value_range[1])
    return type(example)(chosen)


def small_content(values: Sequence[object]) -> tuple[object, ...] | None:
    """What tells one small set of inputs from another; None for a large one, which hardly comes twice."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if sum(tensor.numel() for tensor in tensors) > _SMALL:
        return None
    return tuple(
        (tuple(value.shape), repr(value.detach().cpu().reshape(-1).tolist()))
        if isinstance(value, torch.Tensor)
        else repr(value)
        for value in values
    )


def is_number(leaf: Leaf) -> bool:
    return leaf.kind is LeafKind.NUMBER


def is_integer(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
