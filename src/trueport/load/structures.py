"""Any Python structure as a flat list of leaves, and back.

torch's pytree sees only what was registered with it; models are called with dataclasses, caches and objects of the
user's own. So a structure is opened here by looking: containers by their items, dataclasses by their fields, other
objects by their attributes. What holds no tensor and no number inside such an object is kept as it is.

    leaves, structure = flatten({"ids": ids, "past": cache}, "batch")
    [leaf.path for leaf in leaves]      # batch["ids"], batch["past"].layers[0].keys, ...
    structure.build(other_values)       # fresh containers, the user's own are never written to
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from trueport.errors import TrueportError
from trueport.load.containers import Attributes, Fields, Items, Keys, Mismatch, PathStep, type_name
from trueport.load.trees import Back, Branch, ByReference, OpenList, Repeated, Spot, Tree, container_of, look
from trueport.load.values import LeafKind, kind_of


class StructureMismatch(TrueportError):
    """An object does not have the structure that it was expected to have; the message names the place."""


@dataclass(frozen=True, slots=True)
class FoundLeaf:
    """One leaf of a structure.

    `known` is False for what a model cannot be given (an open file, a numpy array). `inside_object` marks what was
    found among the attributes of an object that is not a dataclass: a number there (a cache's count of seen tokens) is
    kept as a constant, and the caller tells the user so. A number that is being traced (a SymInt) is never a constant.
    """

    path: str
    name: str
    value: object
    kind: LeafKind
    known: bool = True
    inside_object: bool = False


@dataclass(frozen=True)
class Structure:
    """The shape of an object: everything about it but the values of its leaves."""

    tree: Tree
    count: int
    root: str = ""

    def build(self, values: Sequence[object]) -> Any:
        """An object of this structure around `values`, one per leaf. Every container is new at each call."""
        if len(values) != self.count:
            raise StructureMismatch(f"{self.count} values are needed, one per leaf; got {len(values)}")
        return _build(self.tree, iter(values), [])

    def flatten(self, obj: object) -> list[object]:
        """The leaves of another object of this same structure."""
        found: list[object] = []
        _open_like(self.tree, obj, self.root, found)
        return found

    def describe(self) -> object:
        """The structure as plain JSON data, for the metadata of the model."""
        return _describe(self.tree)

    def items(self) -> list[Structure] | None:
        """What each item of a list or a tuple is; None of anything else."""
        if not isinstance(self.tree, Branch) or not isinstance(self.tree.container, (Items, Fields)):
            return None
        return [Structure(part, _count(part), self.root) for part in self.tree.parts]

    @property
    def has_empty_list(self) -> bool:
        return _has_empty_list(self.tree)

    def same_as(self, other: Structure) -> bool:
        """Whether both have the same containers and keys, and leaves of the same kinds."""
        return _same(self.tree, other.tree)

    def alike(self, other: Structure) -> bool:
        """Whether both have the same containers and keys; a tensor may stand where the other has a number."""
        return _alike(self.tree, other.tree)


def flatten(
    obj: object, root: str = "output", *, root_in_names: bool = True, open_list: OpenList | None = None
) -> tuple[list[FoundLeaf], Structure]:
    """Open `obj`, which the user knows as `root`.

    With `root_in_names=False` a leaf is named by its keys alone where there are any: the results of a model are called
    `logits`, not `output_logits`. `open_list` knows the lists that may have any number of items.
    """
    values: list[object] = []
    tree = look(obj, values, [], inside_object=False, open_list=open_list)
    leaves = _name_leaves(tree, values, root, root_in_names)
    return leaves, Structure(tree, len(values), root)


def flatten_call(
    args: Sequence[tuple[PathStep, object]], kwargs: Mapping[str, object]
) -> tuple[list[FoundLeaf], Structure]:
    """Open the arguments of a call. The structure builds `(args, kwargs)`; leaves are named after the parameters."""
    values: list[object] = []
    positional = tuple(look(value, values, [], inside_object=False) for _, value in args)
    by_name = tuple(look(value, values, [], inside_object=False) for value in kwargs.values())
    tree = Branch(
        Items(tuple, 2),
        (PathStep("", ""), PathStep("", "")),
        (
            Branch(Items(tuple, len(args)), tuple(step for step, _ in args), positional),
            Branch(Keys(dict, tuple(kwargs)), tuple(PathStep(key, key) for key in kwargs), by_name),
        ),
    )
    return _name_leaves(tree, values, "", True), Structure(tree, len(values))


def _build(tree: Tree, values: Iterator[object], around: list[object | None]) -> object:
    match tree:
        case Spot():
            return next(values)
        case ByReference(value):
            return value
        case Back(levels):
            return around[-1 - levels]
        case Branch(container, _, parts):
            shell = container.shell()
            around.append(shell)
            built = [_build(part, values, around) for part in parts]
            around.pop()
            return container.fill(shell, built)
        case Repeated(cls, part, columns):
            return cls(_build(part, iter(item), []) for item in _items([next(values) for _ in range(columns)]))


def _items(columns: Sequence[object]) -> Iterator[tuple[object, ...]]:
    """The leaves of each item, of columns that are lists, tensors of numbers, or the same in every item."""
    lists = [column.tolist() if isinstance(column, torch.Tensor) else column for column in columns]
    count = next(len(column) for column in lists if isinstance(column, list))
    return zip(*(column if isinstance(column, list) else [column] * count for column in lists), strict=True)


def _open_like(tree: Tree, obj: object, path: str, found: list[object]) -> None:
    at = path or "the arguments"
    match tree:
        case Spot():
            if kind_of(obj) is None and container_of(obj) is not None:
                raise StructureMismatch(f"{at}: a single value is expected here, got a {type_name(type(obj))}")
            found.append(obj)
        case ByReference(value):
            if isinstance(obj, torch.Tensor) and not isinstance(value, torch.Tensor):
                raise StructureMismatch(f"{at}: {value!r} is expected here, got a tensor")
        case Branch(container, steps, parts):
            try:
                opened = container.open(obj)
            except Mismatch as wrong:
                raise StructureMismatch(f"{at}: {wrong}") from None
            for step, part, child in zip(steps, parts, opened, strict=True):
                _open_like(part, child, path + step.path, found)
        case Repeated(cls, part, columns):
            if type(obj) is not cls:
                raise StructureMismatch(f"{at}: a {type_name(cls)} is expected here, got a {type_name(type(obj))}")
            items: list[list[object]] = [[] for _ in cast(Sequence[object], obj)]
            for i, (item, leaves) in enumerate(zip(cast(Sequence[object], obj), items, strict=True)):
                _open_like(part, item, f"{path}[{i}]", leaves)
            found += [[leaves[column] for leaves in items] for column in range(columns)]


def _describe(tree: Tree) -> object:
    match tree:
        case Spot(kind):
            return kind.value
        case ByReference(value):
            return {"held": type_name(type(value))}
        case Back(levels):
            return {"back": levels}
        case Branch(container, _, parts):
            return {**container.describe(), "parts": [_describe(part) for part in parts]}
        case Repeated(cls, part, _):
            return {"type": type_name(cls), "each": _describe(part)}


def _count(tree: Tree) -> int:
    """How many leaves there are."""
    if isinstance(tree, Repeated):
        return tree.columns
    return sum(map(_count, tree.parts)) if isinstance(tree, Branch) else int(isinstance(tree, Spot))


def _has_empty_list(tree: Tree) -> bool:
    if not isinstance(tree, Branch):
        return False
    return any(map(_has_empty_list, tree.parts)) or (isinstance(tree.container, Items) and not tree.parts)


def _same(one: Tree, other: Tree) -> bool:
    match one, other:
        case Branch(), Branch():
            return (
                one.container == other.container
                and len(one.parts) == len(other.parts)
                and all(map(_same, one.parts, other.parts))
            )
        case Repeated(), Repeated():
            return one.cls is other.cls and _same(one.part, other.part)
        case Spot(), Spot():
            # The count of tokens in a cache is a constant in eager, and a symbol while it is traced.
            number_in_object = (
                one.inside_object and other.inside_object and LeafKind.TENSOR not in (one.kind, other.kind)
            )
            return one.kind is other.kind or number_in_object
        case ByReference(), ByReference():
            return type(one.value) is type(other.value)
        case _:
            return one == other


def _alike(one: Tree, other: Tree) -> bool:
    match one, other:
        case Branch(), Branch():
            same = one.container.describe() == other.container.describe() and len(one.parts) == len(other.parts)
            return same and all(map(_alike, one.parts, other.parts))
        case Spot(), Spot():
            return True
        case _:
            return _same(one, other)


def _name_leaves(tree: Tree, values: list[object], root: str, root_in_names: bool) -> list[FoundLeaf]:
    spots: list[tuple[Spot, str, tuple[str, ...]]] = []
    _walk_spots(tree, root, (), spots)
    taken: set[str] = set()
    leaves = []
    for (spot, path, words), value in zip(spots, values, strict=True):
        lead = (root,) if root and (root_in_names or not words or not words[0][:1].isalpha()) else ()
        name = unique_name("_".join((*lead, *words)), taken)
        leaves.append(FoundLeaf(path, name, value, spot.kind, spot.known, spot.inside_object))
    return leaves


def _walk_spots(tree: Tree, path: str, words: tuple[str, ...], spots: list[tuple[Spot, str, tuple[str, ...]]]) -> None:
    if isinstance(tree, Spot):
        spots.append((tree, path, words))
    elif isinstance(tree, Branch):
        silent = _says_nothing(tree)
        for step, part in zip(tree.steps, tree.parts, strict=True):
            more = (step.word,) if step.word and part is not silent else ()
            _walk_spots(part, path + step.path, words + more, spots)
    elif isinstance(tree, Repeated):
        _walk_spots(tree.part, f"{path}[i]", words, spots)


def _says_nothing(branch: Branch) -> Tree | None:
    """The one attribute of an object that holds all its tensors: `past.layers[0].keys` is named `past_0_keys`."""
    if not isinstance(branch.container, Attributes):
        return None
    holders = [part for part in branch.parts if _holds_tensor(part)]
    only = holders[0] if len(holders) == 1 else None
    return only if isinstance(only, Branch) and isinstance(only.container, (Items, Keys)) else None


def _holds_tensor(tree: Tree) -> bool:
    if isinstance(tree, Spot):
        return tree.kind is LeafKind.TENSOR
    if isinstance(tree, Repeated):
        return _holds_tensor(tree.part)
    return isinstance(tree, Branch) and any(map(_holds_tensor, tree.parts))


def unique_name(wanted: str, taken: set[str]) -> str:
    """`wanted` as a name that ONNX and every tool accept, not yet in `taken`; adds it there."""
    clean = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "value"
    clean = f"_{clean}" if clean[0].isdigit() else clean
    name, turn = clean, 2
    while name in taken:
        name, turn = f"{clean}_{turn}", turn + 1
    taken.add(name)
    return name
