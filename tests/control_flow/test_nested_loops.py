"""Loops in rounds of other loops begin with what they carried the last time, and find out the rest again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.growth_run import imported, nested, nested_each_changing
from tests.capture.helpers import FREE, assert_captured
from trueport.capture.loops.rounds import Rounds
from trueport.errors import ExportError

SIZES = [(torch.arange(float(n)) - 1,) for n in (0, 1, 2, 4)]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of the loops whose rounds were traced."""
    traced, lines = Rounds.trace, list[int]()

    def counted(self, *args):
        lines.append(self._plan.place.where.line)
        return traced(self, *args)

    monkeypatch.setattr(Rounds, "trace", counted)
    return lines


@pytest.mark.parametrize("family", [nested, nested_each_changing])
def test_each_level_is_traced_twice(family, tmp_path: Path, rounds: list[int]) -> None:
    assert_captured(imported(family(6), tmp_path, "grown").Net(), SIZES[2], SIZES, dynamic_shapes={"x": {0: FREE}})
    assert len(rounds) == 2 * 6


class Kept(nn.Module):
    """Of each kind that is remembered, and some that are not."""

    def forward(self, x):
        total, count, best, out = x.new_zeros(()), 0, None, []
        done, last = False, x.sum() > 0
        for row in x:
            wide = x[:1]
            for other in x:
                piece = row * other
                while piece.abs() > 2:
                    piece, count = piece / 2, count + 1
                if best is None or piece > best:
                    best = piece
                wide = torch.cat([wide, x])
                last = piece > 1
                if total > 9:
                    done = True
                    break
                total = total + piece + wide.shape[0]
            out.append(total)
            if done:
                break
        return total, count, x.new_full((), -1.0) if best is None else best, last, out


class Aliases(nn.Module):
    """A name that the inner loop gives to a tensor of the outer round, and writes in the next round."""

    def forward(self, x):
        total = x.new_zeros(())
        for row in x:
            buffer = torch.zeros(2) + row
            view = torch.zeros(2)
            for _ in range(x.shape[0]):
                view.add_(1)
                view = buffer
            total = total + buffer.sum()
        return total


class Writes(nn.Module):
    def forward(self, x):
        table, line = torch.zeros(5, 5), x.new_zeros(5)
        for i in range(x.shape[0]):
            seen = torch.zeros(5)
            for j in range(x.shape[0]):
                seen[j] = x[i] * x[j]
                for k in range(x.shape[0]):
                    table[i, j] += seen[k]
                    line[k] += 1
        return table, line


class OtherEachTime(nn.Module):
    """The inner loop changes other names, and other kinds of them, in later rounds of the outer one."""

    def forward(self, x):
        a, b, c = 0, 1, x.sum()
        for row in x:
            for other in x:
                a, b, c = b, a + 1, c + b
                if row > other:
                    c = c * other
                    a = a + 2
            for other in x:
                b = b + (1 if c > other else 0)
        return a, b, c


class TooFew(Exception):
    pass


class KnownLater(nn.Module):
    """After one round of the inner loop, a size is what it was before; after two it is not. One round is an error."""

    def forward(self, x):
        total, most = x.new_zeros(()), 0
        for row in x:
            before, wide = x.new_zeros(1), x.new_zeros(1)
            for other in x:
                before, wide = wide, torch.cat([wide, x * other])
            if before.shape[0] == 1:
                raise TooFew
            total, most = total + before.sum() * row, max(most, before.shape[0])
        return total, most


class ThreeDeep(nn.Module):
    """Levels of which some go on before they have settled, and one cannot, since it fills a list."""

    def forward(self, x):
        total, count = x.new_zeros(()), 0
        for row in x:
            rows = []
            for other in x:
                part = row * other
                for k in range(x.shape[0]):
                    part, count = part + x[k], count + 1
                    if part > 4:
                        break
                rows.append(part)
            total = total + torch.stack(rows).sum() + count
        while total > 3:
            for other in x:
                total, count = total / 2 - other.abs(), count - 1
        return total, count


@pytest.mark.parametrize("model", [Kept(), Writes(), OtherEachTime(), ThreeDeep()])
def test_what_the_loops_give(model: nn.Module) -> None:
    assert_captured(model, SIZES[3], SIZES, dynamic_shapes={"x": {0: FREE}})


def test_an_error_of_what_is_not_known_yet() -> None:
    others = [given for given in SIZES if len(given[0]) != 1]
    assert_captured(KnownLater(), SIZES[3], others, dynamic_shapes={"x": {0: FREE}})


def test_a_tensor_of_the_outer_round_is_seen_to_be_written() -> None:
    with pytest.raises(ExportError, match="TP103"):
        assert_captured(Aliases(), SIZES[3], SIZES, dynamic_shapes={"x": {0: FREE}})
