"""What the rounds of a loop are given, noted from a run of the captured graph."""

from __future__ import annotations

import torch

import trueport
from trueport.graph.regions import Control
from trueport.verify.decisions.regions import RegionRecording, alone


def test_a_loop_without_end_is_left_after_the_rounds_that_are_noted():
    """After a hang of the runtime the rounds are looked at one by one; here nothing would end them."""

    def model(x):
        while x.sum() < 10:
            x = x * 2
        return x

    graph = trueport.export(model, (torch.ones(3),), verify=False).captured
    (body,) = (node.regions[0] for node in graph.root.walk() if node.op is Control.LOOP)
    rounds = {body: alone(graph, body)}
    recording = RegionRecording(rounds=rounds, most=5)
    recording.note(graph, {"x": torch.zeros(3)})
    assert len(recording.seen[rounds[body]]) == 5
