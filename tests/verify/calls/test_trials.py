"""Which operands are drawn, and what a difference there weighs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import trueport
from trueport.capture.effects.state import StateMode
from trueport.capture.trace import capture
from trueport.load.request import make_job
from trueport.lower.table import is_leaf
from trueport.verify.calls.call import Call, calls_of
from trueport.verify.calls.edges import Level, edge_values, level_of
from trueport.verify.calls.trials import trials


def calls(model: nn.Module, *args: torch.Tensor, **options: Any) -> list[Call]:
    job = make_job(model.eval(), args, {}, **options)
    return list(calls_of(capture(job, is_leaf, StateMode.REFUSE), 20).distinct)


class Net(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.complex64, torch.complex128],
)
def test_edge_values_are_of_their_level(dtype: torch.dtype) -> None:
    for level in Level:
        values = edge_values(dtype, level)
        assert values.dtype is dtype
        assert values.numel() or dtype.itemsize == 1
        assert bool((level_of(values) == int(level)).all())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_have_their_ends_and_the_neighbours_of_powers(dtype: torch.dtype) -> None:
    values = set(edge_values(dtype, Level.ORDINARY).tolist())
    facts = torch.iinfo(dtype)
    assert {facts.min, facts.max, 0, 1, 127} <= values
    if dtype is torch.int64:
        assert {2**24 + 1, 2**31, 2**32, 2**53 + 1, -(2**53) - 1} <= values


def test_the_same_layer_again_is_no_other_call() -> None:
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(5)), nn.Linear(8, 3))
    distinct = {call.signature: str(call.op) for call in calls(layers, torch.randn(2, 8))}
    names = list(distinct.values())
    assert names.count("aten.relu.default") == 1
    assert names.count("aten.linear.default") == 2  # a square one, and another


def test_trials_are_the_same_each_time_and_few() -> None:
    (call,) = calls(Net(torch.add), torch.randn(4, 5), torch.randn(5))
    first, second = list(trials(call)), list(trials(call))
    assert len(first) <= 12
    for one, other in zip(first, second, strict=True):
        assert one.sizes == other.sizes
        assert all(torch.equal(a, b) or a.isnan().any() for a, b in zip(one.tensors, other.tensors, strict=True))


def test_all_pairs_of_edge_values_meet() -> None:
    (call,) = calls(Net(torch.maximum), torch.arange(6), torch.arange(6))
    largest = max(trials(call), key=lambda trial: trial.tensors[0].numel())
    pairs = set(zip(*(tensor.tolist() for tensor in largest.tensors), strict=True))
    edges = edge_values(torch.int64, Level.ORDINARY).tolist()
    assert {(one, other) for one in edges for other in edges} <= pairs


def test_indices_stay_within_what_they_index_and_reach_its_last_row() -> None:
    (call,) = calls(Net(lambda x, index: x.index_select(0, index)), torch.randn(4, 3), torch.tensor([0, 2]))
    for trial in trials(call):
        table, index = trial.tensors
        assert 0 <= int(index.min())
        assert int(index.max()) < table.shape[0]
    assert any(int(trial.tensors[1].max()) == trial.tensors[0].shape[0] - 1 for trial in trials(call))


def test_a_declared_range_is_kept_to() -> None:
    (call,) = calls(Net(torch.relu), torch.arange(6), value_ranges={"args_0": (0, 999)})
    drawn = torch.cat([tensor.reshape(-1) for trial in trials(call) for tensor in trial.tensors])
    assert (int(drawn.min()), int(drawn.max())) == (0, 999)
    anywhere = call.on_any_values()
    assert anywhere.signature == call.signature
    assert max(int(trial.tensors[0].max()) for trial in trials(anywhere)) == 2**63 - 1


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: torch.sigmoid(x).floor(), 0, 1),
        (lambda x: torch.relu(x).floor(), 0, None),
        (lambda x: (x > 0).to(torch.float32).floor(), 0, 1),
        (lambda x: torch.argmax(x, 1).to(torch.float32).floor(), 0, 2**31),
        (lambda x: x.clamp(-2, 3).floor(), -2, 3),
        (lambda x: (torch.softmax(x, 1) * 4 - 1).floor(), -1, 3),
    ],
)
def test_what_the_graph_tells_of_an_operand(function: Any, low: float, high: float | None) -> None:
    floor = next(call for call in calls(Net(function), torch.randn(3, 4)) if str(call.op) == "aten.floor.default")
    known = floor.operands[0].known
    assert known.low == low
    assert high is None or known.high <= high


def test_a_mask_of_minus_infinity_is_an_everyday_operand_of_softmax() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.masked_fill(x < 0, -torch.inf), -1)

    def plain(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    for function, expected in ((masked, True), (plain, False)):
        call = calls(Net(function), torch.randn(3, 4))[-1]
        ordinary = [trial for trial in trials(call) if trial.level is Level.ORDINARY]
        assert any(bool(trial.tensors[0].isinf().any()) for trial in ordinary) is expected


def minimum_over_minus_one(op: Any, x: Any, y: Any) -> Any:
    return op.Div(x, y)


def test_a_call_that_ends_the_process_is_a_finding_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueport.verify.check.draw", lambda *_, **__: iter(()))  # the calls are to find it

    def both(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x // y, torch.round(x.float())

    table = {
        torch.ops.aten.floor_divide.default: minimum_over_minus_one,
        torch.ops.aten.round.default: lambda op, x: op.Floor(op.Add(x, 0.5)),
    }
    args = (torch.arange(8), torch.arange(8) + 1)
    report = trueport.check(Net(both).eval(), args, custom_translation_table=table)
    found = {diagnostic.facts["operator"]: diagnostic for diagnostic in report.errors}
    assert set(found) >= {"aten.floor_divide.default", "aten.round.default"}
    assert "SIGFPE" in found["aten.floor_divide.default"].message or "by itself" in (
        found["aten.floor_divide.default"].message
    )


def test_nan_is_told_and_binding_on_request() -> None:
    model = Net(lambda x: torch.minimum(x, x * 2)).eval()
    table = {torch.ops.aten.minimum.default: lambda op, x, y: op.Where(op.Less(x, y), x, y)}
    told = trueport.check(model, (torch.randn(4),), custom_translation_table=table)
    assert not [found for found in told.diagnostics if found.code == "TP812"]
    assert told.calls is not None
    assert any("minimum" in line and "nan" in line for line in told.calls.by_design)
    bound = trueport.check(model, (torch.randn(4),), custom_translation_table=table, nonfinite=True)
    assert [found.code for found in bound.errors] == ["TP812"]


def test_extreme_magnitudes_are_a_warning() -> None:
    table = {torch.ops.aten.neg.default: lambda op, x: op.Max(op.Neg(x), -1e30)}
    report = trueport.check(Net(torch.neg).eval(), (torch.randn(4),), custom_translation_table=table)
    (found,) = [diagnostic for diagnostic in report.diagnostics if diagnostic.code == "TP812"]
    assert found.weight.value == "warning"
    assert report.verified


def test_parts_of_complex_numbers_meet_each_other() -> None:
    """Zeros of either sign, halves, large beside small; and each call on complex numbers is run."""
    values = set(map(str, edge_values(torch.complex64, Level.ORDINARY).tolist()))
    assert {"(-0-0j)", "(0.5-1.5j)", "(-0+100.5j)", "(-3+8j)"} <= values

    def turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.view_as_complex(x) * torch.view_as_complex(y).conj()
        return torch.view_as_real(z / (z.abs() + 1)).sum(1)

    report = trueport.check(Net(turned).eval(), (torch.randn(3, 4, 2), torch.randn(3, 4, 2)))
    assert report.calls is not None
    assert not report.calls.not_run
    assert report.calls.equal == report.calls.distinct >= 4


def test_what_is_not_run_is_said() -> None:
    report = trueport.check(Net(lambda x: torch.linalg.inv(x + 3 * torch.eye(3))).eval(), (torch.rand(3, 3),))
    assert report.calls is not None
    assert any("linalg" in name for name in report.calls.not_run)
    assert report.calls.equal + len(report.calls.not_run) == report.calls.distinct


def test_a_call_that_is_a_loop_in_the_file_is_not_said_to_hold_at_its_edges() -> None:
    """How many rounds it makes goes with its operands, and 2^62 would never end."""
    told = trueport.export(lambda x: torch.special.zeta(x + 2, x + 1), (torch.rand(3),)).report
    assert told.calls is not None
    assert "everyday" in dict(told.calls.not_run)["aten.special_zeta.default"]
    assert told.calls.equal < told.calls.distinct


def test_integers_that_tell_eager_where_to_read_are_not_drawn() -> None:
    """The batch sizes of a packed sequence: eager believes them, and reads beyond its tensors where they are wrong."""

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0])[0]

    job = make_job(Packed().eval(), (torch.randn(5, 2, 4), torch.tensor([5, 3])), {})
    found = calls_of(capture(job, is_leaf, StateMode.REFUSE), 20)
    assert "aten.lstm.data" in found.left_out
    assert "aten.lstm.data" not in [str(call.op) for call in found.distinct]
