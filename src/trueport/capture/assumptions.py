"""What the trace's size decisions mean: which free sizes they leave free.

A decision is an expression that was true for the sizes of the trace. Whether it costs anything is asked by trying sizes
on it: if none in the declared range breaks it, nothing was assumed; those that break it are for eager to judge, since
an assumption that eager makes too (it raises for the other sizes) takes nothing away from the model.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import sympy

from trueport.capture import limits
from trueport.graph.regions import Graph, SizeAssumption
from trueport.load.job import FreeSize
from trueport.torch_internals.expressions import as_python, with_sizes

_ALWAYS = (*range(10), 11, 12, 13, 15, 16, 17, 31, 32, 33, 64, 65, 97, 128, 256, 512, 1000, 1024, 4097)
_IN_PAIRS = (0, 1, 2, 3, 4, 5, 7, 8, 11, 16)

Asked = tuple[sympy.Symbol, FreeSize, int]
"""A free size that an expression speaks of, and its size in the trace."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An assumption with the sizes that break it, nearest to the example first."""

    assumption: SizeAssumption
    broken_by: tuple[Mapping[str, int], ...]
    only: int | None
    """The one value that a single free size is held to, where the assumption freezes it."""

    @property
    def relates(self) -> bool:
        """Whether it ties two or more sizes to one another by an equation."""
        return len(self.assumption.symbols) > 1 and isinstance(self.assumption.expr, sympy.Eq)


def judge(graph: Graph) -> tuple[Judged, ...]:
    """The assumptions that do take sizes away, each once, in the order in which they were made."""
    return _judge_all(graph, graph.assumptions)


def _judge_all(graph: Graph, assumptions: Iterable[SizeAssumption]) -> tuple[Judged, ...]:
    found: dict[tuple[object, object], Judged] = {}
    for assumption in assumptions:
        if any(s in graph.number_symbols for s in assumption.expr.free_symbols):
            continue
        judged = _judge(graph, _without_common_sizes(graph, assumption))
        if judged.broken_by:
            found.setdefault((judged.assumption.expr, assumption.place.where), judged)
    return tuple(found.values())


def library_decisions(graph: Graph) -> bool:
    """Whether an installed library branched on a free size, and only the side of the example was captured."""
    return bool(_judge_all(graph, taken_by_libraries(graph)))


def taken_by_libraries(graph: Graph) -> list[SizeAssumption]:
    """What Python code of installed libraries decided."""
    return [
        assumption
        for assumption in graph.assumptions
        if assumption.user_code and (where := assumption.place.where) is not None and where.is_installed
    ]


def tied_sizes(graph: Graph) -> dict[str, set[str]]:
    """Free sizes that the model needs equal, by name. An equality that Python code asked for is a decision, no need."""
    groups: dict[str, set[str]] = {}
    for assumption in graph.assumptions:
        expr = assumption.expr
        if assumption.user_code or not isinstance(expr, sympy.Eq):
            continue
        if all(side in graph.size_symbols for side in expr.args):
            names = [graph.size_symbols[side].name for side in expr.args]
            merged = set().union(*(groups.get(name, {name}) for name in names))
            groups |= dict.fromkeys(merged, merged)
    return groups


def declared_sizes(graph: Graph) -> dict[sympy.Symbol, str | int]:
    """What the model's file calls each free size: equal ones by the first one's name.

    A size that was left to us (`Dim.AUTO`) and turned out to be fixed is a number there.
    """
    tied = tied_sizes(graph)
    order = [size.name for size in graph.size_symbols.values()]
    declared: dict[sympy.Symbol, str | int] = {
        symbol: min(tied.get(size.name, {size.name}), key=order.index) for symbol, size in graph.size_symbols.items()
    }
    for assumption in (_without_common_sizes(graph, each) for each in graph.assumptions):
        spoken_of = tuple(assumption.expr.free_symbols)
        size = graph.size_symbols.get(spoken_of[0]) if len(spoken_of) == 1 else None
        if size is not None and size.auto and (only := _judge(graph, assumption).only) is not None:
            declared[spoken_of[0]] = only
    return declared


def decisions_on_numbers(graph: Graph) -> tuple[SizeAssumption, ...]:
    """Decisions that were taken on a Python-number argument, each once."""
    numbers = set(graph.number_symbols)
    found = {(a.expr, a.place.where): a for a in graph.assumptions if numbers & a.expr.free_symbols}
    return tuple(found.values())


