"""In which order findings are told, and which of them are one and the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.source import Where

_WEIGHTS = list(Severity)


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and the other places where exactly the same was found."""

    found: Diagnostic
    again: tuple[Where, ...] = ()


def in_order(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors first; in each weight what concerns the whole model, then by file and line, the user's files first."""

    def key(one: Diagnostic) -> tuple[int, bool, str, int, int, str]:
        at = one.where
        weight = _WEIGHTS.index(one.weight)
        if at is None:
            return (weight, False, "", 0, 0, one.code)
        return (weight, at.is_installed, at.file, at.line, at.column or 0, one.code)

    return sorted(found, key=key)


def grouped(found: Iterable[Diagnostic]) -> list[Told]:
    """The findings in order. What is said in the same words at several lines of one file is told once."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for one in in_order(found):
        file = one.where.file if one.where else None
        groups.setdefault((one.code, one.weight, one.message, one.seen, one.fix, file), []).append(one)
    told = []
    for first, *others in groups.values():
        again = dict.fromkeys(other.where for other in others if other.where and other.where != first.where)
        told.append(Told(first, tuple(again)))
    return told
