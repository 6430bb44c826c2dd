"""break, continue and return as flags and arms, so that what follows them is inside one arm of one branch.

    if c: return a          if c: return a              for …:                  for …: (until broke)
    rest             →      else: rest                    if c: break     →       if c: broke = True
                                                          rest                    else: rest

An exit that ends an arm sends the rest of the block into the other arm, and one branch stays one branch. Only where
neither arm always leaves is the rest guarded by a flag.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueport.rewrite.build import assign, name, negation, same_place
from trueport.rewrite.forks import is_fork
from trueport.rewrite.walking import FUNCTIONS, children, copied, directly_in, statements_within, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
RESULT = "tp_result"
"""The name of what a `return` inside a loop or a `with` gives."""


@dataclass(frozen=True)
class _Flags:
    """The names that stand for exits in one loop (or one `with`, where only `return` exits)."""

    broke: str
    skip: str
    returned: str
    result: str


class Exits:
    """Rewrites the exits of one function."""

    def __init__(self) -> None:
        self._count = 0
        self._returned = "tp_returned"
        self._result = RESULT

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function: every return outside loops ends an arm or the function."""
        body = self._loops(body)
        return _returns_last(body)

    # --- loops and with blocks: exits become flags

    def _loops(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite the loops in a block; after one that may return, return."""
        out: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, FUNCTIONS):
                out.append(statement)
            elif isinstance(statement, _LOOPS):
                out += self.loop(statement, self._loops, self._return_if_returned)
            elif isinstance(statement, (ast.With, ast.Try)) and contains(statement, ast.Return):
                out += self._block_with_returns(statement)
            else:
                for field in ("body", "orelse", "finalbody"):
                    if getattr(statement, field, None):
                        setattr(statement, field, self._loops(getattr(statement, field)))
                for handler in getattr(statement, "handlers", []):
                    handler.body = self._loops(handler.body)
                out.append(statement)
        return out

    def _return_if_returned(self, at: ast.stmt, otherwise: Sequence[ast.stmt] = ()) -> ast.stmt:
        names = getattr(at, "tp_returns_names", None)
        leave = ast.Return(value=name(self._result) if names is None else names)
        if _ends_by_return_only(at):
            return same_place(leave, at)
        return same_place(ast.If(test=name(self._returned), body=[leave], orelse=list(otherwise)), at)

    def _block_with_returns(self, block: ast.With | ast.Try) -> list[ast.stmt]:
        """`with …: if c: return a` followed by more: the return is carried out behind the block."""
        flags = self._new_flags()
        if isinstance(block, ast.With) and (names := _only_names_returned(block)) is not None:
            block.tp_returns_names = names  # type: ignore[attr-defined]
        parts = [block.body] if isinstance(block, ast.With) else [block.body, block.orelse, block.finalbody]
        if isinstance(block, ast.Try):
            parts += [handler.body for handler in block.handlers]
        if isinstance(block, ast.Try):
            self._else_of_try(block, flags)
        for part in parts:
            part[:] = self._convert(self._inner(part), flags)
        start = [assign(flags.skip, ast.Constant(False), block), assign(self._returned, ast.Constant(False), block)]
        return [*start, block, self._return_if_returned(block)]

    def _inner(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Loops inside a block whose own exits are about to be converted."""
        out: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, _LOOPS):
                out += self.loop(statement, self._inner)
            else:
                for field in ("body", "orelse", "finalbody"):
                    if getattr(statement, field, None) and not isinstance(statement, FUNCTIONS):
                        setattr(statement, field, self._inner(getattr(statement, field)))
                for handler in getattr(statement, "handlers", []):
                    handler.body = self._inner(handler.body)
                out.append(statement)
        return out

    def loop(
        self,
        loop: ast.For | ast.AsyncFor | ast.While,
        around: Callable[[Sequence[ast.stmt]], list[ast.stmt]],
        leave: Callable[[ast.stmt, Sequence[ast.stmt]], ast.stmt] | None = None,
    ) -> list[ast.stmt]:
        """A loop without exits and without `else`; `around` rewrites what belongs to the block that it stands in.

        `leave` makes the branch after it that returns, if the loop did, and otherwise does the rest.
        """
        flags = self._new_flags()
        leaves = own_exits(loop.body)
        before: list[ast.stmt] = []
        if contains(loop, ast.Return):
            before.append(assign(self._returned, ast.Constant(False), loop))
            loop.tp_returns_inside = True  # type: ignore[union-attr]
            loop.tp_breaks = ast.Break in leaves  # type: ignore[union-attr]
            if leave is not None and (names := _only_names_returned(loop)) is not None:
                loop.tp_returns_names = names  # type: ignore[union-attr]
        body = self._inner(loop.body)
        if leaves:
            body = [assign(flags.skip, ast.Constant(False), loop), *self._convert(body, flags)]
            if not _reads(body, flags.skip):
                body = _without_assignments(body, flags.skip)
        loop.body = body
        after = around(loop.orelse)
        loop.orelse = []
        leaving = leave is not None and ast.Return in leaves
        if leaves & {ast.Break, ast.Return}:
            before.append(assign(flags.broke, ast.Constant(False), loop))
            loop.tp_broke = flags.broke  # type: ignore[union-attr]
            if after and not (leaving and ast.Break not in leaves):
                after = [same_place(ast.If(test=negation(name(flags.broke)), body=after, orelse=[]), loop)]
        if leave is not None and leaving:
            after = [leave(loop, after)]
        return [*before, loop, *after]

    def _convert(self, statements: Sequence[ast.stmt], flags: _Flags) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            rest = list(statements[i + 1 :])
            if isinstance(statement, ast.Break):
                return [*out, assign(flags.broke, ast.Constant(True), statement), _set(flags.skip, statement)]
            if isinstance(statement, ast.Continue):
                return [*out, _set(flags.skip, statement)]
            if isinstance(statement, ast.Return):
                value = statement.value or ast.Constant(None)
                result = [] if hasattr(statement, "tp_read_later") else [assign(flags.result, value, statement)]
                return [
                    *out,
                    *result,
                    _set(flags.returned, statement),
                    _set(flags.broke, statement),
                    _set(flags.skip, statement),
                ]
            if isinstance(statement, ast.If) and own_exits([statement]):
                return out + self._convert_if(statement, rest, flags)
            if isinstance(statement, (ast.With, ast.Try)) and own_exits([statement]):
                if isinstance(statement, ast.Try):
                    self._else_of_try(statement, flags)
                for field in ("body", "orelse", "finalbody"):
                    if getattr(statement, field, None):
                        setattr(statement, field, self._convert(getattr(statement, field), flags))
                for handler in getattr(statement, "handlers", []):
                    handler.body = self._convert(handler.body, flags)
                return [*out, statement, *self._guarded(rest, flags, statement)]
            if isinstance(statement, _LOOPS) and hasattr(statement, "tp_returns_inside"):
                left = same_place(
                    ast.If(
                        test=name(flags.returned),
                        body=[_set(flags.broke, statement), _set(flags.skip, statement)],
                        orelse=self._convert(rest, flags) or [],
                    ),
                    statement,
                )
                return [*out, statement, left]
            out.append(statement)
        return out

    def _else_of_try(self, block: ast.Try, flags: _Flags) -> None:
        """The `else` of a `try` that was left by an exit does not run."""
        if block.orelse and own_exits(block.body):
            test = negation(name(flags.skip))
            block.orelse[:] = [same_place(ast.If(test=test, body=list(block.orelse), orelse=[]), block)]

    def _convert_if(self, branch: ast.If, rest: list[ast.stmt], flags: _Flags) -> list[ast.stmt]:
        if always_leaves(branch.body):
            branch.body = self._convert(branch.body, flags)
            branch.orelse = self._convert([*branch.orelse, *rest], flags)
            return [branch]
        if always_leaves(branch.orelse):
            branch.body = self._convert([*branch.body, *rest], flags)
            branch.orelse = self._convert(branch.orelse, flags)
            return [branch]
        branch.body = self._convert(branch.body, flags)
        branch.orelse = self._convert(branch.orelse, flags)
        return [branch, *self._guarded(rest, flags, branch)]

    def _guarded(self, rest: list[ast.stmt], flags: _Flags, at: ast.stmt) -> list[ast.stmt]:
        if not rest:
            return []
        return [same_place(ast.If(test=negation(name(flags.skip)), body=self._convert(rest, flags), orelse=[]), at)]

    def _new_flags(self) -> _Flags:
        self._count += 1
        return _Flags(f"tp_broke_{self._count}", f"tp_skip_{self._count}", self._returned, self._result)


