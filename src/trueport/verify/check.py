"""Runs a written model on the example and on other inputs, and compares it with eager on each."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import torch

from trueport import progress
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp901_our_fault import OurFault, report_it
from trueport.load.job import Job, sizes_in
from trueport.rewrite.probes import probed
from trueport.verify.decisions.search import Search
from trueport.verify.decisions.torch_control_flow import watched_functions
from trueport.verify.faults.blame import Blame
from trueport.verify.faults.findings import (
    EXAMPLE,
    LOADING,
    below_promised,
    cut_short,
    empty_differs,
    empty_refused,
    equal_with_autograd,
    example_undecided,
    failure_found,
    hardly_checked,
    input_words,
    mostly_undecided,
    size_not_moved,
    untyped_nothing,
)
from trueport.verify.faults.mismatch import Investigation
from trueport.verify.inputs.draw import Drawn, Room, asked_for, draw
from trueport.verify.inputs.moves import Candidate, resized
from trueport.verify.inputs.named import NOTHING, Named, named, small_file
from trueport.verify.inputs.sizes import Group, groups_of, ratios_of
from trueport.verify.inputs.work import Growth, Watched, WatchedAt, Work, nodes_of
from trueport.verify.inputs.written import numbers_named, numbers_written
from trueport.verify.judging.comparing import Comparer, Feed, InputOutcome, dtypes_of, refuse_unknown
from trueport.verify.judging.reference import Reference
from trueport.verify.options import AS_USUAL, NOTHING_KNOWN, Budget, Insight, Options
from trueport.verify.results import AgreedInput, CheckResult
from trueport.verify.runtime.feeds import feeds_for, held_sizes, misfit, tied_sizes
from trueport.verify.runtime.origin import origin_of
from trueport.verify.runtime.sandbox import FailureKind, Limits, LoadedModel, Worker, WorkerFailure, shared_worker

_AT_LEAST = 5
"""How many inputs are compared in any case."""
_OTHER_VALUES = 2
"""How many values besides the example's each free size is to be seen at."""
_SEARCH_FROM = 12
"""From how many of the compared inputs the search sets out."""
_AT_ONCE = 3
"""No input that is not needed takes more than this part of what is left."""
_AT_A_TIME, _TOGETHER, _LIGHT = 8, 30_000, 10_000
"""How many inputs are asked for in one go at the most, of how many bytes together, and of how many units each."""
_GROWN = 4
"""Of how many free sizes it is seen how the work grows with them."""
_DTYPE_OF_NOTHING = "the dtype of nothing"
SEARCHED = "searched for"


def check_model(
    path: Path,
    job: Job,
    reference: Reference,
    output_names: Sequence[str],
    *,
    fixed_feeds: Mapping[str, torch.Tensor] | None = None,
    limits: Limits | None = None,
    worker: Worker | None = None,
    options: Options = AS_USUAL,
    insight: Insight = NOTHING_KNOWN,
) -> CheckResult:
    """Compare the file with eager on the example, then on inputs that eager accepts: at least a few in all, with
    every free size at two other values, and every way of the counted branches and loops where one can be found.

    Inputs and outputs have the names of the job's; `fixed_feeds` are inputs that are no arguments (lifted state).
    Raises only what eager raises on the example.
    """
    opened = open_model(path, limits or limits_for(job), worker)
    if isinstance(opened, Diagnostic):
        return CheckResult(diagnostics=(opened,), seed=options.seed)
    with opened.loaded as loaded:
        fault = misfit(loaded.inputs, [*(leaf.name for leaf in job.inputs), *(fixed_feeds or {})], "inputs") or misfit(
            loaded.outputs, output_names, "outputs"
        )
        if fault is not None:
            return CheckResult(diagnostics=(OurFault(message=fault, fix=report_it()),), seed=options.seed)
        feed = partial(feeds_for, job, ports=loaded.inputs, fixed=fixed_feeds or {})
        tied, held = tied_sizes(job, loaded.inputs), held_sizes(job, loaded.inputs)
        return check_opened(opened, job, reference, feed, output_names, tied, held, options, insight)


@dataclass(frozen=True)
class Opened:
    """A file in the worker."""

    loaded: LoadedModel
    blame: Blame
    limits: Limits


def open_model(path: Path, limits: Limits, worker: Worker | None = None) -> Opened | Diagnostic:
    """Load a file, or say why it cannot be."""
    worker = worker or shared_worker()
    blame = Blame(worker, path, limits)
    try:
        return Opened(worker.load(path, limits), blame, limits)
    except WorkerFailure as failure:
        origin = origin_of(path, failure.detail)
        return failure_found(failure, LOADING, (*origin.facts, *blame.of_load(failure)), origin.place)


