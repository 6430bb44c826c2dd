"""The runtime names a node; the finding names the user's line."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import helper

from tests.verify.onnx_models import BATCH, FLOAT, INT64, job, leaf, port, write
from trueport.verify.check import check_model
from trueport.verify.judging.reference import Reference
from trueport.verify.runtime.origin import Origin, origin_of


def noted(node: onnx.NodeProto, line: int) -> onnx.NodeProto:
    node.metadata_props.add(key="trueport.source", value=f"/home/user/model.py:{line}")
    node.metadata_props.add(key="trueport.module", value="encoder")
    return node


def reshaped(path: Path, name: str = "node_reshape") -> Path:
    """x reshaped to [3, 2], whatever its size, at line 23."""
    nodes = [
        noted(helper.make_node("Neg", ["x"], ["z"], name="node_neg"), 22),
        noted(helper.make_node("Reshape", ["z", "shape"], ["y"], name=name), 23),
    ]
    return write(path, nodes, [port("x")], [port("y", FLOAT, None)], {"shape": (INT64, [2], [3, 2])})


def test_an_input_that_is_refused_points_at_the_line_of_the_node(tmp_path):
    work = job(leaf("x", torch.randn(2, 3), {0: BATCH}))
    path = reshaped(tmp_path / "m.onnx")
    result = check_model(path, work, Reference(lambda values: -values[0].reshape(3, -1), lambda y: [y]), ["y"])
    assert result.diagnostics[0].code == "TP802"
    # The runtime's own sources, signatures and assertions are left out of its words.
    assert "Reshape (node_reshape): The input tensor cannot be reshaped" in result.diagnostics[0].message
    assert "onnxruntime" not in result.diagnostics[0].message
    assert str(result.diagnostics[0].where) == "/home/user/model.py:23"
    assert result.diagnostics[0].place.module == "encoder"


def test_a_model_that_does_not_load_points_at_the_line_of_the_operator(tmp_path):
    node = noted(helper.make_node("Frobnicate", ["x"], ["y"], name="node_y"), 7)
    path = write(tmp_path / "m.onnx", [node], [port("x")], [port("y")], {})
    result = check_model(path, job(leaf("x", torch.randn(2, 3))), Reference(lambda v: v[0], lambda y: [y]), ["y"])
    assert result.diagnostics[0].code == "TP801"
    assert str(result.diagnostics[0].where) == "/home/user/model.py:7"
    assert str(tmp_path) not in result.diagnostics[0].message


@pytest.mark.parametrize(
    ("complaint", "line"),
    [
        ("Non-zero status code returned while running Reshape node. Name:'node_reshape' Status", 23),
        ("Could not find an implementation for Neg(13) node with name 'node_neg'", 22),
        ('In Node, ("node_neg", Neg, "", -1) : ("x": tensor(float),)', 22),
        ("Node (node_reshape) Op (Reshape) [ShapeInferenceError]", 23),
        ("Could not find an implementation for Neg(13) node with name ''", 22),
    ],
)
def test_every_way_in_which_the_runtime_names_a_node(tmp_path, complaint, line):
    assert origin_of(reshaped(tmp_path / "m.onnx"), complaint).place.where.line == line


def test_nodes_inside_arms_and_functions_are_found(tmp_path):
    arm = helper.make_graph([noted(helper.make_node("Neg", ["x"], ["a"], name="node_a"), 31)], "arm", [], [port("a")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "other", [], [port("b")])
    branch = noted(helper.make_node("If", ["go"], ["y"], then_branch=arm, else_branch=other, name="node_if"), 30)
    call = noted(helper.make_node("gelu", ["y"], ["w"], domain="ours", name="node_gelu"), 40)
    path = write(tmp_path / "m.onnx", [branch, call], [port("x"), port("go", 9, [])], [port("w")], {})
    model = onnx.load(path)
    body = [helper.make_node("Erf", ["u"], ["v"])]
    model.functions.append(helper.make_function("ours", "gelu", ["u"], ["v"], body, [helper.make_opsetid("", 23)]))
    path.write_bytes(model.SerializeToString())
    assert origin_of(path, "while running Neg node. Name:'node_a'").place.where.line == 31
    assert origin_of(path, "Could not find an implementation for Erf(13) node with name ''").place.where.line == 40


def test_no_line_is_better_than_a_wrong_one(tmp_path):
    path = reshaped(tmp_path / "m.onnx")
    assert origin_of(path, "while running Gemm node. Name:'fused 1'") == Origin()
    assert origin_of(path, "something else") == Origin()
    (tmp_path / "bad.onnx").write_bytes(b"\xff" * 50)
    assert origin_of(tmp_path / "bad.onnx", "Name:'node_a'") == Origin()
    assert origin_of(tmp_path / "absent.onnx", "Name:'node_a'") == Origin()


def test_the_operator_its_opset_and_its_dtypes_are_told(tmp_path):
    cast = helper.make_node("Cast", ["x"], ["whole"], to=INT64, name="node_cast")
    shift = helper.make_node("BitShift", ["whole", "whole"], ["y"], direction="LEFT", name="node_shift")
    path = write(tmp_path / "m.onnx", [cast, shift], [port("x")], [port("y", INT64)], {})
    result = check_model(path, job(leaf("x", torch.randn(2, 3))), Reference(lambda v: v[0], lambda y: [y]), ["y"])
    assert result.diagnostics[0].code == "TP801"
    assert "the operator is BitShift of opset 23, given int64 and int64" in result.diagnostics[0].seen


def test_the_lines_that_torchs_own_exporter_notes_are_read_too(tmp_path):
    node = helper.make_node("Neg", ["x"], ["y"], name="node_neg")
    trace = ['File "/home/user/model.py", line 9, in forward', "    act(x)", 'File "/home/user/act.py", line 4, in act']
    trace += [
        f'File "{torch.nn.functional.__file__}", line 1700, in relu',
        'File "<eval_with_key>.7", line 5, in forward',
    ]
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="\n".join(trace))
    path = write(tmp_path / "m.onnx", [node], [port("x")], [port("y")], {})
    place = origin_of(path, "while running Neg node. Name:'node_neg'").place
    assert [str(call) for call in place.calls] == ["/home/user/model.py:9", "/home/user/act.py:4"]
