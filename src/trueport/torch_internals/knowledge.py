"""What a ShapeEnv has learned about sizes, so that it can be forgotten again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from trueport.torch_internals.releases import forget_hints


@dataclass(frozen=True)
class Knowledge:
    """Ranges, equalities and other facts, as they were known at some point of a trace.

    `x[1]` inside an arm tells torch that x has two rows, and it would answer every later question with that. But the
    other arm, and what comes after the branch, also run where x has none.
    """

    ranges: Mapping[sympy.Symbol, Any]
    replacements: Mapping[sympy.Symbol, sympy.Expr]
    axioms: Mapping[Any, Any]
    asserts: Mapping[Any, int]
    divisible: frozenset[Any]
    guards: int

    @classmethod
    def of(cls, env: ShapeEnv) -> Knowledge:
        return cls(
            dict(env.var_to_range),
            dict(env.replacements),
            dict(env.axioms),
            {symbol: len(known) for symbol, known in env.deferred_runtime_asserts.items()},
            frozenset(env.divisible),
            len(env.guards),
        )

    def restore(self, env: ShapeEnv) -> bool:
        """Forget what was learned since about the symbols of that time alone; True if there was anything."""
        changed = self._restore_facts(env)
        for symbol, known in self.ranges.items():
            if env.var_to_range[symbol] != known:
                env.var_to_range[symbol] = known
                changed = True
        if changed:
            env._resimplify_floor_div_axioms = True
            forget_answers(env)
        return changed

    def _restore_facts(self, env: ShapeEnv) -> bool:
        changed = False
        for now, before in ((env.replacements, self.replacements), (env.axioms, self.axioms)):
            kept = {fact: value for fact, value in now.items() if fact not in before and not self._is_old(fact)}
            if len(now) != len(before) + len(kept) or any(now[fact] is not value for fact, value in before.items()):
                now.clear()
                now.update({**before, **kept})
                changed = True
        for symbol, asserts in env.deferred_runtime_asserts.items():
            changed |= self._shortened(asserts, self.asserts.get(symbol, 0))
        changed |= self._shortened(env.guards, self.guards)
        learned = {fact for fact in env.divisible - self.divisible if self._is_old(fact)}
        env.divisible -= learned
        return changed or bool(learned)

    def _shortened(self, facts: list[Any], count: int) -> bool:
        kept = [fact for fact in facts[count:] if not self._is_old(fact.expr)]
        forgotten = len(kept) < len(facts) - count
        if forgotten:
            facts[count:] = kept
        return forgotten

    def _is_old(self, fact: Hashable) -> bool:
        """Whether it speaks of nothing but symbols that were there then."""
        return isinstance(fact, sympy.Basic) and fact.free_symbols <= self.ranges.keys()


def forget_answers(env: ShapeEnv) -> None:
    """Torch remembers what it answered, some of it whatever is learned afterwards: something else is known now."""
    env._version_counter += 1
    ShapeEnv._inner_evaluate_expr.cache_clear()
    forget_hints()


def forget_environment() -> None:
    """Torch remembers answers by the environment that gave them, and so keeps environments of traces that are over."""
    for method in vars(ShapeEnv).values():
        if callable(clear := getattr(method, "cache_clear", None)):
            clear()
