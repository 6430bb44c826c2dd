"""The whole way: a model goes in, a checked program comes out that is called, saved and reported like the model."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import trueport
from tests.capture.helpers import assert_exported, assert_same, line_of, refusal
from trueport.examine import run
from trueport.load.structures import StructureMismatch
from trueport.report.text import report_text


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


# --- whole models


def test_a_convolutional_network_with_a_free_picture():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
            self.body = nn.Conv2d(8, 8, 3, padding=1, groups=2)
            self.head = nn.Linear(8, 5)

        def forward(self, image):
            y = self.stem(image)
            y = F.max_pool2d(y + self.body(y), 2)
            return self.head(y.mean((2, 3)))

    free = ({0: "n", 2: Dim("height", min=8), 3: Dim("width", min=8)},)
    program = assert_exported(Net().eval(), (x(2, 3, 16, 16),), [(x(1, 3, 9, 21),)], dynamic_shapes=free)
    assert [str(size) for size in program.model.graph.inputs[0].shape] == ["n", "3", "height", "width"]


class Decoder(nn.Module):
    """One layer with its keys and values handed from call to call."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 20)

    def forward(self, ids, past):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, -1)
        k, v = torch.cat([past["k"], k], 1), torch.cat([past["v"], v], 1)
        seen = k.shape[1] - q.shape[1]
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(seen)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return {"logits": self.out(y), "past": {"k": k, "v": v}}


def test_a_decoder_generates_what_eager_generates():
    model = Decoder().eval()
    free = {"ids": {0: "batch", 1: "new"}, "past": {"k": {0: "batch", 1: "seen"}, "v": {0: "batch", 1: "seen"}}}
    example = (torch.randint(20, (2, 3)), {"k": x(2, 4, 8), "v": x(2, 4, 8)})
    program = assert_exported(model, example, dynamic_shapes=free)
    assert program.input_names == ("ids", "past_k", "past_v")
    assert program.output_names == ("logits", "past_k_out", "past_v_out")
    ids, past = torch.tensor([[7, 3]]), {"k": x(1, 0, 8), "v": x(1, 0, 8)}
    ours, theirs = past, past
    for _ in range(4):
        got = program(ids, ours)
        with torch.no_grad():
            expected = model(ids, theirs)
        assert_same(got, expected)
        ids, ours, theirs = expected["logits"][:, -1:].argmax(-1), got["past"], expected["past"]


def test_a_program_is_saved_and_run_by_name_elsewhere(tmp_path):
    model = Decoder().eval()
    args = (torch.randint(20, (2, 3)), {"k": x(2, 4, 8), "v": x(2, 4, 8)})
    path = tmp_path / "decoder.onnx"
    program = trueport.export(model, args, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], program.feeds(args, {}))
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(logits), model(*args)["logits"])
    kept = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert {"trueport.arguments", "trueport.results", "trueport.constants"} <= kept.keys()


# --- state


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, y):
        self.seen += y.sum(0)
        return y * 2


def test_the_next_state_is_compared_with_eager():
    assert trueport.export(Counter(), (x(2, 3),), state="inputs-outputs").report.verified


def test_a_wrong_next_state_would_be_found(monkeypatch):
    """The comparison above can fail: were eager's state another one, the export would be refused."""
    monkeypatch.setattr(run, "_at", lambda model, name, otherwise: otherwise + 1)
    found = refusal(Counter(), (x(2, 3),), state="inputs-outputs").diagnostics
    assert [each.code for each in found if each.is_error] == ["TP805"]
    assert "seen_out" in str(found[0])


def test_lifted_state_is_an_input_that_starts_from_the_buffer():
    model = Counter()
    model.seen += 5
    program = trueport.export(model, (x(2, 3),), state="inputs-outputs")
    assert program.feeds((x(2, 3),), {})["seen"].tolist() == [5.0, 5.0, 5.0]


def test_an_unknown_choice_of_state_is_a_usage_error():
    with pytest.raises(trueport.UsageError, match="keep") as refused:
        trueport.export(Counter(), (x(2, 3),), state="keep")
    assert "inputs-outputs" in refused.value.diagnostics[0].fix


# --- asking for it as torch.onnx.export is asked


