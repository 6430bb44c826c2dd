"""An object that both ways through a branch change and hold stays that object, inside of a result as well.

What an arm changes is undone at its end and merged in the object itself. A tuple around it was made anew from what it
held before: `return y, cache` gave the cache as it had come in.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

import trueport


@dataclasses.dataclass
class Cache:
    keys: torch.Tensor
    count: int


class Plain:
    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys


class Scaled(torch.nn.Module):
    """Its early return parts what comes after: the rest of forward is traced for each way."""

    def scale(self, count: int) -> Any:
        if count == 1:
            return None
        return torch.ones(1) * count

    def forward(self, x: torch.Tensor, past: Cache) -> Any:
        scale = self.scale(past.count)
        past.keys = past.keys + x.sum()
        past.count += 1
        return (x if scale is None else x * scale), past


class Nested(Scaled):
    def forward(self, x: torch.Tensor, past: Cache) -> Any:
        scale = self.scale(past.count)
        past.keys = past.keys + x.sum()
        past.count += 1
        return (x if scale is None else x * scale), {"state": (past, x)}


class OfItsOwn(Scaled):
    def forward(self, x: torch.Tensor, past: Cache) -> Any:
        held = Plain(past.keys)
        scale = self.scale(past.count)
        held.keys = held.keys + 1
        return (x if scale is None else x * scale), held


def leaves(found: Any) -> list[Any]:
    y, state = found
    state = state["state"][0] if isinstance(state, dict) else state
    return [y, state.keys, getattr(state, "count", None)]


@pytest.mark.parametrize("kind", [Scaled, Nested, OfItsOwn])
def test_what_forward_left_in_it_comes_out(kind):
    model = kind().eval()
    program = trueport.export(model, (torch.ones(2, 3), Cache(torch.zeros(4), 2)))
    for count in (1, 2, 5):
        x = torch.full((2, 3), 0.5)
        found = leaves(program(x, Cache(torch.arange(4.0), count)))
        expected = leaves(model(x, Cache(torch.arange(4.0), count)))
        assert found[2] == expected[2]
        torch.testing.assert_close(found[:2], expected[:2])