def numbers_that_break(graph: Graph, assumption: SizeAssumption) -> tuple[dict[str, int], ...] | None:
    """Values of a number argument, nearest to the example first, that a decision of torch's does not hold for.

    None where that cannot be told: the number is no integer, or there are several, or the user's own code decides.
    """
    numbers = [s for s in assumption.expr.free_symbols if s in graph.number_symbols]
    if assumption.user_code or len(numbers) != 1 or not isinstance(graph.examples.get(numbers[0]), int):
        return None
    (number,) = numbers
    others = {s: sympy.Integer(int(graph.examples[s])) for s in assumption.expr.free_symbols - {number}}
    expr, example = assumption.expr.xreplace(others), int(graph.examples[number])
    mentioned = {sign * int(n) + d for n in expr.atoms(sympy.Integer) for sign in (1, -1) for d in (-1, 0, 1)}
    tried = {*range(-4, 10), *mentioned, *range(example - 2, example + 3), 2 * example, -example, 100, -100}
    broken = []
    for value in sorted(tried, key=lambda n: (abs(n - example), n)):
        if with_sizes(expr, {number: value}) in (sympy.false, None):  # without a meaning, eager will tell
            broken.append({graph.number_symbols[number]: value})
    return tuple(broken[: limits.SIZES_BROKEN])


def _without_common_sizes(graph: Graph, assumption: SizeAssumption) -> SizeAssumption:
    """`12*B*S = 24*S` as `B = 2`: what holds for empty tensors alone does not tie the two sizes, it freezes one.

    `x.view(2, x.shape[1], 12)` asks for it with two free sizes.
    """
    expr = assumption.expr
    if not isinstance(expr, sympy.Eq) or len(expr.free_symbols) < 2 or not expr.free_symbols <= set(graph.size_symbols):
        return assumption
    difference = expr.lhs - expr.rhs
    if not difference.is_polynomial(*expr.free_symbols):
        return assumption
    factors = [factor for factor, _ in sympy.factor_list(difference)[1] if factor not in expr.free_symbols]
    if len(factors) != 1 or len(factors[0].free_symbols) != 1:
        return assumption
    (symbol,) = factors[0].free_symbols
    values = [value for value in sympy.solve(factors[0], symbol) if value.is_Integer and value >= 0]
    if len(values) != 1:
        return assumption
    return replace(assumption, expr=sympy.Eq(symbol, values[0]), symbols=(graph.size_symbols[symbol].name,))


def _judge(graph: Graph, assumption: SizeAssumption) -> Judged:
    symbols = sorted((s for s in assumption.expr.free_symbols if s in graph.size_symbols), key=str)
    asked = tuple((s, graph.size_symbols[s], int(graph.examples[s])) for s in symbols)
    return Judged(assumption, *_tried(assumption.expr, asked))


@functools.lru_cache(maxsize=4096)
def _tried(expr: sympy.Basic, symbols: tuple[Asked, ...]) -> tuple[tuple[Mapping[str, int], ...], int | None]:
    """The sizes that break an expression, and the only one that does not. Kept, because torch asks the same of a size
    again and again."""
    broken: list[dict[str, int]] = []
    holding: set[int] = set()
    names = {symbol: free.name for symbol, free, _ in symbols}
    test = as_python(expr, tuple(names))
    for sizes in _candidates(expr, symbols):
        try:
            holds = test(*sizes.values())
        except ZeroDivisionError:  # the expression has no meaning for these sizes: eager will tell
            holds = False
        if holds is True:
            holding.update(sizes.values())
        elif holds is False:
            broken.append({names[s]: n for s, n in sizes.items()})
            if len(symbols) > 1 and len(broken) == limits.SIZES_BROKEN:
                break
    # What the example itself breaks was assumed for larger sizes, and freezes none.
    only = symbols[0][2] if len(symbols) == 1 and holding == {symbols[0][2]} else None
    return tuple(broken[: limits.SIZES_BROKEN]), only


def _candidates(expr: sympy.Basic, symbols: tuple[Asked, ...]) -> Iterator[Mapping[sympy.Symbol, int]]:
    """Sizes in the declared ranges: small ones, those around the numbers in the expression, the bounds.

    Of three or more sizes each by itself first, then as many combinations as there is time for.
    """
    mentioned = {int(n) + d for n in expr.atoms(sympy.Integer) for d in (-1, 0, 1) if abs(int(n)) < 1 << 20}
    per_symbol = []
    for _, free, example in symbols:
        tried = {*(_ALWAYS if len(symbols) == 1 else _IN_PAIRS), *mentioned, free.minimum, example, 2 * example}
        if free.maximum is not None:
            tried.add(free.maximum)
        admitted = [n for n in tried if n >= 0 and free.admits(n)]
        per_symbol.append(sorted(admitted, key=lambda n: (abs(n - example), n)))
    order = [symbol for symbol, _, _ in symbols]
    if len(symbols) <= 2:
        yield from (dict(zip(order, together, strict=True)) for together in itertools.product(*per_symbol))
        return
    examples = {symbol: sizes[0] for symbol, sizes in zip(order, per_symbol, strict=True)}
    for symbol, sizes in zip(order, per_symbol, strict=True):
        yield from ({**examples, symbol: size} for size in sizes)
    together = itertools.product(*(sizes[:6] for sizes in per_symbol))
    yield from (dict(zip(order, each, strict=True)) for each in itertools.islice(together, limits.SIZES_TRIED))
