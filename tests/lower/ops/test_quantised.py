"""Quantised models: fake quantisation and what `torch.ao` converts become QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization as ao
from torch import nn
from torch.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx

import trueport
from tests.lower.ops.faithful import faithful, operators
from trueport.torch_internals import quantised_operators

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif("fbgemm" not in torch.backends.quantized.supported_engines, reason="torch has no such kernels"),
]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.relu(self.norm(self.conv(x))).mean((2, 3)))


class Stubbed(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.net, self.leave = ao.QuantStub(), Net(), ao.DeQuantStub()

    def forward(self, x):
        return self.leave(self.net(self.enter(x)))


def pictures(count=2):
    return torch.randn(count, 3, 6, 6)


def test_fake_quantisation_with_8_bits_is_a_pair_of_operators():
    program = faithful(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), torch.randn(4, 3) * 9)
    assert [name for name in operators(program) if name != "Constant"] == ["QuantizeLinear", "DequantizeLinear"]


def test_fake_quantisation_per_channel():
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 3, -2], dtype=torch.int32)
    faithful(
        lambda x: torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -128, 127),
        torch.randn(4, 3) * 9,
        free=({0},),
    )


WIDTHS = {"reduced": (0, 127), "narrow": (-127, 127), "4 bits": (-8, 7), "16 bits": (-(2**15), 2**15 - 1)}


@pytest.mark.parametrize("limits", WIDTHS.values(), ids=WIDTHS)
def test_other_widths(limits):
    faithful(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 2, *limits), torch.randn(4, 3) * 9, free=({0},))


def test_learnt_scales():
    scale, zero = nn.Parameter(torch.tensor([0.1])), nn.Parameter(torch.tensor([2.0]))
    faithful(
        lambda x: torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, 0, 255, 1.0), torch.randn(4, 3) * 9
    )


def test_a_model_prepared_for_training_and_trained():
    model = Stubbed().train()
    model.qconfig = ao.get_default_qat_qconfig("fbgemm")
    ao.prepare_qat(model, inplace=True)
    model(pictures(8))
    model.eval()
    with pytest.raises(trueport.ExportError, match="observer") as refused:
        faithful(model, pictures(), free=({0},))
    assert refused.value.diagnostics[0].where.file == __file__
    assert refused.value.diagnostics[0].fix == "model.apply(torch.ao.quantization.disable_observer)"
    model.apply(ao.disable_observer)
    assert operators(faithful(model, pictures(), free=({0},))).count("QuantizeLinear") >= 4


def converted():
    model = Stubbed().eval()
    ao.fuse_modules(model.net, [["conv", "norm", "relu"]], inplace=True)
    model.qconfig = ao.get_default_qconfig("fbgemm")
    ao.prepare(model, inplace=True)
    model(pictures(8))
    return ao.convert(model)


def converted_by_fx(convert):
    model = prepare_fx(Net().eval(), ao.get_default_qconfig_mapping("fbgemm"), (pictures(),))
    model(pictures(8))
    return convert(model)


CONVERTED = {
    "eager mode": converted,
    "fx": lambda: converted_by_fx(convert_fx),
    "fx, as a reference": lambda: converted_by_fx(convert_to_reference_fx),
}


@pytest.mark.parametrize("make", CONVERTED.values(), ids=CONVERTED)
def test_a_converted_model(make):
    model = make()
    program = faithful(model, pictures(), free=({0},), unique=False)  # a sum may round to either of two steps
    assert {"QuantizeLinear", "DequantizeLinear"} <= set(operators(program))
    x = pictures(5)
    step = (program(x) - model(x)).abs()
    assert step.mean() < 0.05 * model(x).std()


def test_the_weights_of_a_converted_model_stay_whole_numbers():
    program = faithful(converted(), pictures(), unique=False)
    kinds = [value.const_value.dtype.name for value in program.model.graph.initializers.values()]
    assert kinds.count("INT8") == 2


def test_layers_that_quantise_what_they_are_given():
    layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    faithful(ao.quantize_dynamic(layers, {nn.Linear}), torch.randn(2, 3), free=({0},))


@pytest.mark.parametrize("largest", [1e-7, 1e-5, 1e-3, 5e-3, 1.0])
@pytest.mark.parametrize("sign", ["both", "above", "below"])
def test_small_inputs_have_the_grid_that_the_kernels_choose_for_them(largest, sign):
    """Of a smallest scale."""
    x = torch.linspace(-0.7, 1, 12).reshape(4, 3) * largest
    x = {"both": x, "above": x.abs(), "below": -x.abs()}[sign]
    faithful(ao.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear}), x)


def test_operators_of_pt2e():
    ops = quantised_operators()
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int64)

    def forward(x):
        a = ops.quantize_per_tensor(x, 0.05, 2, -128, 127, torch.int8)
        b = ops.quantize_per_channel(x, scales, zeros, 1, -127, 127, torch.int8)
        scale, zero = ops.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
        c = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        return (
            a,
            ops.dequantize_per_tensor(a, 0.05, 2, -128, 127, torch.int8),
            ops.dequantize_per_channel(b, scales, zeros, 1, -127, 127, torch.int8),
            ops.dequantize_per_tensor.tensor(c, scale, zero, 0, 255, torch.uint8),
        )

    faithful(forward, torch.randn(4, 3) * 5)


def test_what_would_leave_the_grid_is_refused_at_its_line():
    def forward(x):
        quantised = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
        return torch.tanh(quantised).dequantize()

    with pytest.raises(trueport.ExportError, match="not carried for quantised tensors") as refused:
        faithful(forward, torch.randn(3))
    assert refused.value.diagnostics[0].where.line == forward.__code__.co_firstlineno + 2


def test_an_error_in_every_element_is_no_matter_of_rounding():
    def shifted(op, x, scale, zero_point, low, high):
        moved = op.QuantizeLinear(op.Add(x, 0.7 * scale), op.const(scale), op.const(zero_point, torch.int8))
        return op.DequantizeLinear(moved, op.const(scale), op.const(zero_point, torch.int8))

    found = trueport.check(
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127),
        (torch.randn(40),),
        custom_translation_table={torch.ops.aten.fake_quantize_per_tensor_affine.default: shifted},
    )
    assert [finding.code for finding in found.errors] == ["TP805"]


def test_products_of_8_bit_numbers():
    a, b = torch.randint(-128, 127, (32, 32), dtype=torch.int8), torch.randint(-128, 127, (32, 32), dtype=torch.int8)
    assert "MatMulInteger" in operators(faithful(torch._int_mm, a, b))


def test_a_layer_that_has_no_translation_is_told_what_to_do():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(3, 4)

        def forward(self, x):
            return self.rnn(x)[0]

    found = trueport.check(ao.quantize_dynamic(Net(), {nn.LSTM}), (torch.randn(5, 2, 3),)).errors[0]
    assert (found.code, "before" in found.fix) == ("TP401", True)
