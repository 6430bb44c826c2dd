"""What is tried follows from the model, the options and the seed: a busy machine proves what an idle one does."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import torch
from torch import nn

import trueport
from tests.verify.onnx_models import FLOAT, helper, port, write
from trueport.capture.effects.state import StateMode
from trueport.capture.trace import capture
from trueport.graph.regions import Graph
from trueport.load.request import make_job
from trueport.lower.table import is_leaf
from trueport.verify.check import Check, check_model
from trueport.verify.inputs.planned import watched_at
from trueport.verify.inputs.work import Growth, Watched, Work
from trueport.verify.judging.reference import Reference
from trueport.verify.options import Budget, Options


class Branches(nn.Module):
    """Branches to search for, a loop, a mask, two free sizes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):  # type: ignore[no-untyped-def]
        y = self.layer(x).masked_fill(~mask[..., None], -1e9).softmax(1)
        if y.sum() > 1000:
            y = y * 2
        while y.abs().max() > 3.5:
            y = y / 2
        return y


FREE = {"x": {0: "batch", 1: "time"}, "mask": {0: "batch", 1: "time"}}


def proof() -> list[str]:
    torch.manual_seed(1)
    args = (torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))
    report = trueport.check(Branches().eval(), args, dynamic_shapes=FREE)
    assert report.verified
    assert not report.partly
    inputs = [f"{each}: {each.worst_error!r}" for each in report.checks]
    return [*inputs, *report.undecided, *map(str, report.decisions), str(report.searched), str(report.endless)]


def test_a_clock_that_runs_ten_times_as_fast_changes_nothing(monkeypatch):  # type: ignore[no-untyped-def]
    """As if ten other processes wanted the processor, besides those that do."""
    before = proof()
    assert len(before) > 20
    clocks = {name: getattr(time, name) for name in ("monotonic", "perf_counter", "thread_time", "process_time")}
    for name, clock in clocks.items():
        began = clock()
        monkeypatch.setattr(time, name, lambda clock=clock, began=began: began + 10 * (clock() - began))
    assert proof() == before


def scaled(folder: Path) -> Path:
    node = helper.make_node("Mul", ["x", "two"], ["y"])
    return write(folder / "m.onnx", [node], [port("x")], [port("y")], {"two": (FLOAT, [], [2.0])})


def test_where_the_clock_cuts_it_is_said(tmp_path: Path) -> None:
    job = make_job(lambda x: 2 * x, (torch.randn(2, 3),), dynamic_shapes=({0: "batch"},))
    reference = Reference(lambda values: values[0] * 2, lambda y: [y])
    result = check_model(scaled(tmp_path), job, reference, ["y"], options=Options(budget=Budget(seconds=0.0)))
    assert len(result.checked) == 1
    assert "not tried" in result.partly
    assert [found.code for found in result.diagnostics][:1] == ["TP809"]


def test_work_is_counted_and_grows_with_what_is_done() -> None:
    def counted(size: int) -> Work:
        with Watched() as watched:
            x = torch.ones(size, size)
            x @ x
        return watched.work

    small, large = counted(10), counted(200)
    assert small == counted(10)
    assert large.units > 10 * small.units
    assert large.compared(2.0) > large.compared()


def test_a_loop_that_no_free_size_lengthens_costs_no_more_on_a_large_batch() -> None:
    example = Work(operators=100, data=1.0, usual=Growth(rounds=1.0))
    as_long, longer = Work(operators=100, data=2.0), Work(operators=200, data=2.0)
    seen = example.grown({"batch": (as_long, 2.0), "length": (longer, 2.0)})
    assert seen.growths == {"batch": Growth(rounds=0.0, data=1.0), "length": Growth(rounds=1.0, data=1.0)}
    costs = {name: seen.compared(1.0, {name: 10.0}) for name in ("batch", "length", "other")}
    assert costs["batch"] < costs["length"] == costs["other"]

    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.table, self.cell = nn.Embedding(11, 8), nn.GRUCell(8, 8)

        def forward(self, ids):  # type: ignore[no-untyped-def]
            h, steps = torch.zeros(len(ids), 8), 0
            while steps < 6:
                h, steps = self.cell(self.table(ids), h), steps + 1
                if (h > 0.9).any():
                    break
            return h, steps

    report = trueport.check(Steps().eval(), (torch.tensor([2, 3]),), dynamic_shapes=({0: "batch"},))
    assert {0, 67} <= {check.sizes["batch"] for check in report.checks}
    assert len(report.checks) > 10


