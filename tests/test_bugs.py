"""The three models of ../shared/cases/bugs: each was refused, or asked for what no user could say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

import trueport

BUGS = Path(__file__).resolve().parents[2] / "shared" / "cases" / "bugs"
pytestmark = pytest.mark.skipif(not BUGS.is_dir(), reason="../shared/cases/bugs is not here")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BUGS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_two_masks_and_two_loops() -> None:
    net = module("bug_two_masks").Net()
    scores = torch.linspace(0.3, 0.95, 8)
    program = trueport.export(net, (torch.rand(8), scores), dynamic_shapes=({0: "n"}, {0: "n"}))
    assert program.report.verified
    for n in (1, 5, 20):
        values, scores = torch.rand(n), torch.rand(n) * 0.39 + 0.61
        for got, expected in zip(program(values, scores), net(values, scores), strict=True):
            torch.testing.assert_close(got, expected)


def test_greedy_decoding_with_a_cache() -> None:
    found = module("m02_greedy")
    model = found.make()
    program = trueport.export(
        model,
        (torch.randint(0, 50, (2, 3), generator=torch.Generator().manual_seed(0)),),
        dynamic_shapes=({0: torch.export.Dim("B", min=1), 1: torch.export.Dim("S", min=1, max=64)},),
        value_ranges={"ids": (0, 49)},
    )
    assert program.report.verified
    for inputs in found.inputs(torch.Generator().manual_seed(1)):
        assert torch.equal(program(inputs["ids"]), model(inputs["ids"]))


def test_a_language_model_with_cache_and_mask() -> None:
    pytest.importorskip("transformers")
    found = module("llama_cache_and_mask")
    model, kwargs, free = found.make()
    program = trueport.export(model, kwargs=kwargs, dynamic_shapes=free)
    assert program.report.verified
    mask = next(given for given in program.model.graph.inputs if given.name == "attention_mask")
    assert str(mask.shape) == "[b,p + s]"
    for batch, new, past in ((1, 1, 4), (3, 2, 7)):
        ids = torch.randint(0, 64, (batch, new))
        ones = torch.ones(batch, past + new, dtype=torch.long)
        cache = found.cache(batch, past)
        again = found.cache(batch, past)
        for ours, theirs in zip(again.layers, cache.layers, strict=True):
            ours.keys, ours.values = theirs.keys.clone(), theirs.values.clone()
        got = program(input_ids=ids, attention_mask=ones, past_key_values=cache, use_cache=True)
        with torch.no_grad():
            expected = model(input_ids=ids, attention_mask=ones, past_key_values=again, use_cache=True)
        torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-5)
