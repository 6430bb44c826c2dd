"""A name that may be None is asked what it is: `isinstance`, `type`, `==`, which None answers as well as a tensor."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport


def _mask_or_none(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    return None if mask.all() else mask.to(dtype)


class IsInstance(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        if isinstance(found, torch.Tensor) and found.dim() == 2:
            return x * 2 + found
        return x


class IsTensor(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        return x * 2 + found if torch.is_tensor(found) else x


class TypeOf(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        if type(found) is torch.Tensor:
            x = x * 2 + found
        return x


class EqualToNone(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        if found == None:  # noqa: E711  as users write it
            x = x * 2
        return x


class OneOf(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        return x * 2 if found not in (None,) else x


class EqualToANumber(nn.Module):
    """The blank of a number is 0, and None is not."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        limit = None if mask.all() else int(mask.sum())
        x = x * 2 if limit == 0 else x
        return x + 1 if limit != 0 else x


class Counted(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = _mask_or_none(mask, x.dtype)
        return x * sum(isinstance(each, torch.Tensor) for each in (found, x))


class OneOrTwo(nn.Module):
    """What the arms leave is no one value at all: a tensor, or a pair of them."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out = x.sin() if mask.all() else (x.cos(), x * 3)
        if isinstance(out, tuple):
            out = out[0] - out[1]
        return out


def _made(mask: torch.Tensor, lengths: tuple[int, int]) -> torch.Tensor | None:
    """A mask that is prepared already is handed on; a full one is None."""
    if isinstance(mask, torch.Tensor) and mask.dim() == 4:
        return mask
    if mask is None or mask.all():
        return None
    return mask[:, None, None, :].expand(-1, 1, *lengths)


class Attention(nn.Module):
    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        is_causal = x.shape[2] > 1 and attention_mask is None
        return F.scaled_dot_product_attention(x, x, x, attn_mask=attention_mask, is_causal=is_causal)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Attention()])

    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        made = _made(attention_mask, (x.shape[2], x.shape[2]))
        for layer in self.layers:
            x = layer(x, attention_mask=made)
        return x


class PreparedTwice(nn.Module):
    """The outer model prepares a mask, and hands it to an inner one that prepares it again."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        made = _made(mask, (x.shape[1], x.shape[1]))
        return self.decoder(x[:, None], attention_mask=made)[:, 0]


_ALL = [IsInstance, IsTensor, TypeOf, EqualToNone, OneOf, EqualToANumber, Counted, OneOrTwo]


@pytest.mark.parametrize("model", _ALL)
@pytest.mark.parametrize("full", [True, False])
def test_none_answers_too(model: type[nn.Module], full: bool) -> None:
    torch.manual_seed(0)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 4] = full
    program = trueport.export(model(), (torch.randn(3, 5), mask))
    for given in (torch.ones(3, 5, dtype=torch.bool), torch.zeros(3, 5, dtype=torch.bool), mask):
        x = torch.randn(3, 5)
        torch.testing.assert_close(torch.as_tensor(program(x, given)), model()(x, given))


@pytest.mark.parametrize("full", [True, False])
def test_a_mask_that_may_be_none_is_prepared_twice(full: bool) -> None:
    torch.manual_seed(0)
    mask = torch.ones(2, 5, dtype=torch.bool)
    mask[0, 4] = full
    shapes = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
    program = trueport.export(PreparedTwice(), (torch.randn(2, 5, 8), mask), dynamic_shapes=shapes)
    for given in (torch.ones(3, 7, dtype=torch.bool), torch.tensor([[True] * 6 + [False]] * 3)):
        x = torch.randn(3, 7, 8)
        torch.testing.assert_close(torch.as_tensor(program(x, given)), PreparedTwice()(x, given))
