"""What is read off three calls."""

from __future__ import annotations

import pytest
import torch

import trueport
from trueport.generation.plan import BATCH, PAST, state_names
from trueport.generation.watch import Lengths


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("past_key_values.layers[0].keys", ("past_key_values.0.key", "present.0.key")),
        (
            "past_key_values.self_attention_cache.layers[3].values",
            ("past_key_values.3.decoder.value", "present.3.decoder.value"),
        ),
        (
            "past_key_values.cross_attention_cache.layers[0].keys",
            ("past_key_values.0.encoder.key", "present.0.encoder.key"),
        ),
        ("cache_params.layers[1].conv_states[0]", ("past_conv_states.1", "present_conv_states.1")),
        ("cache_params.layers[1].conv_states[2]", ("past_conv_states.1.2", "present_conv_states.1.2")),
    ],
)
def test_names_of_states(path, names):
    assert state_names(path) == names


LENGTHS = Lengths({BATCH: (2, 2, 3), PAST: (5, 6, 7)})


def test_axes_follow_from_their_lengths():
    seen = [torch.empty(2, 4, 5), torch.empty(2, 4, 6), torch.empty(3, 4, 7)]
    assert LENGTHS.axes("keys", seen) == {0: BATCH, 2: PAST}


def test_a_call_without_the_tensor_tells_nothing():
    assert LENGTHS.axes("mask", [torch.empty(2, 5), None, torch.empty(3, 7)]) == {0: BATCH, 1: PAST}


def test_a_length_that_follows_nothing_is_refused():
    with pytest.raises(trueport.ExportError, match="axis 0 of x was 8, 9, 8 long"):
        LENGTHS.axes("x", [torch.empty(8), torch.empty(9), torch.empty(8)])
