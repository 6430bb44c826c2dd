"""What forward leaves behind in the model: found, told at its line, lifted or frozen; and the model is put back."""

from __future__ import annotations

import copy
import linecache

import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from tests.capture.helpers import FREE, assert_captured, assert_same, line_of, refusal
from trueport.capture.effects.state import StateMode
from trueport.verify.replay import replay


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


class RunningSum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, y):
        self.total += y.sum(0)
        self.calls.add_(1)
        return y + self.total / self.calls


class Replaces(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, y):
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
        return y - self.mean


class Remembers(nn.Module):
    """A plain tensor attribute, read before it is set."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(2, 3)

    def forward(self, y):
        out = y + self.last
        self.last = y
        return out


class WritesAView(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 3))

    def forward(self, y):
        row = self.table[1]
        row.copy_(y.sum(0))
        return self.table * 2


STATEFUL = {"added to": RunningSum, "replaced": Replaces, "attribute": Remembers, "through a view": WritesAView}


def test_by_default_a_written_buffer_is_refused_at_its_line():
    found = refusal(RunningSum(), (x(2, 3),)).diagnostics
    assert [each.code for each in found if each.is_error] == ["TP203", "TP203"]
    assert [line_of(each) for each in found if each.is_error] == ["self.total += y.sum(0)", "self.calls.add_(1)"]
    assert all("inputs-outputs" in each.fix and "frozen" in each.fix for each in found if each.is_error)


def test_a_replaced_buffer_is_refused_at_its_line():
    found = [each for each in refusal(Replaces(), (x(2, 3),)).diagnostics if each.is_error]
    assert [each.code for each in found] == ["TP203"]
    assert line_of(found[0]).startswith("self.mean = ")


def test_a_write_through_a_view_is_refused_at_its_line():
    found = [each for each in refusal(WritesAView(), (x(2, 3),)).diagnostics if each.is_error]
    assert [(each.code, line_of(each)) for each in found] == [("TP203", "row.copy_(y.sum(0))")]


def run_state(kind: type[nn.Module], calls: int = 3) -> None:
    """Lifted state, carried by hand from call to call, gives what eager gives in as many calls."""
    torch.manual_seed(0)
    model, reference = kind(), kind()
    args = (x(2, 3),)
    graph = assert_captured(model, args, [(x(2, 3),)], state=StateMode.INPUTS_OUTPUTS)
    state = dict(graph.lifted)
    for _ in range(calls):
        y = x(2, 3)
        outputs = replay(graph, {"y": y, **state})
        with torch.no_grad():
            expected = reference(y)
        first = next(iter(outputs.values()))
        assert_same(first, expected)
        state = {name: outputs[f"{name}_out"] for name in state}
        for name, value in state.items():
            assert_same(value.detach(), getattr(reference, name).detach())


def test_lifted_state_that_is_added_to():
    run_state(RunningSum)


def test_lifted_state_that_is_replaced():
    run_state(Replaces)


def test_lifted_state_in_a_plain_attribute():
    run_state(Remembers)


def test_lifted_state_written_through_a_view():
    run_state(WritesAView)


def test_the_lifted_outputs_are_checked_in_onnx_runtime():
    program = trueport.export(RunningSum(), (x(2, 3),), state="inputs-outputs")
    assert program.report.verified
    assert set(program.input_names) == {"y", "total", "calls"}
    assert set(program.output_names) == {"output", "total_out", "calls_out"}
    assert program.report.checks


def test_frozen_state_keeps_its_present_value():
    model = RunningSum()
    model.total += 5
    model.calls += 4
    assert_captured(model, (x(2, 3),), [(x(2, 3),)], state=StateMode.FROZEN)
    program = trueport.export(model, (x(2, 3),), state="frozen")
    assert program.input_names == ("y",)


def test_batch_norm_in_training_mode_writes_its_statistics():
    model = nn.BatchNorm1d(3).train()
    found = [each for each in refusal(model, (x(4, 3),)).diagnostics if each.is_error]
    assert {each.code for each in found} & {"TP003", "TP203"}


def test_state_of_one_submodule_used_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.counter = RunningSum()

        def forward(self, y):
            return self.counter(y) + self.counter(y * 2)

    graph = assert_captured(Twice(), (x(2, 3),), [(x(2, 3),)], state=StateMode.INPUTS_OUTPUTS)
    assert set(graph.lifted) == {"counter.total", "counter.calls"}


# --- attributes that are not tensors


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.seen = []

    def forward(self, y):
        self.count += 1
        self.seen.append(y)
        return y * 2


class CountsAndUses(Counts):
    def forward(self, y):
        self.count += 1
        return y * self.count


def test_a_counter_that_nobody_reads_is_a_note():
    program = trueport.export(Counts(), (x(2, 3),))
    notes = [each for each in program.report.diagnostics if each.code == "TP203"]
    assert notes
    assert not any(each.is_error for each in notes)
    assert any("count" in each.message for each in notes)
    assert any("seen" in each.message for each in notes)


def test_a_counter_that_a_later_call_reads_is_refused():
    found = [each for each in refusal(CountsAndUses(), (x(2, 3),)).diagnostics if each.is_error]
    assert [each.code for each in found] == ["TP203"]
    assert "count" in found[0].message


class SlowCounter(nn.Module):
    """No few calls show that it matters."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, y):
        self.calls += 1
        if self.calls > 50:
            return y * 2
        return y + 1


