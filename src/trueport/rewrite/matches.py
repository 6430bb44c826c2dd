"""`match` over plain values becomes branches; other patterns stay as they are, and are refused where they decide."""

from __future__ import annotations

import ast

from trueport.rewrite.build import assign, name, same_place


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
    return all(_test(case.pattern, "tp_subject", match) is not None for case in match.cases)


def _branches(match: ast.Match) -> list[ast.stmt]:
    subject = f"tp_subject_{match.lineno}_{match.col_offset}"
    rest: list[ast.stmt] = []
    for case in reversed(match.cases):
        test = _test(case.pattern, subject, match)
        assert test is not None
        if case.guard is not None:
            test = same_place(ast.BoolOp(op=ast.And(), values=[test, case.guard]), case.pattern)
        if isinstance(test, ast.Constant) and test.value is True:
            rest = case.body
        else:
            rest = [same_place(ast.If(test=test, body=case.body, orelse=rest), case.pattern)]
    return [assign(subject, match.subject, match), *rest]


def _test(pattern: ast.pattern, subject: str, at: ast.AST) -> ast.expr | None:
    """The test that a pattern makes; None for patterns that bind or take apart."""
    match pattern:
        case ast.MatchValue(value=value):
            return same_place(ast.Compare(left=name(subject), ops=[ast.Eq()], comparators=[value]), pattern)
        case ast.MatchSingleton(value=value):
            return same_place(
                ast.Compare(left=name(subject), ops=[ast.Is()], comparators=[ast.Constant(value)]), pattern
            )
        case ast.MatchAs(pattern=None, name=None):
            return same_place(ast.Constant(True), at)
        case ast.MatchOr(patterns=patterns):
            tests = [_test(p, subject, at) for p in patterns]
            known = [t for t in tests if t is not None]
            return same_place(ast.BoolOp(op=ast.Or(), values=known), pattern) if len(known) == len(tests) else None
    return None
