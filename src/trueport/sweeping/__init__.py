"""Many models, each exported and checked in a process of its own, on one machine or on many.

A model is a row. Whatever it does (a refusal, a crash, a hang, no memory) ends in its row and never ends the run. Rows
are written once, under a key made of the entry and the versions, by whoever ran the model. So a worker that is lost
takes nothing with it but the model that it was at, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

from trueport.sweeping.engine import sweep
from trueport.sweeping.entries import Entry, read_entries
from trueport.sweeping.rows import Outcome, SweepRow

__all__ = ["Entry", "Outcome", "SweepRow", "read_entries", "sweep"]
