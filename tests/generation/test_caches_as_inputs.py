"""Caches of transformers as inputs of a plain `trueport.export`, and objects that count: right at every length of the
past, or refused with a way that is."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.export import Dim

import trueport
from tests.generation.models import VOCABULARY, llama, mistral, transformers

pytest.importorskip("transformers")
WINDOW, LAYERS, ROWS = 4, 2, 2


class WithCache(torch.nn.Module):
    def __init__(self, model) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids, mask, past):
        found = self.model(input_ids=ids, attention_mask=mask, past_key_values=past, use_cache=True)
        return found.logits, found.past_key_values


def filled(model, cache, length: int):
    """The cache as it is after so many tokens, which are the same for each kind of cache."""
    if length:
        ids = torch.randint(VOCABULARY, (ROWS, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            model(input_ids=ids, past_key_values=cache, use_cache=True)
    else:
        for layer in range(LAYERS):
            cache.update(torch.zeros(ROWS, 2, 0, 4), torch.zeros(ROWS, 2, 0, 4), layer)
    return cache


def new_tokens(past: int, count: int):
    ids = torch.randint(VOCABULARY, (ROWS, count), generator=torch.Generator().manual_seed(100 + count))
    mask = torch.ones(ROWS, past + count, dtype=torch.int64)
    mask[1, 0] = int(past == 0)
    return ids, mask


def compared(program, model, cache, lengths, counts=(1,)) -> None:
    """At each length of the past, with what eager gives for the same: the logits, and the cache for the next call."""
    for length in lengths:
        for count in counts:
            given = new_tokens(length, count)
            logits, after = program(*given, filled(model, cache(), length))
            with torch.no_grad():
                expected, left = WithCache(model)(*given, filled(model, cache(), length))
            torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
            for ours, theirs in zip(after.layers, left.layers, strict=True):
                assert ours.get_seq_length() == theirs.get_seq_length() == length + count
                torch.testing.assert_close(ours.keys, theirs.keys, atol=1e-4, rtol=1e-4)


def test_a_sliding_cache_counts_in_numbers_that_are_inputs():
    """DynamicCache(config): keys of the window at most, and a plain count of all tokens in each layer."""
    model = mistral(WINDOW)

    def cache():
        return transformers().DynamicCache(config=model.config)

    batch, kept = Dim("batch"), Dim("kept", max=WINDOW - 1)
    layer = {"keys": {0: batch, 2: kept}, "values": {0: batch, 2: kept}}
    shapes = ({0: batch}, {0: batch, 1: Dim("total", min=1)}, {"layers": [layer] * LAYERS})
    program = trueport.export(
        WithCache(model).eval(), (*new_tokens(2, 1), filled(model, cache(), 2)), dynamic_shapes=shapes
    )
    assert {"past_0_cumulative_length", "past_1_cumulative_length"} < {i.name for i in program.model.graph.inputs}
    compared(program, model, cache, (1, 2, WINDOW - 1, WINDOW, WINDOW + 1, 9))


def test_a_static_sliding_cache_as_well():
    model = mistral(WINDOW)

    def cache():
        return transformers().StaticCache(config=model.config, max_cache_len=16)

    shapes = ({}, {1: Dim("total", min=1)}, None)
    given = (*new_tokens(2, 1), filled(model, cache(), 2))
    program = trueport.export(WithCache(model).eval(), given, dynamic_shapes=shapes)
    compared(program, model, cache, (1, 2, WINDOW - 1, WINDOW, WINDOW + 1, 9))


class Turns:
    """It counts its calls, and Python needs the count itself."""

    def __init__(self, x: torch.Tensor, count: int) -> None:
        self.x, self.count = x, count


class Turning(torch.nn.Module):
    def forward(self, turns: Turns):
        turns.count += 1
        return turns.x.sum(dim=turns.count % 2), turns


def test_a_count_that_can_be_no_input_is_refused_as_a_constant():
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(Turning().eval(), (Turns(torch.randn(2, 3), 1),))
    first, *others = [one for one in refused.value.diagnostics if one.is_error]
    assert (first.code, "right for this one call only" in first.message) == ("TP205", True)
    assert "DynamicCache() without a config" in first.fix
    assert others  # why not as an input, at its line
    kept = {"constants": ["turns_count"]}
    with pytest.raises(trueport.ExportError, match="right for this one call only"):
        trueport.export(Turning().eval(), (Turns(torch.randn(2, 3), 1),), **kept)


def test_the_way_out_is_right_below_at_and_above_the_window():
    """Against eager with the cache that drops what has left the window."""
    model, kind = mistral(WINDOW), transformers().DynamicCache
    batch, new, past = Dim("batch"), Dim("new", min=1), Dim("past", min=0)
    layer = {"keys": {0: batch, 2: past}, "values": {0: batch, 2: past}}
    program = trueport.export(
        WithCache(model).eval(),
        (*new_tokens(2, 3), filled(model, kind(), 2)),
        dynamic_shapes=({0: batch, 1: new}, {0: batch, 1: "past + new"}, {"layers": [layer] * LAYERS}),
    )
    for length in (0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 9):
        for count in (1, 3):
            given = new_tokens(length, count)
            logits, _ = program(*given, filled(model, kind(), length))
            with torch.no_grad():
                expected, _ = WithCache(model)(*given, filled(model, kind(config=model.config), length))
            torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


def test_a_static_cache_counts_in_a_tensor():
    model, kind = llama(), transformers().StaticCache

    def cache(length: int):
        return filled(model, kind(config=model.config, max_cache_len=16), length)

    total = Dim("total", min=1, max=16)
    shapes = ({}, {1: total}, {"layers": [{}] * LAYERS})
    program = trueport.export(WithCache(model).eval(), (*new_tokens(3, 1), cache(3)), dynamic_shapes=shapes)
    for length in (1, 3, 7, 15):
        given = new_tokens(length, 1)
        logits, after = program(*given, cache(length))
        with torch.no_grad():
            expected, _ = WithCache(model)(*given, cache(length))
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
        assert [int(layer.cumulative_length) for layer in after.layers] == [length + 1] * LAYERS


@dataclasses.dataclass
class Window:
    """Somebody's own sliding window: a dataclass, so that its numbers are inputs."""

    keys: torch.Tensor
    count: int

    def update(self, new: torch.Tensor) -> torch.Tensor:
        self.count += new.shape[1]
        whole = torch.cat([self.keys, new], 1)
        self.keys = whole[:, -WINDOW + 1 :]
        return whole

    def length_and_start(self, new: int) -> tuple[int, int]:
        start = max(self.count - WINDOW + 1, 0)
        return (WINDOW - 1 + new if self.count >= WINDOW else self.count + new), start


class Windowed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, past: Window):
        length, start = past.length_and_start(x.shape[1])
        places = torch.arange(length) + start
        return past.update(self.inner(x)) * places[:, None], past


def test_a_counter_in_a_dataclass_is_an_input_and_an_output():
    torch.manual_seed(0)
    model = Windowed().eval()

    def window(length: int) -> Window:
        return Window(torch.arange(8.0 * min(length, WINDOW - 1)).reshape(2, -1, 4), length)

    x = torch.ones(2, 1, 4)
    shapes = ({}, {"keys": {1: Dim("kept", max=WINDOW - 1)}, "count": None})
    program = trueport.export(model, (x, window(2)), dynamic_shapes=shapes)
    for length in (0, 1, 2, 3, 4, 5, 9):
        found, past = program(x, window(length))
        expected, after = model(x, window(length))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        assert past.count == after.count == length + 1
        torch.testing.assert_close(past.keys, after.keys)
