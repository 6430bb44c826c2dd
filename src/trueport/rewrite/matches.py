"""`match` becomes branches: each pattern is tests, one after the other, that bind names on the way.

case [a, *rest] if n > 1:       →       if is_sequence(s, 1, True) and bound(a := s[0]) and bound(rest := …) and n > 1:
"""

from __future__ import annotations

import ast

from trueport.rewrite.build import assign, name, runtime, same_place
from trueport.rewrite.unsupported import Unsupported


def as_branches(statements: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for statement in statements:
        for field in ("body", "orelse", "finalbody"):
            if getattr(statement, field, None) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                setattr(statement, field, as_branches(getattr(statement, field)))
        for handler in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            handler.body = as_branches(handler.body)
        out += _branches(statement) if isinstance(statement, ast.Match) else [statement]
    return out


def _branches(match: ast.Match) -> list[ast.stmt]:
    subject = f"tp_subject_{match.lineno}_{match.col_offset}"
    rest: list[ast.stmt] = []
    for case in reversed(match.cases):
        tests = _tests(case.pattern, name(subject))
        if case.guard is not None:
            tests.append(case.guard)
        if tests:
            rest = [same_place(ast.If(test=_all_of(tests, case.pattern), body=case.body, orelse=rest), case.pattern)]
        else:
            rest = case.body
    return [assign(subject, match.subject, match), *rest]


def _all_of(tests: list[ast.expr], at: ast.AST) -> ast.expr:
    return tests[0] if len(tests) == 1 else same_place(ast.BoolOp(op=ast.And(), values=tests), at)


def _tests(pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
    """What must hold, one after the other, for a pattern to match; names are bound on the way."""
    match pattern:
        case ast.MatchValue(value=value):
            return [same_place(ast.Compare(left=subject, ops=[ast.Eq()], comparators=[value]), pattern)]
        case ast.MatchSingleton(value=value):
            return [same_place(ast.Compare(left=subject, ops=[ast.Is()], comparators=[ast.Constant(value)]), pattern)]
        case ast.MatchAs(pattern=inner, name=bound):
            return [*([] if inner is None else _tests(inner, subject)), *_bound(bound, subject, pattern)]
        case ast.MatchSequence(patterns=patterns):
            return _sequence_tests(patterns, subject, pattern)
        case ast.MatchMapping():
            return _mapping_tests(pattern, subject)
        case ast.MatchClass():
            return _class_tests(pattern, subject)
        case ast.MatchOr(patterns=patterns):
            choices = [_tests(each, subject) for each in patterns]
            if not all(choices):  # one of them always matches
                return []
            known = [_all_of(tests, each) for tests, each in zip(choices, patterns, strict=True)]
            return [same_place(ast.BoolOp(op=ast.Or(), values=known), pattern)]
    raise Unsupported(f"a pattern of the kind {type(pattern).__name__}", pattern.lineno, "decide with `if`")


def _sequence_tests(patterns: list[ast.pattern], subject: ast.expr, at: ast.pattern) -> list[ast.expr]:
    star = next((i for i, pattern in enumerate(patterns) if isinstance(pattern, ast.MatchStar)), None)
    count = len(patterns) - (star is not None)
    is_sequence = runtime("is_sequence", subject, ast.Constant(count), ast.Constant(star is not None))
    tests: list[ast.expr] = [same_place(is_sequence, at)]
    for i, pattern in enumerate(patterns):
        if isinstance(pattern, ast.MatchStar):
            rest = runtime("between", subject, ast.Constant(i), ast.Constant(len(patterns) - i - 1))
            tests += _bound(pattern.name, same_place(rest, pattern), pattern)
        else:
            place = ast.Constant(i if star is None or i < star else i - len(patterns))
            item = ast.Subscript(value=subject, slice=place, ctx=ast.Load())
            tests += _tests(pattern, same_place(item, pattern))
    return tests


def _mapping_tests(pattern: ast.MatchMapping, subject: ast.expr) -> list[ast.expr]:
    tests: list[ast.expr] = [same_place(runtime("is_mapping", subject), pattern)]
    for key, each in zip(pattern.keys, pattern.patterns, strict=True):
        tests.append(same_place(ast.Compare(left=key, ops=[ast.In()], comparators=[subject]), each))
        tests += _tests(each, same_place(ast.Subscript(value=subject, slice=key, ctx=ast.Load()), each))
    others = same_place(runtime("without", subject, *pattern.keys), pattern)
    return [*tests, *_bound(pattern.rest, others, pattern)]


def _class_tests(pattern: ast.MatchClass, subject: ast.expr) -> list[ast.expr]:
    tests: list[ast.expr] = [same_place(runtime("is_instance", subject, pattern.cls), pattern)]
    for i, each in enumerate(pattern.patterns):
        part = runtime("positional", subject, pattern.cls, ast.Constant(i))
        tests += _tests(each, same_place(part, each))
    for word, each in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        tests.append(same_place(runtime("has_attribute", subject, ast.Constant(word)), each))
        tests += _tests(each, same_place(ast.Attribute(value=subject, attr=word, ctx=ast.Load()), each))
    return tests


def _bound(bound: str | None, value: ast.expr, at: ast.AST) -> list[ast.expr]:
    if bound is None:
        return []
    binding = ast.NamedExpr(target=name(bound, store=True), value=value)
    return [same_place(runtime("bound", binding), at)]