def without_own_exits(loop: ast.For | ast.While) -> list[ast.stmt]:
    """One loop, changed in place, between the flags that it needs and what follows it where no flag was set."""
    exits = Exits()
    return exits.loop(loop, exits._inner)


def _ends_by_return_only(loop: ast.stmt) -> bool:
    """`while True:` without a `break`."""
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return endless and not getattr(loop, "tp_breaks", True)


def _only_names_returned(loop: ast.stmt) -> ast.expr | None:
    """What every `return` in a loop or a `with` gives, where that are the same names: nothing of the function runs
    between such a `return` and the end of the block, so that they can be read there. (A list that is being filled
    cannot be carried under two names.)
    """
    inside = [node for node in statements_within(directly_in(loop)) if isinstance(node, (ast.Return, ast.Try))]
    returns = [node for node in inside if isinstance(node, ast.Return)]
    values = [node.value for node in returns if node.value is not None and _is_of_names(node.value)]
    if len(returns) != len(inside) or len(values) != len(returns) or len({ast.dump(value) for value in values}) != 1:
        return None
    for statement in returns:
        statement.tp_read_later = True  # type: ignore[attr-defined]
    return values[0]


def _is_of_names(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) or (isinstance(value, ast.Tuple) and all(map(_is_of_names, value.elts)))


