"""What changed between two sweeps: what regressed, what was mended, what is slower or larger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueport.sweeping.rows import Outcome, SweepRow

SLOWER = 1.2
"""Times the processor's seconds of before."""
_LEAST_SECONDS = 1.0
"""Less is noise."""
_LARGER = 1.05


@dataclass(frozen=True)
class Differences:
    """By kind, one line for each model. Only the first kind is a reason to fail."""

    regressed: tuple[str, ...]
    mended: tuple[str, ...]
    otherwise: tuple[str, ...]
    """Not faithful before and now, for other reasons."""
    slower: tuple[str, ...]
    larger: tuple[str, ...]
    only_before: tuple[str, ...]
    only_now: tuple[str, ...]

    def lines(self) -> list[str]:
        kinds = vars(self)
        return [f"{kind.replace('_', ' ')}: {line}" for kind in kinds for line in kinds[kind]]


def differences(before: Sequence[SweepRow], now: Sequence[SweepRow]) -> Differences:
    """Models are the same by their name."""
    old, new = {row.name: row for row in before}, {row.name: row for row in now}
    both = [(old[name], new[name]) for name in old if name in new]

    def told(which: Callable[[SweepRow, SweepRow], bool], text: Callable[[SweepRow, SweepRow], str]) -> tuple[str, ...]:
        return tuple(f"{was.name}: {text(was, now)}" for was, now in both if which(was, now))

    return Differences(
        regressed=told(lambda was, now: _good(was) and not _good(now), _verdicts),
        mended=told(lambda was, now: not _good(was) and _good(now), _verdicts),
        otherwise=told(lambda was, now: not _good(was) and not _good(now) and _why(was) != _why(now), _verdicts),
        slower=told(
            lambda was, now: now.cpu_seconds > max(_LEAST_SECONDS, SLOWER * was.cpu_seconds),
            lambda was, now: f"{was.cpu_seconds:g} s of the processor, now {now.cpu_seconds:g} s",
        ),
        larger=told(
            lambda was, now: bool(was.size and now.size and now.size > _LARGER * was.size),
            lambda was, now: f"{was.size} bytes, now {now.size}",
        ),
        only_before=tuple(name for name in old if name not in new),
        only_now=tuple(name for name in new if name not in old),
    )


def _good(row: SweepRow) -> bool:
    return row.outcome is Outcome.FAITHFUL


def _why(row: SweepRow) -> tuple[Outcome, str]:
    return row.outcome, row.code


def _verdicts(was: SweepRow, now: SweepRow) -> str:
    before, after = (f"{row.outcome.value} {row.code}".strip() for row in (was, now))
    return f"{before}, now {after}" + (f" ({now.message})" if now.message else "")
