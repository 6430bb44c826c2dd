"""Whatever the user calls a model, the module behind it is found, with readable names for its weights."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch

from trueport.errors import UsageError
from trueport.load.unwrap import FunctionModule, signature_of, unwrap

X = torch.ones(2, 3)
shared = torch.nn.Linear(3, 2)


@pytest.fixture
def linear() -> torch.nn.Linear:
    return torch.nn.Linear(3, 2)


class TestWrappersAreLookedThrough:
    @pytest.mark.parametrize(
        "wrap",
        [
            lambda model: model,
            torch.compile,
            torch.nn.DataParallel,
            lambda model: torch.compile(torch.nn.DataParallel(torch.compile(model))),
            lambda model: model.forward,
            lambda model: model.__call__,
        ],
    )
    def test_to_the_very_module(self, wrap: Any, linear: torch.nn.Linear) -> None:
        assert unwrap(wrap(linear)) is linear

    def test_a_compiled_function(self) -> None:
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        model = unwrap(torch.compile(double))
        assert isinstance(model, FunctionModule)
        assert model.function is double

    def test_a_scripted_module_stays(self, linear: torch.nn.Linear) -> None:
        scripted = torch.jit.script(linear)
        assert unwrap(scripted) is scripted


class TestFunctions:
    def test_a_closure_knows_its_modules_by_name(self, linear: torch.nn.Linear) -> None:
        def apply(x: torch.Tensor) -> torch.Tensor:
            return linear(x) + shared(x)

        model = unwrap(apply)
        assert set(dict(model.named_parameters())) == {
            f"{n}.{w}" for n in ("linear", "shared") for w in ("weight", "bias")
        }
        assert torch.equal(model(X), apply(X))

    def test_partial_a_method_and_a_callable_object(self, linear: torch.nn.Linear) -> None:
        def apply(layer: torch.nn.Module, x: torch.Tensor, *, twice: bool = False) -> torch.Tensor:
            return layer(x)

        class Pipeline:
            def __init__(self) -> None:
                self.head = linear

            def __call__(self, x: torch.Tensor) -> torch.Tensor:
                return self.head(x)

            def run(self, x: torch.Tensor) -> torch.Tensor:
                return self.head(x)

        for function in (functools.partial(apply, linear), Pipeline(), Pipeline().run):
            model = unwrap(function)
            assert any(module is linear for module in model.children())
            assert torch.equal(model(X), linear(X))

    def test_another_method_of_a_module(self) -> None:
        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = torch.nn.Linear(3, 2)

            def encode(self, x: torch.Tensor) -> torch.Tensor:
                return self.fc(x)

        model = unwrap(Net().encode)
        assert "model.fc.weight" in dict(model.named_parameters())
        assert list(signature_of(model).parameters) == ["x"]  # type: ignore[union-attr]

    def test_parameters_keep_their_names(self, linear: torch.nn.Linear) -> None:
        def apply(x: Any, scale: float = 1.0) -> Any:
            return x

        assert list(signature_of(unwrap(apply)).parameters) == ["x", "scale"]  # type: ignore[union-attr]
        assert list(signature_of(torch.jit.trace(linear, X)).parameters) == ["input"]  # type: ignore[union-attr]
        assert signature_of(unwrap(torch.sin)) is None, "a builtin does not say"


class TestPrograms:
    def test_an_exported_program_and_its_file(self, linear: torch.nn.Linear, tmp_path: Path) -> None:
        program = torch.export.export(linear, (X,))
        torch.export.save(program, tmp_path / "net.pt2")
        for model in (unwrap(program), unwrap(tmp_path / "net.pt2"), unwrap(str(tmp_path / "net.pt2"))):
            assert torch.allclose(model(X), linear(X))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (torch.nn.Linear, "the class Linear, not a model"),
        ({"weight": X}, "a dict of weights"),
        (3, "cannot be called"),
        ("net.pt", r"only \.pt2 files"),
        ("missing.pt2", "there is no file"),
    ],
)
def test_what_is_no_model_is_refused(model: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        unwrap(model)


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(b"not a zip")
    with pytest.raises(UsageError, match="it is not an archive"):
        unwrap(tmp_path / "net.pt2")
