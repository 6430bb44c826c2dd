"""Eager judges what the trace assumed about free sizes.

For each assumption there are sizes that break it. If eager refuses them all, the model itself needs the assumption and
nothing is lost. If eager accepts one, then either the user's own code took a decision on a size, and the other arm
would be missing from the graph: an error; or torch (or a library, for speed) decided, and the exported model has to
show on exactly those sizes that the decision made no difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from trueport.capture.assumptions import (
    Judged,
    decisions_on_numbers,
    judge,
    numbers_that_break,
    taken_by_libraries,
    tied_sizes,
)
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.diagnostics.rules.tp301_size_frozen import SizeFrozen
from trueport.diagnostics.rules.tp302_size_narrowed import SizeNarrowed
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.diagnostics.rules.tp305_size_assumed import SizeAssumed
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import Graph, SizeAssumption
from trueport.load.job import FreeSize, Job, sizes_in
from trueport.torch_internals.expressions import truth_at, with_sizes
from trueport.verify.inputs.draw import draw

Sizes = Mapping[str, int]
Way: TypeAlias = tuple[object, ...]
"""The lines that led to an error, and its class."""
Refuses = Callable[[Sequence[object]], Way | None]

_TRIES_PER_SIZE = 3
_SIZES_TRIED = 4
_SIZES_WANTED = 2
"""How many sizes of each sort (empty or single; others) eager is asked about, and how many of them are enough."""
_NUMBERS_PER_DECISION, _NUMBERS_TRIED = 2, 8
"""How many values of a number argument are compared on the other side of a decision, and in all."""


@dataclass(frozen=True, slots=True)
class TraceJudged:
    """What to tell of a trace, and the sizes and inputs on which the exported model must be compared with eager."""

    diagnostics: tuple[Diagnostic, ...]
    must_try: tuple[Sizes, ...]
    must_try_values: tuple[Sequence[object], ...] = ()
    relations: tuple[SizeAssumption, ...] = ()
    """What ties sizes to one another, and was told: sizes that break one are none of the model's."""
    symbols: Mapping[sympy.Symbol, FreeSize] = field(default_factory=dict)

    def admits(self, sizes: Sizes) -> bool:
        """Whether sizes keep to the relations."""
        return not any(_is_broken(relation, self.symbols, sizes) for relation in self.relations)


def judge_sizes(graph: Graph, job: Job, refuses: Refuses, verified: bool = True, seed: int = 0) -> TraceJudged:
    """Settle every assumption of the trace. `refuses` runs eager on one value per leaf and says where it raised.

    What only verification can settle is left alone where there will be none.
    """
    court = _Court(graph, job, refuses, verified, seed)
    for assumption in decisions_on_numbers(graph):
        court.settle_number(assumption)
    for judged in judge(graph):
        court.settle(judged)
    return TraceJudged(
        tuple(court.diagnostics),
        tuple(court.must_try),
        tuple(court.must_try_values[:_NUMBERS_TRIED]),
        tuple(court.relations),
        dict(graph.size_symbols),
    )


