"""Finding a function's source, compiling its rewritten form, and putting it in the function's place for a while.

The compiled code keeps the user's file name and line numbers, so tracebacks, breakpoints and the places of nodes need
no map. Functions get their own code back when the rewriting ends, whatever happened.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

from trueport.rewrite.build import RUNTIME, place_the_rest
from trueport.rewrite.contexts import Called
from trueport.rewrite.exits import own_exits
from trueport.rewrite.finding import everywhere, near
from trueport.rewrite.forks import Fork
from trueport.rewrite.out_of_date import is_out_of_date
from trueport.rewrite.rewriter import rewrite
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.rewrite.unsupported import Unsupported
from trueport.rewrite.walking import children, copied, walk

COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
_LOCK = threading.RLock()
Tails: TypeAlias = frozenset[int | Fork | Called]
"""Lines of branches that hold the rest of their block, and statements that are run for each way."""


class Refused(Exception):
    """A function that cannot be rewritten: why, at which line, and what to write instead."""

    def __init__(self, why: str, line: int, instead: str) -> None:
        super().__init__(why)
        self.why, self.line, self.instead = why, line, instead


@dataclass
class Rewriting:
    """The functions that are rewritten at the moment. `end` puts everything back."""

    rewritten: dict[CodeType, CodeType] = field(default_factory=dict)
    _tails: dict[CodeType, Tails] = field(default_factory=dict)
    _originals: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    _cells: list[tuple[CellType, object]] = field(default_factory=list)
    _ours: dict[CodeType, CodeType] = field(default_factory=dict)
    """Every piece of rewritten code, with the original that it was made from."""
    _roots: dict[CodeType, tuple[Any, ...]] = field(default_factory=dict)
    """Where the functions that run a code were looked for; nothing where that was everywhere."""

    def tails(self, code: CodeType) -> Tails:
        """The lines of the branches that hold the rest of their block."""
        return self._tails.get(code, frozenset())

    @property
    def functions(self) -> tuple[FunctionType, ...]:
        """The functions that run rewritten code just now, or make functions that do."""
        return tuple({id(function): function for function, _ in self._originals}.values())

    def covers(self, code: CodeType) -> bool:
        """Whether this code is ours, or is a part of a function that was rewritten."""
        return code in self._ours

    def add(self, code: CodeType, roots: Iterable[Any] = ()) -> None:
        """Rewrite the functions that run `code`. Raises Refused where that cannot be.

        They are looked for near `roots` first. Where one is missed, it asks for this again, and all objects are gone
        through then.
        """
        with _LOCK:
            asked_before = code in self.rewritten
            replacement = rewritten_code(code, self.tails(code))
            self.rewritten[code] = replacement
            self._ours.update(dict.fromkeys(with_inner(replacement), code))
            self._roots[code] = () if asked_before else (*self._roots.get(code, ()), *roots)
            self._replace(code, replacement)

    def take_over(self, tails: Mapping[CodeType, Tails]) -> None:
        """The tails that functions are to have once they are rewritten."""
        self._tails.update(tails)

    def lacks_tail(self, code: CodeType, line: int | Fork | Called) -> bool:
        """Whether `add_tail` would rewrite something."""
        original = self._ours.get(code)
        return original is not None and line not in self._tails.get(original, ())

    def add_tail(self, code: CodeType, line: int | Fork | Called) -> bool:
        """Rewrite a function again, with the rest of the block in both arms of the branch on this line, or a fork.

        False where that was done already, or where `code` is not a part of a rewritten function.
        """
        if not self.lacks_tail(code, line):
            return False
        original = self._ours[code]
        with _LOCK:
            wanted = list(self.rewritten)
            roots = dict(self._roots)
            self._put_back()
            self._tails[original] = self._tails.get(original, frozenset()) | {line}
            for each in wanted:
                self.add(each, roots[each])
        return True

    def _replace(self, code: CodeType, replacement: CodeType) -> None:
        """Give the rewritten code to the functions that run `code`, and to those that make functions of it."""
        roots = self._roots[code]
        if not (roots and self._replace_in(near(roots, code.co_filename), code, replacement)):
            self._replace_in(everywhere(code.co_filename), code, replacement)

    def _replace_in(self, functions: Iterable[FunctionType], code: CodeType, replacement: CodeType) -> bool:
        found = False
        for function in functions:
            changed = with_replaced(function.__code__, code, replacement)
            if changed is not function.__code__:
                found = True
                self._originals.append((function, function.__code__))
                give(function, changed)
        return found

    def exchange(self, cells: Iterable[CellType], old: object, new: object) -> bool:
        """Put something else into those cells of a function that hold `old`; False where none does."""
        with _LOCK:
            found = [cell for cell in cells if cell.cell_contents is old]
            for cell in found:
                self._cells.append((cell, old))
                cell.cell_contents = new
        return bool(found)

    def end(self) -> None:
        with _LOCK:
            for cell, content in self._cells:
                cell.cell_contents = content
            self._cells.clear()
            self._put_back()

    def _put_back(self) -> None:
        with _LOCK:
            for function, code in reversed(self._originals):
                give(function, code)
            self._originals.clear()
            self.rewritten.clear()
            self._ours.clear()
            self._roots.clear()


def give(function: FunctionType, code: CodeType) -> None:
    """Have the function run that code. A rewritten generator is a plain function, which Python 3.13 warns of; its own
    code comes back before anybody else calls it."""
    if (function.__code__.co_flags ^ code.co_flags) & inspect.CO_GENERATOR:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            function.__code__ = code
    else:
        function.__code__ = code


def with_replaced(code: CodeType, old: CodeType, new: CodeType) -> CodeType:
    """`code` with `old` exchanged for `new`, whether it is that itself or makes functions of it."""
    if code == old:
        return new
    if "<locals>" not in old.co_qualname or not old.co_qualname.startswith(code.co_qualname):
        return code
    constants = tuple(
        with_replaced(constant, old, new) if isinstance(constant, CodeType) else constant for constant in code.co_consts
    )
    same = all(a is b for a, b in zip(constants, code.co_consts, strict=True))
    return code if same else code.replace(co_consts=constants)


def with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from with_inner(constant)


def rewritten_code(code: CodeType, tails: Tails = frozenset()) -> CodeType:
    """The rewritten form of a function's code; made once."""
    return _rewritten_code(code, code.co_filename, tails)


