"""Where eager refuses the example, what would help: a size that it does accept, or indices that fit."""

from __future__ import annotations

import torch
from torch import nn

import trueport
from trueport.diagnostics import Diagnostic
from trueport.diagnostics.spelling import in_words


class ForFour(nn.Module):
    def forward(self, x):
        return x.view(4, -1).softmax(1)


class Gathers(nn.Module):
    def forward(self, x, rows):
        return x[rows]


class Never(nn.Module):
    def forward(self, x):
        raise ValueError("not today")


def refusal(model: nn.Module, *args: torch.Tensor, free: bool = True) -> Diagnostic:
    sizes = ({0: "batch"}, *({} for _ in args[1:])) if free else None
    (finding,) = trueport.check(model, args, dynamic_shapes=sizes).diagnostics
    assert finding.code == "TP002"
    return finding


def test_the_size_that_a_number_in_the_code_stands_for() -> None:
    finding = refusal(ForFour(), torch.randn(3, 5))
    assert "eager does run with batch = 4" in finding.seen
    assert "give batch = 4 as a number" in finding.fix


def test_without_a_free_size_no_other_is_tried() -> None:
    assert not any("does run with" in fact for fact in refusal(ForFour(), torch.randn(3, 5), free=False).seen)


def test_a_model_that_refuses_all_sizes_says_nothing_of_them() -> None:
    assert not any("does run with" in fact for fact in refusal(Never(), torch.randn(3, 5)).seen)


def test_indices_that_do_not_fit_are_told_their_range() -> None:
    finding = refusal(Gathers(), torch.randn(3, 5), torch.tensor([0, 7]))
    assert "rows" in finding.fix
    assert "torch.randint(0, 3" in finding.fix and "@0..2" in in_words(finding.fix)


def test_lengths_that_do_not_fit_are_told_apart_from_sizes() -> None:
    def cut(x, lengths):
        return [row.narrow(0, 0, int(n)).sum(0) for row, n in zip(x, lengths, strict=True)]

    (finding,) = trueport.check(cut, (torch.randn(2, 3, 4), torch.tensor([5, 2]))).diagnostics
    assert "eager does run with nothing but 1 in lengths" in finding.seen
    assert "give lengths numbers that fit" in finding.fix and "i64@1..n" in in_words(finding.fix)
