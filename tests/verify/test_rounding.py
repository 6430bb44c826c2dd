"""Where only the rounding of the operators in between decides, an answer is no witness; a fault elsewhere still is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from trueport.verify.judging.compare import Tolerance
from trueport.verify.judging.rounding import RoundedOtherwise
from trueport.verify.judging.sensitivity import excuse
from trueport.verify.runtime.tensors import from_torch


def style_transfer() -> nn.Module:
    """Normalisations over pictures, one after the other: of a picture of one colour they divide nothing by nothing."""
    torch.manual_seed(0)

    def block() -> list[nn.Module]:
        return [nn.ReflectionPad2d(1), nn.Conv2d(4, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.ReLU()]

    return nn.Sequential(*[layer for _ in range(6) for layer in block()]).eval()


def test_a_picture_of_one_colour_accuses_nobody():
    program = trueport.export(style_transfer(), (torch.rand(1, 4, 12, 12),))
    assert program.report.verified
    assert any("round otherwise" in reason for reason in program.report.undecided)


def test_the_same_network_with_a_fault_is_found():
    def wrong(op, x):  # type: ignore[no-untyped-def]
        return op.LeakyRelu(x, alpha=0.01)

    with pytest.raises(trueport.ExportError, match="TP805"):
        trueport.export(
            style_transfer(),
            (torch.rand(1, 4, 12, 12),),
            custom_translation_table={torch.ops.aten.relu.default: wrong},
        )


class Detections(nn.Module):
    """On large inputs every score is 1, give or take its last bit, and that decides which are the best."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scores = nn.Conv2d(3, 6, 3, padding=1)
        self.boxes = nn.Conv2d(3, 24, 3, padding=1)

    def forward(self, x):  # type: ignore[no-untyped-def]
        best, at = torch.sigmoid(self.scores(x)).softmax(1).flatten(1).topk(20)
        boxes = self.boxes(x).reshape(len(x), -1, 4)
        return best, at % 6, boxes.gather(1, at[..., None].expand(-1, -1, 4))


def test_which_of_many_equal_candidates_wins_accuses_nobody():
    assert trueport.export(Detections().eval(), (torch.rand(1, 3, 9, 9),)).report.verified


