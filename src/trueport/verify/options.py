"""What a check is asked for: by the user, and by whoever knows the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.verify.decisions.tally import Decision
from trueport.verify.faults.evidence import Evidence
from trueport.verify.faults.mismatch import Locate
from trueport.verify.inputs.work import WatchedAt, Work
from trueport.verify.judging.comparing import Allowed
from trueport.verify.judging.steps import Answers

Unreached = Callable[[Sequence[Decision], Sequence[Sequence[object]]], Sequence[Diagnostic]]
"""What there is to say of ways that no input took, given the inputs that were compared, one value per leaf each."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is tried, in counts and in units of work (`work.py`): the same on every machine, idle or busy.

    What no check can do without (a few inputs, every free size at other values) is tried whatever it costs, as long as
    `needed` attempts and units allow. What goes beyond that ends with `inputs`, or with its share of `units`: so many,
    and so many for each operator of the model, as an export itself takes.
    """

    needed: int = 200
    needed_units: int = 30_000_000
    inputs: int = 96
    units: int = 160_000
    units_of_an_operator: int = 500
    search_units: int = 600_000
    """For inputs that take the ways which drawn inputs did not; of no use where all are taken."""
    arms: int = 60
    """Runs of arms that no input reached, each by itself."""
    shrink_units: int = 3_000_000
    seconds: float = 900.0
    """By the clock, and only as a last resort: where it ends a check, the report says so."""

    def of_inputs(self, work: Work) -> float:
        return self.units + self.units_of_an_operator * work.operators

    def search_attempts(self, work: Work) -> int:
        units = self.search_units + self.units_of_an_operator * work.operators
        return max(_FEW_ATTEMPTS, int(units / (_OF_AN_ATTEMPT + 3 * work.units)))


_FEW_ATTEMPTS = 24
_OF_AN_ATTEMPT = 250
"""Units of a run in which every test is measured, besides those of the run itself."""

USUAL = Budget()
EXPORTED = Budget(inputs=40, units=80_000, units_of_an_operator=250, search_units=300_000)
"""For a file of our own, each of whose calls was run by itself as well. Of a foreign file nothing is known but what the
inputs show."""
FEW = Budget(needed=4, inputs=4, units=8_000, units_of_an_operator=25, search_units=0, arms=0, shrink_units=0)
"""To see again what was seen already: the example, and the input that failed."""
THOROUGH = Budget(
    needed=1_000,
    needed_units=600_000_000,
    inputs=1_000,
    units=8_000_000,
    units_of_an_operator=5_000,
    search_units=20_000_000,
    arms=2_000,
    shrink_units=30_000_000,
    seconds=7_200.0,
)
"""For who has the time: `--thorough`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may say of a check. The defaults stand here, and in the signatures that users call (`api.py`)."""

    seed: int = 0
    budget: Budget = USUAL
    rtol: Allowed = None
    atol: Allowed = None
    nonfinite: bool = False
    """Whether NaN and infinities are among the values to try."""
    evidence: Evidence | None = None
    """Where a counterexample is to be kept."""
    explain: bool = True
    """Whether a difference is looked into: made small, traced to its line. Without, it is an error and no more, for who
    has another way to try first."""

    @classmethod
    def asked(
        cls,
        thorough: bool,
        seed: int,
        rtol: Allowed,
        atol: Allowed,
        nonfinite: bool,
        evidence: Evidence | None,
        usual: Budget = USUAL,
    ) -> Options:
        """In the words of the public functions."""
        budget = THOROUGH if thorough else usual
        return cls(seed=seed, budget=budget, rtol=rtol, atol=atol, nonfinite=nonfinite, evidence=evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What is known of a file besides the file: much of our own exports, little of those of others."""

    extra_sizes: Sequence[Mapping[str, int]] = ()
    """Sizes that must be tried."""
    extra_values: Sequence[Sequence[object]] = ()
    """Inputs that must be tried, one value per leaf each."""
    admits: Callable[[Mapping[str, int]], bool] | None = None
    """Whether sizes keep to what ties them to one another."""
    working_dtypes: Sequence[torch.dtype] = ()
    """Dtypes that the model computes in besides those of its weights and inputs."""
    steps: Answers | None = None
    """What a model that rounds to steps gives where its roundings fall otherwise."""
    watched_at: WatchedAt | None = None
    """What a run of the model at given sizes would show, where nothing but sizes decides that."""
    locate: Locate | None = None
    """Finds where a difference begins."""
    unreached: Unreached | None = None
    promised_from: int = 0
    """Free sizes from which on the file is meant to hold; a difference below is a warning."""


AS_USUAL, NOTHING_KNOWN = Options(), Insight()
