"""`filter`, and functions of `itertools`."""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.python.standing_for import any_open, any_traced, stands_for
from trueport.rewrite.ahead import rewritten

Test = Callable[[Any], Any]


@stands_for(filter, when=any_traced)
def kept(test: Test | None, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if item if test is None else test(item):
            yield item


@stands_for(itertools.filterfalse, when=any_traced)
def filterfalse(test: Test | None, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if not (item if test is None else test(item)):
            yield item


@stands_for(itertools.takewhile, when=any_traced)
def takewhile(test: Test, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if not test(item):
            break
        yield item


@stands_for(itertools.dropwhile, when=any_traced)
def dropwhile(test: Test, items: Iterable[Any]) -> Iterator[Any]:
    begun = False
    for item in items:
        begun = begun or not test(item)
        if begun:
            yield item


@stands_for(itertools.compress, when=any_traced)
def compress(items: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    for item, wanted in zip(items, selectors, strict=False):
        if wanted:
            yield item


@stands_for(itertools.chain)
def chain(*several: Iterable[Any]) -> Iterator[Any]:
    for items in several:
        yield from items


@stands_for(itertools.chain.from_iterable, when=any_traced)
def from_iterable(several: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for items in several:
        yield from items


@stands_for(itertools.groupby, when=any_traced)
def groupby(iterable: Iterable[Any], key: Test | None = None) -> Iterator[Any]:
    """Like the library's, a group is used up as soon as the next one is asked for."""
    whole = list(iterable)
    keys = whole if key is None else [key(item) for item in whole]
    first = 0
    while first < len(whole):
        end = first + 1
        while end < len(whole) and keys[end] == keys[first]:
            end += 1
        group = iter(whole[first:end])
        yield keys[first], group
        _use_up(group)
        first = end


def _use_up(group: Any) -> None:
    if isinstance(group, OfOpenLength):
        group.use_up()
    else:
        collections.deque(group, maxlen=0)


@stands_for(itertools.accumulate)
def accumulate(
    items: Iterable[Any], func: Callable[[Any, Any], Any] = operator.add, *, initial: Any = None
) -> Iterator[Any]:
    whole = list(items)
    total, rest = (whole[0], whole[1:]) if initial is None else (initial, whole)
    yield total
    for item in rest:
        total = func(total, item)
        yield total


@stands_for(itertools.product)
def product(*several: Iterable[Any], repeat: int = 1) -> Iterator[Any]:
    return _nested((), tuple([list(items) for items in several] * repeat))


@rewritten
def _nested(chosen: tuple[Any, ...], axes: tuple[Any, ...]) -> Iterator[Any]:
    if not axes:
        yield chosen
    else:
        for item in axes[0]:
            yield from _nested((*chosen, item), axes[1:])


@stands_for(itertools.combinations)
def combinations(items: Iterable[Any], r: int) -> Iterator[Any]:
    return _chosen(list(items), (), 0, r)


@rewritten
def _chosen(whole: list[Any], chosen: tuple[Any, ...], first: int, count: int) -> Iterator[Any]:
    if count == 0:
        yield chosen
    else:
        for i in range(first, len(whole)):
            yield from _chosen(whole, (*chosen, whole[i]), i + 1, count - 1)


# What can be looked up by its number is: a loop over it needs no list of all.


@stands_for(itertools.starmap)
def starmap(function: Callable[..., Any], items: Iterable[Any]) -> Iterable[Any]:
    return (function(*item) for item in items)


@stands_for(itertools.pairwise)
def pairwise(items: Iterable[Any]) -> Iterable[Any]:
    whole = list(items)

    def pair(i: int) -> tuple[Any, Any]:
        return whole[i], whole[i + 1]

    return map(pair, range(len(whole) - 1))


@stands_for(itertools.zip_longest)
def zip_longest(*several: Iterable[Any], fillvalue: Any = None) -> Iterable[Any]:
    wholes = [list(items) for items in several]

    def row(i: int) -> tuple[Any, ...]:
        return tuple([whole[i] if i < len(whole) else fillvalue for whole in wholes])

    return map(row, range(max([len(whole) for whole in wholes])))


@stands_for(
    itertools.islice, when=lambda control, items, *bounds: any_open(control, items) or control.holds_traced(bounds)
)
def islice(items: Iterable[Any], *bounds: Any) -> Iterable[Any]:
    return list(items)[slice(*bounds)]


@stands_for(itertools.tee)
def tee(items: Iterable[Any], count: int = 2) -> tuple[Iterator[Any], ...]:
    whole = list(items)
    return tuple([iter(whole) for _ in range(count)])
