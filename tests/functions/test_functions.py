"""Modules as ONNX functions: written out again they are the model that there is without them."""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import trueport
from trueport.errors import UsageError
from trueport.functions.bodies import DOMAIN
from trueport.inspection.reading import inspect_file
from trueport.verify.runtime.origin import made_at, origin_of

X = torch.linspace(-2, 2, 24).reshape(3, 8)


def nodes_in(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from nodes_in(attribute.g.node)


def counted(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in nodes_in(model.graph.node) if node.op_type != "Constant")


def answers(model: onnx.ModelProto, *inputs: Tensor) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {to.name: x.numpy() for to, x in zip(session.get_inputs(), inputs, strict=True)})


def calls(model: onnx.ModelProto) -> Counter[str]:
    parts = [*nodes_in(model.graph.node), *(node for each in model.functions for node in nodes_in(each.node))]
    return Counter(node.op_type for node in parts if node.domain == DOMAIN)


def functions_of(model: nn.Module, *inputs: Tensor, **options: Any) -> onnx.ModelProto:
    """The model with functions. It is legal, and computes what it computes without them, by the same nodes."""
    given = inputs or (X,)
    wanted = options.pop("functions", True)
    options = {"dynamic_shapes": tuple({0: "n"} for _ in given), "verify": False, **options}
    plain = trueport.export(model.eval(), given, **options).model_proto
    program = trueport.export(model, given, functions=wanted, **options)
    made = program.model_proto
    onnx.checker.check_model(made, full_check=True)
    assert ir.from_proto(made).functions.keys() == program.model.functions.keys()
    assert counted(onnx.inliner.inline_local_functions(made)) == counted(plain)
    with torch.no_grad():
        returned = model(*given)
    expected = [returned] if isinstance(returned, Tensor) else list(returned)
    for got, without, eager in zip(answers(made, *given), answers(plain, *given), expected, strict=True):
        np.testing.assert_allclose(got, without, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got, eager.numpy(), rtol=1e-4, atol=1e-5)
    return made


class Block(nn.Module):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.up, self.down, self.scale = nn.Linear(8, 8), nn.Linear(8, 8), scale

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden + self.down(torch.relu(self.up(hidden))) * self.scale


class Stack(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Attention(nn.Module):
    """With the sizes, the mask and the rotation that layers of a decoder have in common."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8, bias=False) for _ in range(4))

    def forward(self, x: Tensor, cos: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (f(x).view(batch, length, 2, 4).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(q * cos, k * cos.unsqueeze(0), v, mask)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(), Norm(), Norm()
        self.gate, self.up, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor, *, cos: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, mask=mask)
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.tokens, self.head, self.norm = nn.Embedding(11, 8), nn.Linear(8, 11), Norm()
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(layers))

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])
        cos, mask = (places[:, None] * torch.arange(1.0, 5.0)).cos(), places[None, :] <= places[:, None]
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, cos=cos, mask=mask)
        return self.head(self.norm(x))


IDS = torch.arange(10).reshape(2, 5)
FREE = ({0: "batch", 1: "length"},)


def test_24_layers_of_a_decoder_are_one_body() -> None:
    made = trueport.export(Decoder(24).eval(), (IDS,), dynamic_shapes=FREE, functions=True, verify=False).model_proto
    assert calls(made) == {"DecoderLayer": 24, "Attention": 1, "Norm": 3}
    layer = next(each for each in made.functions if each.name == "DecoderLayer")
    assert layer.input[:2] == ["x", "cos"] and list(layer.output) == ["output"]
    assert {"attention.query.weight.transposed.joined", "norm1.weight", "gate.bias"} <= set(layer.input)
    assert len(made.graph.node) < 24 + 40  # what they have in common stands around them, once


class Basic(nn.Module):
    """A block of a ResNet; one that makes the picture smaller has a convolution on its shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.down = nn.Conv2d(inside, outside, 1, stride) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.down is None else self.down(x)))


def test_blocks_of_a_resnet_are_two_kinds_whatever_their_width() -> None:
    parts = [Basic(4, 4, 1), Basic(4, 4, 1), Basic(4, 8, 2), Basic(8, 8, 1), Basic(8, 16, 2), Basic(16, 16, 1)]
    made = functions_of(nn.Sequential(*parts), torch.randn(2, 4, 8, 8))
    assert calls(made) == {"Basic": 4, "Basic_2": 2}


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.first = inner, nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.first(x).tanh()) * 2


def test_a_module_that_is_called_twice_and_by_two_others() -> None:
    one = Block()
    assert calls(functions_of(Stack(one, one, Block()))) == {"Block": 3}
    made = functions_of(Stack(Around(one), Around(one), Around(Block())))
    assert calls(made) == {"Block": 1, "Around": 3}
    (inside,) = (node for each in made.functions for node in each.node if node.domain == DOMAIN)
    assert inside.op_type == "Block"