def test_the_call_of_torch_onnx_export_is_understood(tmp_path):
    path = tmp_path / "net.onnx"
    program = trueport.export(
        nn.Linear(3, 2).eval(),
        (x(2, 3),),
        str(path),
        input_names=["features"],
        output_names=["scores"],
        dynamic_axes={"features": {0: "batch"}, "scores": {0: "batch"}},
        opset_version=18,
        do_constant_folding=True,
        dynamo=True,
        verbose=False,
    )
    assert (program.input_names, program.output_names) == (("features",), ("scores",))
    assert onnx.load(path).opset_import[0].version == 18
    assert str(program.model.graph.outputs[0].shape[0]) == "batch"


def test_an_unknown_option_is_a_usage_error():
    with pytest.raises(trueport.UsageError, match="dinamic_shapes"):
        trueport.export(nn.Linear(3, 2).eval(), (x(2, 3),), dinamic_shapes=None)


def test_a_single_tensor_needs_no_tuple():
    assert trueport.export(nn.Linear(3, 2).eval(), x(2, 3)).report.verified


def test_a_program_takes_and_gives_bfloat16():
    """numpy has no such dtype, so these tensors go to the runtime and back as bits."""
    model = nn.Linear(3, 2).bfloat16().eval()
    program = trueport.export(model, (x(2, 3).bfloat16(),), dynamic_shapes=({0: "rows"},))
    y = x(5, 3).bfloat16()
    with torch.no_grad():
        assert program(y).dtype is torch.bfloat16
        torch.testing.assert_close(program(y), model(y), rtol=2e-2, atol=2e-2)


def test_a_program_takes_tensors_of_any_layout():
    program = trueport.export(lambda y: y * 2, (x(2, 3),), dynamic_shapes=({0: "rows", 1: "columns"},))
    for y in (x(3, 5).t(), x(4, 8)[:, ::2], x(6, 2).expand(6, 2), x(0, 3)):
        assert_same(program(y), y * 2)


# --- what is told


def test_a_report_says_what_was_checked():
    def model(y, scale):
        return y * scale

    report = trueport.export(model, (x(4, 3), 2.0), dynamic_shapes={"y": {0: "rows"}, "scale": None}).report
    assert report.verified
    assert len(report.checks) >= 5
    assert len({check.sizes["rows"] for check in report.checks}) >= 3
    assert [given.name for given in report.inputs] == ["y", "scale"]
    assert [size.name for size in report.free_sizes] == ["rows"]


def test_a_check_never_raises_for_the_models_faults():
    report = trueport.check(lambda y: y.reshape(2, 3), (x(2, 3),), dynamic_shapes=({0: "rows"},))
    assert not report.verified
    assert [found.code for found in report.diagnostics if found.is_error] == ["TP301"]


def test_not_checking_is_said():
    report = trueport.export(nn.Linear(3, 2).eval(), (x(2, 3),), verify=False).report
    assert not report.verified
    assert "TP809" in [found.code for found in report.diagnostics]


def test_what_eager_refuses_is_never_exported():
    found = refusal(nn.Linear(4, 2).eval(), (x(2, 3),)).diagnostics
    assert [each.code for each in found if each.is_error] == ["TP002"]


def test_a_library_line_is_named_where_it_is_at_fault():
    found = [each for each in refusal(lambda y: y.view(2, 3) + 1, (x(2, 3),), dynamic_shapes=({0: "n"},)).diagnostics]
    assert "lambda y: y.view(2, 3)" in line_of(found[0])


def test_calling_a_program_with_another_structure_says_what_is_missing():
    program = trueport.export(lambda batch: batch["a"] * 2, ({"a": x(2)},))
    with pytest.raises(StructureMismatch, match="batch"):
        program({"b": x(2)})


def test_results_that_are_not_tensors_are_told(tmp_path):
    """A string in the results has no place in ONNX; whoever reads the file alone must learn that it was there."""

    class Named(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, object]:
            return {"y": x.relu(), "kind": "relu", "nothing": None}

    program = trueport.export(Named(), (torch.randn(2, 3),), tmp_path / "named.onnx")
    assert program.report.left_out == {"kind": "'relu'", "nothing": "None"}
    assert "kind = 'relu', not a tensor" in report_text(program.report)
    assert program(torch.ones(2, 3))["kind"] == "relu"


def test_a_program_is_shown_in_one_line():
    """A notebook prints what `export` returns; the graph and every check would be pages."""
    program = trueport.export(nn.Linear(3, 2).eval(), (torch.ones(4, 3),))
    shown = repr(program)
    assert shown.startswith("<Program Linear(input: float32[4, 3]) -> output: float32[4, 2];")
    assert "verified on" in shown