class _Court:
    def __init__(self, graph: Graph, job: Job, refuses: Refuses, verified: bool, seed: int) -> None:
        self._graph, self._job, self._refuses, self._verified, self._seed = graph, job, refuses, verified, seed
        self._values = [leaf.value for leaf in job.leaves]
        self._example = sizes_in(job.leaves, self._values)
        self._free = {size.name: size for size in job.free_sizes}
        self._tied = tied_sizes(graph)
        self._known: dict[tuple[tuple[str, int], ...], bool] = {}
        self._by_sizes: set[Way] = set()
        """Where eager raised for all values that were tried with some sizes: other sizes need no other values there."""
        self._said: set[tuple[object, ...]] = set()
        self.diagnostics: list[Diagnostic] = []
        self.must_try: list[Sizes] = []
        self.must_try_values: list[Sequence[object]] = []
        self.relations: list[SizeAssumption] = []

    def say(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.message, diagnostic.where)
        if key not in self._said:
            self._said.add(key)
            self.diagnostics.append(diagnostic)

    def settle(self, judged: Judged) -> None:
        assumption = judged.assumption
        if judged.only is not None:
            self.say(self._frozen(judged, judged.only))
            return
        if judged.relates and not assumption.user_code and self._is_needed(judged):
            self.say(_related(self._graph, assumption))
            self.relations.append(assumption)
            return
        if not self._verified and not assumption.user_code:
            return
        accepted = self._accepted(judged.broken_by)
        if not accepted:
            if assumption.user_code:
                self.say(_needed_by_eager(self._graph, assumption, judged))
            return
        where = assumption.place.where
        if assumption.user_code and not (where and where.is_installed):
            self.say(self._narrowed(judged, accepted))
            return
        for sizes in accepted:
            if sizes not in self.must_try:
                self.must_try.append(sizes)
        if assumption.user_code:
            self.say(_library_decided(self._graph, assumption, accepted))

    def _is_needed(self, judged: Judged) -> bool:
        """Whether the model needs a relation between sizes, and not torch's own idea of a result alone: it does unless
        eager accepts sizes that break it and broadcast nothing. That two sizes are equal is not asked."""
        sides = judged.assumption.expr.args
        open_ = [side for side in sides if side.free_symbols]
        symbols = {size.name: symbol for symbol, size in self._graph.size_symbols.items()}
        if not self._verified or all(side in self._graph.size_symbols for side in sides):
            return True

        def broadcasts(sizes: Sizes) -> bool:
            values = {symbols[name]: size for name, size in sizes.items()}
            return any(n <= 1 for n in sizes.values()) or any(with_sizes(side, values) in (0, 1) for side in open_)

        return not self._accepted([sizes for sizes in judged.broken_by if not broadcasts(sizes)])

    def settle_number(self, assumption: SizeAssumption) -> None:
        """A number that eager refuses takes nothing away. One that it accepts makes torch run something else: where
        that is no plain freezing, verification has to show that it comes to the same.
        """
        broken_by = numbers_that_break(self._graph, assumption)
        if broken_by is None:
            self.say(_number_frozen(self._graph, assumption))
            return
        accepted = [values for numbers in broken_by if not self._refuses(values := self._with(numbers))]
        if accepted and (isinstance(assumption.expr, sympy.Eq) or not self._verified):
            self.say(_number_frozen(self._graph, assumption))
        self.must_try_values += accepted[:_NUMBERS_PER_DECISION]

    def _with(self, numbers: Mapping[str, int]) -> list[object]:
        return [numbers.get(leaf.name, leaf.value) for leaf in self._job.leaves]

    def _accepted(self, broken_by: Sequence[Sizes]) -> list[Sizes]:
        """Sizes that break an assumption and that eager accepts; edge sizes and others each get their chance. Those
        that break another one, too, come first: eager was asked about them, and they will be compared in any case."""
        edges = [s for s in broken_by if any(n <= 1 for n in s.values())]
        others = [s for s in broken_by if s not in edges]
        found: list[Sizes] = []
        for sort in (others, edges):
            every = sorted(map(self._complete, sort), key=lambda sizes: not self._known.get(_key(sizes), False))
            complete = every[:_SIZES_TRIED]
            found += itertools.islice((sizes for sizes in complete if self._eager_accepts(sizes)), _SIZES_WANTED)
        return found

    def _complete(self, sizes: Sizes) -> Sizes:
        """All free sizes: those given, those tied to them, the others as in the example."""
        complete = dict(self._example)
        for name, size in sizes.items():
            for same in self._tied.get(name, {name}):
                complete[same] = size
        return complete

    def _eager_accepts(self, sizes: Sizes) -> bool:
        key = _key(sizes)
        if key not in self._known:
            drawn = itertools.islice(draw(self._job, self._values, self._seed, [sizes]), _TRIES_PER_SIZE)
            self._known[key] = self._accepts_one(d.values for d in drawn if d.sizes == sizes)
        return self._known[key]

    def _accepts_one(self, drawn: Iterable[Sequence[object]]) -> bool:
        ways: set[Way] = set()
        for values in drawn:
            way = self._refuses(values)
            if way is None:
                self._by_sizes -= ways
                return True
            ways.add(way)
            if way in self._by_sizes:
                return False
        if len(ways) == 1:
            self._by_sizes |= ways
        return False

    def _frozen(self, judged: Judged, only: int) -> Diagnostic:
        name = judged.assumption.symbols[0]
        others = [full[name] for sizes in judged.broken_by[:4] if self._eager_accepts(full := self._complete(sizes))]
        seen = f"traced with {name}={only}; eager " + (
            f"also accepts {', '.join(map(str, others))}" if others else "refuses the other sizes that were tried"
        )
        auto = self._free[name].auto
        return SizeFrozen(
            message=f"`{name}` was declared free, but this line only holds for {only}",
            place=judged.assumption.place,
            label=f"makes `{name}` equal {only}",
            seen=(seen,),
            fix=f"use the size itself instead of a number, or do not declare `{name}` free",
            facts={"size": name, "value": str(only)},
            severity=Severity.WARNING if auto else None,
        )

    def _narrowed(self, judged: Judged, accepted: Sequence[Sizes]) -> Diagnostic:
        assumption = judged.assumption
        text = readable(self._graph, assumption)
        missing = "; ".join(_words(sizes, assumption.symbols) for sizes in accepted[:3])
        return SizeNarrowed(
            message=f"this line decides by a free size, and only the side where {text} would be exported",
            place=assumption.place,
            label=f"taken as: {text}",
            seen=(f"traced with {_words(self._example, assumption.symbols)}; eager also accepts {missing}",),
            fix="compute without the branch, or narrow the declared range of the size to one side of it",
        )


