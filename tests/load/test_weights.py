"""A file of weights fills the model, or says exactly what does not fit."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trueport.errors import UsageError
from trueport.load.weights import load_weights


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


@pytest.fixture
def trained(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.full_like(tensor, 7) for name, tensor in model.state_dict().items()}


def test_from_safetensors_and_from_torch(
    model: torch.nn.Module, trained: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    save_file(trained, tmp_path / "w.safetensors")
    torch.save(trained, tmp_path / "w.pt")
    for name in ("w.safetensors", "w.pt"):
        torch.nn.init.zeros_(model[0].weight)  # type: ignore[index]
        load_weights(model, tmp_path / name)
        assert (model[0].weight == 7).all()  # type: ignore[index]


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_training_checkpoint(
    model: torch.nn.Module, trained: dict[str, torch.Tensor], tmp_path: Path, key: str
) -> None:
    wrapped = {f"module.{name}": tensor for name, tensor in trained.items()}
    torch.save({key: wrapped, "epoch": 3, "optimizer": {"lr": 0.1}}, tmp_path / "w.pth")
    load_weights(model, tmp_path / "w.pth")
    assert (model[0].weight == 7).all()  # type: ignore[index]


def test_a_model_on_meta_gets_its_numbers(trained: dict[str, torch.Tensor], tmp_path: Path) -> None:
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    torch.save(trained, tmp_path / "w.pt")
    load_weights(model, tmp_path / "w.pt")
    assert (model[0].weight == 7).all()


def test_tied_weights_may_be_saved_once(tmp_path: Path) -> None:
    model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(4, 3), "head": torch.nn.Linear(3, 4, bias=False)})
    model["head"].weight = model["embed"].weight
    torch.save({"embed.weight": torch.full((4, 3), 7.0)}, tmp_path / "w.pt")
    load_weights(model, tmp_path / "w.pt")
    assert (model["head"].weight == 7).all()


def test_what_does_not_fit_is_listed(model: torch.nn.Module, trained: dict[str, torch.Tensor], tmp_path: Path) -> None:
    del trained["0.bias"]
    trained["2.weight"] = torch.ones(1)
    trained["0.weight"] = torch.ones(2, 5)
    torch.save(trained, tmp_path / "w.pt")
    before = model[0].weight.clone()  # type: ignore[index]
    with pytest.raises(UsageError, match="1 missing, 1 unexpected, 1 of another shape") as caught:
        load_weights(model, tmp_path / "w.pt")
    assert caught.value.diagnostics[0].seen == (
        "missing in the file: 0.bias",
        "not in the model: 2.weight",
        "other shapes: 0.weight is [2, 5] in the file and [2, 3] in the model",
    )
    assert torch.equal(model[0].weight, before)  # type: ignore[index]


def test_a_pickle_is_refused_and_the_way_to_convert_it_shown(model: torch.nn.Module, tmp_path: Path) -> None:
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(UsageError, match=r"may run any code: .*Sequential") as caught:
        load_weights(model, tmp_path / "whole.pt")
    assert "weights_only=False).state_dict()" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_a_broken_or_missing_file(model: torch.nn.Module, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        load_weights(model, tmp_path / name)
    (tmp_path / name).write_bytes(b"garbage")
    with pytest.raises(UsageError):
        load_weights(model, tmp_path / name)


def test_what_is_no_state_dict(model: torch.nn.Module, tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "w.pt")
    with pytest.raises(UsageError, match="holds a list, not a state dict"):
        load_weights(model, tmp_path / "w.pt")
    np.save(tmp_path / "w.npy", np.ones(3))
    with pytest.raises(UsageError, match="is no file of weights"):
        load_weights(model, tmp_path / "w.npy")


def test_a_model_without_weights_has_an_empty_state_dict(tmp_path: Path) -> None:
    torch.save(torch.nn.ReLU().state_dict(), tmp_path / "w.pt")
    load_weights(torch.nn.ReLU(), tmp_path / "w.pt")
    with pytest.raises(UsageError, match="2 missing"):
        load_weights(torch.nn.Linear(2, 2), tmp_path / "w.pt")


def test_reading_never_runs_code(tmp_path: Path, model: torch.nn.Module) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return threading.excepthook, ((),)

    torch.save({"0.weight": Bomb()}, tmp_path / "w.pt")
    with pytest.raises(UsageError, match="may run any code"):
        load_weights(model, tmp_path / "w.pt")
