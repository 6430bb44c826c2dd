"""The small plots of the page, as numbers: where a dot or a bar stands. The template draws them as inline SVG.

All are as wide as a phone shows without shrinking the letters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trueport.report.checked import CheckedInput, Verdict

WIDTH = 340
LEFT, RIGHT = 92, 14
ROW = 26
_SMALLEST = 1e-6
"""Of what is allowed; a difference that is smaller, and not zero, stands here."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot: where it is, how large, and what it says when pointed at."""

    x: float
    radius: float
    told: str
    good: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a plot, with its name in front of it."""

    name: str
    y: float
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Rows above an axis of labelled ticks."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]

    @property
    def height(self) -> int:
        return ROW * len(self.rows) + 24


def sizes_tried(checks: Sequence[CheckedInput]) -> Plot | None:
    """By free size, which lengths were tried, and on how many inputs. The axis is logarithmic, and begins at 0."""
    tried: dict[str, Counter[int]] = {}
    bad: set[tuple[str, int]] = set()
    for one in checks:
        for name, size in one.sizes.items():
            tried.setdefault(name, Counter())[size] += 1
            if not _is_good(one):
                bad.add((name, size))
    if not tried:
        return None
    most = max(max(counts) for counts in tried.values())

    def at(size: int) -> float:
        return _x(math.log2(size + 1) / math.log2(max(most, 1) + 1))

    rows = [
        [
            Dot(at(size), _radius(count), f"{name} = {size}: {_inputs(count)}", (name, size) not in bad)
            for size, count in sorted(counts.items())
        ]
        for name, counts in tried.items()
    ]
    ticks = [0, *(4**power for power in range(16) if 4**power <= most)]
    return Plot(tuple(_rows(tried, rows)), tuple((at(size), str(size)) for size in ticks))


def differences(checks: Sequence[CheckedInput]) -> Plot | None:
    """By output, the largest difference on each input, as a part of what is allowed there."""
    found: dict[str, list[Dot]] = {}
    for one in checks:
        for name, (error, allowed) in one.by_output.items():
            told = f"{name}, {one}: difference {error:.2g}, allowed {allowed:.2g}"
            found.setdefault(name, []).append(Dot(_part(error, allowed), 4, told, _is_good(one)))
    if not found:
        return None
    ticks = [(_x(0), "equal"), *((_part(10.0**power, 1.0), f"1e{power}") for power in (-4, -2)), (_x(1), "allowed")]
    return Plot(tuple(_rows(found, list(found.values()))), tuple(ticks))


def bars(seconds: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """By stage: its name, its seconds, and how long its bar is."""
    most = max(seconds.values(), default=0.0) or 1.0
    room = WIDTH - LEFT - RIGHT - 48
    return [(name, took, max(1.0, room * took / most)) for name, took in seconds.items()]


def _rows(names: Mapping[str, object], dots: Sequence[Sequence[Dot]]) -> Iterator[Row]:
    for index, (name, row) in enumerate(zip(names, dots, strict=True)):
        yield Row(name, ROW * index + ROW / 2, tuple(row))


def _x(part: float) -> float:
    return round(LEFT + 8 + part * (WIDTH - LEFT - RIGHT - 8), 1)


def _part(error: float, allowed: float) -> float:
    """Exactly equal stands apart on the left; from there the axis is logarithmic up to what is allowed."""
    if not error or not math.isfinite(error):
        return _x(0) if not error else _x(1)
    part = min(max(error / allowed, _SMALLEST), 1.0) if allowed else 1.0
    return _x(0.15 + 0.85 * (1 - math.log10(part) / math.log10(_SMALLEST)))


def _radius(count: int) -> float:
    return round(min(3 + math.sqrt(count), 9), 1)


def _inputs(count: int) -> str:
    return f"{count} input{'s' * (count > 1)}"


def _is_good(one: CheckedInput) -> bool:
    return one.verdict in (Verdict.EQUAL, Verdict.ALIKE)
