"""`match` over values, names and sequences becomes branches; other patterns stay, and are refused where they decide."""

from __future__ import annotations

import ast

from trueport.rewrite.build import assign, name, runtime, same_place


def as_branches(statements: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for statement in statements:
        for field in ("body", "orelse", "finalbody"):
            if getattr(statement, field, None) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                setattr(statement, field, as_branches(getattr(statement, field)))
        for handler in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            handler.body = as_branches(handler.body)
        out += _branches(statement) if isinstance(statement, ast.Match) and _is_plain(statement) else [statement]
    return out


def _is_plain(match: ast.Match) -> bool:
    return all(_tests(case.pattern, name("tp_subject"), match) is not None for case in match.cases)


def _branches(match: ast.Match) -> list[ast.stmt]:
    subject = f"tp_subject_{match.lineno}_{match.col_offset}"
    rest: list[ast.stmt] = []
    for case in reversed(match.cases):
        tests = _tests(case.pattern, name(subject), match)
        assert tests is not None
        if case.guard is not None:
            tests.append(case.guard)
        if tests:
            rest = [same_place(ast.If(test=_all_of(tests, case.pattern), body=case.body, orelse=rest), case.pattern)]
        else:
            rest = case.body
    return [assign(subject, match.subject, match), *rest]


def _all_of(tests: list[ast.expr], at: ast.AST) -> ast.expr:
    return tests[0] if len(tests) == 1 else same_place(ast.BoolOp(op=ast.And(), values=tests), at)


def _tests(pattern: ast.pattern, subject: ast.expr, at: ast.AST) -> list[ast.expr] | None:
    """What must hold, one after the other, for a pattern to match; names are bound on the way. None where unknown."""
    match pattern:
        case ast.MatchValue(value=value):
            return [same_place(ast.Compare(left=subject, ops=[ast.Eq()], comparators=[value]), pattern)]
        case ast.MatchSingleton(value=value):
            return [same_place(ast.Compare(left=subject, ops=[ast.Is()], comparators=[ast.Constant(value)]), pattern)]
        case ast.MatchAs(pattern=None, name=None):
            return []
        case ast.MatchAs(pattern=inner, name=str(bound)):
            tests = [] if inner is None else _tests(inner, subject, at)
            binding = ast.NamedExpr(target=name(bound, store=True), value=subject)
            return None if tests is None else [*tests, same_place(runtime("bound", binding), pattern)]
        case ast.MatchSequence(patterns=patterns) if not any(isinstance(p, ast.MatchStar) for p in patterns):
            return _sequence_tests(patterns, subject, pattern)
        case ast.MatchOr(patterns=patterns):
            choices = [_tests(p, subject, at) for p in patterns]
            known = [_all_of(tests, p) for tests, p in zip(choices, patterns, strict=True) if tests]
            if len(known) < len(choices):
                return None
            return [same_place(ast.BoolOp(op=ast.Or(), values=known), pattern)]
    return None


def _sequence_tests(patterns: list[ast.pattern], subject: ast.expr, at: ast.pattern) -> list[ast.expr] | None:
    tests: list[ast.expr] = [same_place(runtime("is_sequence", subject, ast.Constant(len(patterns))), at)]
    for i, pattern in enumerate(patterns):
        item = same_place(ast.Subscript(value=subject, slice=ast.Constant(i), ctx=ast.Load()), pattern)
        inner = _tests(pattern, item, at)
        if inner is None:
            return None
        tests += inner
    return tests
