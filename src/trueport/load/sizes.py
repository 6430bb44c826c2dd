"""Which axes of which inputs are free, from every form in which torch takes the declaration.

An axis is declared by a `Dim` (or an expression of one, `2 * half + 1`), `Dim.DYNAMIC`, `Dim.AUTO`, a name, a formula
of names (`"past + new"`), or left fixed by None, `Dim.STATIC` or its size. The same `Dim` or name in two places is one
size. What the example contradicts is refused here, where the argument and the axis can still be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch.export import Dim

from trueport.diagnostics.spelling import size_range, told
from trueport.errors import UsageError
from trueport.load.faults import close_to, usage_error
from trueport.load.formulas import names_in, solved, tells_its_size
from trueport.load.job import AxisSize, FreeSize
from trueport.load.size_specs import count_leaves, entries_per_leaf
from trueport.load.structures import FoundLeaf
from trueport.load.trees import Branch, Tree
from trueport.load.values import LeafKind

_HINT = type(Dim.DYNAMIC)


@dataclass(frozen=True)
class Argument:
    """One argument of the call: the parameter it fills, and its leaves (`first` .. `first + count_leaves(tree)`)."""

    name: str
    path: str
    tree: Tree
    first: int


def arguments_of(call: Tree) -> list[Argument]:
    """The arguments of a flattened call, positional ones first."""
    assert isinstance(call, Branch)
    found: list[Argument] = []
    first = 0
    for half in call.parts:
        assert isinstance(half, Branch)
        for step, part in zip(half.steps, half.parts, strict=True):
            found.append(Argument(step.path.partition("[")[0], step.path, part, first))
            first += count_leaves(part)
    return found


def read_dynamic_shapes(spec: object, arguments: Sequence[Argument], leaves: Sequence[FoundLeaf]) -> list[object]:
    """One entry per leaf, from a declaration by parameter name or by position."""
    entries: list[object] = [None] * len(leaves)

    def place(argument: Argument, entry: object) -> None:
        for i, found in enumerate(entries_per_leaf(argument.tree, entry, argument.path)):
            entries[argument.first + i] = found

    if isinstance(spec, Mapping):
        for key, entry in spec.items():
            whole = next((argument for argument in arguments if argument.path == key), None)
            named = [argument for argument in arguments if argument.name == key]
            single = [i for i, leaf in enumerate(leaves) if key in (leaf.name, leaf.path)]
            if whole is not None:
                place(whole, entry)
            elif named:  # *args: one entry per value
                if entry is not None and (not isinstance(entry, (list, tuple)) or len(entry) != len(named)):
                    raise usage_error(f"dynamic_shapes of *{key} needs a tuple of {len(named)} entries, got {entry!r}")
                for argument, one in zip(named, entry or [None] * len(named), strict=True):
                    place(argument, one)
            elif single:
                entries[single[0]] = entry
            elif isinstance(entry, Mapping) and entry and all(_names_argument(k, arguments) for k in entry):
                for name, one in entry.items():  # torch's own form for **kwargs: {"kwargs": {name: ...}}
                    place(next(a for a in arguments if a.name == name), one)
            elif entry:  # an entry of None or {} for an argument that was not given says nothing
                raise usage_error(
                    f"dynamic_shapes speaks of {key!r}, which is not among the arguments",
                    fix=close_to(str(key), [argument.name for argument in arguments]),
                )
    elif isinstance(spec, (list, tuple)):
        if any(spec[len(arguments) :]):  # None for a parameter that was not given says nothing
            raise usage_error(f"dynamic_shapes has {len(spec)} entries, but {len(arguments)} arguments were given")
        for argument, entry in zip(arguments, spec, strict=False):
            place(argument, entry)
    elif spec is not None:
        raise usage_error(
            f"dynamic_shapes is a {type(spec).__name__}; it must be a dict by parameter name or a tuple by position",
            fix='dynamic_shapes={"x": {0: Dim.DYNAMIC}}',
        )
    return entries


def _names_argument(key: object, arguments: Sequence[Argument]) -> bool:
    return any(argument.name == key for argument in arguments)


def read_dynamic_axes(
    axes: Mapping[str, object], leaves: Sequence[FoundLeaf], output_names: Sequence[str]
) -> list[object]:
    """One entry per leaf, from the older `dynamic_axes={"x": {0: "batch"}, "y": [0, 2]}`; outputs are left out."""
    entries: list[object] = [None] * len(leaves)
    inputs = [leaf for leaf in leaves if leaf.kind is not LeafKind.CONSTANT]
    for key, entry in axes.items():
        places = [i for i, leaf in enumerate(leaves) if key in (leaf.name, leaf.path)]
        if places:
            entries[places[0]] = dict.fromkeys(entry, Dim.DYNAMIC) if isinstance(entry, (list, tuple)) else entry
        elif key not in output_names:
            raise usage_error(
                f"dynamic_axes speaks of {key!r}, which is no input",
                fix=f"{close_to(key, [leaf.name for leaf in inputs])}; an output must be listed in output_names",
            )
    return entries


def is_free(entry: object) -> bool:
    """Whether an entry says of a whole leaf that it may differ from call to call, as torch takes it for numbers."""
    return isinstance(entry, _HINT) and entry.type != Dim.STATIC.type


class SizeBook:
    """Every free size of the call, each met in one or more axes, with the length that the example gives it."""

    def __init__(self, entries: Iterable[object]) -> None:
        self._sizes: dict[str, FreeSize] = {}
        self._seen: dict[str, tuple[int, str]] = {}
        self._formulas: list[tuple[AxisSize, int, str]] = []
        self._named: dict[str, FreeSize] = {}
        """Every size that an axis has by itself: what formulas may speak of."""
        for entry in entries:
            for declared in entry.values() if isinstance(entry, Mapping) else entry if _is_listed(entry) else ():
                if isinstance(declared, str):
                    self._named.setdefault(declared, FreeSize(declared))
                elif isinstance(declared, Dim) and not hasattr(declared, "root"):
                    self._named[declared.__name__] = _of_dim(declared)

    def check_formulas(self) -> None:
        """The sizes that several names give together, once every axis is read."""
        sized = [(AxisSize.of(self._sizes[name]), size) for name, (size, _) in self._seen.items()]
        sized += [(axis, length) for axis, length, _ in self._formulas]
        told = solved((axis.formula, axis.names, length) for axis, length in sized)
        for axis, length, at in self._formulas:
            for size in axis.sizes:
                if size.name not in told:
                    raise usage_error(
                        f"{at} is declared to be {axis.formula}, and nothing tells {size.name}",
                        fix=f"give another axis the name {size.name}, or this one a name of its own",
                    )
                self._meet(AxisSize.of(size), told[size.name], at)
            if (made := axis.length(told)) != length:
                given = ", ".join(f"{size.name} = {told[size.name]}" for size in axis.sizes)
                raise usage_error(
                    f"{at} is declared to be {axis.formula}, which is {made} for {given}, but is {length}"
                )

    def axes(self, leaf: FoundLeaf, entry: object) -> dict[int, AxisSize]:
        """The free axes of one leaf."""
        if leaf.kind is LeafKind.NUMBER:
            if not (entry is None or isinstance(entry, (_HINT, int)) or entry in ({}, (), [])):
                raise usage_error(
                    f"dynamic_shapes gives {entry!r} for {leaf.path}, which is a Python number",
                    fix="leave it out: numbers are always inputs of their own",
                )
            return {}
        if entry is None or (isinstance(entry, (Mapping, list, tuple)) and not entry):
            return {}
        if not isinstance(leaf.value, torch.Tensor):
            raise usage_error(
                f"dynamic_shapes gives {entry!r} for {leaf.path}, which is {leaf.value!r} and has no axes"
            )
        shape = leaf.value.shape
        free: dict[int, AxisSize] = {}
        for axis, declared in self._by_axis(leaf, entry, len(shape)).items():
            size = self._axis(leaf, axis, declared, int(shape[axis]))
            if size is not None:
                free[axis] = size
        return free

    def _by_axis(self, leaf: FoundLeaf, entry: object, rank: int) -> dict[int, object]:
        if isinstance(entry, (list, tuple)):
            if len(entry) != rank:
                raise usage_error(f"dynamic_shapes of {leaf.path} has {len(entry)} entries for a tensor of {rank} axes")
            return dict(enumerate(entry))
        if not isinstance(entry, Mapping):
            raise usage_error(
                f"dynamic_shapes of {leaf.path} is {entry!r}; a tensor needs its axes named",
                fix=f"{{0: {entry!r}}} for its first axis" if rank else f"{leaf.path} has no axes: leave it out",
            )
        found: dict[int, object] = {}
        for axis, declared in entry.items():
            if isinstance(axis, bool) or not isinstance(axis, int):
                raise usage_error(f"dynamic_shapes of {leaf.path}: {axis!r} is not an axis; axes are numbers")
            if not -rank <= axis < rank:
                raise usage_error(f"{leaf.path} has no axis {axis}: its shape is {_shape_of(leaf)}")
            found[axis % rank] = declared
        return dict(sorted(found.items()))

    def _axis(self, leaf: FoundLeaf, axis: int, declared: Any, length: int) -> AxisSize | None:
        at = f"axis {axis} of {leaf.path}"
        if declared is None or isinstance(declared, int):
            if declared is not None and declared != length:
                raise usage_error(f"{at} is declared to be {declared}, but is {length} in the example")
            return None
        if isinstance(declared, str):
            return self._named_axis(declared, length, at)
        if isinstance(declared, _HINT):
            return self._hinted(leaf, axis, declared, length, at)
        if isinstance(declared, Dim) and hasattr(declared, "root"):  # derived: 2 * Dim("half") + 1
            derived = self._meet(_derived(declared), length, at)
            self._refuse_negative(derived, at)
            return derived
        if isinstance(declared, Dim):
            return self._meet(AxisSize.of(_of_dim(declared)), length, at)
        raise usage_error(
            f"dynamic_shapes gives {declared!r} for {at}",
            fix='use a Dim("name"), Dim.DYNAMIC, Dim.AUTO, a name, or None for a fixed size',
        )

    def _named_axis(self, text: str, length: int, at: str) -> AxisSize:
        """A name; or a formula, where it speaks of one size or of a size that has a name: `batch-size` is a name."""
        names = names_in(text)
        mentioned = re.findall(r"[^\W\d]\w*", text)
        if names is None and any(name in self._named for name in mentioned):
            raise usage_error(
                f"{at}: {text!r} is no formula of sizes",
                fix="add and multiply sizes, subtract and divide (//) by numbers, or give the axis a name of its own",
            )
        if not names or text in names or not (len(names) == 1 or any(name in self._named for name in names)):
            return self._meet(AxisSize.of(FreeSize(text)), length, at)
        axis = AxisSize(text, tuple(self._named.get(name, FreeSize(name)) for name in names))
        self._refuse_negative(axis, at)
        if len(names) == 1 and tells_its_size(text, *names):
            return self._meet(axis, length, at)
        self._formulas.append((axis, length, at))
        return axis

    def _refuse_negative(self, axis: AxisSize, at: str) -> None:
        lowest = axis.length({size.name: size.minimum for size in axis.sizes})
        if lowest < 0:
            lows = {size.name: size.minimum for size in axis.sizes}
            name, low = next(iter(lows.items()))
            enough = next((n for n in range(low, low - lowest + 1) if axis.length({**lows, name: n}) >= 0), low + 1)
            raise usage_error(
                f"{at} is declared to be {axis.formula}, which is {lowest} where {name} is {low}",
                fix=told(f"give {name} a range that begins higher: ", size_range(name, enough)),
            )

    def _hinted(self, leaf: FoundLeaf, axis: int, hint: Any, length: int, at: str) -> AxisSize | None:
        if hint.type == Dim.STATIC.type:
            return None
        name, turn = f"{leaf.name}_dim{axis}", 2
        while name in self._sizes:  # a Dim of the user's may be called so
            name, turn = f"{leaf.name}_dim{axis}_{turn}", turn + 1
        auto = hint.type == Dim.AUTO.type
        return self._meet(AxisSize.of(FreeSize(name, hint.min or 0, hint.max, auto)), length, at)

    def _meet(self, axis: AxisSize, length: int, at: str) -> AxisSize:
        """Note that `axis` has this length in the example, and that it agrees with all that is known of its size."""
        (size,) = axis.sizes
        known = self._sizes.setdefault(size.name, size)
        if known != size:
            raise usage_error(
                f"two sizes are both called {size.name!r}: {_range(known)} and {_range(size)}",
                fix="use one Dim object for both, or two names",
            )
        root = solved([(axis.formula, axis.names, length)]).get(size.name, -1)
        if root < 0:
            raise usage_error(f"{at} is declared to be {axis.formula}, which {length} (its size in the example) is not")
        if not size.admits(root):
            raise usage_error(
                f"{at}: the example has {size.name} = {root}, outside its declared range {_range(size)}",
                fix="give an example inside the range, or widen the range",
            )
        first, where = self._seen.setdefault(size.name, (root, at))
        if first != root:
            raise self._contradiction(size.name, first, where, root, at)
        return axis

    def _contradiction(self, name: str, first: int, where: str, second: int, at: str) -> UsageError:
        return usage_error(
            f"{name!r} is declared for {where} and for {at}, but the example has {first} there and {second} here",
            fix="use two names if these sizes are not the same, or Dim.DYNAMIC for each",
        )


def _is_listed(entry: object) -> TypeGuard[Sequence[object]]:
    return isinstance(entry, (list, tuple))


def _of_dim(dim: Any) -> FreeSize:
    highest = dim.max if isinstance(dim.max, int) else None  # without a bound it is torch's own infinity
    return FreeSize(dim.__name__, int(dim.min), highest)


def _derived(dim: Any) -> AxisSize:
    root, offset = _of_dim(dim.root), int(dim.fn(0))
    return AxisSize(_formula(root.name, int(dim.fn(1)) - offset, offset), (root,))


def _formula(name: str, multiple: int, offset: int) -> str:
    times = f"{multiple}*{name}" if multiple != 1 else name
    return f"{times} {'+' if offset > 0 else '-'} {abs(offset)}" if offset else times


def _range(size: FreeSize) -> str:
    return f"{size.minimum}..{'' if size.maximum is None else size.maximum}"


def _shape_of(leaf: FoundLeaf) -> str:
    assert isinstance(leaf.value, torch.Tensor)
    return str(list(leaf.value.shape))
