"""The whole way: what decides by a value, its new form, and the proof that torch takes it and that it is the same."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from trueport.capture.recording.ways import IsLeaf
from trueport.capture.trace import capture
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp108_not_portable import NotPortable
from trueport.fix.edit import Edit, EditsOverlap, FileChange, SourceFile, applied
from trueport.fix.portable.functions import definition, exchanged, import_edits
from trueport.fix.portable.statements import Portable
from trueport.fix.portable.tests import questions
from trueport.fix.portable.text import NoPortableForm
from trueport.fix.portable.trial import PortableOutcome, a_file, answers, in_new_code, same_as_before
from trueport.fix.portable.values import SeenInFunction, watched
from trueport.fix.portable.writing import PortableStyle
from trueport.graph.regions import Control, Graph
from trueport.load.job import Job
from trueport.rewrite.functions import Refused
from trueport.source import Place, Where

_INPUTS = 16
"""So many runs of eager show what the names of a function are."""
STYLES = (
    PortableStyle(),
    PortableStyle(flat=True),
    PortableStyle(clone_all=True),
    PortableStyle(clone_all=True, flat=True),
    PortableStyle(tensor_counters=True),
    PortableStyle(both_arms=True),
)
_DECIDING = (ast.If, ast.While, ast.IfExp)


@dataclass(frozen=True)
class PortableResult:
    """New text for the user's files, or why there is none."""

    changes: tuple[FileChange, ...] = ()
    rewritten: tuple[Where, ...] = ()
    """The decisions that have a new form."""
    diagnostics: tuple[Diagnostic, ...] = ()
    codes: tuple[CodeType, ...] = ()
    """The functions that the changes are of."""
    inputs: int = 0
    """On how many inputs torch's own export of the new text was equal to the user's model."""


@dataclass(frozen=True)
class Function:
    """A function of the user's that decides by values, and on which lines."""

    code: CodeType
    path: Path
    lines: frozenset[int]


def make_portable(job: Job, is_leaf: IsLeaf) -> PortableResult:
    """The model's own source with torch.cond, torch.while_loop, torch.where or scan where a value decides.

    Nothing is written. Raises ExportError where the model cannot be traced at all.
    """
    graph = capture(job, is_leaf)
    functions = deciding_functions(graph)
    foreign = [f for f in functions if Where(str(f.path), 1).is_installed]
    if foreign:
        return PortableResult(
            diagnostics=tuple(_refused(f, line, _LIBRARY) for f in foreign for line in sorted(f.lines))
        )
    if not functions:
        return PortableResult()
    seen = look(job, functions)
    known = answers(job, _INPUTS)
    first: PortableResult | None = None
    tried: set[str] = set()
    refusal = ""
    for style in STYLES:
        if not _may_help(style, refusal):
            continue
        made = written(functions, seen, style)
        if made.changes and (text := "".join(c.after.text for c in made.changes)) not in tried:
            tried.add(text)
            outcome = _tried(job, functions, made.changes, known)
            if not outcome.refusal:
                codes = tuple(function.code for function in functions)
                changes = tuple(change for change in made.changes if change.before.text != change.after.text)
                return PortableResult(changes, made.rewritten, codes=codes, inputs=outcome.inputs)
            refusal = outcome.refusal
            made = PortableResult(
                diagnostics=tuple(_refused(f, line, outcome.refusal) for f in functions for line in sorted(f.lines)[:1])
            )
        first = first or (made if made.diagnostics else None)
    return first or PortableResult()


def _may_help(style: PortableStyle, refusal: str) -> bool:
    """Whether a style takes away what torch refused last."""
    if "alias" in refusal:
        return style.clone_all
    if "Opset mismatch when inlining" in refusal:  # a torch.cond in an arm, as torch.onnx of torch 2.13 writes it
        return style.flat or style.both_arms
    return True


_LIBRARY = "the code belongs to an installed library, which is not edited"


