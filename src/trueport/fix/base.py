"""What a fix is: a class in a file of `fixes/`, discovered and never listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from trueport.fix.case import Case, Proposal


class Fix(ABC):
    """A way to take findings away. Its docstring says what it writes instead of what, and when that is right."""

    codes: ClassVar[tuple[str, ...]] = ()
    """The diagnostics that it answers."""

    @abstractmethod
    def proposals(self, case: Case) -> Iterator[Proposal]:
        """What to try, the most natural first. Each is tried on a copy; none where the fix does not apply."""
