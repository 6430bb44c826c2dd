"""Eager health: does the model run, twice the same, in the right mode and place, on types that can be carried?"""

from trueport.examine.examine import Examined, examine
from trueport.examine.places import user_place
from trueport.examine.precise import Precisely
from trueport.examine.remembering import remembers
from trueport.examine.run import run_eager, run_with_state
from trueport.examine.state import Snapshot

__all__ = ["Examined", "Precisely", "Snapshot", "examine", "remembers", "run_eager", "run_with_state", "user_place"]