@functools.lru_cache(maxsize=1024)
def _rewritten_code(code: CodeType, _file: str, tails: Tails) -> CodeType:
    """Codes of two files are equal where their text is, and each needs its own file in its tracebacks."""
    node, classes = find_definition(code)
    try:
        return compile_in_place(rewrite(copied(node), tails), code, classes)
    except Unsupported as unsupported:
        raise Refused(unsupported.construct, unsupported.line, unsupported.instead) from None
    except RecursionError:
        raise Refused(
            "branches and loops that lie too deep within each other", code.co_firstlineno, "split the function"
        ) from None


def rewritten_definition(code: CodeType, tails: Tails = frozenset()) -> ast.FunctionDef:
    """The rewritten form of a function as syntax, to be shown."""
    node, _ = find_definition(code)
    return rewrite(copied(node), tails)


def find_definition(code: CodeType) -> tuple[ast.FunctionDef, list[str]]:
    """The definition that `code` was compiled from, and the classes around it (for private names)."""
    found = _definitions(code)
    if not found and os.path.exists(code.co_filename):
        linecache.cache.pop(code.co_filename, None)  # of another file of this name, in another folder
        found = _definitions(code)
    if not found:
        raise Refused(
            "a function whose source does not match its file", code.co_firstlineno, "save and reload the file"
        )
    if is_out_of_date(code, "".join(linecache.getlines(code.co_filename))):
        raise Refused(
            "a function whose file was changed after it was loaded",
            code.co_firstlineno,
            "load it again: restart Python, or importlib.reload(the module)",
        )
    return min(found, key=lambda each: _extent(each[0]))  # of lambdas in lambdas, the innermost


def _definitions(code: CodeType) -> list[tuple[ast.FunctionDef, list[str]]]:
    found: list[tuple[ast.FunctionDef, list[str]]] = []
    _search(_module(code.co_filename, code.co_firstlineno), code, [], found)
    return found


def function_around(file: str, line: int) -> tuple[int, int]:
    """The first and the last line of the innermost function that holds a line."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    spans = [(n.lineno, n.end_lineno or n.lineno) for n in ast.walk(_module(file, line)) if isinstance(n, kinds)]
    around = [span for span in spans if span[0] <= line <= span[1]]
    return max(around, default=(line, line))


def left_early_around(file: str, line: int) -> list[int]:
    """Where the `for` loops begin that hold a line and that a `break` or a `return` may leave, innermost first."""
    first, _ = function_around(file, line)
    loops = (n for n in ast.walk(_module(file, line)) if isinstance(n, ast.For) and n.lineno >= first)
    around = [n for n in loops if n.body[0].lineno <= line <= (n.body[-1].end_lineno or 0)]
    left = [n.lineno for n in around if own_exits(n.body) & {ast.Break, ast.Return}]
    return sorted(left, reverse=True)


def _extent(node: ast.FunctionDef) -> tuple[int, int]:
    last = node.body[-1]
    return (last.end_lineno or 0) - node.body[0].lineno, (last.end_col_offset or 0) - node.body[0].col_offset


def _search(node: ast.AST, code: CodeType, classes: list[str], found: list[tuple[ast.FunctionDef, list[str]]]) -> None:
    for child in children(node):
        if isinstance(child, ast.stmt) and not _first_line(child) <= code.co_firstlineno <= (child.end_lineno or 0):
            continue
        inner = [*classes, child.name] if isinstance(child, ast.ClassDef) else classes
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if child.name == code.co_name and _first_line(child) == code.co_firstlineno:
                if isinstance(child, ast.AsyncFunctionDef):
                    raise Refused("asynchronous code", child.lineno, "call it without async")
                found.append((child, classes))
        elif isinstance(child, ast.Lambda) and code.co_name == "<lambda>" and _is_this_lambda(child, code):
            found.append((_as_function(child), classes))
        _search(child, code, inner, found)


def _first_line(statement: ast.stmt) -> int:
    decorators = [int(decorator.lineno) for decorator in getattr(statement, "decorator_list", ())]
    return min([statement.lineno, *decorators])


def _is_this_lambda(node: ast.Lambda, code: CodeType) -> bool:
    """Whether all instructions come from inside the lambda's body."""
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno or body.lineno, body.end_col_offset or 0)
    spans = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    return bool(spans) and all(first <= (p[0], p[2]) and (p[1], p[3]) <= last for p in spans)