def _returns_last(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Returns outside loops: the rest of the block moves into the arm that does not return."""
    out: list[ast.stmt] = []
    for i, statement in enumerate(statements):
        if isinstance(statement, (ast.Return, ast.Raise)):
            return [*out, statement]
        if isinstance(statement, ast.If) and contains(statement, ast.Return):
            rest = statements[i + 1 :]
            body, orelse = statement.body, statement.orelse
            if is_fork(statement):
                statement.body = _ending([*body, *rest], statement)
                statement.tp_returns = True  # type: ignore[attr-defined]
                return [*out, statement]
            if always_leaves(body):
                orelse = [*orelse, *rest]
            elif always_leaves(orelse):
                body = [*body, *rest]
            else:
                body, orelse = [*body, *[copied(each) for each in rest]], [*orelse, *rest]
            statement.body, statement.orelse = _ending(body, statement), _ending(orelse, statement)
            statement.tp_returns = True  # type: ignore[attr-defined]
            return [*out, statement]
        out.append(statement)
    return out


def _ending(statements: list[ast.stmt], at: ast.stmt) -> list[ast.stmt]:
    """An arm that ends the function: where it would fall off its end, it returns None."""
    statements = _returns_last(statements)
    if not always_leaves(statements):
        statements = [*statements, same_place(ast.Return(value=ast.Constant(None)), at)]
    return statements


def always_leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether no path reaches the end of the block."""
    for statement in statements:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return True
        if isinstance(statement, ast.If) and always_leaves(statement.body) and always_leaves(statement.orelse):
            return True
        if isinstance(statement, ast.With) and always_leaves(statement.body):
            return True
    return False


def contains(node: ast.AST, kind: type | tuple[type, ...]) -> bool:
    """Whether a node of this kind stands inside, outside nested functions."""
    if isinstance(kind, type) and issubclass(kind, ast.stmt):
        return any(isinstance(inner, kind) for inner in statements_within(directly_in(node)))
    waiting = children(node)
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, kind):
            return True
        if not isinstance(inner, FUNCTIONS):
            waiting += children(inner)
    return False


def own_exits(statements: Sequence[ast.stmt]) -> set[type]:
    """The exits that belong to this block: a break inside a nested loop is that loop's own."""
    found: set[type] = set()
    for statement in statements:
        if isinstance(statement, (ast.Break, ast.Continue, ast.Return)):
            found.add(type(statement))
        elif isinstance(statement, _LOOPS):
            if contains(statement, ast.Return) or hasattr(statement, "tp_returns_inside"):
                found.add(ast.Return)
            found |= own_exits(statement.orelse)  # a `break` in a loop's `else` leaves the loop around it
        elif not isinstance(statement, FUNCTIONS):
            for field in ("body", "orelse", "finalbody"):
                found |= own_exits(getattr(statement, field, None) or [])
            for handler in getattr(statement, "handlers", []):
                found |= own_exits(handler.body)
    return found


def _set(flag: str, at: ast.stmt) -> ast.stmt:
    return assign(flag, ast.Constant(True), at)


def _reads(statements: Sequence[ast.stmt], wanted: str) -> bool:
    loads = (n for n in walk(*statements) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return any(n.id == wanted for n in loads)


def _without_assignments(statements: Sequence[ast.stmt], flag: str) -> list[ast.stmt]:
    """The block without assignments to a flag that nobody reads."""
    out: list[ast.stmt] = []
    for statement in statements:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == flag
        ):
            continue
        for field in ("body", "orelse", "finalbody"):
            if getattr(statement, field, None) and not isinstance(statement, FUNCTIONS):
                kept = _without_assignments(getattr(statement, field), flag)
                setattr(statement, field, kept or ([same_place(ast.Pass(), statement)] if field == "body" else []))
        for handler in getattr(statement, "handlers", []):
            handler.body = _without_assignments(handler.body, flag) or [same_place(ast.Pass(), statement)]
        out.append(statement)
    return out
