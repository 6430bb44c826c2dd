"""The control flow of a trace, as the rooms below `branches/` see it.

`branches/control_flow.py` is behind it. Lists, builtins and loops ask it while they are traced; if they knew the class,
each would know all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from trueport.capture.recording.sharing import Memory
from trueport.capture.recording.tracer import Tracer
from trueport.graph.regions import Region
from trueport.rewrite.running.asking import Trace
from trueport.rewrite.running.runtime import BlockNames


class Forked(Protocol):
    """Statements that are run once for each way through them (branches/forks.py)."""

    def trace(self, block: Callable[[], Any], state: BlockNames, catches: tuple[type[Exception], ...] = ()) -> Any:
        """Run a statement; errors of the kinds that it catches part it."""

    def running(self, run: None) -> AbstractContextManager[None]:
        """What is traced here belongs to no statement that could be begun anew."""


class OpenRounds(Protocol):
    """The rounds that are traced just now (loops/loops.py)."""

    @property
    def rows_shown(self) -> dict[Memory, list[torch.Tensor]]:
        """By what holds items of a list: the views that it stands for, of what rounds write, each its own row."""

    def round(self, region: Region, iteration: Any, mark: int) -> AbstractContextManager[None]: ...


class Flow(Trace, Protocol):
    """What rewritten code asks of a trace, and what our own functions in its place ask besides."""

    @property
    def tracer(self) -> Tracer: ...

    @property
    def forks(self) -> Forked: ...

    @property
    def loops(self) -> OpenRounds: ...

    @property
    def roots(self) -> Sequence[Any]:
        """What any arm may change: the model, and the containers that are globals of the user's."""

    def predicate(self, truth: Any) -> Any:
        """A test as the graph holds it."""

    def own_method(self, value: Any, name: str) -> Callable[..., Any] | None:
        """A method that the user's class defines, of which Python itself would take no traced answer."""

    def made_dict(self, made: Any, parts: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A dict of the user's, or a table where it is given keys that are known only when the model runs."""

    def is_table_here(self) -> bool:
        """Whether the dict that the present line makes is a table."""

    def want_table_here(self) -> None:
        """Start again with a table where the present line makes a dict."""

    def remembered_already(self, items: Any) -> Any:
        """What remembers how far a plain iterator is, of which items were taken by hand; None where none were."""