def test_a_graph_tells_how_its_work_grows_as_runs_do() -> None:
    """Without a run; and not where a branch or a loop, or a size of the data's, decides what is done."""

    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.one, self.two = nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, x):  # type: ignore[no-untyped-def]
            q, k, v = self.one(x).chunk(3, -1)
            return self.two((q @ k.transpose(1, 2)).softmax(-1) @ v)

    layers = Attends().eval()

    def captured(model: nn.Module, *args: torch.Tensor, names: dict[int, str]) -> Graph:
        return capture(make_job(model, args, {}, dynamic_shapes=(names,)), is_leaf, StateMode.REFUSE)

    planned = watched_at(captured(layers, torch.randn(2, 16, 32), names={0: "batch", 1: "length"}), worth=0)
    assert planned is not None

    def counted(batch: int, length: int) -> Work:
        with torch.no_grad(), Watched() as watched:
            layers(torch.randn(batch, length, 32))
        return watched.work

    for name, sizes in (("batch", (4, 16)), ("length", (2, 32))):
        now, larger = planned({"batch": 2, "length": 16}), planned(dict(zip(("batch", "length"), sizes, strict=True)))
        assert now is not None
        assert larger is not None
        by_graph = now.work.grown({name: (larger.work, 2.0)}).growths[name]
        by_runs = counted(2, 16).grown({name: (counted(*sizes), 2.0)}).growths[name]
        assert by_graph.rounds == by_runs.rounds == 0
        assert abs(by_graph.data - by_runs.data) < 0.05

    class Loops(nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            for row in x:
                x = x + row
            return x

    class Chooses(nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x[x > 0] * 2

    assert watched_at(captured(Loops(), torch.randn(3, 4), names={0: "rows"}), worth=0) is None
    chooses = watched_at(captured(Chooses(), torch.randn(3, 4), names={0: "rows"}), worth=0)
    assert chooses is None or chooses({"rows": 3}) is None


def test_a_graph_tells_the_numbers_that_a_run_meets() -> None:
    """Limits in the code and in small tensors, the parts of composite operators, tables; nothing that was computed."""

    class Limited(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(37, 4)
            self.cut = nn.Parameter(torch.tensor([2.5, -7.0]))
            self.register_buffer("many", torch.full((9, 1, 1), 11.0))

        def forward(self, x, ids):  # type: ignore[no-untyped-def]
            x = nn.functional.relu6(x).clamp(max=3.25) + self.table(ids).sum(1, keepdim=True)
            x = torch.where(x.reshape(-1, 2) > self.cut, x.reshape(-1, 2), x.sum() / x.shape[0])
            return torch.maximum(x, x[:1] - 19.0) * self.many

    model, args = Limited(), (torch.randn(2, 3, 4), torch.tensor([[1, 2, 3], [3, 2, 1]]))
    graph = capture(make_job(model, args, {}), is_leaf, StateMode.REFUSE)
    planned = watched_at(graph, worth=0)
    assert planned is not None
    by_graph = planned({})
    assert by_graph is not None
    with torch.no_grad(), Watched(args) as by_run:
        model(*args)
    assert set(by_graph.numbers) >= set(by_run.numbers) >= {0.0, 6.0, 3.25, 2.5, -7.0, 2}
    assert 11.0 not in by_graph.numbers
    assert by_graph.tables == by_run.tables == {37: None, 4: None}
    assert not (by_graph.sized_by_values or by_graph.trusts_offsets or by_graph.has_cells)
    assert watched_at(graph) is None  # eager is quicker
    model.cut = nn.Parameter(torch.tensor([[2.5, -7.0]]).T)  # turned before it is compared: only a run has the numbers
    model.forward = lambda x, ids: x.reshape(-1, 2) > model.cut.T  # type: ignore[method-assign]
    turned = watched_at(capture(make_job(model, args, {}), is_leaf, StateMode.REFUSE), worth=0)
    assert turned is None or turned({}) is None


def test_a_weight_written_behind_torchs_back_is_put_back_between_inputs() -> None:
    """Nothing counts such a write, and it does not happen on the example. What follows it is not to be judged by it."""

    class Wears(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = x * self.weight
            if not torch.compiler.is_exporting() and len(x) > 4:
                self.weight.data.mul_(0.5)
            return y

    model = Wears()
    report = trueport.export(model, (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},)).report
    assert not any(finding.is_error for finding in report.diagnostics)
    assert any(each.sizes["rows"] > 4 for each in report.checks)
    assert torch.equal(model.weight, torch.ones(3))


def test_a_few_tokens_beside_a_large_state_are_counted() -> None:
    """The input hardly gets larger and the work does: it follows the size, and not the bytes."""
    seen = Work(operators=800, data=20_000.0).grown({"tokens": (Work(operators=800, data=30_000.0), 1.5)})
    assert seen.compared() < seen.compared(1.001, {"tokens": 4.0}) < 5 * seen.compared()
    from_nothing = seen.grown({"tokens": (Work(operators=800, data=30_000.0), 1.0)})
    assert not from_nothing.growths  # of an example of no rows, one row is no multiple
    beyond = Work(operators=8, data=1.0).grown({"n": (Work(operators=8, data=1e200), 1.5)})
    assert beyond.compared(9.0, {"n": 9.0}) == float("inf")


def test_products_are_counted_in_inference_mode_and_in_fused_layers() -> None:
    """There, `linear` comes whole, and a layer of a transformer is one operator."""
    linear, layer = nn.Linear(512, 512), nn.TransformerEncoderLayer(64, 4, 256, batch_first=True).eval()
    for model, x, flops in ((linear, torch.randn(8, 512), 2 * 8 * 512**2), (layer, torch.randn(1, 8, 64), 16 * 49152)):
        for grad in (torch.no_grad, torch.inference_mode):
            with grad(), Watched() as watched:
                model(x)
            assert watched.work.data > flops / 10_000


def test_no_input_is_tried_twice(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    class Times(nn.Module):
        def forward(self, x, n: int):  # type: ignore[no-untyped-def]
            return x * n

    tried = []
    compare_on = Check.compare_on
    monkeypatch.setattr(
        Check,
        "compare_on",
        lambda self, candidate, family: (tried.append(candidate), compare_on(self, candidate, family)),
    )
    assert trueport.check(Times(), (torch.tensor([3]), 2)).verified
    drawn = [(int(candidate.values[0]), candidate.values[1]) for candidate in tried[1:]]
    assert len(drawn) > 10
    assert len(set(drawn)) == len(drawn)


def test_the_numbers_by_which_operators_decide_are_noted() -> None:
    with Watched() as watched:
        x = torch.arange(6.0)
        torch.where(x > 2.5, x.clamp(max=4), x % 3)
        nn.functional.embedding(torch.tensor([1]), torch.ones(11, 2))
    assert {2.5, 4.0, 3.0} <= set(watched.numbers)
    assert 11 in watched.tables


def test_integers_that_python_reads_stay_where_their_product_fits_64_bits() -> None:
    """Python's own have no end; a file that multiplies two of them in int64 is as right as one can be."""

    class Areas(nn.Module):
        def forward(self, x, sizes):  # type: ignore[no-untyped-def]
            areas = torch.tensor([int(a) * int(b) for a, b in sizes.tolist()], dtype=torch.float32)
            return x / areas.sum(), areas

    with Watched() as watched, watched.lists():
        torch.tensor([1, 2]).tolist()
    assert watched.reads_integers
    assert trueport.check(Areas(), (torch.ones(3), torch.tensor([[2, 3], [4, 5]]))).verified


def test_a_headline_of_a_part_is_not_green(tmp_path: Path) -> None:
    report = trueport.check(nn.Linear(3, 3).eval(), (torch.randn(2, 3),))
    from dataclasses import replace

    assert str(report).startswith("faithful")
    assert str(replace(report, partly="the clock")).startswith("checked in part")
    some = list(itertools.islice(report.checks, 3))
    assert "equal to eager on 3 of 5 inputs, 2 not decided" in str(replace(report, checks=some, undecided=("a", "b")))
