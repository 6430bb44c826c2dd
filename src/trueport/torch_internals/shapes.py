"""Torch's environment of symbolic sizes, made to say what it decides about them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sympy
import torch
import torch.fx.experimental._config as _shape_config
from torch.fx.experimental.sym_node import SymNode as _SymNode
from torch.fx.experimental.symbolic_shapes import DimDynamic as _DimDynamic
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode as _GuardOnDataDependentSymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv as _ShapeEnv
from torch.utils._sympy.functions import FloorDiv as _FloorDiv
from torch.utils._sympy.value_ranges import ValueRanges as _ValueRanges

from trueport.torch_internals.bounds import Bounds, narrowed, settled
from trueport.torch_internals.examples import example_where
from trueport.torch_internals.expressions import with_sizes
from trueport.torch_internals.knowledge import Knowledge, forget_answers, forget_environment
from trueport.torch_internals.multiples import without_floors
from trueport.torch_internals.releases import example_sizes
from trueport.torch_internals.without_dynamo import NOWHERE, NameOnly, without_compiler_in


def size_oblivious() -> contextlib.AbstractContextManager[None]:
    """Torch's own "is this size 0 or 1?" tests answer no for free sizes, instead of guarding on the example."""
    patched: contextlib.AbstractContextManager[None] = _shape_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    return patched


def sizes_by_example() -> contextlib.AbstractContextManager[None]:
    """The opposite, where "no" leads nowhere: the example answers, and its answer is assumed, and judged later."""
    patched: contextlib.AbstractContextManager[None] = _shape_config.patch(backed_size_oblivious=False)  # type: ignore[attr-defined]
    return patched


_OF_CONVOLUTIONS = ("_select_conv_backend", "_conv_determine_backend_memory_format")
_OTHER_LENGTHS = (12, 1000, 5, 2, 1, 0)
_MANY = (10**9, 10**9 + 7, 720720**2)


