"""Connectionist temporal classification: the probability of a text, summed over all ways to stretch it in time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import count
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Lengths = Sequence[int | Number] | Tensor
INT64 = ir.DataType.INT64


@op("aten::_ctc_loss", "aten::_ctc_loss.Tensor")
def ctc_loss(
    op: Builder,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    zero_infinity: bool = False,
) -> Sequence[Tensor | None]:
    """_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0,
    bool zero_infinity=False) -> (Tensor, Tensor); the second result is for the backward pass.

    One round of a loop for each point in time. A state is a place in the text with blanks around and between letters.
    """
    times, batch, _ = log_probs.known_sizes
    spoken, written = (_as_tensor(op, lengths) for lengths in (input_lengths, target_lengths))
    letters, longest = _letters(op, targets, written, batch)
    # What stands behind a text may be anything.
    letters = op.Where(op.Less(op.range(longest), op.Unsqueeze(written, op.ints(1))), letters, op.const(blank))
    places = 2 * longest + 1
    state = (batch, places)
    # Blanks at even places, letters at odd ones.
    blanks = op.expand(op.const(blank), (batch, longest, 1))
    pairs = _sized(op.Concat(blanks, op.Unsqueeze(letters, op.ints(2)), axis=2), (batch, longest, 2))
    last_blank = op.expand(op.const(blank), (batch, 1))
    text = _sized(op.Concat(op.reshape(pairs, (batch, 2 * longest)), last_blank, axis=1), state)
    never = op.const(-math.inf, log_probs.element)
    two_before = _shifted(op, text, 2, op.const(-1))
    may_skip = op.Not(op.Equal(text, two_before))

    def spoken_at(time: Tensor) -> Tensor:
        return op.GatherElements(op.Gather(log_probs, time, axis=0), text, axis=1)

    def step(done: Tensor, states: list[Tensor]) -> list[Tensor]:
        time = op.Add(done, 1)
        before = states[0]
        skipped = op.Where(may_skip, _shifted(op, before, 2, never), never)
        added = _log_sum(op, [before, _shifted(op, before, 1, never), skipped])
        goes_on = op.Unsqueeze(op.Less(time, spoken), op.ints(1))
        return [op.Where(goes_on, op.Add(added, spoken_at(time)), before)]

    begins = op.Less(op.range(places), 2)
    first = _sized(op.Where(begins, spoken_at(op.const(0)), never), state)
    last = loop(op, op.size(times - 1), [first], step)[0]
    end = op.Mul(op.Unsqueeze(written, op.ints(1)), 2)
    ends = [op.GatherElements(last, at, axis=1) for at in (end, op.Max(op.Sub(end, 1), 0))]
    ends[1] = op.Where(op.Equal(end, 0), never, ends[1])
    loss = op.Neg(op.Squeeze(_log_sum(op, ends), op.ints(1)))
    nothing = op.const(0.0, log_probs.element)
    in_no_time = op.Where(op.Equal(written, 0), nothing, op.const(math.inf, log_probs.element))
    return op.Where(op.Equal(spoken, 0), in_no_time, loss), None


def _as_tensor(op: Builder, lengths: Lengths) -> Tensor:
    return op.cast(lengths, INT64) if isinstance(lengths, Tensor) else op.shape(lengths)


def _letters(op: Builder, targets: Tensor, written: Tensor, batch: Size) -> tuple[Tensor, Size]:
    """(the letters of each text in a row, how long a row is). Texts may come one after the other; then a row is as long
    as all of them together, and what lies behind a text is never reached."""
    texts = op.cast(targets, INT64)
    if targets.rank == 2:
        return texts, targets.known_sizes[1]
    total = count(targets.known_sizes)
    starts = op.Sub(op.CumSum(written, op.const(0)), written)
    places = op.Add(op.Unsqueeze(starts, op.ints(1)), op.range(total))
    return op.Gather(texts, op.Min(places, op.size(total - 1)), axis=0), total


def _sized(x: Tensor, sizes: tuple[Size, ...]) -> Tensor:
    x.settle(sizes)
    return x


def _shifted(op: Builder, x: Tensor, by: int, filler: Tensor) -> Tensor:
    """Each row moved to the right, and filled from the left."""
    return op.Slice(op.Pad(x, op.ints(0, by, 0, 0), filler), op.ints(0), op.ints(-by), op.ints(1))


def _log_sum(op: Builder, parts: Sequence[Tensor]) -> Tensor:
    """log(exp(a) + exp(b) + ...), where all may be -inf."""
    largest = op.Max(*parts)
    safe = op.Where(op.Equal(largest, -math.inf), op.const(0.0, largest.element), largest)
    terms = [op.Exp(op.Sub(part, safe)) for part in parts]
    total = terms[0]
    for term in terms[1:]:
        total = op.Add(total, term)
    return op.Add(op.Log(total), safe)
