"""What is asked for is what is written: every opset from 13 on, by forms of our own, or the operator that stops it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from benchmarks import case_files
from tests.lower.through_onnx import check, graph_of
from trueport.lower import forms
from trueport.lower.builder import Builder
from trueport.lower.lower import lower
from trueport.lower.opsets import LOWEST, NEWER, highest, opset_to_write
from trueport.lower.passes.kernels import newest_opset_with
from trueport.lower.runtimes import MEASURED
from trueport.lower.signature import NeedsOpset

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
X = torch.arange(24.0).reshape(2, 3, 4) / 7 - 1
ROWS = {0: {0: "b", 1: "s"}}


def operators(model: ir.Model) -> set[str]:
    return {node.op_type for node in model.graph.all_nodes()}


def others(x: torch.Tensor) -> list[tuple[torch.Tensor]]:
    """The same, and nothing, and one, at other sizes of the first two axes."""
    sizes = [(0, 3), (2, 0), (1, 1), (5, 2)]
    return [(x.new_tensor(torch.arange(b * s * 4.0).reshape(b, s, 4).tolist()).reshape(b, s, 4),) for b, s in sizes]


FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "ReduceMean": (lambda x: x.mean(1), 18),
    "ReduceMax": (lambda x: x.amax(-1, keepdim=True), 18),
    "ReduceProd": (lambda x: x.prod(2), 18),
    "ReduceL2": (lambda x: x.norm(dim=-1), 18),
    "ReduceLogSumExp": (lambda x: x.logsumexp(-1), 18),
    "Split": (lambda x: F.glu(x, -1), 18),
    "Shape": (lambda x: x.new_zeros(x.shape[1], x.shape[0]), 15),
    "Reshape": (lambda x: x.reshape(-1).reshape(x.shape[1], x.shape[0], 4), 14),
    "Trilu": (lambda x: torch.triu(x, 1) + torch.tril(x, -2), 14),
    "HardSwish": (F.hardswish, 14),
    "LayerNormalization": (lambda x: F.layer_norm(x, (4,), x.new_ones(4), x.new_zeros(4)), 17),
}
"""By operator: a call that is written with it, and the opset since which it has its present form."""


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("name", FORMS)
def test_an_older_form_computes_the_same(name: str, dtype: torch.dtype) -> None:
    """On both sides of the opset that changed it, with free sizes, on nothing too."""
    function, since = FORMS[name]
    x = X.to(dtype)
    given = [each for each in others(x) if not (name in ("ReduceMean", "ReduceMax") and 0 in each[0].shape)]
    loose = {"rtol": 0.1, "atol": 0.1} if dtype in (torch.float16, torch.bfloat16) else {"rtol": 1e-5, "atol": 1e-6}
    for opset in {LOWEST, since - 1, since}:
        check(function, (x,), *given, free=ROWS, opset=opset, **loose)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("opset", [13, 14, 17])
def test_integers(dtype: torch.dtype, opset: int) -> None:
    """Older opsets have arithmetic in fewer dtypes; what wraps around in eager does so here."""
    x = torch.tensor([[[0, 1, 100, 127]] * 3] * 2).to(dtype)

    def forward(x: torch.Tensor) -> Any:
        whole = (x + x, x * x, x - 3, x.relu()) if dtype is not torch.bool else (x & x, ~x, x ^ x)
        return *whole, torch.triu(x), x.amax(1), x.cumsum(1), torch.where(x == 1, x, x.flip(2)), x.reshape(-1, 2)

    check(forward, (x,), (x[:1],), free={0: {0: "b"}}, opset=opset)


def test_a_reshape_without_free_sizes_costs_nothing() -> None:
    model = check(lambda x: x.reshape(3, 8), (X,), opset=13)
    assert operators(model) <= {"Reshape", "Constant"}


def test_what_the_runtime_fuses_is_fused_in_older_opsets_too(tmp_path) -> None:
    """LayerNormalization before opset 17 is written so that ONNX Runtime makes one operator of it again."""
    import onnxruntime

    model = nn.LayerNorm(4).eval()
    trueport.export(model, (X,), tmp_path / "m.onnx", opset_version=15)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    onnxruntime.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    assert [node.op_type for node in onnx.load(tmp_path / "fused.onnx").graph.node] == ["LayerNormalization"]


# What an opset cannot say

INDEX = torch.tensor([[0, 1, 0, 1]])
IMAGE = torch.arange(32.0).reshape(1, 2, 4, 4)
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "GridSample": (lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=True), (IMAGE,)),
    "ScatterElements that adds": (lambda x: x.scatter_add(0, INDEX, x), (torch.ones(2, 4),)),
    "DFT": (lambda x: torch.fft.rfft(x).abs(), (torch.arange(8.0).reshape(2, 4),)),
    "BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot": (lambda x: x & 3, (torch.arange(4),)),
    "Col2Im": (lambda x: F.fold(x, (3, 3), (2, 2)), (torch.ones(1, 4, 4),)),
    "ScatterElements that takes the max": (
        lambda x: x.scatter_reduce(0, INDEX, x, "amax"),
        (torch.ones(2, 4),),
    ),
    "Cast to float8": (lambda x: x.to(torch.float8_e4m3fn).float(), (torch.ones(4),)),
    "GridSample of volumes": (
        lambda x: F.grid_sample(x, x[:, :3].permute(0, 2, 3, 4, 1), align_corners=True),
        (torch.ones(1, 3, 2, 2, 2),),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_opset_cannot_say_is_refused_and_the_lowest_that_can_is_named(name: str) -> None:
    (newer,) = (each for each in NEWER if each.operator == name)
    function, inputs = REFUSED[name]
    graph = graph_of(function, inputs)
    lowered = lower(graph, newer.since - 1)
    assert lowered.model is None
    (found,) = [found for found in lowered.diagnostics if found.is_error][:1]
    assert found.code == "TP601"
    assert found.where is not None
    assert found.where.file == __file__
    assert found.facts["opset"] == str(newer.since)
    assert not any(found.code == "TP601" for found in lower(graph, newer.since).diagnostics)


def test_every_form_and_every_refusal_is_in_the_table_of_costs() -> None:
    refused = {each.operator for each in NEWER if not each.instead}
    of_torchvision = {"RoiAlign that is aligned", "DeformConv"}
    assert refused == set(REFUSED) | of_torchvision
    told = " ".join(each.operator for each in NEWER)
    silent = {"Split", "Relu", "BatchNormalization", "ScatterND"}  # written otherwise, at no cost
    assert {name for name in forms._FORMS if name not in told and not name.startswith("Reduce")} == silent


def test_what_only_torchvision_asks_for() -> None:
    with pytest.raises(NeedsOpset, match="DeformConv since opset 19"):
        Builder(18).DeformConv(None, None, None)
    op = Builder(15)
    image, boxes, batch = (op.const(content, ir.DataType.FLOAT) for content in ([0.0], [0.0], [0.0]))
    op.RoiAlign(image, boxes, batch, coordinate_transformation_mode="output_half_pixel")
    with pytest.raises(NeedsOpset, match="since opset 16"):
        op.RoiAlign(image, boxes, batch, coordinate_transformation_mode="half_pixel")


def test_the_lowest_opset_is_that_of_the_whole_model() -> None:
    """One call needs 16, another 18: both findings name what the model needs, which was tried."""

    def forward(x: torch.Tensor) -> Any:
        return x.scatter_add(0, INDEX, x), x.long() & 3

    found = [each for each in lower(graph_of(forward, (torch.ones(2, 4),)), 13).diagnostics if each.code == "TP601"]
    assert [each.facts["opset"] for each in found] == ["18", "18"]
    assert ["opset 16" in found[0].message, "opset 18" in found[1].message] == [True, True]


def test_a_loop_that_carries_bfloat16_needs_opset_16() -> None:
    class Halve(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            while x.sum() > 1:
                x = x / 2
            return x

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(Halve(), (torch.ones(4, dtype=torch.bfloat16),), opset_version=13)
    assert {found.facts.get("opset") for found in refused.value.diagnostics if found.is_error} == {"16"}
    trueport.export(Halve(), (torch.ones(4, dtype=torch.bfloat16),), opset_version=16)


# Which opset is written


def test_the_target_says_the_opset() -> None:
    assert opset_to_write(None) == 20
    assert opset_to_write(None, "onnxruntime==1.16") == 19
    assert opset_to_write(None, "onnxruntime==1.17.3") == 20
    assert opset_to_write(18, "onnxruntime==1.17") == 18
    assert opset_to_write(None, "opset==14") == 14
    assert opset_to_write(None, "onnxruntime") <= highest()


@pytest.mark.parametrize(
    ("opset", "target", "told"),
    [
        (21, "onnxruntime==1.17", "does not load opset 21"),
        (None, "onnxruntime==1.2", "older than all"),
        (12, None, "is not written"),
        (20, "opset==19", "as the target"),
        (highest() + 1, None, "cannot be checked"),
    ],
)
def test_what_does_not_fit_together_is_refused(opset: int | None, target: str | None, told: str) -> None:
    with pytest.raises(trueport.ExportError) as refused:
        opset_to_write(opset, target)
    assert [found.code for found in refused.value.diagnostics] == ["TP601"]
    assert told in refused.value.diagnostics[0].message


def test_an_opset_that_no_runtime_here_loads_is_written_unchecked(tmp_path) -> None:
    newest = onnx.defs.onnx_opset_version()
    trueport.export(nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path / "m.onnx", opset_version=newest, verify=False)
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == newest


def test_no_release_is_said_to_compute_what_it_does_not_load() -> None:
    assert all(LOWEST < loads.complete <= loads.opset for loads in MEASURED.values())


# The shared cases: all of them by `python -m benchmarks.opsets`, a few here

SAMPLE = ("if_sum", "loop_while_two_scalars", "dyn_resize_shorter_side", "shp_patch_merging_odd")


@pytest.mark.skipif(not case_files.available(), reason="needs ../shared/cases")
@pytest.mark.parametrize("name", SAMPLE)
def test_shared_cases_in_every_opset(name: str, tmp_path) -> None:
    from benchmarks.judge import judge_file, references_of
    from trueport.lower.write import write

    suite = "seeds" if name in case_files.names("seeds") else "reports"
    subject = case_files.load_case(suite, name).subject
    references = references_of(subject)
    args, kwargs = subject.inputs
    program = trueport.export(subject.model, args, kwargs=kwargs, dynamic_shapes=subject.dynamic_shapes, verify=False)
    for opset in (13, 15, 17, 18, 21, 23, highest()):
        lowered = lower(program.captured, opset)
        assert lowered.model is not None, lowered.diagnostics
        write(lowered.model, tmp_path / f"{opset}.onnx")
        verdict, why = judge_file(tmp_path / f"{opset}.onnx", subject, references)
        assert verdict.value == "faithful", why


def test_a_kernel_that_ends_before_the_opset_is_told() -> None:
    """The runtime loads newer opsets than it computes: where it stops, the finding says which opset it has."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn(3)

    opset = next((o for o in range(21, highest() + 1) if newest_opset_with("RandomNormalLike", o)), None)
    if opset is None:
        pytest.skip("this runtime has random numbers in all opsets that it loads")
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(forward, (torch.ones(3),), opset_version=opset, random="onnx")
    (found,) = refused.value.diagnostics
    assert found.code == "TP801"
    assert f"this runtime has it as of opset {opset - 1}" in " ".join(found.seen)
    trueport.export(forward, (torch.ones(3),), opset_version=opset - 1, random="onnx")