class DecidingShapes(_ShapeEnv):
    """A ShapeEnv that tells `on_guard` each time the trace had to decide something about a size.

    `before` hears of each question first, and says whether it is Python code of the user's that asks; or it answers.
    """

    _make, _init = without_compiler_in(_ShapeEnv.__init__), without_compiler_in(_ShapeEnv._init)

    def __init__(
        self, before: Callable[[sympy.Basic], bool | sympy.Basic], on_guard: Callable[[sympy.Basic], None]
    ) -> None:
        self._make(specialize_zero_one=False, duck_shape=False)
        self._before, self._on_guard = before, on_guard
        self._deciding = False
        self._taken_as_one: set[sympy.Basic] = set()
        self._facts: dict[sympy.Basic, sympy.Basic] = {}
        self._bounds: Bounds = {}
        self._never_negative: tuple[sympy.Expr, ...] = ()
        """Of what is known here: the expressions that are 0 or more."""
        self._chosen: dict[sympy.Basic, sympy.Basic] = {}
        """What torch's own kernels were told before; they ask the same for every layer."""
        self._by_floors: dict[tuple[sympy.Basic, int], sympy.Basic | None] = {}
        self._unnoted, self._as_for_others = False, False
        self._sizes: frozenset[sympy.Basic] = frozenset()
        """Of the tensors that a kernel is given: 0 or more, whatever they were computed from."""
        self._numbers: set[sympy.Symbol] = set()
        self._elsewhere, self._trying = False, False
        """Whether torch was shown other sizes than the example's, for an arm that those take; numbers remember it."""

    def evaluate_expr(self, orig_expr: sympy.Basic, *args: Any, **kwargs: Any) -> sympy.Basic:
        if orig_expr in self._facts:
            return self._facts[orig_expr]
        forgiving = kwargs.get("fallback_value") is not None or (len(args) > 3 and args[3] is not None)
        deciding, self._deciding = self._deciding, True
        general, by_user, axioms = None, False, self.axioms
        try:
            if orig_expr.free_symbols and not forgiving and self._maybe_evaluate_static(orig_expr) is None:
                said = self._before(orig_expr)
                if isinstance(said, sympy.Basic):
                    return said
                by_user = said
                if not by_user and orig_expr in self._chosen:
                    return self._chosen[orig_expr]
                if self._unnoted and not by_user and (answer := self._by_example(orig_expr)) is not None:
                    return answer
                if self._as_for_others and not by_user and (usual := self._unlike_the_example(orig_expr)) is not None:
                    self._on_guard(orig_expr if usual == sympy.true else sympy.Not(orig_expr))
                    return usual
                general = None if by_user else self._in_general(orig_expr)
                axioms = dict(self.axioms)
            known = len(self.guards)
            if self._elsewhere:  # what the question brings along may be the answer of another example
                args, kwargs = (None, *args[1:]), {key: value for key, value in kwargs.items() if key != "hint"}
            decided: sympy.Basic = super().evaluate_expr(orig_expr, *args, **kwargs)
        except _GuardOnDataDependentSymNode:
            if general is None:
                raise
            return general
        finally:
            self._deciding = deciding
        made = [guard.expr for guard in self.guards[known:]]
        if made and not any(isinstance(expr, sympy.Eq) for expr in made):
            self.axioms = axioms
            if not by_user:
                self._chosen[orig_expr] = decided
        for expr in () if self._unnoted else made:
            self._on_guard(expr)
        return decided

    def _get_stack_summary(self, *_args: Any, **_kwargs: Any) -> Any:
        """Where a guard comes from, `before` knows; torch would only log it."""
        return NOWHERE, ""

    def let_go(self) -> None:
        """Nobody asks any more. Every fake tensor knows this environment, and shall not know the trace through it."""
        self._before, self._on_guard = lambda _: False, lambda _: None
        forget_environment()

    @contextlib.contextmanager
    def checks_of_numbers_unnoted(self) -> Iterator[None]:
        """What an operator demands of a number argument (`out[0]`: at least one round) is no decision: eager raises."""
        itself = _SymNode.expect_true

        def expected(node: _SymNode, file: str, line: int) -> bool:
            if not node.expr.free_symbols & self._numbers:
                return itself(node, file, line)
            with self.choosing_a_kernel():
                return itself(node, file, line)

        _SymNode.expect_true = expected  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            _SymNode.expect_true = itself  # type: ignore[method-assign]

    def _refine_ranges(self, expr: Any) -> None:
        """Nothing is concluded about free sizes from what was decided about them, but for equations.

        A kernel that asks `n < 16` for the sake of speed would otherwise have answered the user's own `if n > 20`, and
        nobody would know. A decision is a choice of this trace; whoever asks something else is to ask.
        """
        if isinstance(expr, sympy.Eq) or not all(symbol in example_sizes(self) for symbol in expr.free_symbols):
            super()._refine_ranges(expr)

    @contextlib.contextmanager
    def choosing_a_kernel(self) -> Iterator[None]:
        """What is asked meanwhile chooses between kernels that give the same: no assumption of the model's."""
        before, self._unnoted = self._unnoted, True
        try:
            yield
        finally:
            self._unnoted = before

    @contextlib.contextmanager
    def given(self, tensors: Iterable[torch.Tensor]) -> Iterator[None]:
        """What is asked meanwhile is asked by a kernel that is given these tensors."""
        sizes: Iterator[Any] = itertools.chain.from_iterable(tensor.shape for tensor in tensors)
        before = self._sizes
        self._sizes = frozenset(size.node.expr for size in sizes if isinstance(size, torch.SymInt))
        try:
            yield
        finally:
            self._sizes = before

    @contextlib.contextmanager
    def as_for_larger_sizes(self) -> Iterator[None]:
        """Where the example's sizes make an exception (a picture of one pixel), torch is told what holds for others.

        For an operator that gives the same values whatever it is told: a reshape asks for strides, to see whether its
        result is a view. What the example itself then gives is compared, since the answer is noted.
        """
        before, self._as_for_others = self._as_for_others, True
        try:
            yield
        finally:
            self._as_for_others = before

    def by_usual_strides(self, call: Callable[[], Any]) -> Any:
        """A reshape is a view where strides allow it, and they allow more where a size is 1: torch is told what holds
        for larger sizes. Where it refuses that, by the example."""
        if not self._as_for_others:
            with contextlib.suppress(IndexError, RuntimeError, ValueError), self.as_for_larger_sizes():
                return call()
        return call()

    @contextlib.contextmanager
    def convolutions_unnoted(self) -> Iterator[None]:
        """Torch has a convolution choose its kernel by the batch (16 and more are for mkldnn), also where none runs;
        and its layout by whether the picture is more than one pixel."""
        asked = {name: getattr(torch._C, name) for name in _OF_CONVOLUTIONS}

        def unnoted(itself: Callable[..., Any]) -> Callable[..., Any]:
            def chosen(*args: Any, **kwargs: Any) -> Any:
                with self.choosing_a_kernel():
                    return itself(*args, **kwargs)

            return chosen

        for name, itself in asked.items():
            setattr(torch._C, name, unnoted(itself))
        try:
            yield
        finally:
            for name, itself in asked.items():
                setattr(torch._C, name, itself)

    def _maybe_evaluate_static(self, expr: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """What is certain about an expression; and, where a kernel asks whether to broadcast, what holds in general.

        `x[:1]` has `Min(1, n)` rows, which is 1 but for an empty x. Torch takes "not certainly 1" for "not 1", and
        would refuse `x + x[:1]`. It is taken as 1, and noted as an assumption: the empty x is a size to check.
        """
        if expr in self._facts:
            return self._facts[expr]
        try:
            known = super()._maybe_evaluate_static(expr, *args, **kwargs)
        except AssertionError as failure:
            if "NaN" not in str(failure):
                raise
            return None  # torch's ranges know no `inf - x`, which a first round may ask before the inf is carried
        if known is None and expr.has(_FloorDiv):
            asked = (expr, self._version_counter)
            if asked not in self._by_floors:
                self._by_floors[asked] = self._known_by_floors(expr)
            known = self._by_floors[asked]
        if known is not None or self._deciding or not isinstance(expr, (sympy.Eq, sympy.Ne)):
            return known
        one, other = (side for side in expr.args)
        size = one if other == 1 else other if one == 1 else None
        if size is None or size.is_Symbol or not self._is_one_in_general(size):
            return None
        if size not in self._taken_as_one:
            self._taken_as_one.add(size)
            self._on_guard(sympy.Eq(size, 1))
        return sympy.true if isinstance(expr, sympy.Eq) else sympy.false

    def _known_by_floors(self, expr: Any) -> sympy.Basic | None:
        """Whether an inequality of sizes holds that were rounded: what was padded to a multiple is no shorter."""
        if isinstance(expr, sympy.And):
            parts = [self._maybe_evaluate_static(part) for part in expr.args]
            return sympy.false if sympy.false in parts else sympy.true if all(p == sympy.true for p in parts) else None
        if not isinstance(expr, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
            return None
        more, strict = expr.gts - expr.lts, int(isinstance(expr, (sympy.Lt, sympy.Gt)))
        if not more.is_integer:
            return None
        if self._is_natural(more - strict):
            return sympy.true
        return sympy.false if self._is_natural(strict - 1 - more) else None

    def _is_natural(self, expr: sympy.Expr) -> bool:
        """Whether an integer is 0 or more, by the ranges of its symbols: it is above any number that is above -1."""
        least, scale = without_floors(expr)
        return bool(self.lowest(least) > -scale)

    # Torch's own method remembers its answers, and torch clears them through it.
    _maybe_evaluate_static.cache_clear = _ShapeEnv._maybe_evaluate_static.cache_clear  # type: ignore[attr-defined]

    def _is_one_in_general(self, size: sympy.Basic) -> bool:
        symbols = sorted(size.free_symbols, key=str)
        for times, more in ((1, 0), (1, 1), (1, 7), (1, 1000), (8, 0), (1000, 11)):  # `n // 2000` is 1 for many, too
            examples = {s: times * example_sizes(self).get(s, sympy.Integer(3)) for s in symbols}
            sizes = {s: example + more * (i + 1) for i, (s, example) in enumerate(examples.items())}
            if with_sizes(size, sizes) != 1:
                return False
        return True

    def _in_general(self, expr: sympy.Basic) -> sympy.Basic | None:
        """What a kernel of torch's is told that asks whether a size which only the run tells is 0 or 1: that it is not.

        The way for any size serves those as well; whether it does, the inputs that verification draws tell. The rows of
        n numbers, `n // 64`, are neither 0 nor 1 only where there are many numbers.
        """
        if not expr.is_Relational or not {sympy.Integer(0), sympy.Integer(1)} & set(expr.args):
            return None
        symbols = sorted(expr.free_symbols, key=str)
        if not all(self.var_to_range[s].lower >= 0 for s in symbols) and self._sizes.isdisjoint(expr.args):
            return None

        def at(asked: sympy.Basic, more: int) -> sympy.Basic | None:
            return with_sizes(asked, {s: example_sizes(self).get(s, sympy.Integer(0)) + more for s in symbols})

        answers = {at(expr, more) for more in (4, 7, 1000)}
        many = {at(size, more) for size in expr.args if size.free_symbols for more in _MANY}
        if len(answers) > 1 and all(size is not None and size > 1 for size in many):
            answers = {at(expr, more) for more in _MANY}
        only = answers.pop() if len(answers) == 1 else None
        return only if only in (sympy.true, sympy.false) else None

    def _by_example(self, expr: sympy.Basic) -> sympy.Basic | None:
        """What chooses a kernel, without any conclusion: torch would put 1 for a size which it was told to be 1."""
        examples = example_sizes(self)
        if not all(symbol in examples for symbol in expr.free_symbols):
            return None
        answer = with_sizes(expr, examples)
        return answer if answer in (sympy.true, sympy.false) else None

    def _unlike_the_example(self, expr: sympy.Basic) -> sympy.Basic | None:
        """What holds for all of some larger sizes, if the example goes another way by chance."""
        examples, symbols = example_sizes(self), sorted(expr.free_symbols, key=str)
        if not isinstance(expr, (sympy.Eq, sympy.Ne)) or not all(s in examples for s in symbols):
            return None
        if not self._numbers.isdisjoint(symbols):  # a number of the user's is not assumed to be anything
            return None

        def larger(times: int, more: int) -> dict[sympy.Symbol, Any]:
            sizes = {s: times * (examples[s] + 7 + 3 * i) + more for i, s in enumerate(symbols)}
            return {s: min(size, self.var_to_range[s].upper) for s, size in sizes.items()}

        answers = {with_sizes(expr, larger(times, more)) for times, more in ((8, 0), (16, 1), (1000, 11))}
        usual = answers.pop() if len(answers) == 1 else None
        return usual if usual in (sympy.true, sympy.false) and with_sizes(expr, examples) == sympy.Not(usual) else None

    @contextlib.contextmanager
    def where(self, fact: sympy.Basic) -> Iterator[None]:
        """Meanwhile this is known to hold: in the arm of a branch that asked for two sizes to be equal, they are."""
        before, bounds = self._facts, self._bounds
        self._facts, self._bounds = dict(before), narrowed(bounds, fact)
        for part in sympy.And.make_args(fact):
            if isinstance(part, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
                smaller, larger = (part.lts, part.gts)
                strict = isinstance(part, (sympy.Lt, sympy.Gt))
                self._facts.update(_ordered(smaller, larger, strict))
            if isinstance(part, (sympy.Eq, sympy.Ne)):
                holds, fails = (sympy.true, sympy.false) if isinstance(part, sympy.Eq) else (sympy.false, sympy.true)
                one, other = part.args
                for a, b in ((one, other), (other, one)):
                    self._facts[sympy.Eq(a, b, evaluate=False)] = holds
                    self._facts[sympy.Ne(a, b, evaluate=False)] = fails
        try:
            with self.knowing(fact), self.shown(example_where(fact, example_sizes(self), self.var_to_range)):
                yield
        finally:
            self._facts, self._bounds = before, bounds

    @contextlib.contextmanager
    def knowing(self, fact: sympy.Basic) -> Iterator[None]:
        """Meanwhile this is known of how numbers are ordered: that of a round of a loop over n items is below n."""
        before = self._never_negative
        for part in sympy.And.make_args(fact):
            if (
                isinstance(part, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge))
                and part.lts.is_integer
                and part.gts.is_integer
            ):
                strict = isinstance(part, (sympy.Lt, sympy.Gt))
                self._never_negative += (part.gts - part.lts - (1 if strict else 0),)
        try:
            yield
        finally:
            self._never_negative = before

    def is_never_negative(self, number: torch.SymInt | int) -> bool:
        """Whether a number is 0 or more, by the ranges of its symbols and by what is known here."""
        expr = sympy.Integer(number) if isinstance(number, int) else number.node.expr
        known = (sympy.Integer(0), *self._never_negative)
        return any(self._is_natural(expr - part) for part in known)

    def settled(self, test: sympy.Basic) -> bool | None:
        """What the tests around say of this one: that it holds, that it fails, or nothing."""
        return settled(self._bounds, test)

    @contextlib.contextmanager
    def shown(self, other: Mapping[sympy.Symbol, Any] | None) -> Iterator[None]:
        """Meanwhile torch looks at these sizes where it would look at the example's, which go another way."""
        before, chosen = dict(example_sizes(self)), self._chosen
        if other is not None:
            example_sizes(self).update(other)
            self._elsewhere, self._chosen = True, {}
            forget_answers(self)
        try:
            yield
        finally:
            if other is not None:
                example_sizes(self).update(before)
                self._chosen = chosen
                forget_answers(self)

    def other_examples(self) -> Iterator[Mapping[sympy.Symbol, Any]]:
        """Other sizes than the example's, for an arm that cannot be traced with those; none while that is tried.

        Then other numbers as well: `w = x[:n]` has five rows only where n says so.
        """
        integers = [s for s in example_sizes(self) if self.var_to_range[s].is_int]
        sizes = [s for s in integers if s not in self._numbers]
        for varied, length in () if self._trying else itertools.product((sizes, integers), _OTHER_LENGTHS):
            self._trying = True
            try:
                yield {s: sympy.Integer(length) for s in varied if sympy.Integer(length) in self.var_to_range[s]}
            finally:
                self._trying = False

    def knowledge(self) -> Knowledge:
        """What is known by now, for `forget_since`."""
        return Knowledge.of(self)

    def forget_since(self, before: Knowledge) -> bool:
        """Forget what was learned since then; True where answers of that time may have relied on more than is known."""
        return before.restore(self) or bool(self._facts)

    def new_size(self, name: str, hint: int, low: int, high: int | None) -> torch.SymInt:
        """A free size that may be 0 or 1, unlike torch's own (whose symbols are positive by construction)."""
        symbol = self.create_unspecified_symbol(hint, NameOnly(name), _DimDynamic.DYNAMIC)
        self._set_range(symbol, low, high)
        size = self.create_symintnode(symbol, hint=hint)
        assert isinstance(size, torch.SymInt)
        return size

    def new_int(self, name: str, hint: int) -> torch.SymInt:
        """A Python int argument."""
        symbol = self.create_unspecified_symbol(hint, NameOnly(name), _DimDynamic.DYNAMIC)
        self._numbers.add(symbol)
        number = self.create_symintnode(symbol, hint=hint)
        assert isinstance(number, torch.SymInt)
        return number

    def new_float(self, name: str, hint: float) -> torch.SymFloat:
        """A Python float argument."""
        symbol = self.create_unspecified_symbol(hint, NameOnly(name), _DimDynamic.DYNAMIC)
        number = self.create_symfloatnode(symbol, hint=hint)
        assert isinstance(number, torch.SymFloat)
        return number

    def new_bool(self, name: str, hint: bool) -> torch.SymBool:
        """A Python bool argument: an integer symbol of 0 or 1, compared with 1."""
        symbol = self.create_unspecified_symbol(int(hint), NameOnly(name), _DimDynamic.DYNAMIC)
        self._set_range(symbol, 0, 1)
        return torch.SymBool(_SymNode(sympy.Eq(symbol, 1), self, bool, hint))

    def new_data_size(self) -> torch.SymInt:
        """A size that only the values tell, such as that of what a branch or a loop gives: 0 or more."""
        size = self.create_unbacked_symint()
        self._constrain_range_for_size(size.node.expr)
        self.forget_pending()
        return size

    def new_data_number(self, kind: type, low: int | None = None) -> Any:
        """A Python number that only the run tells."""
        if kind is bool:
            made: Any = self.create_unbacked_symbool()
        elif kind is float:
            made = self.create_unbacked_symfloat()
        else:
            made = self.create_unbacked_symint()
            if low is not None:
                self._set_range(made.node.expr, low, None)
        self.forget_pending()
        return made

    def mark(self) -> int:
        """A point in the trace, for `made_since`."""
        return int(self.unbacked_symint_counter)

    def made_since(self, symbol: sympy.Symbol, mark: int) -> bool:
        """Whether a data-dependent symbol arose after `mark`; symbols of inputs are older than any mark."""
        return self.is_unbacked_symint(symbol) and int(symbol.name.lstrip("u")) >= mark

    def known_truth(self, flag: torch.SymBool) -> bool | None:
        """What is certain about a symbolic bool, without deciding anything."""
        deciding, self._deciding = self._deciding, True  # it is no kernel that asks
        try:
            known = self._maybe_evaluate_static(flag.node.expr)
        finally:
            self._deciding = deciding
        return None if known is None else bool(known)

    def lowest(self, expr: sympy.Expr) -> sympy.Basic:
        """A lower bound of an expression over the ranges of its symbols."""
        return self.bound_sympy(expr).lower

    def of_expr(self, expr: sympy.Expr) -> Any:
        """A SymInt for an expression over known symbols."""
        return self.create_symintnode(expr, hint=None)

    def _set_range(self, symbol: sympy.Basic, low: int, high: int | None) -> None:
        bounds = self.var_to_range[symbol]
        upper = bounds.upper if high is None else sympy.Integer(high)
        self.var_to_range[symbol] = _ValueRanges(sympy.Integer(low), upper)

    def range_of(self, symbol: sympy.Symbol) -> tuple[sympy.Basic, sympy.Basic]:
        bounds = self.var_to_range[symbol]
        return bounds.lower, bounds.upper

    def forget_pending(self) -> bool:
        """Clear the symbols that torch waits to see bound; True if there were any (a data-dependent result)."""
        pending = bool(self.pending_fresh_unbacked_symbols)
        self.pending_fresh_unbacked_symbols.clear()
        return pending


def _ordered(smaller: sympy.Expr, larger: sympy.Expr, strict: bool) -> dict[sympy.Basic, sympy.Basic]:
    """Every way to ask what is known by `smaller < larger` (or `<=`)."""
    known: list[tuple[Any, sympy.Basic]] = [
        (sympy.Le(smaller, larger, evaluate=False), sympy.true),
        (sympy.Ge(larger, smaller, evaluate=False), sympy.true),
        (sympy.Gt(smaller, larger, evaluate=False), sympy.false),
        (sympy.Lt(larger, smaller, evaluate=False), sympy.false),
    ]
    if strict:
        known += [
            (sympy.Lt(smaller, larger, evaluate=False), sympy.true),
            (sympy.Gt(larger, smaller, evaluate=False), sympy.true),
            (sympy.Ge(smaller, larger, evaluate=False), sympy.false),
            (sympy.Le(larger, smaller, evaluate=False), sympy.false),
            (sympy.Eq(smaller, larger, evaluate=False), sympy.false),
            (sympy.Ne(smaller, larger, evaluate=False), sympy.true),
        ]
    return dict(known)
