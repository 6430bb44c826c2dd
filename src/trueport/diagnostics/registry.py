"""Finds the diagnostics by looking into `rules/`: to add one is to add a file there."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from trueport.diagnostics import rules
from trueport.diagnostics.base import Diagnostic

Rule = type[Diagnostic]


class UnknownCode(LookupError):
    """No diagnostic has this code; `close` holds codes that look like it."""

    def __init__(self, code: str, close: tuple[str, ...]) -> None:
        super().__init__(f"no diagnostic has the code {code}")
        self.code = code
        self.close = close


@cache
def all_rules() -> Mapping[str, Rule]:
    """Every kind of diagnostic by its code, in order of the codes."""
    found: dict[str, Rule] = {}
    for module_info in pkgutil.iter_modules(rules.__path__, f"{rules.__name__}."):
        module = importlib.import_module(module_info.name)
        for candidate in vars(module).values():
            defined_here = isinstance(candidate, type) and candidate.__module__ == module.__name__
            if not (defined_here and issubclass(candidate, Diagnostic)):
                continue
            if candidate.code in found:
                raise RuntimeError(
                    f"{candidate.code} is both {found[candidate.code].__name__} and {candidate.__name__}"
                )
            found[candidate.code] = candidate
    return MappingProxyType(dict(sorted(found.items())))


def rule(code: str) -> Rule:
    """The kind of diagnostic that has this code (`tp101` and `101` are understood as TP101)."""
    wanted = code.strip().upper()
    if wanted.isdigit():
        wanted = f"TP{wanted}"
    known = all_rules()
    if wanted not in known:
        raise UnknownCode(code, tuple(difflib.get_close_matches(wanted, known, n=3)))
    return known[wanted]


def page(kind: Rule) -> str:
    """The page that explains one kind of diagnostic, as Markdown: its docstring under its code and title."""
    return f"# {kind.code}: {kind.title}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n"
