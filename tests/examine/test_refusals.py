"""A model that eager refuses: the user's line, the layer, what it was given, and what would mend it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from trueport.diagnostics import Diagnostic
from trueport.examine import examine
from trueport.examine.refusals import shortened
from trueport.load.request import make_job


class Net(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        y = x.clone()
        return self.layer(y)


def refused(model: nn.Module, *args: object) -> Diagnostic:
    examined = examine(make_job(model.eval(), args))
    assert examined.outputs is None
    [diagnostic] = examined.diagnostics
    assert diagnostic.code == "TP002"
    return diagnostic


def line_of(text: str) -> int:
    source, first = inspect.getsourcelines(Net.forward)
    return first + next(i for i, line in enumerate(source) if text in line)


class TestTheLine:
    def test_is_the_users_and_the_module_is_named(self) -> None:
        diagnostic = refused(Net(nn.Linear(256, 4)), torch.ones(1, 3))
        assert diagnostic.where is not None
        assert diagnostic.where.file == __file__
        assert diagnostic.where.line == line_of("self.layer(y)")
        assert diagnostic.where.function == "Net.forward"
        assert (diagnostic.where.column, diagnostic.where.end_column) == (16, 29)
        assert diagnostic.place is not None
        assert diagnostic.place.module == "layer"

    def test_the_calls_lead_from_forward_to_the_line(self) -> None:
        def inner(x: torch.Tensor) -> torch.Tensor:
            raise KeyError("missing")

        class Outer(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return inner(x)

        place = refused(Outer(), torch.ones(1)).place
        assert place is not None
        assert [call.function.rpartition(".")[2] for call in place.calls] == ["forward", "inner"]

    def test_without_any_code_of_the_users_the_module_alone(self) -> None:
        diagnostic = refused(nn.Sequential(nn.ReLU(), nn.Linear(5, 5)), torch.ones(1, 3))
        assert diagnostic.where is None
        assert diagnostic.place is not None
        assert diagnostic.place.module == "1"


class TestSizes:
    @pytest.mark.parametrize(
        ("layer", "shape", "said"),
        [
            (nn.Linear(256, 4), (1, 3), "layer (Linear) is made for 256 features, but got 3"),
            (nn.Conv2d(3, 4, 3), (1, 5, 8, 8), "layer (Conv2d) is made for 3 channels, but got 5"),
            (nn.Conv1d(3, 4, 3), (5, 8), "layer (Conv1d) is made for 3 channels, but got 5"),
            (nn.LayerNorm(7), (2, 3), "layer (LayerNorm) is made for 7 features, but got 3"),
            (nn.BatchNorm2d(3), (1, 4, 2, 2), "layer (BatchNorm2d) is made for 3 channels, but got 4"),
            (nn.GRU(6, 2), (4, 1, 5), "layer (GRU) is made for 6 features, but got 5"),
        ],
    )
    def test_a_layer_made_for_another_size(self, layer: nn.Module, shape: tuple[int, ...], said: str) -> None:
        diagnostic = refused(Net(layer), torch.ones(shape))
        assert diagnostic.message.startswith(said)
        assert "shape" in diagnostic.message or str(list(shape)) in diagnostic.message
        assert any(fact.startswith("inputs: x float32") for fact in diagnostic.seen)


class TestDtypes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
    def test_both_dtypes_and_the_cast(self, dtype: torch.dtype) -> None:
        name = str(dtype).removeprefix("torch.")
        diagnostic = refused(Net(nn.Linear(3, 4)), torch.ones(1, 3).to(dtype))
        assert f"weights of float32 (weight float32, bias float32), but got a tensor of {name}" in diagnostic.message
        assert diagnostic.fix.startswith("x.to(torch.float32)")
        assert ("model.to" in diagnostic.fix) is dtype.is_floating_point, "a model is not brought to integers"

    def test_a_tensor_that_is_not_an_input_is_cast_at_the_line(self) -> None:
        class Casts(Net):
            def forward(self, x: torch.Tensor) -> Any:
                return self.layer(x[:1].int())

        assert refused(Casts(nn.Linear(3, 4)), torch.ones(2, 3)).fix.endswith(
            "before the call at this line: .to(torch.float32)"
        )

    def test_indices_that_are_floats(self) -> None:
        diagnostic = refused(Net(nn.Embedding(5, 2)), torch.ones(3))
        assert diagnostic.message == "layer (Embedding) looks up whole numbers, but got float32"
        assert diagnostic.fix == "x.long()"


class TestTorchsOwnWords:
    def test_are_kept_where_nothing_better_is_known(self) -> None:
        class Adds(nn.Module):
            def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return x + y

        diagnostic = refused(Adds(), torch.ones(2), torch.ones(3))
        assert "The size of tensor a (2) must match the size of tensor b (3)" in diagnostic.message

    def test_are_shortened(self) -> None:
        long = RuntimeError("First line\nof it.\n\nLong advice about torch itself.\nException raised from here")
        assert shortened(long) == "RuntimeError: First line of it."
        assert len(shortened(ValueError("x" * 1000))) < 400
        assert shortened(KeyError()) == "KeyError"
