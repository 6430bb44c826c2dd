"""Names and notes in the file that other tools know how to read: those of torch's own exporter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import onnx
import onnx_ir as ir
import torch
from torch import nn

import trueport

FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.proj(x)
        return y @ x.transpose(-1, -2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Attention()])
        self.add_module('it\'s "odd"\n', nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            if x.sum() > 0:
                x = x + layer(x) @ x
        return self.get_submodule('it\'s "odd"\n')(x)


def exported(model: nn.Module = Net(), **options: object) -> onnx.ModelProto:
    torch.manual_seed(0)
    program = trueport.export(model.eval(), (torch.ones(4, 4),), verify=False, **options)  # type: ignore[arg-type]
    proto: onnx.ModelProto = ir.to_proto(program.model)
    return proto


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes(attribute.g)


def notes(node: onnx.NodeProto) -> dict[str, str]:
    return {entry.key.removeprefix("pkg.torch.onnx."): entry.value for entry in node.metadata_props}


def test_nodes_are_called_by_their_scope_and_no_two_alike() -> None:
    names = [node.name for node in nodes(exported().graph)]
    assert len(set(names)) == len(names)
    assert {"/layers.0/MatMul", "/layers.0/proj/Gemm", "/layers.1/MatMul"} <= set(names)
    assert "/it_s__odd__/Gemm" in names  # what would be taken for the end of a name in a message is left out
    assert sum(re.fullmatch(r"/MatMul(_\d+)?", name) is not None for name in names) == 2


def test_scopes_and_classes_are_noted_as_torchs_exporter_does() -> None:
    [projection] = [node for node in nodes(exported().graph) if node.name == "/layers.0/proj/Gemm"]
    noted = notes(projection)
    assert ast.literal_eval(noted["name_scopes"])[:-1] == ["", "layers.0", "layers.0.proj"]
    here = f"{__name__}."
    assert ast.literal_eval(noted["class_hierarchy"]) == [
        f"{here}Net", f"{here}Attention", "torch.nn.modules.linear.Linear", "aten.linear.default"
    ]  # fmt: skip


def test_the_same_keys_have_the_same_form_in_a_file_of_torchs() -> None:
    """The last names differ: theirs are of an fx graph."""
    theirs = torch.onnx.export(Attention().eval(), (torch.ones(4, 4),), dynamo=True, verbose=False).model_proto
    ours = exported(Attention())
    for key in ("name_scopes", "class_hierarchy"):
        found = [
            {tuple(ast.literal_eval(notes(node)[key])[:-1]) for node in nodes(one.graph) if key in notes(node)}
            for one in (theirs, ours)
        ]
        assert found[0] == found[1]
    frames = [
        {FRAME.findall(notes(node).get("stack_trace", ""))[0][1:] for node in nodes(one.graph)}
        for one in (theirs, ours)
    ]
    assert frames[0] == frames[1]


def test_stack_traces_are_the_users_own_frames() -> None:
    [projection] = [node for node in nodes(exported().graph) if node.name == "/layers.0/proj/Gemm"]
    frames = FRAME.findall(notes(projection)["stack_trace"])
    assert [(file, function) for file, _, function in frames] == [("tests/lower/test_conventions.py", "forward")] * 2
    assert notes(projection)["trueport.source"] == f"{frames[-1][0]}:{frames[-1][1]}"


def test_without_source_there_are_scopes_only() -> None:
    for node in nodes(exported(source=False).graph):
        assert not {"stack_trace", "class_hierarchy", "trueport.source"} & set(notes(node))
        assert "name_scopes" in notes(node)


def test_a_function_is_called_what_it_is_called() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    program = trueport.export(twice, (torch.ones(2),), verify=False)
    [double] = [node for node in nodes(ir.to_proto(program.model).graph) if node.op_type == "Mul"]
    assert double.name == "/Mul" and "twice" in notes(double)["class_hierarchy"]


def test_notes_stay_small() -> None:
    """Some 350 bytes a node, and not a whole stack."""
    proto = exported()
    sizes = [sum(e.ByteSize() for e in node.metadata_props) for node in nodes(proto.graph)]
    assert max(sizes) < 600