def _key(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def first_broken(graph: Graph, sizes: Sizes) -> SizeAssumption | None:
    """The first assumption with a place that these sizes break, if one does."""
    broken = (each for each in graph.assumptions if _is_broken(each, graph.size_symbols, sizes))
    return next((each for each in broken if each.place.where is not None), None)


def goes_another_way(graph: Graph, sizes: Sizes) -> bool:
    """Whether an installed library decides otherwise at these sizes than in the trace."""
    return any(_is_broken(each, graph.size_symbols, sizes) for each in taken_by_libraries(graph))


def _is_broken(assumption: SizeAssumption, symbols: Mapping[sympy.Symbol, FreeSize], sizes: Sizes) -> bool:
    return (
        truth_at(assumption.expr, {s: sizes[free.name] for s, free in symbols.items() if free.name in sizes}) is False
    )


def _number_frozen(graph: Graph, assumption: SizeAssumption) -> Diagnostic:
    name = next(graph.number_symbols[s] for s in assumption.expr.free_symbols if s in graph.number_symbols)
    return NumberFrozen(
        message=f"the number `{name}` decides here what runs, and would be baked in",
        place=assumption.place,
        label=f"taken as: {readable(graph, assumption)}",
        fix=told(
            "pass ", option("constants", [name]), " to fix its value, or compute with it instead of deciding by it"
        ),
        facts={"number": name},
    )


def _related(graph: Graph, assumption: SizeAssumption) -> Diagnostic:
    return SizesRelated(
        message=f"the model needs {readable(graph, assumption)}",
        place=assumption.place,
        label="ties the sizes to one another",
    )


def _needed_by_eager(graph: Graph, assumption: SizeAssumption, judged: Judged) -> Diagnostic:
    tried = "; ".join(_words(sizes, assumption.symbols) for sizes in judged.broken_by[:3])
    return SizeAssumed(
        message=f"the model needs {readable(graph, assumption)}; eager raises otherwise",
        place=assumption.place,
        seen=(f"eager refuses {tried}",),
    )


def _library_decided(graph: Graph, assumption: SizeAssumption, accepted: Sequence[Sizes]) -> Diagnostic:
    tried = "; ".join(_words(sizes, assumption.symbols) for sizes in accepted[:3])
    return SizeAssumed(
        message=f"a library decides here by a free size; the side where {readable(graph, assumption)} is exported",
        place=assumption.place,
        seen=(f"compared with eager on the other side, too: {tried}",),
    )


def readable(graph: Graph, assumption: SizeAssumption) -> str:
    """The expression with the user's names for the sizes."""
    names = {symbol: sympy.Symbol(size.name, integer=True) for symbol, size in graph.size_symbols.items()}
    names |= {symbol: sympy.Symbol(name) for symbol, name in graph.number_symbols.items()}
    expr = assumption.expr.xreplace(names)
    spelt = _AsPython().doprint
    if isinstance(expr, sympy.Eq):
        return f"{spelt(expr.lhs)} = {spelt(expr.rhs)}"
    if isinstance(expr, sympy.Ne):
        return f"{spelt(expr.lhs)} is not {spelt(expr.rhs)}"
    return str(spelt(expr))


class _AsPython(StrPrinter):  # type: ignore[misc]  # sympy has no types
    """Spells `Mod(batch, 3)` and `FloorDiv(batch, 2)` as the user writes them. Called by sympy, by the class's name."""

    def _infix(self, expr: sympy.Basic, sign: str) -> str:
        left, right = (self.parenthesize(side, PRECEDENCE["Mul"], strict=True) for side in expr.args)
        return f"{left} {sign} {right}"

    def _print_Mod(self, expr: sympy.Basic) -> str:
        return self._infix(expr, "%")

    _print_PythonMod = _print_Mod

    def _print_FloorDiv(self, expr: sympy.Basic) -> str:
        return self._infix(expr, "//")

    _print_CleanDiv = _print_FloorDiv


def _words(sizes: Sizes, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={sizes[name]}" for name in names if name in sizes)
