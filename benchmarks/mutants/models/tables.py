"""Embeddings, hashes, tokenisers: integers that pick rows of tables."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.mutants import kinds
from benchmarks.mutants.cases import Model, Mutant
from benchmarks.mutants.mutations import (
    FLOAT,
    INT32,
    UINT8,
    at_input,
    at_output,
    attributes,
    before,
    behind,
    entry,
    number,
    place_is,
    plus,
    retype,
    rows_above,
    through,
    when,
    zeroed,
)


class Bag(nn.Module):
    """The mean of the words' vectors, without the padding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 6, padding_idx=0)
        self.out = nn.Linear(6, 3)

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != 0).float().unsqueeze(-1)
        total = (self.table(ids) * real).sum(1)
        return self.out(total / real.sum(1).clamp(min=1))


class Hashed(nn.Module):
    """Feature hashing of 64-bit ids."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(101, 4)

    def forward(self, ids: Tensor) -> Tensor:
        buckets = (ids * 2654435761 + 17) % 101
        return self.table(buckets).sum(-2)


class LowerCase(nn.Module):
    """Bytes to lower case, and where words begin."""

    def forward(self, text: Tensor) -> tuple[Tensor, Tensor]:
        capital = (text >= 65) & (text <= 90)
        lowered = torch.where(capital, text + 32, text)
        word = (lowered != 32).long()
        begins = word * (1 - torch.nn.functional.pad(word, (1, 0))[:, :-1])
        return lowered, begins.cumsum(1)


class Relative(nn.Module):
    """T5's buckets of relative positions: exact when near, logarithmic when far, one for all beyond 128."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(32, 2)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        distance = key[None, :] - query[:, None]
        bucket = (distance > 0).long() * 16
        distance = distance.abs()
        far = 8 + (torch.log(distance.float().clamp(min=1) / 8) / math.log(128 / 8) * 8).long()
        bucket = bucket + torch.where(distance < 8, distance, far.clamp(max=15))
        return self.bias(bucket)


