"""Every bound of capture, in one place.

A bound is there so that no model is traced for ever, and no graph grows without end. Most are reached by no model that
anybody showed us. Where one is reached and the model is refused for it, the refusal names it: `Limit` is the number,
and knows what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Limit(int):
    """At most so many."""

    name: str
    of: str

    def __new__(cls, name: str, most: int, of: str) -> Limit:
        made = super().__new__(cls, most)
        made.name, made.of = name, of
        return made

    @property
    def reached(self) -> str:
        """What a diagnostic says of it."""
        return f"trueport's limit of {int(self)} {self.of} was reached ({self.name} in trueport/capture/limits.py)"

    @property
    def facts(self) -> Mapping[str, str]:
        return {"limit": self.name, "most": str(int(self))}


def told(limit: Limit | None) -> dict[str, Any]:
    """What a diagnostic says of the limit that it comes from, if it does from one."""
    return {} if limit is None else {"seen": (limit.reached,), "facts": limit.facts}


# --- traces of one export

TRACES = Limit("TRACES", 200, "traces of one model")
"""A trace that learns something begins anew, mostly once for each of a few functions that decide. A model that needs
more never settles: that is a fault of ours."""

PROMPT_REWRITES = Limit("PROMPT_REWRITES", 2, "traces that end at the first function which has to be rewritten")
"""Later ones go on for a while, to find more such functions. Most models have one or two, and pay for no lookahead."""

PROMPT_OPERATORS = Limit("PROMPT_OPERATORS", 100, "operators that such a trace has recorded")
"""One that came further costs more than to go on for half of that."""

TAILS = Limit("TAILS", 6, "branches that hold the rest of their block")
"""Each traces what follows it twice, so the graph may be doubled as often."""

FORKS = Limit("FORKS", 8, "statements that are run for each way through what they call")
"""Each may double the rest of its block, as a tail does."""

WAYS = Limit("WAYS", 8, "branches of one statement that is run for each way through them")
"""Each may double the statement."""

FORKINGS = Limit("FORKINGS", 200, "runs of statements for each way, in one trace")
"""Of all statements together: those in the arms of others are run for each of theirs."""

# --- loops and calls

LOOP_ATTEMPTS = Limit("LOOP_ATTEMPTS", 20, "traces of the body of a loop")
"""Each attempt learns one more thing that rounds change. What a loop carries mostly settles after two or three."""

CALLS = Limit("CALLS", 30, "calls of one line in branches of each other")
"""Of a function that calls itself. What a plain number or a size of the example bounds ends before."""

CALLS_BY_SIZE = Limit("CALLS_BY_SIZE", 7, "calls of one line in branches that a free size decides")
"""Sizes of sizes of sizes are asked about there, which soon takes minutes."""

ROUNDS_WRITTEN_OUT = Limit("ROUNDS_WRITTEN_OUT", 16, "rounds of a plain range that are written out")
"""Of a loop that a traced value may end: longer ones become a Loop."""

ROUNDS_TRIED = Limit("ROUNDS_TRIED", 16, "rounds that are tried until a test is traced")
"""`h = x[:1]; while h.shape[0] < 10:` is plain for the first rounds."""

ROUNDS_OF_UNKNOWN = Limit("ROUNDS_OF_UNKNOWN", 400, "rounds over something that does not tell its length")
"""Of a loop that a traced value ends: such an iterable is taken to have no end."""

COPIES = Limit("COPIES", 512, "copies of one line in the graph")
"""Above it a warning says that a Python loop was written out (TP106)."""

# --- containers

ITEMS_OF_AN_ITERATOR = Limit("ITEMS_OF_AN_ITERATOR", 4096, "items of an iterator")
"""Above it a plain iterator, of which a traced value says how far it is, is taken to have no end."""

ITEMS_OF_A_GENERATOR = Limit("ITEMS_OF_A_GENERATOR", 4096, "items of a generator")
"""Above it a generator that is put into a list is taken to have no end."""

ITEMS_IN_A_HEAP = Limit("ITEMS_IN_A_HEAP", 16, "traced items in a heap")
"""Each operation on a heap compares its items one by one."""

ITEMS_COMPARED = Limit("ITEMS_COMPARED", 4, "items that are sorted by comparing neighbours")
"""More are stacked and sorted as a tensor, where they are alike."""

# --- what is looked at

DEPTH_OF_CHANGES = Limit("DEPTH_OF_CHANGES", 5, "containers within each other")
"""How far from a name an arm's changes are looked for."""

DEPTH_OF_DISAGREEMENT = Limit("DEPTH_OF_DISAGREEMENT", 5, "containers within each other")
"""How far into a structure something is looked for on which arms disagree."""

DEPTH_OF_ATTRIBUTES = Limit("DEPTH_OF_ATTRIBUTES", 4, "containers within each other")
"""How far from an attribute of a module its tensors are looked for."""

ITEMS_OF_A_GLOBAL = Limit("ITEMS_OF_A_GLOBAL", 256, "items of a global container")
"""Larger ones are taken to be vocabularies, which no arm changes."""

DEPTH_OF_ARGUMENTS = Limit("DEPTH_OF_ARGUMENTS", 2, "containers within each other")
"""How far into an argument of a module tensors are named, for its function in ONNX."""

ITEMS_OF_AN_ARGUMENT = Limit("ITEMS_OF_AN_ARGUMENT", 16, "items of a container among the arguments of a module")
"""Those of a longer one are not named."""

# --- what is computed at export time

ELEMENTS_OF_A_CONSTANT = Limit("ELEMENTS_OF_A_CONSTANT", 1 << 24, "elements of a constant")
"""Larger tensors are not read to tell a number at export time."""

ELEMENTS_OF_SIZES = Limit("ELEMENTS_OF_SIZES", 16, "elements of a tensor of sizes")
"""`torch.tensor(x.shape) // 2` has a few; larger tensors are not followed element by element."""

STEPS_TO_SIZES = Limit("STEPS_TO_SIZES", 64, "operators between sizes and their use")
"""How far back from `.item()` they are followed."""

# --- assumptions about sizes

SIZES_BROKEN = Limit("SIZES_BROKEN", 12, "sizes that break an assumption")
"""So many are enough to ask eager."""

SIZES_TRIED = Limit("SIZES_TRIED", 600, "combinations of sizes that an assumption is asked for")
"""Their number grows with a power of that of the sizes."""