class GrowingHistory(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, y):
        self.history.append(1.0)
        return y * 2 if len(self.history) > 100 else y


class ReadsElsewhere(nn.Module):
    """The count is read by another function than the one that writes it, and only on other inputs."""

    def __init__(self):
        super().__init__()
        self.memory = Memory()

    def forward(self, y):
        self.memory.calls = self.memory.calls + 1
        return self.scaled(y)

    def scaled(self, y):
        return y * self.memory.calls if y.shape[0] > 1000 else y


@pytest.mark.parametrize(
    ("model", "written", "read"),
    [
        (SlowCounter, "self.calls += 1", "if self.calls > 50:"),
        (GrowingHistory, "self.history.append(1.0)", "return y * 2 if len(self.history) > 100 else y"),
        (
            ReadsElsewhere,
            "self.memory.calls = self.memory.calls + 1",
            "return y * self.memory.calls if y.shape[0] > 1000 else y",
        ),
    ],
)
def test_a_count_that_decides_something_later_is_refused(model, written, read):
    (error,) = [d for d in trueport.check(model(), (x(2),)).diagnostics if d.is_error]
    assert error.code == "TP203" and line_of(error) == written
    (also,) = error.also
    assert linecache.getline(also.where.file, also.where.line).strip() == read
    assert 'state="frozen"' in error.fix


def test_a_count_that_decides_something_later_can_be_frozen():
    program = trueport.export(SlowCounter(), (x(2),), state="frozen")
    assert_same(program(y := x(2)), y + 1)


def test_a_count_that_is_only_told_is_a_note():
    class Tells(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, y):
            self.calls = self.calls + 1
            print(self.calls)
            return y

        def report(self):
            return self.calls > 50

    found = trueport.check(Tells(), (x(2),)).diagnostics
    assert [(d.code, d.is_error) for d in found if d.code == "TP203"] == [("TP203", False)]


def test_a_number_that_settles_down_is_a_cache():
    class Longest(nn.Module):
        def __init__(self):
            super().__init__()
            self.longest, self.ready = 0, False

        def forward(self, y):
            if y.shape[0] > self.longest:
                self.longest = y.shape[0]
            if not self.ready:
                self.ready = True
            return y + 1

    assert not [d for d in trueport.check(Longest(), (x(2),)).diagnostics if d.is_error]


def test_a_cached_tensor_that_depends_on_nothing_is_a_note():
    class CachesGrid(nn.Module):
        def __init__(self):
            super().__init__()
            self.grid = None

        def forward(self, y):
            if self.grid is None:
                self.grid = torch.arange(3.0)
            return y + self.grid

    model = CachesGrid()
    program = trueport.export(model, (x(2, 3),))
    assert program.report.verified
    assert model.grid is None


def test_a_table_of_positions_that_grows_with_the_longest_input_is_a_note():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(4.0).cos(), persistent=False)

        def forward(self, y):
            if y.shape[1] > self.table.shape[0]:
                self.register_buffer("table", torch.arange(y.shape[1]).float().cos(), persistent=False)
            return y + self.table[: y.shape[1]]

    model = Positions()
    program = trueport.export(model, (x(2, 3),), dynamic_shapes=({1: "t"},))
    assert [(each.code, each.weight.value) for each in program.report.diagnostics] == [("TP203", "note")]
    assert model.table.shape == (4,)
    for length in (3, 9, 4):
        assert_same(program(y := x(2, length)), model(y))