class Segments(nn.Module):
    """Two kinds of tokens and their segment, each with its table."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.kind = nn.Embedding(30, 4), nn.Embedding(3, 4)

    def forward(self, ids: Tensor, segment: Tensor) -> Tensor:
        return torch.tanh(self.word(ids) + self.kind(segment))


class Bigrams(nn.Module):
    """Pairs of neighbours, counted into 61 buckets."""

    def forward(self, ids: Tensor) -> Tensor:
        pairs = (ids[:-1] * 31 + ids[1:]) % 61
        counts = torch.zeros(61, dtype=torch.int64)
        return counts.index_add(0, pairs, torch.ones_like(pairs))


def words(batch: int, length: int, most: int = 300) -> Tensor:
    return torch.randint(1, most, (batch, length))


def text(said: str) -> Tensor:
    return torch.tensor([list(said.encode())])


MODELS = [
    Model(
        "tables.bag",
        Bag,
        lambda: (words(2, 5),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(kinds.TABLE, "last word", entry((300, 6), 299), lambda: (torch.tensor([[299, 1]]),)),
            Mutant(kinds.TABLE, "first word after the padding", entry((300, 6), 1), lambda: (torch.tensor([[1, 2]]),)),
            Mutant(
                kinds.WRAP,
                "ids through uint8",
                before("Gather", 1, through(UINT8)),
                lambda: (torch.tensor([[280, 1]]),),
            ),
            Mutant(kinds.NAN, "only padding gives NaN", number(1, 0), lambda: (torch.zeros(2, 3, dtype=torch.int64),)),
        ],
    ),
    Model(
        "tables.hashed",
        Hashed,
        lambda: (torch.randint(0, 1000, (2, 3)),),
        ({0: "batch", 1: "ids"},),
        [
            Mutant(
                kinds.BEYOND_24,
                "ids through float32",
                at_input(0, through(FLOAT)),
                lambda: (torch.tensor([[2**24 + 1, 5]]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "ids through int32",
                at_input(0, through(INT32)),
                lambda: (torch.tensor([[2**33 + 5, 7]]),),
            ),
            Mutant(kinds.TABLE, "last bucket", entry((101, 4), 100), lambda: (torch.arange(-40, 200).reshape(2, 120),)),
        ],
    ),
    Model(
        "tables.lower_case",
        LowerCase,
        lambda: (text("Some Words here"),),
        ({0: "batch", 1: "length"},),
        [
            Mutant(kinds.THRESHOLD, "Z stays", retype("LessOrEqual", "Less"), lambda: (text("aZb"),)),
            Mutant(kinds.THRESHOLD, "A stays", retype("GreaterOrEqual", "Greater"), lambda: (text("aAb"),)),
            Mutant(kinds.CONSTANT, "@ is a capital", number(65, 64), lambda: (text("a@b"),)),
            Mutant(kinds.SCAN, "counted before", attributes("CumSum", exclusive=1), lambda: (text("a b"),)),
            Mutant(
                kinds.ROWS,
                "words restart at 100",
                behind("CumSum", when(rows_above(100, 1), plus(-1))),
                lambda: (text("ab " * 40),),
            ),
        ],
    ),
    Model(
        "tables.relative",
        Relative,
        lambda: (torch.arange(4), torch.arange(5)),
        ({0: "queries"}, {0: "keys"}),
        [
            Mutant(
                kinds.CONSTANT,
                "9 is near",
                before("Less", 1, lambda op, v: op.constant(np.int64(10))),
                lambda: (torch.tensor([0]), torch.tensor([9, 1])),
            ),
            Mutant(kinds.TABLE, "last bucket", entry((32, 2), 31), lambda: (torch.tensor([0]), torch.tensor([200]))),
            Mutant(kinds.TABLE, "bucket 15", entry((32, 2), 15), lambda: (torch.tensor([500]), torch.tensor([0]))),
            Mutant(kinds.BOUND, "buckets end at 14", number(15, 14), lambda: (torch.tensor([0]), torch.tensor([200]))),
            Mutant(
                kinds.SWAP,
                "the other way round from 40 keys on",
                at_output(0, lambda op, v: op.Where(rows_above(40)(op, "key"), op.Neg(v), v)),
                lambda: (torch.arange(3), torch.arange(45)),
            ),
        ],
    ),
    Model(
        "tables.segments",
        Segments,
        lambda: (torch.randint(0, 30, (2, 4)), torch.zeros(2, 4, dtype=torch.int64)),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        [
            Mutant(
                kinds.TABLE, "last segment", entry((3, 4), 2), lambda: (torch.tensor([[1, 2]]), torch.tensor([[0, 2]]))
            ),
            Mutant(
                kinds.TABLE,
                "second segment",
                entry((3, 4), 1),
                lambda: (torch.tensor([[1, 2]]), torch.tensor([[0, 1]])),
            ),
            Mutant(
                kinds.FROZEN_VALUE,
                "segments are zero",
                at_input(1, zeroed),
                lambda: (torch.tensor([[1, 2]]), torch.tensor([[2, 1]])),
            ),
            Mutant(
                kinds.EQUAL_INPUTS,
                "wrong where word and segment are the same",
                at_output(
                    0, lambda op, v: op.Where(op.Unsqueeze(op.Equal("ids", "segment"), np.asarray([-1])), op.Neg(v), v)
                ),
                lambda: (torch.tensor([[2, 9]]), torch.tensor([[2, 1]])),
            ),
        ],
    ),
    Model(
        "tables.bigrams",
        Bigrams,
        lambda: (torch.randint(0, 40, (9,)),),
        ({0: "length"},),
        [
            Mutant(
                kinds.INDEX,
                "equal pairs count once",
                attributes("ScatterElements", reduction="none"),
                lambda: (torch.tensor([1, 2, 1, 2, 1, 2]),),
            ),
            Mutant(
                kinds.BEYOND_24,
                "pairs in float32",
                behind("Mul", through(FLOAT)),
                lambda: (torch.tensor([2**24 + 1, 3, 2**25 + 5]),),
            ),
            Mutant(
                kinds.BEYOND_32,
                "pairs in int32",
                behind("Mul", through(INT32)),
                lambda: (torch.tensor([2**29 + 1, 3, 2**33 + 5, 1]),),
            ),
            Mutant(
                kinds.EDGE,
                "last bucket stays empty",
                at_output(0, when(place_is(60, -1), zeroed)),
                lambda: (torch.tensor([1, 29, 2]),),
            ),
        ],
    ),
]