def _as_function(node: ast.Lambda) -> ast.FunctionDef:
    body = ast.copy_location(ast.Return(value=node.body), node.body)
    made: dict[str, Any] = {
        "name": "tp_lambda",
        "args": node.args,
        "body": [body],
        "decorator_list": [],
        "returns": None,
    }
    return ast.copy_location(ast.FunctionDef(**made), node)


@functools.lru_cache(maxsize=64)
def _parsed(filename: str, text: str) -> ast.Module:
    return ast.parse(text, filename)


def _module(filename: str, line: int) -> ast.Module:
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename))
    if not text:
        raise Refused("a function without source (made by exec, at a prompt, or in C)", line, "put it in a file")
    try:
        return _parsed(filename, text)
    except SyntaxError as error:
        raise Refused(
            "a file that is not plain Python", error.lineno or line, "put the function in a .py file"
        ) from None


def compile_in_place(
    node: ast.FunctionDef, original: CodeType, classes: list[str], runtime: object = RUNTIME_FUNCTIONS
) -> CodeType:
    """Compile inside functions and classes of the same names, so that closures and private names resolve as before.

    `runtime` is the object that the new code calls.
    """
    node.decorator_list = []
    node.returns = None
    for arg in walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if d is None else ast.Constant(None) for d in node.args.kw_defaults]
    inner: ast.stmt = node
    for class_name in reversed(classes[-1:]):
        made: dict[str, Any] = {"name": class_name, "bases": [], "keywords": [], "body": [inner], "decorator_list": []}
        inner = ast.ClassDef(**made)
    cells = [c for c in original.co_freevars if c != "__class__" or not classes]
    args = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=c) for c in cells],
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    # What the scaffold binds (a function that calls itself, a class that its methods name) is still the module's.
    ours = sorted({node.name, *classes[-1:]} - set(cells))
    body: list[ast.stmt] = [ast.Global(names=ours), inner] if ours else [inner]
    outer: dict[str, Any] = {"name": "tp_closure", "args": args, "body": body, "decorator_list": [], "returns": None}
    module = ast.Module(body=[ast.FunctionDef(**outer)], type_ignores=[])
    place_the_rest(module)
    compiled = compile(module, original.co_filename, "exec", dont_inherit=True, flags=_future_flags(original))
    code = next(c for c in with_inner(compiled) if c.co_name == node.name)
    code = _finished(code, original, runtime)
    if set(code.co_freevars) != set(original.co_freevars):
        raise Refused(
            "a function whose closure could not be rebuilt",
            original.co_firstlineno,
            "pass what it closes over as arguments",
        )
    return code


_FUTURE = 0x1FF0000
"""The compiler flags of `from __future__ import …`."""


def _future_flags(code: CodeType) -> int:
    return code.co_flags & _FUTURE


def _finished(code: CodeType, original: CodeType, runtime: object) -> CodeType:
    """The runtime in place of its stand-in, and blocks that go by the name of the function that they are a part of."""
    constants = tuple(
        runtime
        if isinstance(c, str) and c == RUNTIME
        else _finished(c, original, runtime)
        if isinstance(c, CodeType)
        else c
        for c in code.co_consts
    )
    ours = code.co_name.startswith("tp_") or code.co_name == original.co_name
    names = {"co_name": original.co_name, "co_qualname": original.co_qualname} if ours else _without_ours(code)
    return code.replace(co_consts=constants, **names)  # type: ignore[arg-type]


def _without_ours(code: CodeType) -> dict[str, str]:
    """A comprehension or a function of the user's inside one of our blocks has the name that it had before."""
    parts = code.co_qualname.split(".<locals>.")
    return {"co_qualname": ".<locals>.".join(part for part in parts if not part.startswith("tp_"))}
