"""Time as the check counts it: a machine that does other things is not counted, up to a point."""

from __future__ import annotations

import pytest

from trueport.verify import clock
from trueport.verify.clock import Allowance, Stopwatch


class Machine:
    """Clocks that go as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed = self.worked = 100.0
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.passed)
        monkeypatch.setattr(clock.time, "thread_time", lambda: self.worked)

    def works(self, seconds: float, share: float = 1.0) -> None:
        self.worked += seconds
        self.passed += seconds / share


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_an_idle_machine_counts_what_passes(machine: Machine) -> None:
    stopwatch, allowance = Stopwatch(), Allowance(3.0)
    machine.works(2.0)
    assert stopwatch.seconds == 2.0
    assert not allowance.is_over
    machine.works(2.0)
    assert allowance.is_over


def test_a_machine_that_gives_us_half_of_its_time_counts_what_we_got(machine: Machine) -> None:
    stopwatch, allowance = Stopwatch(), Allowance(3.0)
    machine.works(2.0, share=0.5)
    assert stopwatch.seconds == 2.0
    assert not allowance.is_over


def test_who_waits_for_ever_is_not_waited_for(machine: Machine) -> None:
    stopwatch, allowance = Stopwatch(), Allowance(3.0)
    machine.works(0.1, share=0.001)
    assert stopwatch.seconds == 25.0
    assert allowance.is_over


def test_waiting_for_the_runtime_counts_and_never_more_than_what_passed(machine: Machine) -> None:
    stopwatch = Stopwatch()
    machine.works(1.0, share=0.5)
    stopwatch.waited += 0.5
    assert stopwatch.seconds == 1.5
    stopwatch.waited += 60.0
    assert stopwatch.seconds == 2.0
