"""The judge judged: each verdict is provoked once, by a model or a file that deserves it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

from benchmarks import children, exporters
from benchmarks.bench import report
from benchmarks.bench_run import Sample
from benchmarks.children import HarnessError
from benchmarks.compare import differences
from benchmarks.exporters import Request, legacy_axes, read_refusal
from benchmarks.judge import Judgement, Subject, Verdict, eager_answers, judge
from benchmarks.leaves import flatten, named_leaves
from benchmarks.zoo import models as zoo_models
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.errors import ExportError
from trueport.source import Place, Where

R = torch.randn


def subject(model: nn.Module, example: torch.Tensor, *more: torch.Tensor, **settings: object) -> Subject:
    shapes = ({0: Dim.DYNAMIC},)
    return Subject("it", model.eval(), ((example,), {}), [((x,), {}) for x in more], shapes, __file__, **settings)  # type: ignore[arg-type]


def verdict_of(folder: Path, what: Subject, exporter: str = "legacy") -> Judgement:
    return judge(what, exporter, folder, phase=lambda name: None)


class BranchOnSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 3 else -x


class FrozenReshape(nn.Module):
    """A size turned into a plain number, as `int()` does when a trace asks: the file fails on any other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(int(x.shape[0]), 2, 2)


class Counter(nn.Module):
    """Gives another answer on every call."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.calls


class WritesItsInput(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)


class Picky(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")


class TestVerdicts:
    def test_a_right_model_is_faithful(self, tmp_path: Path) -> None:
        assert verdict_of(tmp_path, subject(nn.Linear(3, 2), R(2, 3), R(5, 3))).verdict is Verdict.FAITHFUL

    def test_a_frozen_branch_is_silent_and_the_input_that_shows_it_is_named(self, tmp_path: Path) -> None:
        found = verdict_of(tmp_path, subject(BranchOnSize(), R(2, 3), R(5, 3)))
        assert found.verdict is Verdict.SILENT
        assert "input 1" in found.detail

    def test_without_the_telling_input_it_would_pass(self, tmp_path: Path) -> None:
        assert verdict_of(tmp_path, subject(BranchOnSize(), R(2, 3), R(3, 3))).verdict is Verdict.FAITHFUL

    def test_a_frozen_size_that_fails_at_run_time_is_invalid(self, tmp_path: Path) -> None:
        assert verdict_of(tmp_path, subject(FrozenReshape(), R(2, 4), R(3, 4))).verdict is Verdict.INVALID

    def test_a_file_that_does_not_load_is_invalid(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _replace(monkeypatch, lambda request: request.path.write_bytes(b"no model"))
        found = verdict_of(tmp_path, subject(nn.ReLU(), R(2)), "dynamo")
        assert found.verdict is Verdict.INVALID
        assert "does not load" in found.detail

    def test_an_error_that_names_the_users_line_is_a_diagnosis(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _replace(monkeypatch, _raise(RuntimeError(f'cannot export\n  File "{__file__}", line 41, in forward')))
        found = verdict_of(tmp_path, subject(nn.ReLU(), R(2)), "dynamo")
        assert found.verdict is Verdict.DIAGNOSED
        assert found.at == "benchmarks/test_harness.py:41"

    def test_an_error_without_a_line_is_a_refusal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _replace(monkeypatch, _raise(RuntimeError("'NoneType' object has no attribute 'ndim'")))
        assert verdict_of(tmp_path, subject(nn.ReLU(), R(2)), "dynamo").verdict is Verdict.REFUSED

    def test_an_answer_where_eager_refuses_is_silent(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def export_something_else(request: Request) -> None:
            torch.onnx.export(nn.ReLU(), request.args, str(request.path), dynamo=False)

        _replace(monkeypatch, export_something_else)
        assert verdict_of(tmp_path, subject(Picky(), R(2)), "dynamo").verdict is Verdict.SILENT

    def test_a_state_that_was_frozen_shows_in_the_second_call(self, tmp_path: Path) -> None:
        x = R(2)
        what = subject(Counter(), x, x, stateful=True)
        expected = eager_answers(what)
        assert expected[0]
        assert expected[1]
        torch.testing.assert_close(expected[1][0], expected[0][0] + 1)
        assert verdict_of(tmp_path, what).verdict is Verdict.SILENT

    def test_inputs_that_the_model_writes_stay_as_they_were(self, tmp_path: Path) -> None:
        x = torch.zeros(3)
        assert verdict_of(tmp_path, subject(WritesItsInput(), x, torch.ones(4))).verdict is Verdict.FAITHFUL
        assert torch.equal(x, torch.zeros(3))

    def test_a_case_whose_other_inputs_eager_refuses_is_broken_not_judged(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match="mat1"):
            verdict_of(tmp_path, subject(nn.Linear(3, 2), R(2, 3), R(2, 4)))


class Finding(Diagnostic):
    code = "TP301"


class OurFault(Diagnostic):
    code = "TP901"


class TestReadingOurErrors:
    """trueport is judged by what its diagnostics carry, and more strictly than the peers."""

    def told(self, error: Exception, has_own_lines: bool = True) -> tuple[str, str, bool]:
        refusal = read_refusal("trueport", error, __file__, has_own_lines)
        return refusal.at, refusal.code, refusal.on_purpose

    def test_a_line_in_the_users_file(self) -> None:
        here = Place(calls=(Where("elsewhere.py", 3), Where(__file__, 41)))
        error = ExportError([Finding(message="frozen", place=here)])
        assert self.told(error) == ("benchmarks/test_harness.py:41", "TP301", True)

    def test_a_line_elsewhere_is_no_diagnosis(self) -> None:
        error = ExportError([Finding(message="frozen", place=Place(calls=(Where("elsewhere.py", 3),)))])
        assert self.told(error) == ("", "TP301", True)

    def test_a_warning_with_a_line_does_not_excuse_an_error_without_one(self) -> None:
        warning = Finding(message="careful", place=Place(calls=(Where(__file__, 41),)), severity=Severity.WARNING)
        assert self.told(ExportError([Finding(message="frozen"), warning]))[0] == ""

    def test_a_model_without_a_line_of_the_users_is_diagnosed_by_its_module(self) -> None:
        error = ExportError([Finding(message="half into float", place=Place(module="layers.0"))])
        assert self.told(error, has_own_lines=False)[0] == "module layers.0"
        assert self.told(error, has_own_lines=True)[0] == ""

    def test_our_own_faults_are_crashes(self) -> None:
        here = Place(calls=(Where(__file__, 41),))
        assert not self.told(ExportError([OurFault(message="a bug", place=here)]))[2]
        assert not self.told(AttributeError("reshape"))[2]


class TestComparison:
    def test_equal(self) -> None:
        assert differences([torch.ones(2)], [np.ones(2, np.float32)]) == []

    @pytest.mark.parametrize(
        ("got", "reason"),
        [
            (np.ones((1, 2), np.float32), "shape"),
            (np.ones(2, np.float64), "dtype"),
            (np.array([1, 1.01], np.float32), "values differ"),
            (np.array([1, np.nan], np.float32), "values differ"),
        ],
    )
    def test_what_differs_is_said(self, got: np.ndarray, reason: str) -> None:
        assert reason in differences([torch.ones(2)], [got])[0]

    def test_nan_and_infinity_must_stand_in_the_same_places(self) -> None:
        expected = torch.tensor([float("nan"), float("inf"), 1.0])
        assert differences([expected], [expected.numpy()]) == []
        assert differences([expected], [np.array([np.nan, -np.inf, 1], np.float32)])

    def test_integers_are_exact(self) -> None:
        assert differences([torch.tensor([10**9])], [np.array([10**9 + 1])])

    def test_a_missing_output_is_a_difference(self) -> None:
        assert differences([torch.ones(1), torch.ones(1)], [np.ones(1, np.float32)])

    def test_a_real_view_stands_for_a_complex_output(self) -> None:
        expected = torch.tensor([1 + 2j])
        assert differences([expected], [np.array([[1, 2]], np.float32)]) == []
        assert differences([expected], [np.array([[1, 3]], np.float32)])

    def test_python_numbers_may_arrive_in_any_width_but_not_in_another_kind(self) -> None:
        assert differences([3], [np.array(3, np.int32)]) == []
        assert differences([3], [np.array(3, np.float32)])
        assert differences([True], [np.array(1)])


@dataclass
class Output:
    first: torch.Tensor
    nothing: None
    rest: tuple[torch.Tensor, int]


class TestStructures:
    def test_flat_in_the_order_of_the_structure(self) -> None:
        a, b, c = (torch.full((1,), float(n)) for n in range(3))
        assert flatten(Output(a, None, (b, 7))) == [a, b, 7]
        assert flatten(OrderedDict(z=a, y=[b, "word"], x=c)) == [a, b, c]

    def test_leaves_are_named_after_their_parameters(self) -> None:
        class Takes(nn.Module):
            def forward(self, x: torch.Tensor, pair: object, *, scale: float) -> torch.Tensor:
                return x

        named = named_leaves(Takes(), (R(1), [R(1), R(1)]), {"scale": 2.0})
        assert [name for name, _ in named] == ["x", "pair_0", "pair_1", "scale"]

    def test_free_sizes_in_the_words_of_the_old_exporter(self) -> None:
        class Takes(nn.Module):
            def forward(self, x: torch.Tensor, n: int, pair: object) -> torch.Tensor:
                return x

        args = (R(2, 3), 4, (R(1), R(5, 6)))
        shapes = ({0: Dim.DYNAMIC}, None, (None, {1: Dim.DYNAMIC}))
        names, free = legacy_axes(Request(Takes(), args, {}, shapes, Path("unused")))
        assert names == ["x", "pair_0", "pair_1"]
        assert free == {"x": [0], "pair_1": [1]}

    def test_a_zero_dimensional_input_stays_one(self, tmp_path: Path) -> None:
        what = Subject("it", nn.ReLU(), ((torch.tensor(2.0),), {}), [], None, __file__)
        assert verdict_of(tmp_path, what).verdict is Verdict.FAITHFUL


class TestChildren:
    """Work that ends in every way there is; `works.py` is what the child can import."""

    @pytest.fixture(autouse=True)
    def works(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tmp_path.joinpath("works.py").write_text(
            "import os, signal, time\n"
            "def double(n, *, folder, phase): phase('start'); return 2 * n\n"
            "def sleep(*, folder, phase): phase('sleeping'); time.sleep(60)\n"
            "def die(*, folder, phase): os.kill(os.getpid(), signal.SIGSEGV)\n"
            "def fail(*, folder, phase): raise KeyError('lost')\n"
        )
        monkeypatch.syspath_prepend(tmp_path)

    def test_every_ending(self) -> None:
        import works  # type: ignore[import-not-found]

        returned = children.run(works.double, 21, limit=30)
        assert (returned.value, returned.died, returned.last_phase) == (42, "", "start")
        slept = children.run(works.sleep, limit=3)
        assert (slept.died, slept.last_phase) == ("time limit", "sleeping")
        assert children.run(works.die, limit=30).died == "signal SIGSEGV"
        with pytest.raises(HarnessError, match="lost"):
            children.run(works.fail, limit=30)


class TestReports:
    def test_ratios_growth_and_a_limit_that_was_hit(self) -> None:
        samples = [
            Sample("decoder_24_free", "trueport", cpu_seconds=1.0, weight_bytes=10),
            Sample("decoder_24_free", "dynamo", cpu_seconds=8.0, weight_bytes=10),
            Sample("decoder_96_free", "trueport", cpu_seconds=4.0, weight_bytes=40),
            Sample("decoder_96_free", "dynamo", failed="over 900 s"),
        ]
        text = report(samples, ["decoder_24_free", "decoder_96_free"], ["trueport", "dynamo"])
        assert "0.125" in text
        assert "over 900 s" in text
        growth = next(line for line in text.splitlines() if "24 → 96" in line)
        assert "4.000" in growth

    def test_a_wrong_mask_is_larger_than_the_tolerance_in_the_zoo(self) -> None:
        """Else the zoo could not see a lost mask."""
        what = zoo_models.build("llama")
        (_, kwargs) = what.more[3]
        full = {**kwargs, "attention_mask": torch.ones_like(kwargs["attention_mask"])}
        assert int(kwargs["attention_mask"].sum()) < full["attention_mask"].numel()
        with torch.no_grad():
            padded = flatten(what.model(**kwargs))
            unpadded = [leaf.numpy() for leaf in flatten(what.model(**full)) if isinstance(leaf, torch.Tensor)]
        assert differences(padded, unpadded)


def _replace(monkeypatch: pytest.MonkeyPatch, export: object) -> None:
    monkeypatch.setitem(exporters.EXPORTERS, "dynamo", export)


def _raise(error: Exception) -> object:
    def export(request: Request) -> None:
        raise error

    return export


def test_the_legacy_exporter_still_writes_what_we_read(tmp_path: Path) -> None:
    """The verdicts above lean on it: its input names are the parameters' names."""
    verdict_of(tmp_path, subject(nn.ReLU(), R(2)))
    assert [i.name for i in onnx.load(tmp_path / "model.onnx").graph.input] == ["input"]
