"""`torch.onnx.export(` becomes `trueport.export(`: every argument is honoured, or refused by its name."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import trueport

X = torch.arange(12.0).reshape(3, 4) / 7


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()


def notes(program: trueport.Program) -> list[str]:
    return [found.code for found in program.report.diagnostics]


DEFAULTS = {
    "verbose": None, "dynamo": True, "report": False, "optimize": True, "profile": False,
    "dump_exported_program": False, "artifacts_dir": ".", "export_params": True, "keep_initializers_as_inputs": False,
    "training": torch.onnx.TrainingMode.EVAL, "operator_export_type": torch.onnx.OperatorExportTypes.ONNX,
    "do_constant_folding": True, "custom_opsets": None, "export_modules_as_functions": False,
    "autograd_inlining": True, "fallback": False, "enable_onnx_checker": True,
}  # fmt: skip


def test_arguments_at_their_defaults_ask_for_nothing() -> None:
    program = trueport.export(net(), (X,), verify=False, **DEFAULTS)  # type: ignore[arg-type]
    assert notes(program) == ["TP809"]


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ({"profile": True}, "report.seconds"),
        ({"dump_exported_program": True}, "program.captured"),
        ({"export_params": False}, "external_data=True"),
        ({"operator_export_type": torch.onnx.OperatorExportTypes.ONNX_ATEN}, "@trueport.op"),
        ({"autograd_inlining": False}, "custom_op"),
        ({"training": torch.onnx.TrainingMode.TRAINING}, "model.eval()"),
        ({"custom_opsets": {"": 21}}, "opset_version="),
        ({"custom_opsets": {"shop": "two"}}, "whole number"),
        ({"use_external_data_format": True}, "external_data=True"),
        ({"example_outputs": X}, "eager's outputs"),
        ({"overwrit": True}, "did you mean overwrite?"),
        ({"zzz": 1}, "leave it out"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else None,
)
def test_what_cannot_be_honoured_is_refused_by_its_name(given: dict[str, Any], way_out: str) -> None:
    with pytest.raises(trueport.UsageError) as refused:
        trueport.export(net(), (X,), **given)
    (found,) = refused.value.diagnostics
    assert next(iter(given)) in found.message
    assert way_out in found.fix


@pytest.mark.parametrize("given", [{"dynamo": False}, {"fallback": True}])
def test_a_choice_of_torchs_exporters_is_noted(given: dict[str, Any]) -> None:
    assert notes(trueport.export(net(), (X,), **given)) == ["TP008"]


def test_preserving_the_mode_is_what_is_done() -> None:
    assert notes(trueport.export(net(), (X,), training=torch.onnx.TrainingMode.PRESERVE)) == []


def test_weights_among_the_inputs_may_be_given(tmp_path: Path) -> None:
    model = net()
    file = tmp_path / "net.onnx"
    program = trueport.export(model, (X,), file, keep_initializers_as_inputs=True, dynamic_shapes=({0: "n"},))
    assert [tensor.name for tensor in program.report.inputs] == ["input"]
    assert program.report.verified
    session = onnxruntime.InferenceSession(file.read_bytes())
    assert [each.name for each in session.get_inputs()] == ["input"]
    zeros = {f"{name}": np.zeros(tuple(tensor.shape), "f") for name, tensor in model.named_parameters()}
    assert not session.run(None, {"input": X.numpy(), **zeros})[0].any()
    assert torch.allclose(program(X), model(X), atol=1e-6)


@pytest.mark.parametrize("refused", [False, True])
def test_the_report_goes_to_the_folder_for_artefacts(tmp_path: Path, refused: bool) -> None:
    model = net().train() if not refused else nn.Sequential(nn.Dropout())
    try:
        trueport.export(model, (X,), tmp_path / "net.onnx", report=True, artifacts_dir=tmp_path)
    except trueport.ExportError:
        assert refused
    assert ("TP003" in (tmp_path / "net.onnx.report.html").read_text()) is refused
    assert (tmp_path / "net.onnx").exists() is not refused


def test_verbose_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    trueport.export(net(), (X,), verbose=True)
    assert capsys.readouterr().out.startswith("faithful Sequential")


def test_a_domain_that_the_model_does_not_use_is_noted() -> None:
    program = trueport.export(nn.ReLU(), (X,), custom_opsets={"shop": 3})
    assert [found.message for found in program.report.notes] == [
        "custom_opsets names the domain 'shop', and no node of the model is of it"
    ]


class TestWhereTo:
    def test_an_open_file(self) -> None:
        buffer = io.BytesIO()
        program = trueport.export(net(), (X,), buffer)
        (got,) = onnxruntime.InferenceSession(buffer.getvalue()).run(None, {"input": X.numpy()})
        assert np.allclose(got, net()(X).detach(), atol=1e-6)
        assert program.report.path is None
        assert program.model_proto == onnx.load_from_string(buffer.getvalue())

    def test_saved_again(self, tmp_path: Path) -> None:
        program = trueport.export(net(), (X,), verify=False)
        with (tmp_path / "net.onnx").open("wb") as file:
            assert program.save(file) == ()
        assert onnx.load(tmp_path / "net.onnx") == program.model_proto

    @pytest.mark.parametrize(
        ("f", "options"),
        [
            (io.StringIO(), {}),
            (5, {}),
            (io.BytesIO(), {"external_data": True}),
            (io.BytesIO(), {"proof": True}),
            (None, {"proof": True}),
        ],
    )
    def test_what_cannot_be_written_to(self, f: Any, options: dict[str, Any]) -> None:
        with pytest.raises(trueport.UsageError) as refused:
            trueport.export(net(), (X,), f, **options)
        assert refused.value.diagnostics[0].fix

    def test_a_closed_file_and_one_for_text(self, tmp_path: Path) -> None:
        with (tmp_path / "text").open("w") as file, pytest.raises(trueport.UsageError, match="for text"):
            trueport.export(net(), (X,), file)  # type: ignore[arg-type]
        with pytest.raises(trueport.UsageError, match="closed"):
            trueport.export(net(), (X,), _closed(tmp_path))

    def test_nothing_is_written_into_an_open_file_where_the_model_is_refused(self) -> None:
        buffer = io.BytesIO()
        with pytest.raises(trueport.ExportError):
            trueport.export(nn.Dropout(), (X,), buffer)
        assert not buffer.getvalue()


def _closed(folder: Path) -> io.BufferedWriter:
    file = (folder / "text").open("wb")
    file.close()
    return file


@pytest.fixture
def process_group() -> Iterator[None]:
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class TestWhatIsAModel:
    def test_wrappers_are_taken_off_and_told(self) -> None:
        program = trueport.export(torch.compile(nn.DataParallel(net())), X)
        (note,) = program.report.notes
        assert note.code == "TP009"
        assert "torch.compile, DataParallel" in note.message
        assert program.report.model == "Sequential"

    def test_an_exported_program(self) -> None:
        (note,) = trueport.export(torch.export.export(net(), (X,)), (X,)).report.notes
        assert note.code == "TP009"

    def test_a_scripted_module_is_taken_as_it_is(self) -> None:
        assert notes(trueport.export(torch.jit.script(net()), (X,))) == []

    def test_on_another_device(self) -> None:
        with pytest.raises(trueport.ExportError) as refused:
            trueport.export(nn.Linear(4, 2, device="meta"), (X,))
        assert "to_empty" in refused.value.diagnostics[0].fix

    @pytest.mark.skipif(os.name != "posix", reason="gloo")
    def test_distributed_and_sharded_modules(self, process_group: None) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        (note,) = trueport.export(nn.parallel.DistributedDataParallel(net()), (X,)).report.notes
        assert "DistributedDataParallel" in note.message
        sharded = net()
        fully_shard(sharded, mesh=init_device_mesh("cpu", (1,)))
        with pytest.raises(trueport.UsageError, match="sharded") as refused:
            trueport.export(sharded, (X,))
        assert "full_state_dict" in refused.value.diagnostics[0].fix


class Scales(nn.Module):
    def forward(self, x: torch.Tensor, scale: Any = None, *, bias: Any = None) -> torch.Tensor:
        x = x * (1.0 if scale is None else scale)
        return x if bias is None else x + bias


class TakesADict(nn.Module):
    def forward(self, x: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return x + batch["a"]


class TestADictAtTheEndOfArgs:
    def test_is_keyword_arguments_to_torch_and_here(self) -> None:
        program = trueport.export(Scales(), (X, {"scale": X, "bias": X}))
        assert program.input_names == ("x", "scale", "bias")
        assert notes(program) == ["TP009"]

    def test_is_an_argument_where_its_keys_are_no_parameters(self) -> None:
        assert trueport.export(TakesADict(), (X, {"a": X})).input_names == ("x", "batch_a")

    def test_an_empty_one_says_that_there_are_none(self) -> None:
        assert trueport.export(TakesADict(), (X, {"a": X}, {})).input_names == ("x", "batch_a")