def check_opened(
    opened: Opened,
    job: Job,
    reference: Reference,
    feed: Feed,
    output_names: Sequence[str],
    tied: Sequence[Collection[str]] = (),
    held: Collection[str] = (),
    options: Options = AS_USUAL,
    insight: Insight = NOTHING_KNOWN,
) -> CheckResult:
    """The check itself, whoever made the file. `tied` sizes move together, `held` ones not at all."""
    refuse_unknown(options.rtol, "rtol", output_names)
    refuse_unknown(options.atol, "atol", output_names)
    seed, nonfinite, admits = options.seed, options.nonfinite, insight.admits
    values = [leaf.value for leaf in job.leaves]
    example = sizes_in(job.leaves, values)
    groups = groups_of(job.free_sizes, example, tied, held)

    def drawn(numbers: Named) -> Iterator[Drawn]:
        wanted = (asked_for(values, example) for values in insight.extra_values)
        others = draw(job, values, seed, insight.extra_sizes, tied=tied, held=held, nonfinite=nonfinite, named=numbers)
        every = itertools.chain(wanted, others)
        return every if admits is None else (each for each in every if admits(each.sizes))

    comparer = Comparer(
        reference,
        opened.loaded,
        feed,
        tuple(output_names),
        opened.limits,
        (*insight.working_dtypes, *dtypes_of(job)),
        seed,
        options.rtol,
        options.atol,
        steps=insight.steps,
    )
    investigation = Investigation(
        job,
        comparer,
        opened.blame,
        groups,
        options.budget.shrink_units,
        options.evidence,
        insight.locate,
        lambda: (Candidate(each.values, each.sizes) for each in drawn(NOTHING) if not each.fallback),
        options.explain,
    )
    check = Check(
        job, comparer, investigation, groups, example, options.budget, seed, insight.promised_from, insight.watched_at
    )
    with probed(reference.codes, reference.functions), watched_functions():
        check.search(drawn, _AT_LEAST)
        if insight.unreached is not None and not check.failed():
            check.findings += insight.unreached(
                reference.tally.decisions(), [known.values for known in check.known[:8]]
            )
    return check.result()


def limits_for(job: Job) -> Limits:
    """Room for the weights a few times over: as they are mapped, as they are packed, and what they are folded into."""
    tensors = [*job.model.parameters(), *job.model.buffers()]
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return Limits(memory_bytes=(4 << 30) + 4 * weights)


