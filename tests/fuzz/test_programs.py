"""90 random programs, each exported once and compared with eager on every input that eager accepts.

`make fuzz N=3000` runs more of them. What was found that way is kept in test_found.py.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.outcome import Outcome, Verdict, judge
from tests.fuzz.programs import programs, write_program
from tests.fuzz.reduce import reduced_within

SLICES, PROGRAMS = 6, 15
MOST_DIAGNOSED = 2
"""Of 15. Over 1,400 programs it was one in twenty; benchmarks/results/fuzz.md has the count."""

_FROM_A_SEED = settings(
    max_examples=4 * PROGRAMS,  # hypothesis draws some of them again
    phases=(Phase.generate,),
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

EXPECTED = {
    "TP103": "arms that no one value can stand for, or a tensor that may be one that another line writes in place",
}
"""What a program may be refused with. Everything else is a fault of ours, as a wrong result is."""


@pytest.mark.parametrize("number", range(SLICES))
def test_programs_are_faithful_or_diagnosed(number: int) -> None:
    tally = Counter(_acceptable(source, judge(source)) for source in _drawn(number))
    assert tally.total() == PROGRAMS
    assert tally[Verdict.VOID] <= 2, "programs that eager refuses say nothing"
    assert tally[Verdict.DIAGNOSED] <= MOST_DIAGNOSED


def test_the_grammar_has_every_form() -> None:
    """Of the forms that the programs are made for, none has been lost from the grammar."""
    text = "".join(write_program(Random(number)) for number in range(400))
    forms = [
        "if ",
        "elif ",
        "else:",
        "while ",
        "while True:",
        "while not ",
        "break",
        "continue",
        "return ",
        " if ",
        ":=",
    ]
    forms += [
        "range(",
        "enumerate(",
        "zip(",
        "reversed(",
        ".unbind(",
        ".append(",
        "torch.stack(",
        "lambda ",
        "nonlocal ",
    ]
    forms += ["match ", "with torch.no_grad()", "self.last =", "self.count", "helper(", "self.part(", "self.level"]
    forms += [" is None", " and ", " or ", "not ", "any(", "all(", "sum(", "max(", ".item()", ".shape[0]", "assert "]
    forms += ['d["a"]', ".add_(", "[1:] +=", ".t()", ", q):", " in (0, 2, 3)", "raise ", "@plain", "self.larger("]
    forms += [" in above(", "[4] if ", "weigh(*[", "fold(", "max([", "self.step(", "finally:", "with counted(self):"]
    forms += [
        "box.h",
        "box.add(",
        "._replace(",
        "state[",
        "self.h",
        "self.seen",
        "self.table",
        ".append(lambda a",
        "*more",
    ]
    forms += ["[::2]", ".split(2)", "in self.layers", ".setdefault(", ".pop(0)", ".reverse()", "TABLE[", "divmod("]
    assert [form for form in forms if form not in text] == []


def _drawn(number: int) -> list[str]:
    """The same programs in every run: hypothesis draws them from a fixed seed."""
    drawn: list[str] = []

    @seed(number)
    @_FROM_A_SEED
    @given(programs())
    def draw(source: str) -> None:
        if source not in drawn:
            drawn.append(source)

    draw()
    return drawn[:PROGRAMS]


def _acceptable(source: str, outcome: Outcome) -> Verdict:
    if outcome.verdict.is_bug or (outcome.verdict is Verdict.DIAGNOSED and outcome.code not in EXPECTED):
        small = reduced_within(source, outcome, seconds=60)
        pytest.fail(f"{outcome.verdict.value} {outcome.code}\n\n{small}\n\n{outcome.detail}", pytrace=False)
    return outcome.verdict