class Phases(nn.Module):
    """Where frequencies cancel, the sign of what is left decides between the angles 0 and pi."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        return torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).angle()


def test_the_phase_of_nothing_accuses_nobody_and_is_not_called_faithful():
    """The frames at the ends are their own mirror images: what should be no imaginary part decides between two angles,
    in eager as in the runtime. So it is on every example."""
    torch.manual_seed(0)
    report = trueport.export(Phases(), (torch.rand(1, 40),), dynamic_shapes=({0: "batch", 1: "time"},)).report
    assert report.verified
    on_the_example = any("the example:" in told for told in report.undecided)
    assert str(report).startswith("checked in part" if on_the_example else "faithful")
    assert report.undecided  # hundreds of such frames were drawn; not all signs are the same on any machine


class WhereNothingIsLeft(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2, bias=False)
        self.layer.weight.data = torch.tensor([[1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]])

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.layer(x)
        if y.sum():
            return y + 9
        return y


def test_a_test_that_rounding_would_turn_is_no_excuse(tmp_path):  # type: ignore[no-untyped-def]
    """The file has one way only; the parts cancel exactly on the other one, and would not if they were rounded."""
    path = tmp_path / "net.onnx"
    torch.onnx.export(WhereNothingIsLeft().eval(), (torch.tensor([1.0, 2.0, 3.0]),), path, dynamo=False)
    report = trueport.verify(path, WhereNothingIsLeft().eval(), (torch.tensor([1.0, 2.0, 3.0]),))
    assert "TP805" in [found.code for found in report.diagnostics]


def moved(function, *given):  # type: ignore[no-untyped-def]
    """Which elements another rounding moves."""
    plain = function(*given)
    with RoundedOtherwise(0):
        other = function(*given)
    return (other != plain).tolist()


X = torch.tensor([1.1, 2.7, 0.3])


def test_what_is_exact_is_not_moved():
    """Copies, choices, fillings and single operations of IEEE arithmetic have one right answer."""
    assert not any(moved(lambda x: x * 1.1 + x / 3, X))
    assert not any(moved(lambda x: torch.where(x > 1, x, -1e9).clamp(min=0.1).sort().values, X))
    assert not any(moved(lambda x: x.masked_fill(x < 1, -1e9).round(), X))
    assert not any(moved(lambda x: x[[2, 0]].flip(0), X))


def test_functions_and_sums_are_moved():
    assert any(moved(torch.exp, X))
    assert any(moved(lambda x: x @ x.new_full((3, 4), 0.1), X))
    assert any(moved(lambda x: x.cumsum(0), X)[1:])
    assert any(moved(lambda x: x.clone().exp_(), X))


def test_sums_that_have_room_for_every_part_are_exact():
    whole = torch.arange(12.0).reshape(3, 4) / 2
    assert not any(moved(lambda x: (x @ x.t()).sum(0), whole))
    assert not any(moved(lambda x: x.mean(1), whole))
    assert any(moved(lambda x: (x @ x.t()).sum(0), whole * 1.1))


def test_results_of_few_digits_are_exact():
    assert not any(moved(torch.sigmoid, torch.zeros(3)))
    assert not any(moved(lambda x: x.softmax(0), torch.full((8,), -1e9)))


class UntilItStays(nn.Module):
    """Sinkhorn's scaling, until it moves no more: in which round that is may be a matter of the last bit."""

    def forward(self, weights):  # type: ignore[no-untyped-def]
        rows, rounds = torch.ones(weights.size(0)), 0
        while True:
            columns = 1 / (weights.t() @ rows)
            after = 1 / (weights @ columns)
            moved, rows, rounds = (after - rows).abs().max(), after, rounds + 1
            if moved < 1e-4 or rounds >= 50:
                break
        return rows, rounds


def test_a_loop_that_does_not_converge_accuses_nobody() -> None:
    torch.manual_seed(0)
    assert trueport.export(UntilItStays(), (torch.rand(5, 5) + 0.1,)).report.verified


def test_a_frequency_that_is_not_there_may_be_the_last_bits_of_the_others() -> None:
    """A right file of torch.onnx was accused: its DFT gives 2e-6 beside 50, where eager gives 0."""
    wave = torch.full((8,), -3.7)
    with RoundedOtherwise(0):
        moved = torch.fft.rfft(wave)
    off = (moved - torch.fft.rfft(wave)).abs()
    assert off[4] > 0
    assert float(off.max()) < 1e-4


@pytest.mark.parametrize("shape", [(40,), (40, 50), (3, 2, 400)])
def test_a_few_elements_do_not_make_a_sum_exact(shape: tuple[int, ...]) -> None:
    """Some elements may tell that a sum rounds; that it does not, all of them have to tell."""

    def moves(values: torch.Tensor) -> bool:
        sums = set()
        for seed in range(4):
            with RoundedOtherwise(seed):
                sums.add(values.sum().item())
        return sums != {values.sum().item()}

    values = torch.ones(shape)
    assert not moves(values)
    values.view(-1)[-1] = 1 / 3
    assert moves(values)


def test_eager_runs_no_more_often_than_the_excuse_needs() -> None:
    runs = 0

    values = torch.exp(torch.linspace(-1, 1, 20))

    def eager(_: object) -> tuple[list[torch.Tensor], frozenset[object]]:
        nonlocal runs
        runs += 1
        return [torch.tanh(values) * 1e3], frozenset()

    (expected,), _ = eager(())
    got = from_torch(expected * (1 + 1e-7))
    exact = Tolerance(2e-8, 0.0, 0.0)
    assert excuse(eager, (), [expected], [got], [exact], precision=1e-9, seed=0) is not None
    assert runs <= 4  # the answer itself, once more as it is, and one or two that round otherwise