class Deciding(nn.Module):
    """What it decides by comes from outside, and is read inside of an arm and of a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.block = nn.Linear(8, 8), Block()

    def forward(self, x: Tensor, mean: Tensor) -> Tensor:
        y = self.first(x)
        if mean.sum() > 0:
            y = self.block(y) + x
        else:
            y = y * mean.max()
        while y.abs().sum() > 10:
            y = self.block(y * 0.25) * 0.25
        return y


class Decides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList(Deciding() for _ in range(2)), Block()

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(0)
        for layer in self.layers:
            x = layer(x, mean)
        if x.sum() > 0:
            x = self.last(x)
        for row in x:
            x = self.last(x) + row
        return x


@pytest.mark.parametrize("optimize", [True, False])
def test_branches_and_loops_in_blocks_and_blocks_in_them(optimize: bool) -> None:
    made = functions_of(Decides(), optimize=optimize)
    assert calls(made) == {"Deciding": 2, "Block": 2 + 2}
    # The name of a size is one size in the whole file, and two calls have different ones (onnxruntime's issue 17061).
    inner = [attribute.g for each in made.functions for node in each.node for attribute in node.attribute]
    ends = [end for graph in inner for end in (*graph.input, *graph.output)]
    assert ends and all(not size.dim_param for end in ends for size in end.type.tensor_type.shape.dim)


class Keeps(nn.Module):
    """Part of what it computes leaves it by an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        self.kept = torch.relu(self.linear(x)) * 3
        return self.kept.sin() + x


class ReadsKept(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Keeps(), Keeps()

    def forward(self, x: Tensor) -> Tensor:
        return self.other(self.one(x)) + self.one.kept


def test_what_leaves_a_block_by_an_attribute_is_an_output() -> None:
    made = functions_of(ReadsKept())
    assert calls(made) == {"Keeps": 2}  # nobody reads the second one's
    (keeps,) = made.functions
    assert keeps.output[0] == "output" and len(keeps.output) == 2


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, pair: tuple[Tensor, Tensor], *, by: Tensor, unused: Any = None) -> dict[str, Any]:
        y = self.linear(x) * by + pair[1]
        return {"hidden": y.relu(), "": y.tan(), "waves": (y.sin(), y.cos() * pair[0]), "nothing": None}


class TakesSeveral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Several(), Several()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first = self.one(x, (x.tan(), x.exp()), by=x.mean())
        second = self.other(first["hidden"], first["waves"], by=x.sum())
        return second["hidden"] + second[""] * first[""], *second["waves"]


def test_inputs_and_outputs_have_the_names_of_forward() -> None:
    (several,) = functions_of(TakesSeveral()).functions
    assert list(several.input) == ["x", "pair_0", "pair_1", "by", "linear.weight", "linear.bias"]
    assert list(several.output) == ["hidden", "value", "waves_0", "waves_1"]


def test_tied_weights_and_numbers_that_differ() -> None:
    one, tied, other = Block(), Block(), Block()
    tied.down.weight = tied.up.weight
    other.up.weight = one.up.weight  # as in another layer: each call names the same weight
    assert calls(functions_of(Stack(one, tied, other))) == {"Block": 2, "Block_2": 1}
    made = functions_of(Stack(*(Block(scale / 10) for scale in range(2, 6))))
    assert calls(made) == {"Block": 4} and len(made.functions[0].input) == 6
    same = functions_of(Stack(Block(0.3), Block(0.3)))
    assert len(same.functions[0].input) == 5 and not any(each.dims == [] for each in same.graph.initializer)


def test_names_that_are_no_names() -> None:
    odd = type("Add<1>.ä", (Block,), {})
    model = nn.Sequential()
    for name, part in {"a b/ä": odd(), "Add": type("Add", (Block,), {})(), "1": type("Add", (Block,), {})()}.items():
        model.add_module(name, part)
    made = functions_of(model)
    assert [each.name for each in made.functions] == ["Add_1___", "Add", "Add_2"]
    assert len({node.name for node in made.graph.node}) == 3


