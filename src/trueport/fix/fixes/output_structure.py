"""A result that no output can be."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.returned import returned
from trueport.fix.syntax import atom, called

_ONE_TIME = frozenset({"generator", "map", "filter", "zip", "reversed", "list_iterator", "tuple_iterator", "enumerate"})
_VIEWS = frozenset({"dict_values", "dict_items", "odict_values", "odict_items"})
_UNUSUAL = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc"})
"""Calls whose only effect is that the tensor is no plain one any more."""


class OutputStructure(Fix):
    """`return (f(x) for x in xs)` becomes `return tuple(f(x) for x in xs)`; `x.to_sparse()` stays `x`.

    Generators, iterators and views of a dict are written out as a tuple, a set (which has no order) as a tuple in the
    order in which it is written, and sparse, nested and quantised tensors as plain ones (`.to_dense()`).
    """

    codes = ("TP202",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        kind, call = case.facts.get("kind", ""), case.facts.get("call", "")
        edits = tuple(
            edit
            for value in returned(case, case.facts.get("path", "output"))
            for edit in _edit(case, value, kind, call)
        )
        if edits and call:
            yield Proposal(f"return a plain tensor: {call}", edits)
        elif edits:
            yield Proposal(f"return a tuple instead of a {kind}", edits, changes=f"a tuple instead of a {kind}")


def _edit(case: Case, value: ast.expr, kind: str, call: str) -> Iterator[Edit]:
    text = case.source.text_of(value)
    if call and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and called(value) in _UNUSUAL:
        yield Edit(case.source.path, case.source.span(value.func.value)[1], case.source.span(value)[1], "")
    elif call:
        yield case.source.replace(value, f"{atom(case.source, value)}{call}")
    elif kind == "set" and isinstance(value, ast.Set):
        start, end = case.source.span(value)
        yield Edit(case.source.path, start, start + 1, "(")
        yield Edit(case.source.path, end - 1, end, ",)" if len(value.elts) == 1 else ")")
    elif kind in _ONE_TIME | _VIEWS:
        generator = isinstance(value, ast.GeneratorExp) and text.startswith("(")
        yield case.source.replace(value, f"tuple{text}" if generator else f"tuple({text})")