def test_a_tensor_kept_for_the_caller_to_look_at_is_a_note():
    class KeepsFeatures(nn.Module):
        def forward(self, y):
            self.features = y * 2
            return self.features + 1

    model = KeepsFeatures()
    program = trueport.export(model, (x(2, 3),))
    assert not any(each.is_error for each in program.report.diagnostics)
    assert not hasattr(model, "features")


# --- state that the trace reads as a number


class Doubles(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(2))

    def forward(self, y):
        factor = self.factor.item()
        self.factor.add_(1)
        return y * factor


def test_lifted_state_that_was_read_as_a_number_is_not_baked_in():
    run_state(Doubles)


def test_state_that_grows_cannot_be_lifted():
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("past", torch.zeros(1, 3))

        def forward(self, y):
            self.past = torch.cat([self.past, y])
            return self.past.sum(0)

    found = [each for each in refusal(Grows(), (x(2, 3),), state="inputs-outputs").diagnostics if each.is_error]
    assert [(each.code, line_of(each)) for each in found] == [("TP203", "self.past = torch.cat([self.past, y])")]


def test_out_into_a_buffer_is_found_at_its_line():
    class Into(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("room", torch.zeros(2, 3))

        def forward(self, y):
            torch.add(y, 1, out=self.room)
            return self.room * 2

    found = [each for each in refusal(Into(), (x(2, 3),)).diagnostics if each.is_error]
    assert [(each.code, line_of(each)) for each in found] == [("TP203", "torch.add(y, 1, out=self.room)")]


def test_an_attribute_that_is_returned_before_it_is_set_is_state():
    class Previous(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.zeros(2, 3)

        def forward(self, y):
            out, self.last = self.last, y * 2
            return out

    found = [each for each in refusal(Previous(), (x(2, 3),)).diagnostics if each.is_error]
    assert [(each.code, line_of(each)) for each in found] == [("TP203", "out, self.last = self.last, y * 2")]
    run_state(Previous)


def test_an_attribute_that_is_always_set_first_is_no_state():
    class Scratch(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = torch.zeros(2, 3)

        def forward(self, y):
            self.hidden = y * 2
            return self.hidden + 1

    program = trueport.export(Scratch(), (x(2, 3),))
    assert [each.weight.value for each in program.report.diagnostics if each.code == "TP203"] == ["note"]


class Memory:
    """A helper of the user's own, no module."""

    def __init__(self):
        self.calls = 0
        self.mean = torch.zeros(3)


class RemembersElsewhere(nn.Module):
    def __init__(self):
        super().__init__()
        self.memories = [Memory()]

    def forward(self, y):
        self.memories[0].mean = 0.5 * self.memories[0].mean + y.mean(0)
        return y - self.memories[0].mean


def test_a_tensor_that_an_object_of_the_user_keeps_is_state():
    (found,) = [each for each in refusal(RemembersElsewhere(), (x(2, 3),)).diagnostics if each.is_error]
    assert found.code == "TP203" and "`memories[0].mean`" in found.message
    assert line_of(found).startswith("self.memories[0].mean = 0.5")


def test_state_that_an_object_keeps_can_be_lifted():
    program = trueport.export(RemembersElsewhere(), (x(2, 3),), state="inputs-outputs")
    assert [each.name for each in program.model.graph.inputs] == ["y", "memories[0].mean"]


def test_a_number_that_an_object_counts_is_refused_at_its_line():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.memory = Memory()

        def forward(self, y):
            self.memory.calls += 1
            return y * self.memory.calls

    (error,) = [d for d in trueport.check(Counts(), (x(2),)).diagnostics if d.is_error]
    assert error.code == "TP203" and line_of(error) == "self.memory.calls += 1"


def test_a_hidden_state_that_starts_as_none_is_refused_at_its_line():
    class Streams(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.hidden = nn.GRU(3, 4, batch_first=True), None

        def forward(self, y):
            out, self.hidden = self.rnn(y, self.hidden)
            return out

    (error,) = [d for d in trueport.check(Streams().eval(), (x(2, 5, 3),)).diagnostics if d.is_error]
    assert error.code == "TP203" and line_of(error).startswith("out, self.hidden = self.rnn")


class SaveOutput:
    """What fastai's and many other decoders take their skip connections from."""

    def __init__(self, layer):
        self.stored = None
        layer.register_forward_hook(self.save)

    def save(self, module, args, output):
        self.stored = output


class SkipByHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 2, 3, 2, 1), nn.Conv2d(2, 2, 3, 2, 1)
        self.skip = SaveOutput(self.down)

    def forward(self, y):
        up = torch.nn.functional.interpolate(self.up(self.down(y)), scale_factor=2)
        if up.shape[-2:] != self.skip.stored.shape[-2:]:
            up = torch.nn.functional.interpolate(up, self.skip.stored.shape[-2:])
        return up + self.skip.stored


def test_what_a_hook_keeps_for_the_same_call_is_no_state():
    """pytorch/pytorch#27723: the traced tensor stayed behind in the hook's object, and eager then met it."""
    model = SkipByHook().eval()
    free = torch.export.Dim.DYNAMIC
    report = trueport.export(model, (x(1, 1, 8, 8),), dynamic_shapes=({2: free, 3: free},)).report
    assert report.verified and model.skip.stored is None


def test_what_a_hook_appends_to_a_list_of_its_closure_is_taken_back():
    seen = []
    model = nn.Sequential(nn.Linear(3, 2))
    model[0].register_forward_hook(lambda module, args, output: seen.append(output))
    trueport.export(model, (x(2, 3),))
    assert all(type(each) is torch.Tensor and each.shape == (2, 2) for each in seen)
    torch.stack([each * 2 for each in seen])


class KeepsStatistics(nn.Module):
    """`F.batch_norm` writes its statistics, and its signature does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.batches, self.samples = nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)

    def forward(self, x):
        kept, one = self.batches, self.samples
        own = x.shape[0] > 4
        y = F.batch_norm(x, kept.running_mean, kept.running_var, training=own, momentum=0.3)
        z = F.instance_norm(x[None].mT, one.running_mean, one.running_var, use_input_stats=True)
        return y + kept.running_mean, z * one.running_var[:, None]


def test_the_statistics_of_a_norm_are_state():
    torch.manual_seed(0)
    args, rows = (torch.randn(3, 3),), ({0: FREE},)  # the example itself writes those of the second alone
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(KeepsStatistics().eval(), args, dynamic_shapes=rows)
    written = {finding.facts["state"] for finding in caught.value.diagnostics if finding.code == "TP203"}
    assert written == {f"{norm}.running_{kind}" for norm in ("batches", "samples") for kind in ("mean", "var")}

    model = KeepsStatistics().eval()
    program = trueport.export(copy.deepcopy(model), args, dynamic_shapes=rows, state="inputs-outputs")
    state = [value.numpy().copy() for _, value in model.named_buffers() if value.dim()]
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    names = [given.name for given in session.get_inputs()]
    for count in (3, 7, 2, 9):
        x = torch.randn(count, 3)
        got = session.run(None, dict(zip(names, [x.numpy(), *state], strict=True)))
        for mine, other in zip(got, model(x), strict=False):
            torch.testing.assert_close(torch.from_numpy(mine), other)
        state = got[2:]


@torch.library.custom_op("tests_of_state::silent", mutates_args=())
def _silent(x: torch.Tensor, into: torch.Tensor) -> torch.Tensor:
    into.copy_(x.sum(0))
    return x * 2


_silent.register_fake(lambda x, into: torch.empty_like(x))


class WritesBehindTorch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        return _silent(x, self.last)


def test_what_only_eager_was_seen_to_write_is_state():
    translation = {torch.ops.tests_of_state.silent.default: lambda op, x, into: op.Mul(x, 2.0)}
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(WritesBehindTorch(), (torch.ones(2, 3),), custom_translation_table=translation)
    (finding,) = caught.value.diagnostics
    assert finding.code == "TP203" and "`last`" in finding.message
    frozen = {"custom_translation_table": translation, "state": "frozen"}
    assert trueport.export(WritesBehindTorch(), (torch.ones(2, 3),), **frozen).report.ok
