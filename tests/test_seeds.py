"""The models of the four documents that this project began with (docs/seeds.md), as they stand there.

Each is exported and compared with eager on inputs that tell a faithful graph from a specialised one, or refused with
the code and the line that its author was looking for.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from trueport.diagnostics.registry import all_rules

DOCUMENT = Path(__file__).parents[1] / "docs" / "seeds.md"


def exported(
    model: nn.Module, args: tuple[Any, ...], others: list[tuple[Any, ...]], **options: Any
) -> trueport.Program:
    """The program, after it gave what eager gives on the example and on the other inputs."""
    program = trueport.export(model.eval(), args, **options)
    assert program.report.verified
    for given in (args, *others):
        with torch.no_grad():
            torch.testing.assert_close(program(*given), model(*given), rtol=1e-3, atol=1e-4)
    return program


def refused(model: nn.Module, args: tuple[Any, ...], **options: Any) -> tuple[str, str]:
    """The code of the one error, and the text of the line that it points at."""
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(model.eval(), args, **options)
    (found,) = caught.value.diagnostics
    assert found.where is not None
    assert found.fix
    return found.code, linecache.getline(found.where.file, found.where.line).strip()


# --- "Why does folding cause an ONNX export error from PyTorch?"


class DynamicPaddingLoop(nn.Module):
    def forward(self, x, padding_size):
        out = x
        for i in range(padding_size):
            out = torch.cat((out, torch.zeros_like(out[:, :1, :])), dim=1)
        return out


class NonZeroDependent(nn.Module):
    def forward(self, x):
        return torch.nonzero(x)


class MaskedGather(nn.Module):
    def forward(self, x, mask):
        return x[mask]


@pytest.mark.parametrize("kind", [int, torch.tensor], ids=["number", "tensor"])
def test_a_loop_whose_count_is_an_argument(kind: Callable[[int], Any]) -> None:
    x = torch.randn(1, 3, 10)
    exported(DynamicPaddingLoop(), (x, kind(3)), [(x, kind(5)), (x, kind(0))])


def test_a_shape_that_depends_on_values() -> None:
    x = torch.tensor([[0, 1, 0], [0, 0, 1]], dtype=torch.int32)
    exported(NonZeroDependent(), (x,), [(x + 1,), (x * 0,)])


def test_a_boolean_mask() -> None:
    x, mask = torch.randn(4, 5), torch.rand(4, 5) > 0.5
    exported(MaskedGather(), (x, mask), [(x, ~mask), (x, mask & False)])


# --- "Why can't I export my PyTorch model to ONNX?"


class CustomNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x / torch.norm(x, dim=self.dim, keepdim=True)


def test_a_custom_layer_without_a_translation_of_its_own() -> None:
    model = nn.Sequential(nn.Linear(10, 5), CustomNorm(dim=1), nn.ReLU())
    exported(model, (torch.randn(1, 10),), [(torch.randn(1, 10),)])


def test_free_height_and_width() -> None:
    model = nn.Sequential(nn.Conv2d(3, 16, 3))
    axes = {"input": {2: "height", 3: "width"}, "output": {2: "height", 3: "width"}}
    names = {"input_names": ["input"], "output_names": ["output"]}
    exported(model, (torch.randn(1, 3, 24, 24),), [(torch.randn(1, 3, 9, 14),)], dynamic_axes=axes, **names)


def test_half_input_into_float_weights_names_the_cast() -> None:
    model = nn.Sequential(nn.Linear(10, 5), nn.ReLU())
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(model.eval(), (torch.randn(1, 10, dtype=torch.float16),))
    (found,) = caught.value.diagnostics
    assert found.code == "TP002"
    assert "half" in found.fix or "float" in found.fix


def test_a_model_in_half_precision() -> None:
    model = nn.Sequential(nn.Linear(10, 5), nn.ReLU()).half()
    exported(model, (torch.randn(1, 10).half(),), [])


@pytest.mark.parametrize("opset", [7, 12, 99])
def test_an_opset_that_cannot_be_written_is_refused_and_not_raised_silently(opset: int) -> None:
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(nn.Linear(3, 2).eval(), (torch.ones(1, 3),), opset_version=opset)
    assert [found.code for found in caught.value.diagnostics] == ["TP601"]


# --- "Why are PyTorch ATen operators causing ONNX export failures and ONNXRuntime hangs?"


class Log1p(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, kernel_size=3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(torch.log1p(self.conv(x)))


class DynamicShapeModel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc = nn.Linear(features, 128)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(x, (1, 1))
        x = x.view(x.size(0), -1)
        return self.fc(x)


class DataTypeModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 5)
        self.fc2 = nn.Linear(5, 2)

    def forward(self, x):
        x = self.fc1(x.float())
        x = self.fc2(x.int())
        return x


@torch.library.custom_op("seeds::exotic", mutates_args=())
def exotic(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


@exotic.register_fake
def _exotic(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Exotic(nn.Module):
    def forward(self, x):
        return torch.ops.seeds.exotic(x)


def test_an_operator_that_older_exporters_lacked() -> None:
    class Positive(Log1p):
        def forward(self, x):
            return self.relu(torch.log1p(self.conv(x).abs()))

    exported(Positive(), (torch.randn(1, 3, 12, 12),), [(torch.randn(1, 3, 12, 12),)])


def test_nan_where_eager_has_nan() -> None:
    """`log1p` as the document has it, of a convolution that goes below -1."""
    program = trueport.export(Log1p().eval(), (torch.randn(1, 3, 12, 12) * 9,))
    assert program.report.verified


def test_an_operator_that_nobody_translates_is_named_with_its_line() -> None:
    assert refused(Exotic(), (torch.rand(3),)) == ("TP401", "return torch.ops.seeds.exotic(x)")


def test_sizes_that_stay_free_through_pooling_and_view() -> None:
    free = {0: "batch", 2: "height", 3: "width"}
    exported(DynamicShapeModel(3), (torch.randn(1, 3, 16, 16),), [(torch.randn(4, 3, 9, 12),)], dynamic_shapes=(free,))


def test_a_model_that_eager_refuses_is_not_blamed_on_the_export() -> None:
    assert refused(DynamicShapeModel(256), (torch.randn(1, 3, 16, 16),)) == ("TP002", "return self.fc(x)")


def test_integers_into_a_layer_that_multiplies() -> None:
    assert refused(DataTypeModel(), (torch.randn(1, 10).int(),)) == ("TP002", "x = self.fc2(x.int())")


@torch.library.custom_op("seeds::clamp_to_one", mutates_args=())
def clamp_to_one(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(max=1.0)


@clamp_to_one.register_fake
def _(x):
    return torch.empty_like(x)


class WithCustomOperator(nn.Module):
    def forward(self, x):
        return clamp_to_one(x * 3)


def test_a_custom_operator_needs_a_translation_and_takes_one() -> None:
    assert refused(WithCustomOperator(), (torch.randn(5),)) == ("TP401", "return clamp_to_one(x * 3)")
    target = torch.ops.seeds.clamp_to_one.default
    right = {target: lambda op, x: op.Min(x, 1.0)}
    exported(WithCustomOperator(), (torch.randn(5),), [(torch.ones(5),)], custom_translation_table=right)


def test_a_translation_that_is_wrong_is_found_out() -> None:
    """An incorrect mapping of an operator does not reach the runtime of a user."""
    wrong = {torch.ops.seeds.clamp_to_one.default: lambda op, x: op.Min(x, 0.5)}
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(WithCustomOperator().eval(), (torch.ones(5),), custom_translation_table=wrong)
    assert {found.code for found in caught.value.diagnostics} == {"TP805"}


# --- "torch.onnx.export and a model with a test"


class ForwardWithControlFlowTest(nn.Module):
    def forward(self, x):
        if x.sum():
            return x * 2
        return -x


class PatchedByHand(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))


@pytest.mark.parametrize("test", [ForwardWithControlFlowTest, PatchedByHand], ids=["as written", "with torch.cond"])
def test_a_model_with_a_test(test: type[nn.Module]) -> None:
    model = nn.Sequential(nn.Linear(3, 2, bias=False), test())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]]))
    # Where the last two inputs cancel, so do the outputs of the layer, and `x.sum()` is exactly zero.
    others = [(torch.tensor([1.0, 2.0, -2.0]),), (torch.tensor([-1.0, -2.0, -3.0]),), (torch.zeros(3),)]
    program = exported(model, (torch.tensor([1.0, 2.0, 3.0]),), others)
    assert "If" in {node.op_type for node in program.model.graph.all_nodes()}


# --- docs/seeds.md itself


def test_the_document_speaks_of_codes_and_tests_that_exist() -> None:
    text = DOCUMENT.read_text()
    assert set(re.findall(r"\bTP\d{3}\b", text)) <= set(all_rules())
    root = DOCUMENT.parents[1]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert named
    for file, name in named:
        content = (root / file).read_text()
        assert not name or re.search(rf"(def|class) {name}\b", content), f"{file} has no {name}"


def test_every_test_of_this_file_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    tests = [name for name, value in globals().items() if name.startswith("test_") and inspect.isfunction(value)]
    missing = [name for name in tests if name not in text and "document" not in name]
    assert missing == []
