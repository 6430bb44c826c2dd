"""examine: is the model healthy, and if not, what is wrong with it?"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trueport.diagnostics import Diagnostic
from trueport.examine import Examined, examine
from trueport.load.request import make_job

X = torch.arange(6.0).reshape(2, 3)


def look(model: Any, *args: object, **options: Any) -> Examined:
    return examine(make_job(model, args or (X,)), **options)


def only(examined: Examined, code: str) -> Diagnostic:
    [diagnostic] = examined.diagnostics
    assert diagnostic.code == code
    assert diagnostic.is_error
    assert examined.refused
    return diagnostic


def test_a_healthy_model_has_nothing_to_say() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Dropout()).eval()
    examined = look(model)
    assert examined.diagnostics == ()
    assert torch.equal(examined.outputs, model(X))
    assert examined.deterministic
    assert examined.stateful == ()
    assert not examined.refused


class TestMode:
    def test_dropout_and_batch_norm_in_training_are_named(self) -> None:
        examined = look(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3)))
        diagnostic = only(examined, "TP003")
        assert diagnostic.message == "1 (Dropout), 2 (BatchNorm1d) are in training mode"
        assert "model.eval()" in diagnostic.fix

    @pytest.mark.parametrize(
        "layer",
        [nn.Dropout(0.0), nn.Linear(3, 3), nn.InstanceNorm1d(2), nn.LSTM(3, 3, num_layers=1)],
        ids=lambda layer: type(layer).__name__,
    )
    def test_what_training_does_not_change_is_left_alone(self, layer: nn.Module) -> None:
        assert look(layer.train()).diagnostics == ()

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        "layer", [nn.LSTM(3, 3, 2, dropout=0.5), nn.RReLU(), nn.InstanceNorm1d(2, track_running_stats=True)]
    )
    def test_other_layers_that_training_changes(self, layer: nn.Module) -> None:
        assert [d.code for d in look(layer.train()).diagnostics] == ["TP003"]

    def test_training_may_be_meant(self) -> None:
        assert look(nn.BatchNorm1d(3).train(), training=True).diagnostics == ()


class TestRandomness:
    def test_is_found_at_its_line(self) -> None:
        class Noisy(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + torch.randn_like(x)

        diagnostic = only(look(Noisy().eval()), "TP004")
        assert "randn_like" in diagnostic.message
        assert diagnostic.where is not None
        assert diagnostic.where.file == __file__
        assert diagnostic.where.line == Noisy.forward.__code__.co_firstlineno + 1

    def test_dropout_that_forgets_the_mode(self) -> None:
        class Forgets(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.dropout(x, 0.5)

        assert "switch it off in eval()" in only(look(Forgets().eval()), "TP004").fix
        assert "model.eval()" in only(look(Forgets().train()), "TP004").fix

    def test_attention_without_dropout_draws_nothing(self) -> None:
        class Attends(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = x[None, None]
                return F.scaled_dot_product_attention(x, x, x) + torch.rand(1)

        assert "(rand)" in only(look(Attends().eval()), "TP004").message

    def test_of_another_source_is_told_without_a_line(self) -> None:
        class PythonRandom(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * random.random()

        diagnostic = only(look(PythonRandom().eval()), "TP004")
        assert diagnostic.place is None
        assert "not by torch's random numbers" in diagnostic.message

    def test_the_output_that_differs_is_named(self) -> None:
        class Timed(nn.Module):
            def forward(self, x: torch.Tensor) -> dict[str, object]:
                return {"double": x * 2, "noise": x + random.random()}

        assert 'what differs: output["noise"]' in only(look(Timed().eval()), "TP004").seen

    def test_a_result_of_another_structure_is_another_result(self) -> None:
        turns = itertools.count()

        def grows(x: torch.Tensor) -> list[torch.Tensor]:
            return [x] * next(turns)

        assert not look(grows).deterministic

    def test_seeded_noise_is_no_randomness(self) -> None:
        class Seeded(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + torch.randn(3, generator=torch.Generator().manual_seed(1))

        assert look(Seeded().eval()).deterministic

    def test_the_users_generator_is_left_alone(self) -> None:
        torch.manual_seed(5)
        expected = torch.rand(1)
        torch.manual_seed(5)
        look(lambda x: x + torch.rand(3))
        assert torch.equal(torch.rand(1), expected)


class TestDevices:
    def test_weights_on_meta(self) -> None:
        diagnostic = only(look(nn.Linear(3, 2, device="meta")), "TP005")
        assert diagnostic.message.startswith("parameter weight, parameter bias are on meta")
        assert "to_empty" in diagnostic.fix

    def test_an_input_on_meta(self) -> None:
        diagnostic = only(look(nn.Linear(3, 2), torch.ones(2, 3, device="meta")), "TP005")
        assert diagnostic.message.startswith("input input is on meta")

    def test_a_plain_attribute_on_meta(self) -> None:
        class Keeps(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table = [torch.ones(3, device="meta")]

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x

        assert "attribute table[0]" in only(look(Keeps()), "TP005").message


class TestInputTypes:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        ("value", "fix"),
        [
            (X.to_sparse(), "x.to_dense()"),
            (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "x.to_padded_tensor(0.0)"),
            (torch.quantize_per_tensor(X, 0.1, 0, torch.quint8), "x.dequantize()"),
        ],
    )
    def test_tensors_that_are_no_block_of_numbers(self, value: torch.Tensor, fix: str) -> None:
        diagnostic = only(look(lambda x: x, value), "TP201")
        assert diagnostic.fix == fix

    def test_what_make_job_found_is_handed_on_and_the_model_not_run(self) -> None:
        def never(x: Any) -> Any:
            raise AssertionError("must not run")

        assert only(look(never, X.numpy()), "TP201").fix == "torch.from_numpy(x)"


class TestOutputTypes:
    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (lambda x: {"a": x, "f": len}, 'output["f"] is a builtin_function_or_method'),
            (lambda x: (x, x.to_sparse()), "output[1] is a sparse_coo tensor"),
            (lambda x: (x, {x}), "output[1] is a set"),
            (lambda x: None, "forward returns None: no tensor and no number"),
            (lambda x: "done", "forward returns 'done'"),
            (lambda x: {}, "forward returns {}"),
        ],
    )
    def test_refused(self, result: Any, said: str) -> None:
        assert only(look(result), "TP202").message.startswith(said)

    def test_an_empty_list_may_hold_something_on_other_inputs(self) -> None:
        assert not look(lambda x: []).diagnostics

    @pytest.mark.parametrize(
        "result",
        [lambda x: x.shape[0], lambda x: {"x": x, "n": None, "s": "text"}, lambda x: x.max(dim=1), lambda x: x],
    )
    def test_carried(self, result: Any) -> None:
        assert look(result).diagnostics == ()


class TestState:
    def test_a_running_mean_matters(self) -> None:
        class Mean(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
                return x - self.mean

        model = Mean()
        examined = look(model)
        assert examined.stateful == ("mean",)
        assert examined.state_matters
        assert examined.deterministic, "each run begins in the same state"
        assert model.mean.sum() == 0

    def test_a_table_made_at_the_first_call_does_not(self) -> None:
        class Lazy(nn.Module):
            table: torch.Tensor | None = None

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if self.table is None or self.table.shape[0] != x.shape[1]:
                    self.table = torch.arange(x.shape[1]).float()
                return x + self.table

        examined = look(Lazy())
        assert examined.stateful == ("table",)
        assert not examined.state_matters

    def test_a_model_that_refuses_its_second_call(self) -> None:
        class Once(nn.Module):
            used = False

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if self.used:
                    raise RuntimeError("only once")
                self.used = True
                return x

        examined = look(Once())
        assert examined.state_matters
        assert not examined.refused