def test_only_the_classes_that_are_named() -> None:
    model = Stack(Around(Block()), Around(Block()))
    assert calls(functions_of(model, functions={Block})) == {"Block": 2}
    assert calls(functions_of(model, functions=[nn.Linear])) == {"Linear": 6}
    named = trueport.export(model, (X,), export_modules_as_functions={Around}, verify=False)
    assert named.report.functions == {"Around": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functions": "Block"}, "neither a bool nor classes"),
        ({"functions": {int}}, "neither a bool nor classes"),
        ({"functions": True, "export_modules_as_functions": {Block}}, "different things"),
        ({"functions": True, "opset_version": 13}, "IR version 8"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        trueport.export(Stack(Block()), (X,), **options)
    (found,) = refused.value.diagnostics
    assert found.code == ("TP601" if "opset_version" in options else "TP001")
    assert "opset_version=15" in found.fix or "opset_version" not in options


@pytest.mark.parametrize("opset", [15, 23])
def test_opsets_from_15_on(opset: int) -> None:
    made = functions_of(Decoder(2), IDS, dynamic_shapes=FREE, opset_version=opset)
    assert made.ir_version >= 8 and calls(made)["DecoderLayer"] == 2
    for each in made.functions:
        assert {known.domain: known.version for known in each.opset_import}[""] == opset


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.block = nn.Parameter(torch.randn(5, dtype=torch.complex64)), Block()

    def forward(self, x: Tensor) -> Tensor:
        return self.block(torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=8))


def test_complex_numbers() -> None:
    assert calls(functions_of(Stack(Complex(), Complex()))) == {"Complex": 2, "Block": 1}


class WritesInPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        y[:, 0] = 0
        return y.add_(1)


def test_verified_noted_and_told(tmp_path: Path) -> None:
    """The whole way: checked with its functions, lines in them, and what other tools are told of it."""
    file = tmp_path / "net.onnx"
    model = nn.Sequential(Stack(WritesInPlace(), WritesInPlace()), Decides()).eval()
    program = trueport.export(model, (X,), file, functions=True, dynamic_shapes=({0: "n"},), external_data=True)
    assert program.report.verified and program.report.ok
    assert program.report.functions["WritesInPlace"] == 2 and "Stack, 1 call" in program.report.text()
    assert json.loads(program.report.to_json())["functions"]["Stack"] == 1

    found = inspect_file(file)
    assert {each.name: each.calls for each in found.functions}[f"{DOMAIN}::WritesInPlace"] == 2
    assert found.nodes == program.report.nodes and any(each.operator == "Loop" for each in found.control_flow)

    written = onnx.load(file)
    every = [*written.graph.node, *(node for each in written.functions for node in each.node)]
    notes = [{entry.key: entry.value for entry in node.metadata_props} for node in every]
    assert not any("trueport.call" in each for each in notes)
    inside = next(each for each in written.functions if each.name == "WritesInPlace")
    places = [{entry.key: entry.value for entry in node.metadata_props} for node in inside.node]
    linear = next(each for each in places if each.get("trueport.module") == "linear")
    first = WritesInPlace.forward.__code__.co_firstlineno
    assert linear["trueport.source"].endswith(f"test_functions.py:{first + 1}")
    assert ast.literal_eval(linear["pkg.torch.onnx.name_scopes"])[:-1] == ["", "linear"]
    assert linear["pkg.torch.onnx.stack_trace"].count("File") == 1  # who called the block differs between calls
    graph = program.report.graph
    assert graph is not None
    (stack,) = (node for node in graph.nodes if node.op == f"{DOMAIN}::Stack")
    assert stack.bodies[0].nodes[-1].op == f"{DOMAIN}::WritesInPlace"
    assert "Stack" in program._repr_html_()

    lost = origin_of(file, "running Where node. Name:'_inlfunc_WritesInPlace_token_3_/linear/Gemm' Status")
    assert lost.place is not None and lost.place.where is not None and lost.place.where.line == first + 1
    made = made_at(file, "output")
    assert made is not None and made.where is not None
    assert made.where.line == Decides.forward.__code__.co_firstlineno + 6


def test_functions_that_call_themselves_are_left_alone(tmp_path: Path) -> None:
    """No runtime takes such a file; whoever looks into it comes back."""
    made = functions_of(Stack(Block()))
    made.functions[0].node[-1].domain, made.functions[0].node[-1].op_type = DOMAIN, "Block"
    onnx.save(made, tmp_path / "endless.onnx")
    assert made_at(tmp_path / "endless.onnx", "output") is None


def test_without_source_nothing_of_it_is_noted() -> None:
    made = functions_of(Stack(Block(), Block()), source=False)
    text = str(made)
    assert "test_functions" not in text and "stack_trace" not in text and "class_hierarchy" not in text


def test_the_work_grows_with_the_layers() -> None:
    """Counted in calls of Python functions, since clocks are for nobody."""
    from trueport.functions import stage

    def work(layers: int) -> int:
        count = 0

        def counting(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal count
            count += event == "call"

        def watched(*given: Any) -> None:
            sys.setprofile(counting)
            try:
                stage.write_functions(*given)
            finally:
                sys.setprofile(None)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trueport.run.write_functions", watched)
            trueport.export(Stack(*(Around(Block()) for _ in range(layers))), (X,), functions=True, verify=False)
        return count

    assert work(80) < 4.5 * work(20)