def deciding_functions(graph: Graph) -> list[Function]:
    """The functions that the trace had to rewrite, with the lines at which the graph decides."""
    places = [node.place.where for node in graph.root.walk() if isinstance(node.op, Control)]
    found: list[Function] = []
    for code in graph.rewritten:
        lines = {line for _, _, line in code.co_lines() if line is not None}
        inner = {line for constant in _inner(code) for _, _, line in constant.co_lines() if line is not None}
        own = {w.line for w in places if w is not None and w.file == code.co_filename and w.line in lines | inner}
        if own:
            found.append(Function(code, Path(code.co_filename).resolve(), frozenset(own)))
    return found


def _inner(code: CodeType) -> Iterable[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def look(job: Job, functions: list[Function]) -> Mapping[CodeType, SeenInFunction]:
    """What the functions hold, over several runs of eager."""
    asked: dict[CodeType, dict[int, list[ast.expr]]] = {}
    for function in functions:
        found = definition(SourceFile.read(function.path).tree, function.code)
        lines = asked.setdefault(function.code, {})
        for node in ast.walk(found.node) if found else ():
            expressions: list[ast.expr] = []
            if isinstance(node, _DECIDING):
                expressions = [*questions(node.test)]
                if isinstance(node, ast.IfExp):
                    expressions += [node.body, node.orelse]
            elif isinstance(node, ast.For):
                expressions = questions(node.iter)
            for expression in expressions:
                lines.setdefault(expression.lineno, []).append(expression)
    with watched(asked) as seen:
        answers(job, _INPUTS)
    return seen


def written(functions: list[Function], seen: Mapping[CodeType, SeenInFunction], style: PortableStyle) -> PortableResult:
    changes: list[FileChange] = []
    found: list[Diagnostic] = []
    done: list[Where] = []
    for path in dict.fromkeys(function.path for function in functions):
        source = SourceFile.read(path)
        edits: list[Edit] = []
        imports: set[str] = set()
        for function in (f for f in functions if f.path == path):
            try:
                portable = _one(source, function, seen[function.code], style)
                edits += portable.edits()
                imports |= portable.imports
                done += [Where(str(path), line, function.code.co_qualname) for line in sorted(portable.lines_used)]
            except NoPortableForm as refused:
                found.append(_refused(function, refused.line, refused.why))
        try:
            changes.append(FileChange(source, applied(source, [*edits, *import_edits(source, imports)])))
        except EditsOverlap:
            inner = max((f for f in functions if f.path == path), key=lambda f: f.code.co_firstlineno)
            found.append(
                _refused(inner, min(inner.lines), "it stands in a function inside another that decides as well")
            )
    return PortableResult(() if found else tuple(changes), tuple(done), tuple(found))


def _one(source: SourceFile, function: Function, seen: SeenInFunction, style: PortableStyle) -> Portable:
    own = SourceFile(source.path, source.text, source.encoding)  # loops are taken apart in its tree
    found = definition(own.tree, function.code)
    if found is None:
        raise NoPortableForm(min(function.lines), "it stands in a lambda, or its source is not the file's any more")
    return Portable(own, found.node, function.lines, seen, style)


def _tried(job: Job, functions: list[Function], changes: tuple[FileChange, ...], known: list[Any]) -> PortableOutcome:
    with a_file() as path:
        try:
            with contextlib.ExitStack() as stack:
                for change in changes:
                    stack.enter_context(exchanged(change.before, change.after, [f.code for f in functions]))
                refusal = in_new_code(job, known, path)
        except Refused as closure:  # what the function closes over cannot be kept
            refusal = closure.why
        return PortableOutcome(refusal) if refusal else same_as_before(job, path)


def _refused(function: Function, line: int, why: str) -> Diagnostic:
    where = Where(str(function.path), line, function.code.co_qualname)
    return NotPortable(
        message=f"torch's control flow has no form for this: {why}",
        place=Place((where,)),
        fix="trueport exports it as it is",
    )
