"""The stage between capture and lower: eager is run again, to judge what the trace took for granted."""

from __future__ import annotations

from dataclasses import replace

from trueport.capture.effects.state import StateMode
from trueport.examine import Examined
from trueport.graph.regions import Graph
from trueport.load.job import Job
from trueport.verify.assumed.sizes import Refuses, TraceJudged, judge_sizes
from trueport.verify.assumed.state import judge_state


def judge_trace(
    graph: Graph, job: Job, examined: Examined, choice: StateMode, refuses: Refuses, verified: bool
) -> TraceJudged:
    """What is to be told of a trace: its own findings, as far as eager confirms them, and what it assumed about sizes.

    `refuses` runs eager on one value per leaf and says where it raised. What only verification can settle is left
    alone where there will be none (`verified`).
    """
    found = judge_state(graph.diagnostics, job, examined, choice)
    judged = judge_sizes(graph, job, refuses, verified)
    return replace(judged, diagnostics=(*found, *judged.diagnostics))
