"""The exceptions that leave trueport.

TrueportError
├── ExportError      the model cannot be exported faithfully; `.diagnostics` say where and why
└── UsageError       the call itself is wrong (a missing file, a bad spec); a kind of ExportError for callers
"""

from __future__ import annotations

from collections.abc import Iterable

from trueport.diagnostics.base import Diagnostic


class TrueportError(Exception):
    """Base of everything that trueport raises on purpose."""


class ExportError(TrueportError):
    """The export was refused. Nothing was written; `.diagnostics` hold every finding, errors first.

    `.rewritten` holds the functions whose branches and loops were kept alive until then, as they were traced.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], rewritten: tuple[str, ...] = ()) -> None:
        found = sorted(diagnostics, key=lambda d: not d.is_error)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(found)
        self.rewritten = rewritten
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class UsageError(ExportError):
    """The request could not be understood or carried out; the model itself was not judged."""


class Unwinding(BaseException):
    """Raised by us to leave the user's code, and caught by us further out. No `except Exception` of theirs stops it."""


def refusal(found: Diagnostic) -> ExportError:
    """The export is refused for one reason."""
    return ExportError([found])