@dataclass
class Check:
    """One check on its way: what does not change, then what it has found so far."""

    job: Job
    comparer: Comparer
    investigation: Investigation
    groups: Sequence[Group]
    example: Mapping[str, int]
    budget: Budget
    seed: int = 0
    promised_from: int = 0
    watched_at: WatchedAt | None = None
    checked: list[AgreedInput] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    undecided_example: InputOutcome | None = None
    other_path: int = 0
    """Inputs on which the file gives what eager gives with autograd on."""
    refused: int = 0
    partly: str = ""
    work: Work = field(default_factory=Work)
    planned: int | None = None
    """About how many inputs are to be compared."""
    _began: float = field(default_factory=time.monotonic)
    tried: int = 0
    searched: int = 0
    known: list[Candidate] = field(default_factory=list)
    failing: list[Candidate] = field(default_factory=list)
    _told_of: set[str] = field(default_factory=set)
    """Free sizes at whose edge something was found."""

    def failed(self) -> bool:
        return any(finding.is_error for finding in self.findings)

    def search(self, drawn: Callable[[Named], Iterator[Drawn]], at_least: int) -> None:
        """The example, then what was drawn for all models, then what is looked for in this one."""
        values = tuple(leaf.value for leaf in self.job.leaves)
        self.compare_on(Candidate(values, self.example), EXAMPLE)
        if not self.failed():
            self._compare_on_drawn(drawn(self._watch(values)), at_least)
            self._look_for_other_ways()
        self._say_what_is_missing()

    def _watch(self, values: Sequence[object]) -> Named:
        """How much work a run of the model is, and which numbers it names."""
        reference = self.comparer.reference
        watched, growths = self._planned(values) or (reference.watch(values), None)
        reference.works_like(watched)
        lost: tuple[float, ...] = ()
        if growths is None:
            growths = self._growths(values)
        else:  # the captured graph does not tell what it lacks
            lost = tuple(each for each in numbers_written(self.job.model) if each not in watched.numbers)
        file = small_file(self.investigation.blame.path)
        nodes = 0 if file is None else nodes_of(file.graph)
        self.work = replace(reference.work, growths=growths, nodes=nodes)
        sites = reference.tally.sites()
        of_tests = [number for site in sites for number in (*site.constants, *numbers_named(site, self.job.model))]
        tables = (size for buffer in self.job.model.buffers() for size in buffer.shape)  # also those that are sliced
        numbers = named((*lost, *of_tests, *watched.numbers), (*watched.tables, *tables), file)
        return replace(
            numbers,
            lost=tuple(each for each in numbers.values if each in lost),
            sized_by_values=watched.sized_by_values,
            read_by_python=watched.reads_integers,
            has_cells=watched.has_cells,
            trusts_offsets=watched.trusts_offsets,
            makes_wide_integers=watched.makes_wide_integers,
        )

    def _planned(self, values: Sequence[object]) -> tuple[Watched, Mapping[str, Growth]] | None:
        """What the captured program says, where a run is much work: what a run would show, and how the work grows with
        each of the first free sizes."""
        if self.watched_at is None or (now := self.watched_at(self.example)) is None:
            return None
        larger = {name: (self.watched_at(sizes), ratio) for name, sizes, ratio in self._grown_sizes(values)}
        known = {name: (watched.work, ratio) for name, (watched, ratio) in larger.items() if watched is not None}
        return (now, now.work.grown(known).growths) if len(known) == len(larger) else None

    def _growths(self, values: Sequence[object]) -> Mapping[str, Growth]:
        """The same by runs."""
        reference = self.comparer.reference
        larger: dict[str, tuple[Work, float]] = {}
        for name, sizes, ratio in self._grown_sizes(values):
            work = reference.watch_larger(resized(self.job.leaves, values, sizes))
            if work is not None:
                larger[name] = (work, ratio)
        return reference.work.grown(larger).growths

    def _grown_sizes(self, values: Sequence[object]) -> list[tuple[str, dict[str, int], float]]:
        """Each of the first free sizes by itself half as large again, where there is room for it."""
        room = Room(self.job.leaves, values)
        found = []
        for group in self.groups[:_GROWN]:
            larger = group.example + max(1, group.example // 2)
            sizes = {**self.example, **group.assign(larger)}
            if group.admits(larger) and room.admits(sizes):
                found.append((group.names[0], sizes, larger / max(group.example, 1)))
        return found

    def _compare_on_drawn(self, drawn: Iterator[Drawn], at_least: int) -> None:
        """As many as the budget has, and those that no check can do without."""
        left = self.budget.of_inputs(self.work)
        needed = float(self.budget.needed_units)
        tried: set[object] = set()
        enough = False
        self.planned = max(at_least, min(self.budget.inputs, int(left / self.work.compared())))
        least = self.work.compared(0.0)
        coming = _Coming(drawn)
        for candidate in self._worth_trying(coming):
            if self.failed():
                break
            cost = self.work.compared(candidate.share, ratios_of(self.groups, candidate.sizes))
            allowed = self.tried < self.budget.needed and needed > 0
            enough = enough or self._is_enough(at_least, _OTHER_VALUES)
            missing = allowed and not enough
            if not (missing or candidate.wanted):
                if len(self.checked) >= self.budget.inputs or self.work.compared() > left:
                    break
                if least > left / _AT_ONCE:
                    break  # also for the smallest input
                if cost > left / _AT_ONCE:
                    continue  # too large for this model
            if candidate.content in tried:
                continue
            tried.add(candidate.content)
            if self._is_late("some of the drawn inputs were not tried"):
                break
            if self.comparer.asks_ahead and not self.comparer.knows(candidate.values):
                self._answer_ahead(candidate, coming, left, tried)
            left, needed = left - cost, needed - cost
            self.compare_on(Candidate(candidate.values, candidate.sizes), candidate.family)

    def _answer_ahead(self, first: Drawn, coming: _Coming, left: float, tried: Collection[object]) -> None:
        """Those that will be tried next, if nothing comes in between, are asked for in one go; but only small ones, of
        which nothing is lost should one not be tried."""
        chosen, seen, room = [first.values], {*tried}, _TOGETHER
        most = min(_AT_A_TIME, self.budget.inputs - len(self.checked))
        for candidate in itertools.chain([first], coming.ahead(2 * _AT_A_TIME)):
            cost = self.work.compared(candidate.share, ratios_of(self.groups, candidate.sizes))
            if candidate.fallback or (candidate is not first and (cost > left / _AT_ONCE or candidate.content in seen)):
                continue
            room -= _bytes_of(candidate.values)
            if len(chosen) >= most or self.work.compared() > left or cost > _LIGHT or room < 0:
                break
            if self.comparer.knows(candidate.values):
                return  # something came in between
            left -= cost
            if candidate is not first:
                chosen.append(candidate.values)
                seen.add(candidate.content)
        if len(chosen) > 1:
            self.comparer.answer_ahead(chosen)

    def _is_late(self, what: str) -> bool:
        """By the clock, as a last resort. What is left out for that is told."""
        if time.monotonic() - self._began < self.budget.seconds:
            return False
        self.partly = f"{what}: the check had taken {self.budget.seconds:.0f} s"
        return True

    def _look_for_other_ways(self) -> None:
        tally = self.comparer.reference.tally
        if self.failed() or not (self.comparer.reference.codes or tally.decisions()):
            return
        search = Search(self.job, self.groups, tally, self.comparer.reference.guided, self.seed)
        for candidate in search.found(self.known[:_SEARCH_FROM], self.budget.search_attempts(self.work)):
            self.compare_on(candidate, SEARCHED)
            if self.failed() or self._is_late("the search for other ways was not ended"):
                break
        self.searched = search.attempts if tally.decisions() else 0  # one run to see that nothing decides

    def compare_on(self, candidate: Candidate, family: str) -> None:
        """One input through both. Nothing is noted of an input that eager refuses but that it did."""
        on = input_words(candidate.sizes, family)
        is_example = family == EXAMPLE
        self.tried += not is_example
        progress.count(len(self.checked) + 1, self.planned, "inputs")
        outcome = self.comparer.compare(candidate.values, is_example)
        if outcome.refused:
            self.refused += 1
        elif outcome.excuse:
            self.undecided.append(f"{on}: {outcome.excuse}")
            self.undecided_example = outcome if is_example else self.undecided_example
        elif outcome.equal:
            self.known.append(candidate)
            self.other_path += outcome.other_path
            self.comparer.reference.tally.add(outcome.trail, candidate.is_telling)
            seconds = (outcome.eager_seconds, outcome.runtime_seconds)
            errors = outcome.errors(self.comparer.output_names)
            told = (outcome.elements, *outcome.worst, *seconds, errors)
            self.checked.append(AgreedInput(candidate.sizes, family, *told))
        elif not (
            self._is_empty(candidate, outcome)
            or self._is_shape_of_nothing(candidate, on, outcome)
            or self._is_at_edge(candidate, family, outcome)
        ):
            self.failing.append(candidate)
            self.findings += self.investigation.of_error(candidate, on, outcome, self.known, self.promised_from)

    def _is_empty(self, candidate: Candidate, outcome: InputOutcome) -> bool:
        """A run without a result on an empty input is told once and no more: the runtime says no aloud, and several of
        its kernels cannot do otherwise."""
        failure, empty = outcome.failure, self._emptied(candidate)
        if failure is None or not empty or failure.kind not in (FailureKind.REFUSES_INPUT, FailureKind.CRASH):
            return False
        if self._told_of.isdisjoint(empty):
            self._told_of.update(empty)
            blame = self.investigation.blame
            place = origin_of(blame.path, failure.detail).place
            self.findings.append(empty_refused(failure, empty, blame.of_run(failure, outcome.feeds), place))
        return True

    def _is_shape_of_nothing(self, candidate: Candidate, on: str, outcome: InputOutcome) -> bool:
        """Some of eager's functions give an empty input back as it is (`pixel_unshuffle`), whatever shape they have for
        others, and `torch.tensor` of no numbers is float32: nobody gets a wrong number, and it is told once."""
        empty, of_dtype = self._emptied(candidate), outcome.differs_in_dtype_of_nothing
        if not (of_dtype or (empty and outcome.differs_in_nothing)):
            return False
        told = [_DTYPE_OF_NOTHING] if of_dtype else empty
        if self._told_of.isdisjoint(told):
            self._told_of.update(told)
            found = self.investigation.of(candidate, on, outcome, self.known)
            self.findings += [untyped_nothing(each) if of_dtype else empty_differs(each, empty) for each in found]
        return True

    def _emptied(self, candidate: Candidate) -> list[str]:
        return sorted(name for name, size in candidate.sizes.items() if size == 0 and self.example[name] != 0)

    def _is_at_edge(self, candidate: Candidate, family: str, outcome: InputOutcome) -> bool:
        """Below the sizes that were promised a difference is told once for each size, and the search goes on. But it
        may have nothing to do with the size: then the same rows, repeated, show it as well."""
        small = {
            name
            for group in self.groups
            for name in group.names
            if candidate.sizes[name] < min(self.promised_from, self.example[name]) and group.minimum < 1
        }
        if not small:
            return False
        sizes = {**candidate.sizes, **dict.fromkeys(small, self.promised_from)}
        larger = Candidate(resized(self.job.leaves, candidate.values, sizes), sizes)
        if self._differs_on(larger, family):
            return True
        if self._told_of.isdisjoint(small):
            found = self.investigation.of(candidate, input_words(candidate.sizes, family), outcome, self.known)
            self.findings += [below_promised(finding, sorted(small), self.promised_from) for finding in found]
        self._told_of |= small
        return True

    def _differs_on(self, candidate: Candidate, family: str) -> bool:
        """Whether the two differ on this input, which is told then."""
        outcome = self.comparer.compare(candidate.values)
        if outcome.refused or outcome.excuse or outcome.equal:
            return False
        on = input_words(candidate.sizes, family)
        self.findings += self.investigation.of_error(candidate, on, outcome, self.known, self.promised_from)
        return True

    def result(self) -> CheckResult:
        return CheckResult(
            checked=tuple(self.checked),
            diagnostics=tuple(self.findings),
            refused_by_eager=self.refused,
            undecided=tuple(self.undecided),
            endless=self.comparer.reference.endless,
            partly=self.partly,
            tolerances=self.comparer.tolerances,
            own_errors=self.comparer.own_errors,
            seed=self.seed,
            decisions=self.comparer.reference.tally.decisions(),
            searched=self.searched,
            kept=self.investigation.kept,
            differs_on=tuple(candidate.values for candidate in self.failing[:1]),
        )

    def _worth_trying(self, drawn: Iterator[Drawn]) -> Iterator[Drawn]:
        """Leaves out the fallbacks of sizes that eager has accepted."""
        refused_before = self.refused
        for candidate in drawn:
            if candidate.fallback and self.refused == refused_before:
                continue
            refused_before = self.refused
            yield candidate

    def _is_enough(self, inputs: int, others: int) -> bool:
        """Whether so many inputs were compared, with each free size at so many values besides the example's."""
        return len(self._telling()) >= inputs and all(
            len(self._others_seen(group)) >= min(others, group.reach - group.minimum) for group in self.groups
        )

    def _telling(self) -> list[AgreedInput]:
        """Two empty tensors agree on little."""
        return [checked for checked in self.checked if checked.elements]

    def _others_seen(self, group: Group) -> set[int]:
        return {checked.sizes[group.names[0]] for checked in self.checked} - {group.example}

    def _say_what_is_missing(self) -> None:
        told = bool(self.findings)
        if self.other_path and not self.failed():
            self.findings.append(equal_with_autograd(self.other_path))
        if self.undecided_example is not None and not self.failed():
            share = self.undecided_example.share_that_differs
            self.findings.append(example_undecided(self.undecided_example.excuse, share))
            self.partly = "not all of the example is decided"
        if self.failed():
            return
        if self.comparer.reference.out_of_time and not self.partly:
            self.partly = f"eager did not end in time on {self.comparer.reference.out_of_time} inputs"
        if self.partly and self.undecided_example is None:
            self.findings.append(cut_short(self.partly, len(self.checked)))
        if len(self.undecided) > len(self.checked) and not self.partly:
            self.partly = "most inputs are not decided"
            self.findings.append(mostly_undecided(len(self.undecided), len(self.checked)))
        if told:
            return
        agreed = self._telling() or self.checked
        if self.tried and len(agreed) < 2:
            agrees = self.undecided_example is None
            found = hardly_checked(self.refused, tuple(self.undecided), self.tried, example_agrees=agrees)
            self.findings.append(found)
            return
        for group in self.groups:
            if group.is_movable and not self._others_seen(group):
                self.findings.extend(size_not_moved(name, (group.example,)) for name in group.names)


class _Coming:
    """What is drawn, one after the other, with a look at what comes next."""

    def __init__(self, drawn: Iterator[Drawn]) -> None:
        self._drawn, self._seen = drawn, deque[Drawn]()

    def __iter__(self) -> Iterator[Drawn]:
        return self

    def __next__(self) -> Drawn:
        return self._seen.popleft() if self._seen else next(self._drawn)

    def ahead(self, count: int) -> list[Drawn]:
        self._seen.extend(itertools.islice(self._drawn, max(0, count - len(self._seen))))
        return list(itertools.islice(self._seen, count))


def _bytes_of(values: Sequence[object]) -> int:
    return sum(value.numel() * value.element_size() for value in values if isinstance(value, torch.Tensor))
