"""The loop that the example shows."""

from __future__ import annotations

import pytest
import torch

import trueport
from examples.generate import generate as loop
from tests.generation.models import llama
from trueport.generation.eager import Prompts, generate

pytest.importorskip("transformers")


def test_the_loop_of_the_example_is_generate(tmp_path):
    model = llama()
    trueport.generation.export(model, tmp_path / "out", verify=False)
    inputs = Prompts(model, {}).make(3, 6)
    found = loop(tmp_path / "out", inputs["input_ids"].numpy(), inputs["attention_mask"].numpy(), 10)
    assert torch.equal(torch.from_numpy(found), generate(model, inputs, 10).tokens)
